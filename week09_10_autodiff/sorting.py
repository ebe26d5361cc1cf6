"""Order: the position of the largest, and sorting, made of comparisons and sums.

NaN counts as larger than everything, as in PyTorch and NumPy, and equal elements keep their order,
so that a sort puts elements into a strict order, "x comes before y", of values and positions.
"""

from __future__ import annotations

import math

from week01_uops.dtypes import Value, bool_, int64
from week01_uops.node import UOp
from week03_loops import library as lib
from week03_loops.library.check import axis_of, expect
from week03_loops.ops import flip, reshape
from week09_10_autodiff.movement import pad

SHORT = 1 << 16
"""Up to this length each element is compared with every other one, n² steps of a short program. A
longer axis goes through a sorting network, of ½·log₂² n stages, each of which must be compiled."""

LONG = 2048
"""The first few of an axis longer than this are found in blocks."""


def argmax(x: UOp, axis: int | None, keepdim: bool, *, least: bool = False) -> UOp:
    """The first position of the largest element, or the least; of NaN if there is one. int64."""
    name = "argmin" if least else "argmax"
    at = 0 if axis is None else axis_of(name, axis, len(x.shape))
    line = reshape(x, (x.size,)) if axis is None else x
    count = line.shape[at]
    expect(count > 0, "E403", f"{name}: expected an axis that is not empty", x)
    reduce = lib.reduce_min if least else lib.reduce_max
    hit = _is(line, reduce(line, at, keepdim=True))
    places = lib.where(hit, _along(count, at, len(line.shape)), count)
    found = lib.reduce_min(places, at, keepdim=keepdim)
    return reshape(found, [1] * len(x.shape)) if axis is None and keepdim else found


def _along(count: int, axis: int, rank: int) -> UOp:
    """0 … count − 1 along an axis."""
    return reshape(lib.arange(count), (count, *[1] * (rank - axis - 1)))


def _before(x: UOp, y: UOp, descending: bool) -> UOp:
    """Whether x comes before y by value alone."""
    first, second = (y, x) if descending else (x, y)
    less = (
        lib.lt(first, second) if x.dtype is not bool_ else lib.mul(lib.logical_not(first), second)
    )
    if not x.dtype.is_float:
        return less
    nan = lib.mul(lib.ne(second, second), lib.eq(first, first))
    return lib.maximum(less, nan)


def argsort(x: UOp, axis: int, descending: bool) -> UOp:
    """The positions that sort an axis, equal elements in their order. int64."""
    return sort(x, axis, descending)[1]


def sort(x: UOp, axis: int, descending: bool) -> tuple[UOp, UOp]:
    """An axis in order, and the positions that its elements come from."""
    if not x.shape:
        return x, lib.full(0, int64, ())
    at = axis_of("sort", axis, len(x.shape))
    rows = lib.move_axis(x, at, -1)
    positions = _positions(rows, descending)
    values = lib.gather(rows, positions, -1)
    return lib.move_axis(values, -1, at), lib.move_axis(positions, -1, at)


def _by_counting(x: UOp, descending: bool) -> UOp:
    """The positions that sort the last axis: an element's rank is how many come before it.

    The element of rank r stands at Σᵢ i·[rankᵢ = r].
    """
    count = x.shape[-1]
    one, other = lib.unsqueeze(x, -1), lib.unsqueeze(x, -2)
    here, there = lib.unsqueeze(lib.arange(count), 1), lib.arange(count)
    tie = lib.mul(lib.logical_not(_before(one, other, descending)), lib.lt(there, here))
    earlier = lib.maximum(_before(other, one, descending), tie)
    ranks = lib.reduce_sum(lib.cast(earlier, int64), -1)
    places = lib.eq(lib.unsqueeze(ranks, -2), lib.unsqueeze(lib.arange(count), 1))
    return lib.reduce_sum(lib.where(places, lib.arange(count), 0), -1)


def _by_network(x: UOp, descending: bool) -> UOp:
    """The positions that sort the last axis, by Batcher's bitonic network over a power of two.

    To merge two sorted halves of a block, each element is exchanged with its mirror image in the
    block if they are out of order, then with the one half as far away, and so on. What fills up to
    the power of two comes last: the last value there is, at positions behind all others.
    """
    count = x.shape[-1]
    size = 1 << (count - 1).bit_length()
    margins = [*[(0, 0)] * (len(x.shape) - 1), (0, size - count)]
    values = pad(x, margins, _last(x, descending))
    positions = lib.add(lib.arange(size), lib.full(0, int64, values.shape))
    block = 2
    while block <= size:
        values, positions = _exchange(values, positions, block, descending, mirror=True)
        span = block // 2
        while span > 1:
            values, positions = _exchange(values, positions, span, descending, mirror=False)
            span //= 2
        block *= 2
    return lib.narrow(positions, -1, 0, count)


def _last(x: UOp, descending: bool) -> Value:
    """The value that comes last in this order."""
    if x.dtype is bool_:
        return not descending
    if x.dtype.is_float:
        return -math.inf if descending else math.nan
    return x.dtype.min if descending else x.dtype.max


def _exchange(
    values: UOp, positions: UOp, block: int, descending: bool, *, mirror: bool
) -> tuple[UOp, UOp]:
    """Each element of a block against its partner in the other half; the earlier one goes first."""
    size = values.shape[-1]
    high = reshape(lib.ge(lib.arange(2), 1), (2, 1))

    def split(x: UOp) -> UOp:
        return reshape(x, (*x.shape[:-1], size // block, 2, block // 2))

    def partner(x: UOp) -> UOp:
        rank = len(x.shape)
        return flip(x, [rank - 2, rank - 1] if mirror else [rank - 2])

    mine, here = split(values), split(positions)
    theirs, there = partner(mine), partner(here)
    tie = lib.mul(lib.logical_not(_before(mine, theirs, descending)), lib.lt(there, here))
    earlier = lib.maximum(_before(theirs, mine, descending), tie)
    swap = lib.ne(earlier, high)
    shape = values.shape
    return (
        reshape(lib.where(swap, theirs, mine), shape),
        reshape(lib.where(swap, there, here), shape),
    )


def topk(x: UOp, count: int, axis: int, largest: bool) -> tuple[UOp, UOp]:
    """The first elements of a sorted axis, and the positions that they come from."""
    at = axis_of("topk", axis, max(len(x.shape), 1))
    length = x.shape[at] if x.shape else 1
    good = 0 <= count <= length
    expect(good, "E311", f"topk: expected k from 0 to {length}, the axis, got {count}", x)
    if not x.shape:
        return sort(x, axis, largest)
    rows = lib.move_axis(x, at, -1)
    positions = _heads(rows, count, largest)
    values = lib.gather(rows, positions, -1)
    return lib.move_axis(values, -1, at), lib.move_axis(positions, -1, at)


def _heads(x: UOp, count: int, descending: bool) -> UOp:
    """Where the first `count` of the sorted last axis stand.

    Of n elements in blocks of b, those of each block, then of these n/b·count: n·b + (n/b·count)²
    comparisons, fewest for b³ = 2·n·count². Blocks and candidates stand in the order of the axis,
    so that of equal elements the first one wins.
    """
    length = x.shape[-1]
    block = max(count, round((2 * length * count**2) ** (1 / 3)), 1)
    blocks = -(-length // block)
    if length <= LONG or blocks < 4:
        return lib.narrow(_positions(x, descending), -1, 0, count)
    margins = [*[(0, 0)] * (len(x.shape) - 1), (0, blocks * block - length)]
    rows = reshape(pad(x, margins, _last(x, descending)), (*x.shape[:-1], blocks, block))
    near = lib.narrow(_positions(rows, descending), -1, 0, count)
    starts = lib.mul(_along(blocks, 0, 2), block)
    shape = (*x.shape[:-1], blocks * count)
    far = reshape(lib.add(near, starts), shape)
    best = reshape(lib.gather(rows, near, -1), shape)
    return lib.gather(far, lib.narrow(_positions(best, descending), -1, 0, count), -1)


def _positions(x: UOp, descending: bool) -> UOp:
    """The positions that sort the last axis."""
    by = _by_counting if x.shape[-1] <= SHORT else _by_network
    return by(x, descending)


def _is(x: UOp, value: UOp) -> UOp:
    """Whether x is the value; NaN is NaN."""
    same = lib.eq(x, value)
    return (
        lib.maximum(same, lib.mul(lib.ne(x, x), lib.ne(value, value))) if x.dtype.is_float else same
    )
