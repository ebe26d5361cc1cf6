"""Inputs for random programs, special values included, and what counts as equal."""

import numpy as np

from projects.uopc.checking import disagreement
from week01_uops.dtypes import DType
from week01_uops.node import UOp
from week01_uops.ops import parameters


def inputs_for(program: UOp, seed: int) -> dict[int, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {slot: _draw(node, generator) for slot, node in sorted(parameters(program).items())}


def _draw(node: UOp, generator: np.random.Generator) -> np.ndarray:
    """Small integers mostly, halves for floats, one element in ten special."""
    dtype = node.dtype
    if dtype.kind == "bool":
        return np.asarray(generator.integers(0, 2, node.shape), np.bool_)
    low = 0 if dtype.kind == "uint" else -6
    values = generator.integers(low, 7, node.shape)
    special = generator.random(node.shape) < 0.1
    if dtype.is_float:
        odd = generator.choice([np.inf, -np.inf, np.nan, 0.0, 1e-3], node.shape)
        return np.asarray(np.where(special, odd, values / 2.0)).astype(dtype.numpy)
    odd = generator.choice(np.array([dtype.min, dtype.max], dtype.numpy), node.shape)
    return np.asarray(np.where(special, odd, values.astype(dtype.numpy)), dtype.numpy)


def same(dtype: DType, expected: np.ndarray, got: np.ndarray) -> str | None:
    return disagreement(dtype, expected, got)
