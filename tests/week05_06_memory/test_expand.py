"""Expand: copies of what is unrolled, accumulators, lanes that are combined last."""

import pytest

from tests.week05_06_memory.bodies import agree, copy, number, place, product, row_sums, text, total
from week01_uops.dtypes import float32
from week01_uops.node import toposort
from week01_uops.ops import ADD, MAX, MUL, param
from week01_uops.rewrite import Trace
from week02_render.ops import ALLOC, END, RANGE, STORE, load, loop
from week03_loops.ops import REDUCE, reduce
from week05_06_memory.arrange import reorder, set_kind
from week05_06_memory.expand import accumulate, copies, expand
from week05_06_memory.hoist import hoist
from week05_06_memory.split import split


def expanded(body):
    return expand(body, Trace())


def registers(body):
    """The variables that sums accumulate in, once they are loops."""
    found = accumulate(expanded(body), Trace())
    return [n for n in found.toposort() if n.op is ALLOC and not n.shape]


def loops(body):
    return sorted({n.arg.id for n in body.toposort() if n.op is RANGE})


def test_stores_are_copied_in_order():
    body = set_kind(copy(2, 3), 1, "unroll")
    assert text(expanded(body)) == (
        "for i0 in 0..2:\n"
        "  p0[i0, 0] = p1[i0, 0] + 1.0\n"
        "  p0[i0, 1] = p1[i0, 1] + 1.0\n"
        "  p0[i0, 2] = p1[i0, 2] + 1.0\n"
    )
    agree(copy(2, 3), body)


def test_loops_of_one_iteration_are_none():
    assert text(expanded(copy(1, 2, 1))) == "for i1 in 0..2:\n  p0[0, i1, 0] = p1[0, i1, 0] + 1.0\n"
    assert expanded(copy(1)).op is STORE
    assert expanded(copy(3)) is copy(3)


def test_bounds_follow_loops_of_one_iteration():
    i = loop(0, 1)
    body = END(
        STORE(place(0, (4,), loop(1, 4, ADD(i, number(4)))), load(place(1, (1,), i))),
        i,
        loop(1, 4, ADD(i, number(4))),
    )
    agree(body, body)
    assert loops(expanded(body)) == [1]


def test_lanes_stand_inside_of_loops():
    body = set_kind(copy(4, 3), 0, "vector")
    assert [r.arg.id for r in expanded(body).src[1:]] == [1, 0]


@pytest.mark.parametrize("op", [ADD, MAX])
@pytest.mark.parametrize(("order", "count"), [((2, 1), 2), ((1, 2), 1)])
def test_accumulators(op, order, count):
    """REDUCE(x, u, k) has an accumulator for each copy; REDUCE(x, k, u) has one for all."""
    body = total(8, op)
    parts = set_kind(reorder(split(body, 0, 2), order), 2, "unroll")
    assert len(registers(parts)) == count
    agree(body, parts)


@pytest.mark.parametrize("order", [(2, 1), (1, 2)])
def test_lanes(order):
    """The lanes of a sum are combined by a loop of their own."""
    body = total(8)
    parts = set_kind(reorder(split(body, 0, 4), order), 2, "vector")
    assert len(registers(parts)) == 2
    agree(body, parts)


def test_parts_of_parts():
    """A loop with two terms a turn, for two accumulators, and then their lanes."""
    body = total(64)
    lanes = split(body, 0, 4, (1, 2))
    parts = split(split(lanes, 1, 2, (3, 4)), 3, 2, (5, 6))
    parts = reorder(parts, (2, 4, 5, 6))
    for name, kind in ((2, "vector"), (4, "unroll"), (6, "unroll")):
        parts = set_kind(parts, name, kind)
    sums = [n for n in expanded(parts).toposort() if n.op is REDUCE]
    assert [[r.arg.id for r in n.src[1:]] for n in sums] == [[6], [5], [6], [5], [2]]
    agree(body, parts)


def test_what_copies_share_is_one_node():
    """A tile of 3 by 2 products loads five operands."""
    body = product(3, 4, 2)
    tile = set_kind(set_kind(body, 0, "unroll"), 1, "unroll")
    inside = [n for n in expanded(tile).toposort() if n.op is MUL]
    assert len(inside) == 6
    assert len({s for n in inside for s in n.src}) == 5
    assert len(registers(tile)) == 6
    agree(body, tile)


def test_rows_in_memory_are_added_in_turn():
    """p ← (p + x₀) + x₁: one pass over the sums adds two rows."""
    body = product(2, 6, 4)
    after = hoist(split(body, 2, 2, (3, 4)), 3, (1,))
    unrolled = set_kind(after, 4, "unroll")
    assert all(n.op is not REDUCE for n in expanded(unrolled).toposort())
    agree(body, unrolled)


def test_a_value_is_put_into_open_loops_only():
    """A loop of its own over the same RANGE stays."""
    k = loop(0, 2)
    inner = reduce(ADD, load(place(1, (2,), k)), 0, k)
    first, second = copies(ADD(inner, load(place(1, (2,), k))), k)
    assert inner in toposort((first,))
    assert inner in toposort((second,))
    body = STORE(param(0, float32, ()), reduce(ADD, ADD(inner, load(place(1, (2,), k))), 0, k))
    agree(body, set_kind(body, 0, "unroll"))


def test_rows_of_reductions():
    body = row_sums(6, 8)
    rows = set_kind(split(body, 0, 3, (2, 3)), 3, "unroll")
    agree(body, rows, set_kind(rows, 1, "vector"), set_kind(rows, 1, "unroll"))
