"""Kind, reorder, join: what they do, and what keeps them from it."""

import pytest

from tests.week05_06_memory.bodies import (
    agree,
    cleared,
    column_sums,
    copy,
    number,
    overwritten,
    place,
    product,
    row_sums,
    running,
    text,
    total,
    values,
)
from week01_uops.dtypes import float32, int64
from week01_uops.ops import ADD, FLOORDIV, MUL, param
from week02_render.ops import AFTER, ALLOC, END, LOAD, STORE, index, load, loop
from week03_loops.ops import reduce
from week05_06_memory.arrange import join, reorder, set_kind
from week05_06_memory.nests import ScheduleError
from week05_06_memory.split import split
from week05_06_memory.staging import stage
from week05_06_memory.widen import widen


def scattered(rows, width):
    """p0[p2[n], d] += p1[n, d] for n, d (ranges 0 and 1), p0 cleared before."""
    n, d = loop(0, rows), loop(1, width)
    at = load(place(2, (rows,), n, dtype=int64))
    here = index(AFTER(cleared((4, width), (2, 3)), n, d), at, d)
    value = ADD(LOAD(here), load(place(1, (rows, width), n, d)))
    return END(STORE(here, value), n, d)


@pytest.mark.parametrize("kind", ["loop", "vector", "unroll", "parallel"])
def test_kinds_of_stores(kind):
    body = copy(3, 8)
    after = set_kind(body, 1, kind)
    assert f"{'for' if kind == 'loop' else kind} i1 in 0..8:" in text(after)
    agree(body, after, set_kind(split(split(body, 0, 2, (2, 3)), 1, 4), 3, "unroll"))


@pytest.mark.parametrize("kind", ["vector", "unroll"])
def test_kinds_of_sums(kind):
    for body in (total(8), row_sums(3, 8)):
        number_ = 0 if body.op is STORE else 1
        agree(body, set_kind(body, number_, kind))


def test_a_tile_of_a_product():
    """Vectors along j, copies along i: three accumulators of four lanes."""
    body = product(6, 5, 8)
    tiled = split(split(body, 0, 3, (3, 4)), 1, 4, (5, 6))
    tiled = reorder(tiled, (3, 5, 4, 6))
    tiled = set_kind(set_kind(tiled, 4, "unroll"), 6, "vector")
    assert text(tiled) == (
        "for i3 in 0..2:\n"
        "  for i5 in 0..2:\n"
        "    unroll i4 in 0..3:\n"
        "      vector i6 in 0..4:\n"
        "        p0[i3*3 + i4, i5*4 + i6] =\n"
        "          Σ[i2 in 0..5] p1[i3*3 + i4, i2] * p2[i2, i5*4 + i6]\n"
    )
    agree(body, tiled, set_kind(tiled, 3, "parallel"))


def test_a_vector_outside_of_loops_is_innermost_in_the_end():
    body = copy(8, 3)
    agree(body, set_kind(body, 0, "vector"), set_kind(set_kind(body, 0, "vector"), 1, "unroll"))


def test_rows_of_which_each_is_a_sum_of_lanes():
    """A vector of a reduction stands in no other."""
    body = row_sums(4, 8)
    inner = set_kind(body, 1, "vector")
    with pytest.raises(ScheduleError, match="expected one vector range in a nest, but 0 is a sec"):
        set_kind(inner, 0, "vector")
    with pytest.raises(ScheduleError, match="expected one vector range in a nest, but 1 is a sec"):
        set_kind(set_kind(body, 0, "vector"), 1, "vector")
    agree(body, set_kind(inner, 0, "unroll"))


def test_results_that_are_stored_one_after_the_other():
    """Of loops that are carried, those inside or outside may still be done at once."""
    sums = column_sums(5, 4)
    agree(sums, set_kind(sums, 1, "vector"), set_kind(reorder(sums, (1, 0)), 1, "parallel"))
    last = overwritten(3, 4)
    agree(last, set_kind(last, 1, "vector"), reorder(last, (1, 0)))


CARRIED = [
    (column_sums(5, 4), 0),
    (running(4), 0),
    (overwritten(4, 3), 0),
    (scattered(4, 3), 0),
]


@pytest.mark.parametrize("kind", ["vector", "unroll", "parallel"])
@pytest.mark.parametrize(("body", "name"), CARRIED)
def test_iterations_that_need_one_another_stay_in_order(body, name, kind):
    with pytest.raises(ScheduleError, match=f"expected iterations of range {name} that can be"):
        set_kind(body, name, kind)


def test_scattered_rows_are_added_at_once():
    """Which row is not known, but the elements of one are different."""
    body = scattered(5, 4)
    arrays = [values(5, 4), abs(values(5)).astype("int64") % 4]
    agree(body, set_kind(body, 1, "vector"), reorder(body, (1, 0)), arrays=arrays)
    agree(body, set_kind(split(body, 0, 2), 1, "unroll"), arrays=arrays)


def test_overlapping_tiles_may_be_done_in_any_order():
    """What two tiles have in common is the same iteration, done twice."""
    body = split(copy(7, 3), 0, 4, (2, 3))
    both = split(body, 1, 2, (4, 5))
    moved = reorder(both, (4, 2, 5, 3))
    for name, kind in ((2, "parallel"), (3, "vector"), (4, "parallel"), (5, "unroll")):
        agree(body, set_kind(moved, name, kind))


def test_a_temporary_in_the_way_is_widened():
    body = product(4, 5, 8)
    packed = stage(body, 1, 0)
    for kind in ("unroll", "vector"):
        with pytest.raises(ScheduleError, match=r"in the loop of range 0 to .*; widen it"):
            set_kind(packed, 0, kind)
        agree(body, set_kind(widen(packed, 0), 0, kind))
    agree(body, set_kind(packed, 0, "parallel"))


def triangle():
    """p0[i] = Σ p1[i, k] for k < i + 1."""
    return row_sums(4, 4, bound=lambda i: ADD(i, number(1)))


@pytest.mark.parametrize(
    ("body", "name", "kind", "message"),
    [
        (copy(4), 0, "grid", "expected a kind of loop, vector, unroll, parallel, got grid"),
        (copy(4), 3, "vector", "expected one of the ranges 0, got 3"),
        (copy(6), 0, "vector", "expected 2 to 64 lanes, a power of two, got 6 of 0"),
        (copy(1), 0, "vector", "expected 2 to 64 lanes, a power of two, got 1 of 0"),
        (copy(128), 0, "vector", "expected 2 to 64 lanes, a power of two, got 128 of 0"),
        (copy(128), 0, "unroll", "expected 1 to 64 iterations to unroll, got 128 of 0"),
        (copy(0), 0, "unroll", "expected 1 to 64 iterations to unroll, got 0 of 0"),
        (triangle(), 1, "vector", "expected a range without a bound to vector, but 1 has one"),
        (triangle(), 0, "vector", "expected a range that bounds no other to vector, but 0 does"),
        (total(4), 0, "parallel", "expected a loop over stores for threads, but 0 reduces"),
    ],
)
def test_kinds_that_are_refused(body, name, kind, message):
    with pytest.raises(ScheduleError, match=message):
        set_kind(body, name, kind)


def test_reorder():
    body = copy(2, 3, 4)
    after = reorder(body, (2, 0))
    assert [r.arg.id for r in after.src[1:]] == [2, 1, 0]
    agree(body, after, reorder(body, (2, 1, 0)), reorder(body, (1, 2)))
    summed = product(2, 3, 4)
    agree(summed, reorder(split(summed, 2, 2, (3, 4)), (4, 3)))


def wavefront():
    """p0[i + 1, j + 1] = p0[i, j] + p1[i, j]."""
    i, j = loop(0, 3), loop(1, 4)
    base = AFTER(cleared((4, 5), (2, 3)), i, j)
    value = ADD(LOAD(index(base, i, j)), load(place(1, (3, 4), i, j)))
    return END(STORE(index(base, ADD(i, number(1)), ADD(j, number(1))), value), i, j)


def early_load():
    """p0[i] = p0[i] + p1[i, j]: the LOAD stands in loop i, before loop j."""
    i, j = loop(0, 3), loop(1, 4)
    here = index(AFTER(cleared((3,), (2,)), i), i)
    return END(STORE(here, ADD(LOAD(here), load(place(1, (3, 4), i, j)))), i, j)


@pytest.mark.parametrize(
    ("body", "order", "message"),
    [
        (copy(2, 3), (0, 5), "expected one of the ranges 0, 1, got 5"),
        (copy(2, 3), (0, 0), "expected each range once, got \\[0, 0\\]"),
        (product(2, 3, 4), (0, 2), "expected the ranges \\[0, 2\\] to be loops of one nest"),
        (wavefront(), (1, 0), "expected the ranges \\[0, 1\\] in this order, for an iteration may"),
        (early_load(), (1, 0), "expected the ranges \\[0, 1\\] in this order"),
    ],
)
def test_orders_that_are_refused(body, order, message):
    with pytest.raises(ScheduleError, match=message):
        reorder(body, order)


def test_a_loop_stays_inside_those_of_its_bound():
    i = loop(0, 4)
    j = loop(1, 4, ADD(i, number(1)))
    body = END(STORE(index(cleared((4, 4), (2, 3)), i, j), load(place(1, (4, 4), i, j))), i, j)
    with pytest.raises(ScheduleError, match="expected range 1 inside the loops of its bound"):
        reorder(body, (1, 0))
    agree(body, set_kind(body, 1, "parallel"))


def test_join():
    body = copy(3, 4)
    after = join(body, 0, 1, 7)
    assert text(after) == ("for i7 in 0..12:\n  p0[i7 // 4, i7 % 4] = p1[i7 // 4, i7 % 4] + 1.0\n")
    agree(body, after, set_kind(split(after, 7, 8), 9, "vector"))
    agree(total(12), join(split(total(12), 0, 4, (1, 2)), 1, 2, 3))


def test_what_is_joined_may_stand_in_bounds_and_be_the_value_itself():
    i, j = loop(0, 2), loop(1, 3)
    at = ADD(MUL(i, number(3)), j)
    k = loop(2, 6, ADD(at, number(1)))
    row = reduce(ADD, load(place(1, (6,), k)), 0, k)
    body = END(STORE(place(0, (6,), at), row), i, j)
    agree(body, join(body, 0, 1, 3))


@pytest.mark.parametrize(
    ("body", "pair", "into", "message"),
    [
        (copy(3, 4), (1, 0), 7, "expected range 0 right inside 1, to join them"),
        (copy(3, 4), (0, 0), 7, "expected range 0 right inside 0, to join them"),
        (copy(3, 4, 5), (0, 2), 7, "expected range 2 right inside 0, to join them"),
        (copy(3, 4), (0, 1), 1, "expected a number that no range has, got 1"),
        (copy(3, 4), (0, 9), 7, "expected one of the ranges 0, 1, got 9"),
        (copy(3, 4, bound=lambda i: number(2)), (0, 1), 7, "expected ranges without bounds to"),
        (overwritten(3, 4), (0, 1), 7, "expected indices with one stride over 0 and 1"),
    ],
)
def test_joins_that_are_refused(body, pair, into, message):
    with pytest.raises(ScheduleError, match=message):
        join(body, *pair, into)


def test_a_temporary_that_is_kept_from_turn_to_turn_is_carried():
    """t ← t + p1[i]; p0[i] = t."""
    i = loop(0, 4)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    start = STORE(t, load(place(1, (4,), number(0))))
    here = AFTER(t, start, i)
    new = AFTER(t, STORE(here, ADD(LOAD(here), load(place(1, (4,), i)))))
    body = END(STORE(place(0, (4,), i), LOAD(new)), i)
    for kind in ("vector", "unroll", "parallel"):
        with pytest.raises(ScheduleError, match="expected iterations of range 0"):
            set_kind(body, 0, kind)
    agree(body, split(body, 0, 2), set_kind(body, 0, "loop"))


def test_one_element_for_two_iterations():
    """p0[i // 2] = p1[i]: neighbours store to one element."""
    i = loop(0, 6)
    body = END(STORE(place(0, (3,), FLOORDIV(i, number(2))), load(place(1, (6,), i))), i)
    with pytest.raises(ScheduleError, match="expected iterations of range 0"):
        set_kind(body, 0, "parallel")
    agree(body, split(body, 0, 4))


def test_a_value_for_every_iteration_in_one_place():
    i = loop(0, 4)
    body = END(STORE(param(0, float32, ()), load(place(1, (4,), i))), i)
    with pytest.raises(ScheduleError, match="expected iterations of range 0"):
        set_kind(body, 0, "vector")
    agree(body, split(body, 0, 3))
