"""Integers with ranges: single rules, and the indices of whole chains of movement ops."""

import itertools
import math
import random

import pytest

from tests.week01_uops.meaning import difference
from tests.week01_uops.prove import text
from tests.week01_uops.views import axes, flat, flip, pad, permute, reshape, shrink, unflat
from week01_uops.dtypes import int8, int32, int64, uint8
from week01_uops.given import given
from week01_uops.node import UOp, const
from week01_uops.ops import (
    ADD,
    CMPLT,
    FLOORDIV,
    FLOORMOD,
    MAX,
    MUL,
    NEG,
    WHERE,
    param,
)
from week01_uops.simplify import SIMPLIFY, simplify

x, y = param(0, int32), param(1, int32)
i, j, k = axes((8, 16, 32))


def ops_of(*nodes: UOp) -> set:
    return {node.op for root in nodes for node in root.toposort()}


def divides(*nodes: UOp) -> bool:
    return bool(ops_of(*nodes) & {FLOORDIV, FLOORMOD})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # sums
        (ADD(x, x), MUL(x, 2)),
        (ADD(MUL(x, 3), NEG(x)), MUL(x, 2)),
        (ADD(ADD(x, 3), 4), ADD(x, 7)),
        (ADD(ADD(x, 3), y), ADD(ADD(x, y), 3)),
        (MUL(ADD(x, 3), 2), ADD(MUL(x, 2), 6)),
        (NEG(ADD(x, 3)), ADD(NEG(x), -3)),
        (ADD(MUL(x, 3), MUL(y, 3)), MUL(ADD(x, y), 3)),
        (ADD(ADD(x, y), NEG(ADD(y, x))), const(0, int32)),
        (MUL(param(0, uint8), 255), NEG(param(0, uint8))),
        (ADD(MUL(param(0, int8), 127), param(0, int8)), MUL(param(0, int8), -128)),
        (MUL(MUL(param(0, int8), 16), 16), const(0, int8)),
        # quotients and remainders of sums
        (FLOORDIV(ADD(MUL(i, 16), j), 16), i),
        (FLOORMOD(ADD(MUL(i, 16), j), 16), j),
        (FLOORDIV(ADD(MUL(i, 4), const(3, int64)), 2), ADD(MUL(i, 2), 1)),
        (FLOORDIV(ADD(MUL(i, 16), j), 64), FLOORDIV(i, 4)),
        (FLOORMOD(ADD(MUL(i, 16), j), 64), ADD(MUL(FLOORMOD(i, 4), 16), j)),
        (FLOORMOD(ADD(MUL(x, 8), y), 8), FLOORMOD(y, 8)),
        (FLOORDIV(i, 8), const(0, int64)),
        (FLOORMOD(i, 8), i),
        (FLOORDIV(ADD(i, 40), 8), const(5, int64)),
        (FLOORMOD(ADD(i, 40), 8), i),
        (FLOORDIV(ADD(MUL(i, -1), 7), 8), const(0, int64)),
        (FLOORDIV(NEG(i), 8), FLOORDIV(NEG(i), 8)),
        (FLOORDIV(ADD(MUL(i, 33), k), 32), ADD(FLOORDIV(ADD(i, k), 32), i)),
        (FLOORDIV(ADD(k, 32), 4), ADD(FLOORDIV(k, 4), 8)),
        # of one another
        (FLOORDIV(FLOORDIV(x, 3), 5), FLOORDIV(x, 15)),
        (FLOORDIV(ADD(FLOORDIV(k, 4), 3), 8), FLOORDIV(ADD(k, 12), 32)),
        (FLOORMOD(FLOORMOD(x, 12), 4), FLOORMOD(x, 4)),
        (FLOORDIV(FLOORMOD(x, 12), 4), FLOORMOD(FLOORDIV(x, 4), 3)),
        (FLOORMOD(FLOORDIV(x, 4), 1 << 30), FLOORMOD(FLOORDIV(x, 4), 1 << 30)),
        # meeting in a sum
        (ADD(FLOORMOD(x, 7), MUL(FLOORDIV(x, 7), 7)), x),
        (ADD(MUL(FLOORMOD(x, 7), 3), MUL(FLOORDIV(x, 7), 21)), MUL(x, 3)),
        (ADD(x, MUL(FLOORDIV(x, 7), -7)), FLOORMOD(x, 7)),
        (ADD(x, NEG(FLOORMOD(x, 7))), MUL(FLOORDIV(x, 7), 7)),
        (ADD(FLOORMOD(x, 7), MUL(FLOORMOD(FLOORDIV(x, 7), 5), 7)), FLOORMOD(x, 35)),
        # divisors that are not positive constants
        (FLOORDIV(i, -8), FLOORDIV(NEG(i), 8)),
        (FLOORMOD(i, -3), NEG(FLOORMOD(NEG(i), 3))),
        (FLOORDIV(MUL(i, ADD(j, 1)), ADD(j, 1)), i),
        (FLOORMOD(MUL(i, ADD(j, 1)), ADD(j, 1)), const(0, int64)),
        (FLOORMOD(i, ADD(j, 8)), i),
        # decided by ranges
        (MAX(i, 7), const(7, int64)),
        (MAX(ADD(i, 3), ADD(i, 5)), ADD(i, 5)),
        (WHERE(CMPLT(i, 8), x, y), x),
        (WHERE(CMPLT(x, y), y, x), MAX(x, y)),
    ],
    ids=lambda node: text(node)[:60],
)
def test_fires(before, after):
    assert simplify(before) is after
    assert simplify(after) is after


big = param(0, int64, (), (0, 1 << 62))


@pytest.mark.parametrize(
    "program",
    [
        FLOORDIV(ADD(x, 8), 8),
        FLOORDIV(MUL(x, 8), 8),
        FLOORMOD(ADD(MUL(x, 7), y), 7),
        FLOORDIV(ADD(MUL(big, 4), i), 4),
        FLOORDIV(MUL(x, y), y),
        FLOORMOD(MUL(x, y), y),
        FLOORDIV(x, -8),
        FLOORMOD(x, -3),
        MAX(ADD(x, 3), ADD(x, 5)),
        FLOORDIV(ADD(MUL(i, 5), j), 8),
        FLOORMOD(x, y),
        FLOORDIV(FLOORDIV(x, 1 << 20), 1 << 20),
    ],
    ids=lambda node: text(node)[:60],
)
def test_declines_where_it_may_wrap_or_ranges_do_not_decide(program):
    assert simplify(program) is program


def test_a_chain_of_many_sums():
    """Sums that are too long for a form stay what they are, in linear time."""
    total = param(0, int64)
    for slot in range(1, 20_001):
        total = ADD(total, param(slot, int64))
    assert len(simplify(total).toposort()) == 40_001


# Movement ops.


def test_reshape_and_back_is_nothing():
    for shape, other in (((8, 16), (128,)), ((6, 10), (4, 15)), ((2, 3, 5, 7), (10, 21))):
        index = axes(shape)
        there = reshape(index, shape, other)
        back = reshape(there, other, shape)
        assert [simplify(n) for n in back] == index, (shape, other)


def test_flatten_and_unflatten_leave_no_division():
    shape = (3, 5, 7, 2)
    index = axes(shape)
    for cut in range(1, 4):
        merged = (math.prod(shape[:cut]), math.prod(shape[cut:]))
        offset = simplify(flat(reshape(index, shape, merged), merged))
        assert offset is simplify(flat(index, shape))
        assert not divides(offset)


def test_a_split_axis_is_merged_again():
    """(i // 4, i mod 4) of an axis of 32, as (8, 4), back to 32."""
    (i,) = axes((32,))
    split = [simplify(n) for n in reshape([i], (32,), (8, 4))]
    assert split == [FLOORDIV(i, 4), FLOORMOD(i, 4)]
    assert [simplify(n) for n in reshape(split, (8, 4), (32,))] == [i]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_transposes_of_an_image(order):
    """From any order of (N, C, H, W) to its offset: one multiple an axis, and sums."""
    shape = (2, 3, 5, 7)
    index = axes([shape[axis] for axis in order])
    offset = simplify(flat(permute(index, order), shape))
    assert not divides(offset)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(4)]
    expected = const(0, int64)
    for place, axis in enumerate(order):
        expected = ADD(expected, MUL(index[place], strides[axis]))
    assert offset is simplify(expected)


def test_flip_twice_is_nothing():
    shape = (4, 6)
    index = axes(shape)
    assert [simplify(n) for n in flip(flip(index, shape, [0, 1]), shape, [0, 1])] == index


def test_a_flipped_flat_view():
    """Flipping all of a flattened array flips each of its axes."""
    shape = (4, 6)
    index = axes(shape)
    once = flip(reshape(index, shape, (24,)), (24,), [0])
    assert [simplify(n) for n in reshape(once, (24,), shape)] == [
        simplify(n) for n in flip(index, shape, [0, 1])
    ]


def test_windows_of_a_convolution():
    """Windows made by repeating, shrinking and reshaping: index o·s + k, no division.

    An axis of n is repeated, cut to kernel·(n + 1), read as (kernel, n + 1), cut to multiples of
    the stride. This is how windows are made of movement ops alone.
    """
    n, kernel, stride = 14, 3, 2
    out = (n - kernel) // stride + 1
    window, position = axes((kernel, out))
    row = (kernel, n + 1)
    offset = flat([window, MUL(position, stride)], row)
    index = simplify(FLOORMOD(offset, n))
    assert index is simplify(ADD(MUL(position, stride), window))


def test_masks_of_padding_are_ranges():
    index, inside = pad(axes((10, 12)), (1, 2), (8, 8))
    i, j = axes((10, 12))
    assert [simplify(n) for n in index] == [ADD(i, -1), ADD(j, -2)]
    parts = {CMPLT(0, i), CMPLT(i, 9), CMPLT(1, j), CMPLT(j, 10)}
    assert set(simplify(inside).toposort()) >= parts


def test_a_shrunk_padding_has_no_mask():
    index = shrink(axes((8, 8)), (1, 2))
    back, inside = pad(index, (1, 2), (8, 8))
    assert simplify(inside) is const(True, inside.dtype)
    assert [simplify(n) for n in back] == axes((8, 8))


def test_behind_a_mask_an_index_is_simpler():
    """A padded axis read through a reshape: the quotient is gone where the mask holds."""
    (i,) = axes((40,))
    moved, inside = pad([i], (4,), (32,))
    row, column = (simplify(n) for n in reshape(moved, (32,), (4, 8)))
    mask = simplify(inside)
    assert divides(simplify(flat([row, column], (4, 8))))
    assert given(mask, simplify(flat([row, column], (4, 8))), SIMPLIFY) is ADD(i, -4)


def chain(rng: random.Random) -> tuple[list[UOp], list[int]]:
    """A random chain of movement ops of a few factors: the index and the shape it points into."""
    factors = [rng.choice((2, 3, 4)) for _ in range(4)]
    shape = list(factors)
    index = axes(shape)
    for _ in range(4):
        move = rng.choice(("reshape", "permute", "flip", "shrink"))
        if move == "permute":
            order = rng.sample(range(len(shape)), len(shape))
            target = [0] * len(shape)
            for k, axis in enumerate(order):
                target[axis] = shape[k]
            index, shape = permute(index, order), target
        elif move == "flip":
            index = flip(index, shape, rng.sample(range(len(shape)), 1))
        elif move == "shrink":
            starts = [rng.choice((0, 0, 1)) for _ in shape]
            index = shrink(index, starts)
            shape = [n + start for n, start in zip(shape, starts, strict=True)]
        else:
            total = math.prod(shape)
            first = rng.choice([d for d in range(1, total + 1) if total % d == 0])
            index, shape = reshape(index, shape, (first, total // first)), [first, total // first]
    return index, shape


@pytest.mark.parametrize("seed", range(60))
def test_chains_mean_the_same(seed):
    index, shape = chain(random.Random(seed))
    for axis, size in zip([*index, flat(index, shape)], [*shape, None], strict=True):
        after = simplify(axis)
        assert difference(axis, after) is None
        assert simplify(after) is after
        assert size is None or 0 <= after.interval[0] <= after.interval[1] < size
    assert len(simplify(flat(index, shape)).toposort()) <= len(flat(index, shape).toposort())


def test_unflat_of_an_offset_needs_no_help():
    shape = (4, 1, 6)
    index = axes(shape)
    assert [simplify(n) for n in unflat(flat(index, shape), shape)] == [
        index[0],
        const(0, int64),
        index[2],
    ]
