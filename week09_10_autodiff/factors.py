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
    return _node(MUL(x, y))


def scaled(x: UOp, factor: float) -> UOp:
    """x·factor, one product: a constant factor of x takes it up if it can.

    1 leaves nothing, −1 a NEG at most. Constants are joined unless they over- or underflow.
    """
    base, known = _apart(x)
    if not _joins(known, factor, x.dtype):
        base, known = x, 1.0
    factor = x.dtype.round(known * factor)
    if base is None:
        return const(factor, x.dtype)
    if abs(factor) == 1:
        return base if factor == 1 else _node(NEG(base))
    return _node(MUL(base, const(factor, x.dtype)))


def _apart(x: UOp) -> tuple[UOp | None, float]:
    """X without a constant factor, and the factor; of a CONST nothing else is left."""
    if x.op is NEG:
        return x.src[0], -1.0
    if x.op is MUL and x.src[1].op is CONST:
        return x.src[0], x.src[1].arg.value
    if x.op is CONST:
        return None, x.arg.value
    return x, 1.0


def _joins(one: float, other: float, dtype: DType) -> bool:
    size = abs(dtype.round(one * other))
    return math.isfinite(size) and size >= 2.0 ** (1 - dtype.max_exponent)


def _node(node: UOp) -> UOp:
    """The type of what an op gives when applied to nodes."""
    return node


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
