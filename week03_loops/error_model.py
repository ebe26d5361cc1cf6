"""A-priori error bounds of week 3's ops: movement carries them along, reduction adds them up."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from week01_uops import error_model as week01
from week01_uops.dtypes import DType, bfloat16, float16, float32
from week01_uops.error_model import (
    LEAST,
    WORKING,
    Bounded,
    least_normal,
    overflow,
    rounded,
    settled,
    unit,
)
from week01_uops.evaluate import Inputs, Meaning, Scope
from week01_uops.node import Op, UOp
from week01_uops.numerics import Array
from week01_uops.ops import ADD, MAX
from week03_loops import evaluate as plain
from week03_loops import ops
from week03_loops.evaluate import Move


def _movement(move: Move) -> Meaning:
    def meaning(scope: Scope, node: UOp) -> Bounded:
        x: Bounded = scope.values[node.src[0]]
        error = np.broadcast_to(x.error, x.value.shape)
        return Bounded(move(x.value, node.arg, 0), move(error, node.arg, 0))

    return meaning


def _reduce(scope: Scope, node: UOp) -> Bounded:
    x: Bounded = scope.values[node.src[0]]
    axes = tuple(range(node.arg.axes))
    error = np.broadcast_to(x.error, x.value.shape)
    op, dtype = node.arg.op, node.dtype
    if not dtype.is_float:
        value = plain.narrow(dtype, plain.combine(op, dtype, x.value, axes))
        return Bounded(value, np.where(error.sum(axes) == 0, 0.0, np.inf))
    value = plain.combine(op, dtype, x.value, axes).astype(np.float64)
    if op is MAX:
        zeros, negative = x.value == 0, np.signbit(x.value)
        either = (value == 0) & (zeros & negative).any(axes) & (zeros & ~negative).any(axes)
        return Bounded(value, error.max(axes, initial=0.0) + np.where(either, LEAST, 0))
    count = math.prod(x.value.shape[: len(axes)])
    held = float32 if dtype in (float16, bfloat16) else dtype
    accumulate = _sum if op is ADD else _product
    return accumulate(dtype, held, value, Bounded(x.value, error), axes, count)


def _sum(
    dtype: DType, held: DType, value: Array, x: Bounded, axes: tuple[int, ...], count: int
) -> Bounded:
    """Σ e plus (n − 1)·u·Σ(|x| + e) in any order; open where Σ|x| may overflow."""
    finite = np.isfinite(x.value)
    caused = x.error.sum(axes)
    size = np.where(finite, np.abs(x.value), 0.0).sum(axes) + caused
    growth = _growth(held, count)
    error = np.where(size * (1 + growth) >= overflow(held), np.inf, caused + growth * size)
    error = np.where(~finite.all(axes) & np.isfinite(error), 0.0, error)
    return _finished(dtype, held, value, error)


def _product(
    dtype: DType, held: DType, value: Array, x: Bounded, axes: tuple[int, ...], count: int
) -> Bounded:
    """Π(|x| + e) − Π|x| plus (n − 1)·u·Π(|x| + e); open where a part may over- or underflow."""
    sizes = np.abs(x.value) + x.error
    size = sizes.prod(axes)
    sure = x.error.sum(axes) == 0
    growth = _growth(held, count)
    error = np.where(sure, 0.0, size - np.abs(value)) + growth * size
    largest = np.maximum(sizes, 1).prod(axes)
    small = np.isfinite(sizes) & (sizes > 0)
    smallest = np.where(small, np.minimum(sizes, 1), 1).prod(axes)
    inside = (largest * (1 + growth) < overflow(held)) & (smallest >= least_normal(held))
    unbounded = ~np.isfinite(x.value).all(axes) & sure & (smallest >= least_normal(held))
    return _finished(dtype, held, value, np.where(inside, error, np.where(unbounded, 0, np.inf)))


def _growth(held: DType, count: int) -> float:
    """n·u / (1 − n·u) for the n − 1 roundings of an accumulation, and for the value's own."""
    steps = max(count - 1, 0) * (unit(held) + WORKING)
    return steps / (1 - steps) if steps < 1 else math.inf


def _finished(dtype: DType, held: DType, value: Array, error: Array) -> Bounded:
    """What was accumulated in `held`, rounded to the dtype."""
    return settled(dtype, value, error) if held is dtype else rounded(dtype, value, error)


MEANING: Mapping[Op, Meaning] = {
    **week01.MEANING,
    ops.RESHAPE: _movement(plain.reshape),
    ops.EXPAND: _movement(plain.expand),
    ops.PERMUTE: _movement(plain.permute),
    ops.FLIP: _movement(plain.flip),
    ops.PAD: _movement(plain.pad),
    ops.SHRINK: _movement(plain.shrink),
    ops.REDUCE: _reduce,
}


def evaluate_with_error(program: UOp, inputs: Inputs) -> list[Bounded]:
    """The outputs of a tensor-level program, each with the error that a right answer may have."""
    return week01.evaluate_with_error(program, inputs, MEANING)
