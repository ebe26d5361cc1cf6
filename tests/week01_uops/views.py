"""Index arithmetic of movement ops, by hand: from an index of the result to one of the source."""

import math
from collections.abc import Sequence

from week01_uops.dtypes import bool_, int64
from week01_uops.node import UOp, const
from week01_uops.ops import ADD, CMPLT, FLOORDIV, FLOORMOD, MUL, param

Index = list[UOp]


def axes(shape: Sequence[int]) -> Index:
    """One PARAM an axis, as a loop's counter would be."""
    return [param(k, int64, (), (0, size - 1)) for k, size in enumerate(shape)]


def flat(index: Index, shape: Sequence[int]) -> UOp:
    """The row-major offset."""
    offset = const(0, int64)
    for i, size in zip(index, shape, strict=True):
        offset = ADD(MUL(offset, size), i)
    return offset


def unflat(offset: UOp, shape: Sequence[int]) -> Index:
    """The index at a row-major offset."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [FLOORMOD(FLOORDIV(offset, s), n) for s, n in zip(strides, shape, strict=True)]


def reshape(index: Index, shape: Sequence[int], source: Sequence[int]) -> Index:
    """Of a result of `shape`, an index into `source`."""
    return unflat(flat(index, shape), source)


def permute(index: Index, order: Sequence[int]) -> Index:
    """Axis k of the result is axis order[k] of the source."""
    source: Index = [index[0]] * len(index)
    for k, axis in enumerate(order):
        source[axis] = index[k]
    return source


def flip(index: Index, shape: Sequence[int], which: Sequence[int]) -> Index:
    """Axes read backwards."""
    return [
        ADD(MUL(i, -1), n - 1) if axis in which else i
        for axis, (i, n) in enumerate(zip(index, shape, strict=True))
    ]


def shrink(index: Index, starts: Sequence[int]) -> Index:
    """Axes that begin further in."""
    return [ADD(i, start) for i, start in zip(index, starts, strict=True)]


def pad(index: Index, before: Sequence[int], source: Sequence[int]) -> tuple[Index, UOp]:
    """Axes with margins: the index into the source, and whether it is inside."""
    inside = const(True, bool_)
    moved = [ADD(i, -margin) for i, margin in zip(index, before, strict=True)]
    for i, n in zip(moved, source, strict=True):
        inside = MUL(inside, MUL(CMPLT(-1, i), CMPLT(i, n)))
    return moved, inside
