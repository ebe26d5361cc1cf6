"""Products and sums of cotangents, kept small: constants join, what is uniform is a scalar."""

from __future__ import annotations

import math
from collections.abc import Sequence

from week01_uops.dtypes import DType
from week01_uops.node import CONST, UOp, const
from week01_uops.ops import MUL, NEG
from week03_loops.library import reduce_sum
from week03_loops.ops import EXPAND, FLIP, PERMUTE, RESHAPE, SHRINK, reshape

UNIFORM = frozenset({EXPAND, FLIP, PERMUTE, RESHAPE, SHRINK})
"""Ops that leave every element of a constant what it is."""


def constant_of(x: UOp) -> UOp | None:
    """The CONST that every element of x is, if it is one that was moved and repeated."""
    while x.op in UNIFORM:
        x = x.src[0]
    return x if x.op is CONST else None


def times(x: UOp, y: UOp) -> UOp:
    """x·y; a factor that is uniform counts as a scalar."""
    for one, other in ((x, y), (y, x)):
        known = constant_of(other)
        if known is not None:
            return scaled(one, known.arg.value)
    product: UOp = MUL(x, y)
    return product


def scaled(x: UOp, factor: float) -> UOp:
    """x·factor, one product: a constant factor of x takes it up if it can.

    1 leaves nothing, −1 a NEG at most. Constants are joined unless they over- or underflow.
    """
    x, factor = _taken_apart(x, factor)
    factor = x.dtype.round(factor)
    if factor == 1:
        return x
    if factor == -1:
        return _negated(x)
    product: UOp = MUL(x, const(factor, x.dtype))
    return product


def _taken_apart(x: UOp, factor: float) -> tuple[UOp, float]:
    """X without a constant factor that may join another one, and both together."""
    base, known = x, 1.0
    if x.op is NEG:
        base, known = x.src[0], -1.0
    elif x.op is MUL and x.src[1].op is CONST:
        base, known = x.src[0], x.src[1].arg.value
    elif x.op is CONST:
        base, known = const(1.0, x.dtype), x.arg.value
    return (base, known * factor) if _joins(known, factor, x.dtype) else (x, factor)


def _joins(one: float, other: float, dtype: DType) -> bool:
    size = abs(dtype.round(one * other))
    return math.isfinite(size) and size >= 2.0 ** (1 - dtype.max_exponent)


def _negated(x: UOp) -> UOp:
    result: UOp = const(-x.arg.value, x.dtype) if x.op is CONST else NEG(x)
    return result


def unbroadcast(x: UOp, shape: Sequence[int], over: Sequence[int]) -> UOp:
    """The cotangent of a source that was broadcast from `shape` to `over`, from that of the copies.

    Sums over the axes that grew; x may be smaller than `over`, and the result than `shape`. Where
    x does not have an axis that grew, n equal terms are n times one.
    """
    if tuple(shape) == tuple(over):
        return x
    new = len(over) - len(shape)
    grown = [a for a, size in enumerate(over) if a < new or shape[a - new] == 1 != size]
    sizes = [*[1] * (len(over) - len(x.shape)), *x.shape]
    summed = [a for a in grown if sizes[a] != 1]
    count = math.prod(over[a] for a in grown if a not in summed)
    if count == 0:
        return const(0.0, x.dtype)
    if x.shape:
        kept = [1 if a in grown else size for a, size in enumerate(sizes)][new:]
        x = reshape(reduce_sum(reshape(x, sizes), summed) if summed else x, kept)
    return scaled(x, float(count))
