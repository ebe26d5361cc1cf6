"""Split: every kind of remainder, of stores and of reductions, with bounds and without."""

import numpy as np
import pytest

from tests.week05_06_memory.bodies import (
    agree,
    cleared,
    column_sums,
    copy,
    number,
    overwritten,
    place,
    row_sums,
    running,
    text,
    total,
    values,
)
from week01_uops.dtypes import float32, int32, int64, uint8
from week01_uops.node import const
from week01_uops.ops import ADD, CAST, MAX, MUL, NEG, param
from week02_render.ops import AFTER, ALLOC, END, LOAD, STORE, index, load, loop
from week03_loops.ops import reduce
from week05_06_memory.nests import ScheduleError
from week05_06_memory.split import split
from week05_06_memory.staging import stage


def test_tiles_that_divide_the_loop():
    body = copy(8)
    after = split(body, 0, 4, (5, 6))
    assert text(after) == (
        "for i5 in 0..2:\n  for i6 in 0..4:\n    p0[i5*4 + i6] = p1[i5*4 + i6] + 1.0\n"
    )
    agree(body, after)


def test_the_last_tile_of_stores_overlaps():
    body = copy(7)
    after = split(body, 0, 4)
    assert text(after) == (
        "for i1 in 0..2:\n"
        "  for i2 in 0..4:\n"
        "    p0[min(i1*4, 3) + i2] = p1[min(i1*4, 3) + i2] + 1.0\n"
    )
    agree(body, after)


def test_the_rest_of_a_sum_is_peeled():
    body = total(7)
    after = split(body, 0, 4)
    assert text(after) == (
        "v0 = Σ[i1 in 0..1, i2 in 0..4] p1[i1*4 + i2]\n"
        "v1 = Σ[i2 in 0..4] (p1[i2 + 3] if 0 < i2 else 0.0)\n"
        "p0 = v0 + v1\n"
    )
    agree(body, after)


def test_tiles_of_a_maximum_overlap():
    body = total(7, MAX)
    after = split(body, 0, 4)
    assert "max[i1 in 0..2, i2 in 0..4] p1[min(i1*4, 3) + i2]" in text(after)
    agree(body, after)


def test_what_combines_is_cut_in_two_nests():
    """An element is not added twice."""
    body = column_sums(7, 3)
    after = split(body, 0, 4)
    assert "for i3 in 0..1:\n  for i4 in 0..4:\n    for i1 in 0..3:\n" in text(after)
    assert "for i5 in 0..3:\n  for i1 in 0..3:\n    p0[i1] = p0[i1] + p1[i5 + 4, i1]" in text(after)
    agree(body, after, split(body, 1, 2), split(body, 0, 7), split(split(body, 0, 3), 1, 2))


def test_a_nest_for_the_rest_where_it_is_asked_for():
    body = copy(7)
    after = split(body, 0, 4, (5, 6), "cut")
    assert text(after) == (
        "for i5 in 0..1:\n"
        "  for i6 in 0..4:\n"
        "    p0[i5*4 + i6] = p1[i5*4 + i6] + 1.0\n"
        "for i1 in 0..3:\n"
        "  p0[i1 + 4] = p1[i1 + 4] + 1.0\n"
    )
    largest = total(7, MAX)
    agree(body, after, split(body, 0, 4, rest="overlap"))
    agree(largest, split(largest, 0, 4, rest="cut"))
    both = split(split(copy(7, 5), 0, 4, rest="cut"), 1, 2, rest="cut")
    agree(copy(7, 5), both)


SIZES = [(n, by) for n in (1, 2, 3, 7, 12, 13) for by in (1, 2, 3, 5, 7) if by <= n]
BODIES = [copy, total, lambda n: total(n, MAX), lambda n: total(n, MUL), lambda n: row_sums(n, 3)]


@pytest.mark.parametrize(("size", "by"), SIZES)
@pytest.mark.parametrize("make", BODIES)
def test_every_remainder(make, size, by):
    body = make(size)
    agree(body, split(body, 0, by))


@pytest.mark.parametrize("size", [3, 7, 8])
def test_tiles_of_tiles(size):
    for body in (copy(size), total(size)):
        once = split(body, 0, 3, (1, 2))
        agree(body, split(once, 2, 2, (3, 4)), split(once, 1, 2, (3, 4)) if size > 3 else once)


BOUNDS = {
    "a number": lambda *_: number(5),
    "more than the size": lambda *_: number(99),
    "less than nothing": lambda *_: number(-3),
    "near the largest": lambda *_: number(int64.max),
    "of another dtype": lambda *_: const(6, int32),
    "of a dtype that holds no more": lambda *_: const(255, uint8),
    "unsigned": lambda *_: CAST(const(4, uint8), arg=int32),
}


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("by", [2, 3, 7])
def test_a_bounded_loop_is_rounded_up(name, by):
    """What the last tile does too much counts as nothing."""
    bound = BOUNDS[name]
    for op in (ADD, MAX):
        body = total(7, op, bound())
        agree(body, split(body, 0, by))


@pytest.mark.parametrize("by", [2, 3, 4])
def test_the_loop_of_a_triangle(by):
    """The bound of a loop moves with the loop that is split, and with the split loop."""
    body = row_sums(6, 6, bound=lambda i: ADD(i, number(1)))
    agree(body, split(body, 0, by), split(body, 1, by), split(split(body, 1, by), 0, 2))


def bounded_copy(size, rows=3):
    """p0 = 0; p0[i, j] = p1[i, j] + 1 for j < i."""
    i, j, a, b = loop(0, rows), None, loop(2, rows), loop(3, size)
    j = loop(1, size, i)
    zeros = END(STORE(place(0, (rows, size), a, b), const(0.0, float32)), a, b)
    target = index(AFTER(param(0, float32, (rows, size)), zeros), i, j)
    return END(STORE(target, ADD(load(place(1, (rows, size), i, j)), 1.0)), i, j)


@pytest.mark.parametrize("by", [2, 3])
def test_stores_past_a_bound_are_not_done(by):
    body = bounded_copy(6)
    agree(body, split(body, 1, by), split(body, 0, by))


def test_a_temporary_that_is_added_to_is_not_touched_past_a_bound():
    i, j, k = loop(0, 4), loop(1, 4, number(3)), loop(2, 4)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (4,), "addrspace": "LOCAL"})
    zeros = END(STORE(index(t, i), const(1.0, float32)), i)
    here = index(AFTER(t, zeros), j)
    sums = END(STORE(here, ADD(LOAD(here), load(place(1, (4,), j)))), j)
    body = END(STORE(place(0, (4,), k), LOAD(index(AFTER(t, sums), k))), k)
    agree(body, split(body, 1, 2))


def test_gates_and_counters_move_along():
    """Conditions on the counter, and the counter as a value."""
    gated = total(7, gate=True)
    k = loop(0, 7)
    counted = STORE(param(0, int64, ()), reduce(ADD, MUL(k, k), 0, k))
    itself = STORE(param(0, int64, ()), reduce(ADD, k, 0, k))
    for body in (gated, counted, itself):
        agree(body, split(body, 0, 2), split(body, 0, 4))


def test_the_last_iteration_still_wins():
    body = overwritten(7, 3)
    agree(body, split(body, 0, 3), split(body, 1, 2))


def test_two_nests_over_one_range():
    """A RANGE that is closed twice is split in both."""
    i, k = loop(0, 5), loop(1, 5)
    row = reduce(ADD, load(place(1, (5,), k)), 0, k)
    largest = reduce(MAX, NEG(load(place(1, (5,), k))), 0, k)
    body = END(STORE(place(0, (5,), i), ADD(ADD(row, largest), load(place(1, (5,), i)))), i)
    agree(body, split(body, 1, 2), split(body, 0, 3))


def test_the_parts_of_a_sum_have_temporaries_of_their_own():
    """Their loops become one loop, in which both are filled."""
    body = stage(split(row_sums(2, 8), 1, 2, (2, 3)), 1, 2)
    agree(body, split(body, 2, 3), split(split(body, 0, 2), 2, 3))


def test_a_range_of_no_iterations_has_no_tiles():
    with pytest.raises(ScheduleError, match="expected a tile of 1 to 0 for range 0, got 1"):
        split(copy(0), 0, 1)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: split(copy(4, 3), 7, 2), "expected one of the ranges 0, 1, got 7"),
        (lambda: split(copy(4), 0, 5), "expected a tile of 1 to 4 for range 0, got 5"),
        (lambda: split(copy(4, 3), 0, 2, (1, 5)), "expected a number that no range has, got 1"),
        (
            lambda: split(
                STORE(param(0, float32, ()), reduce(ADD, behind(), 0, loop(0, 8, number(4)))), 0, 2
            ),
            "expected loads in bounds for all 8 iterations of range 0, which has a bound",
        ),
        (lambda: split(wavefront(), 1, 2), "expected a tile that divides 3, the size of range 1"),
    ],
)
def test_refusals(step, message):
    with pytest.raises(ScheduleError, match=message):
        step()


def behind():
    """An element that is there only within the bound."""
    return load(place(1, (4,), loop(0, 8, number(4))))


def wavefront():
    """p0[j] = max(p0[(j + 1) mod 3], p1[i, j]): to cut the inner loop would change the order."""
    i, j = loop(0, 4), loop(1, 3)
    base = AFTER(cleared((3,), (2,)), i, j)
    value = MAX(LOAD(index(base, ADD(NEG(j), number(2)))), load(place(1, (4, 3), i, j)))
    return END(STORE(index(base, j), value), i, j)


def test_loops_that_are_carried_are_split_in_order():
    body = running(12)
    agree(body, split(body, 0, 4), split(body, 0, 5))
    agree(wavefront(), split(wavefront(), 0, 3), split(wavefront(), 1, 3))


def test_values_of_the_largest_size_do_not_wrap():
    """The bound of a loop over tiles is rounded up only once it is at most the size."""
    body = total(4, ADD, load(place(2, (), dtype=int64)))
    for end in (int64.max, int64.max - 1, 3, 0, int64.min):
        agree(body, split(body, 0, 2), arrays=[values(4), np.array(end)])
