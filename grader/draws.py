"""Inputs for a program: every value where they are few, else special values and random ones.

Draws are deterministic in the seed and the program's text. They respect the range of a PARAM, and
an integer array that is used as an index stays within the axis that it indexes.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from week01_uops.dtypes import DType
from week01_uops.errors import ProgramError
from week01_uops.node import UOp, toposort
from week01_uops.ops import PARAM, parameters
from week02_render.ops import INDEX

Array = np.ndarray[Any, Any]
Inputs = dict[int, Array]
Given = Mapping[int, Any] | Sequence[Mapping[int, Any]] | None
"""Inputs as tests write them: numbers, nested lists or arrays by slot; or several such."""

POINTS = 4096
EXHAUSTIVE = 1 << 16


def generator(seed: int, text: str, number: int = 0) -> np.random.Generator:
    """Random numbers that depend on the seed, the program and the number of the draw."""
    return np.random.default_rng([seed, zlib.crc32(text.encode("utf-8", "replace")), number])


def points(program: UOp, rng: np.random.Generator) -> Inputs | None:
    """For a program of scalar PARAMs: arrays of equal length, one point an element, else None.

    All points if there are at most 65536, else combinations of special values, then random ones.
    """
    params = parameters(program)
    if not params or any(p.shape for p in params.values()):
        return None
    if math.prod(_count(p) for p in params.values()) <= EXHAUSTIVE:
        axes = [_all_values(p) for p in params.values()]
        return dict(zip(params, _grid(axes), strict=True))
    few = [_shuffled(special_values(p), rng) for p in params.values()]
    some = max(2, int((POINTS // 2) ** (1 / len(few))))
    combined = _grid([values[:some] for values in few])
    return {
        slot: np.concatenate([first, _mixed(param, POINTS // 2, rng)])
        for (slot, param), first in zip(params.items(), combined, strict=True)
    }


def lift(program: UOp, count: int) -> UOp | None:
    """The program with PARAMs of shape [count] for scalar ones; None where shapes forbid it."""
    done: dict[UOp, UOp] = {}
    try:
        for node in toposort((program,)):
            if node.op is PARAM:
                arg = node.arg
                done[node] = PARAM(arg={"slot": arg.slot, "dtype": arg.dtype, "shape": [count]})
            else:
                done[node] = node.with_src(tuple(done[s] for s in node.src))
    except ProgramError:
        return None
    return done[program]


def draw(program: UOp, rng: np.random.Generator, *, special: bool) -> Inputs:
    """One array for every PARAM; `special` strews infinities, NaNs and extremes in."""
    limits = _index_limits(program)
    found = {}
    for slot, param in parameters(program).items():
        size = math.prod(param.shape)
        if slot in limits:
            values = rng.integers(0, max(limits[slot], 1), size).astype(param.dtype.numpy)
        elif special:
            values = _mixed(param, size, rng)
        else:
            values = _plain(param, size, rng)
        found[slot] = values.reshape(param.shape)
    return found


def given(program: UOp, inputs: Given) -> list[Inputs]:
    """Inputs written by hand, as arrays of the PARAMs' dtypes and shapes."""
    if inputs is None:
        return []
    many = [inputs] if isinstance(inputs, Mapping) else inputs
    return [_given(program, one) for one in many]


def _given(program: UOp, inputs: Mapping[int, Any]) -> Inputs:
    params = parameters(program)
    if set(inputs) != set(params):
        raise ValueError(f"expected inputs for the slots {sorted(params)}, got {sorted(inputs)}")
    return {slot: _array(inputs[slot], param) for slot, param in params.items()}


def _array(value: Any, param: UOp) -> Array:  # noqa: ANN401 - as tests write it
    """The value in the PARAM's dtype and shape: exact integers, floats rounded once."""
    dtype = param.dtype
    with np.errstate(all="ignore"):
        if isinstance(value, np.ndarray):
            found = value.astype(dtype.numpy)
        else:
            exact = np.array(value, dtype=np.float64 if dtype.is_float else object)
            found = exact.astype(dtype.numpy)
    return found.reshape(param.shape)


def bounds(param: UOp) -> tuple[int, int]:
    """The smallest and largest value of an integer or bool PARAM."""
    low, high = param.arg.range or (param.dtype.min, param.dtype.max)
    return low, high


def special_values(param: UOp) -> Array:
    """The values at which arithmetic is most often wrong."""
    dtype = param.dtype
    if dtype.is_float:
        return _special_floats(dtype)
    low, high = bounds(param)
    near = (low, low + 1, -2, -1, 0, 1, 2, 3, 7, 64, high // 2, high - 1, high)
    values = sorted({v for v in near if low <= v <= high}, key=lambda v: (abs(v), v))
    return np.array(values, dtype=dtype.numpy)


def _special_floats(dtype: DType) -> Array:
    largest = math.ldexp(2 - 2.0 ** (1 - dtype.precision), dtype.max_exponent)
    normal = math.ldexp(1.0, 1 - dtype.max_exponent)
    tiny = math.ldexp(1.0, 2 - dtype.max_exponent - dtype.precision)
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 2.0, 3.0, -1.5]
    return np.array([*values, largest, -largest, normal, tiny, -tiny]).astype(dtype.numpy)


def _count(param: UOp) -> int:
    if param.dtype.is_float:
        return 1 << param.dtype.bits
    low, high = bounds(param)
    return high - low + 1


def _all_values(param: UOp) -> Array:
    dtype = param.dtype
    if dtype.is_float:
        return np.arange(1 << dtype.bits, dtype=f"uint{dtype.bits}").view(dtype.numpy)
    low, high = bounds(param)
    return np.array(range(low, high + 1)).astype(dtype.numpy)


def _grid(axes: list[Array]) -> list[Array]:
    return [grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]


def _shuffled(values: Array, rng: np.random.Generator) -> Array:
    return rng.permutation(values)


def _plain(param: UOp, size: int, rng: np.random.Generator) -> Array:
    """Ordinary numbers: normal floats, small integers."""
    dtype = param.dtype
    if dtype.is_float:
        return rng.standard_normal(size).astype(dtype.numpy)
    low, high = bounds(param)
    return _integers(max(low, -8), min(high, 8), param, size, rng)


def _integers(low: int, high: int, param: UOp, size: int, rng: np.random.Generator) -> Array:
    """Uniform in [low, high], or in the PARAM's own range where that is empty."""
    if low > high:
        low, high = bounds(param)
    kind = np.dtype(np.uint64 if low >= 0 else np.int64)
    return rng.integers(low, high, size, dtype=kind.type, endpoint=True).astype(param.dtype.numpy)


def _mixed(param: UOp, size: int, rng: np.random.Generator) -> Array:
    """A third each of ordinary, far-reaching and special values."""
    plain = _plain(param, size, rng)
    if param.dtype.is_float:
        scale = np.exp2(rng.integers(-12, 12, size)).astype(param.dtype.numpy)
        wide = (plain * scale).astype(param.dtype.numpy)
    else:
        wide = _integers(*bounds(param), param, size, rng)
    special = rng.choice(special_values(param), size)
    return np.choose(rng.integers(0, 3, size), [plain, wide, special])


def _index_limits(program: UOp) -> dict[int, int]:
    """For each integer PARAM that an INDEX depends on, the smallest axis that it indexes."""
    found: dict[int, int] = {}
    for node in program.toposort():
        if node.op is not INDEX:
            continue
        for axis, item in zip(node.src[0].shape, node.src[1:], strict=False):
            for param in _array_params(item):
                found[param.arg.slot] = min(axis, found.get(param.arg.slot, axis))
    return found


def _array_params(index: UOp) -> Iterator[UOp]:
    for node in toposort((index,)):
        if node.op is PARAM and node.dtype.is_int and node.arg.range is None:
            yield node


def shown(inputs: Mapping[int, Array], limit: int = 8) -> str:
    """Inputs on one line, long arrays cut."""
    parts = []
    for slot, array in sorted(inputs.items()):
        values = [str(v) for v in itertools.islice(np.ravel(array), limit)]
        more = ", …" if np.size(array) > limit else ""
        text = values[0] if np.ndim(array) == 0 else f"[{', '.join(values)}{more}]"
        parts.append(f"slot {slot} = {text}")
    return ", ".join(parts)
