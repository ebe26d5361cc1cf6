"""Loosen: loops that end differently in the iterations of another loop get one end."""

import pytest

from tests.week05_06_memory.bodies import agree, cleared, number, place, product, row_sums, text
from week01_uops.dtypes import float32, int64
from week01_uops.ops import ADD, FLOORDIV, MAX, MUL, NEG, param
from week02_render.ops import AFTER, ALLOC, END, STORE, index, load, loop
from week03_loops.ops import reduce
from week05_06_memory.arrange import set_kind
from week05_06_memory.hoist import hoist
from week05_06_memory.loosen import loosen
from week05_06_memory.nests import ScheduleError

SIZE = 5


def end(i):
    """Of a row of a triangle."""
    return ADD(i, number(1))


def row(i, name):
    """A loop over a row of a triangle."""
    return loop(name, SIZE, end(i))


def held(i, at=lambda s: s, shape=(SIZE,)):
    """t[at(s)] = p1[i, s] in a row of a triangle, s is range 1."""
    s = row(i, 1)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": shape, "addrspace": "LOCAL"})
    fill = STORE(index(AFTER(t, i), at(s)), load(place(1, (SIZE, SIZE), i, s)))
    return AFTER(t, END(fill, s))


def of_rows(value):
    """p0[i] = value(i), i is range 0."""
    i = loop(0, SIZE)
    return END(STORE(place(0, (SIZE,), i), value(i)), i)


def test_a_condition_in_place_of_a_bound():
    body = row_sums(SIZE, SIZE, bound=end)
    after = loosen(body, 0)
    assert text(after) == (
        "for i0 in 0..5:\n  p0[i0] = Σ[i1 in 0..min(5, 5)] (p1[i0, i1] if i1 < i0 + 1 else 0.0)\n"
    )
    agree(body, after, set_kind(after, 0, "unroll"))


@pytest.mark.parametrize("op", [ADD, MUL, MAX])
def test_every_reduction(op):
    body = row_sums(SIZE, SIZE, op=op, bound=end)
    agree(body, loosen(body, 0))


def test_a_bound_that_falls():
    body = row_sums(SIZE, SIZE, bound=lambda i: ADD(number(SIZE), NEG(i)))
    agree(body, loosen(body, 0))


def test_results_are_stored_under_a_condition():
    i = loop(0, SIZE)
    j = row(i, 1)
    there = index(cleared((SIZE, SIZE), (2, 3)), i, j)
    body = END(STORE(there, load(place(1, (SIZE, SIZE), i, j))), i, j)
    after = loosen(body, 0)
    assert "if i1 < i0 + 1: p0[i0, i1] = p1[i0, i1]" in text(after)
    agree(body, after)


def test_what_is_filled_holds_the_identity_of_the_one_that_reads_it():
    def value(i):
        t, k, m = held(i), row(i, 2), row(i, 3)
        weighed = MUL(load(index(t, m)), load(place(2, (SIZE,), m)))
        return ADD(reduce(ADD, load(index(t, k)), 0, k), reduce(ADD, weighed, 0, m))

    body = of_rows(value)
    after = loosen(body, 0)
    assert "t0[i1] = p1[i0, i1] if i1 < i0 + 1 else 0.0\n" in text(after)
    assert text(after).count(" if ") == 1
    agree(body, after)


def test_those_who_want_different_things_have_conditions_of_their_own():
    def value(i):
        t, k, m = held(i), row(i, 2), row(i, 3)
        top = reduce(MAX, load(index(t, m)), 0, m)
        return ADD(reduce(ADD, load(index(t, k)), 0, k), top)

    body = of_rows(value)
    after = loosen(body, 0)
    assert "t0[i1] = p1[i0, i1]\n" in text(after)
    agree(body, after)


def test_what_is_added_up_in_memory_has_a_condition():
    """Sums that `hoist` keeps for several columns: past the row's end nothing is added."""
    i, j = loop(0, SIZE), loop(1, 3)
    k = loop(2, SIZE, end(i))
    term = MUL(load(place(1, (SIZE, SIZE), i, k)), load(place(2, (SIZE, 3), k, j)))
    body = END(STORE(place(0, (SIZE, 3), i, j), reduce(ADD, term, 0, k)), i, j)
    hoisted = hoist(body, 2, (1,))
    after = loosen(hoisted, 0)
    assert "if i2 < i0 + 1: t0[i4] = " in text(after)
    agree(body, hoisted, after)


@pytest.mark.parametrize(
    ("at", "shape"), [(lambda s: number(0), (1,)), (lambda s: FLOORDIV(s, number(2)), (3,))]
)
def test_an_element_that_is_stored_twice_has_a_condition(at, shape):
    """The last iteration of a row's own decides."""

    def value(i):
        t, k = held(i, at, shape), row(i, 2)
        return reduce(ADD, load(index(t, at(k))), 0, k)

    body = of_rows(value)
    agree(body, loosen(body, 0))


def by_data():
    """A bound that is loaded."""
    i = loop(0, SIZE)
    k = loop(1, SIZE, load(place(2, (SIZE,), i, dtype=int64)))
    value = reduce(ADD, load(place(1, (SIZE, SIZE), i, k)), 0, k)
    return END(STORE(place(0, (SIZE,), i), value), i)


def past_the_end():
    """p1[i + k] for k < SIZE − i: in bounds only while the bound holds."""
    i = loop(0, SIZE)
    k = loop(1, SIZE, ADD(number(SIZE), NEG(i)))
    value = reduce(ADD, load(index(param(1, float32, (SIZE,)), ADD(i, k))), 0, k)
    return END(STORE(place(0, (SIZE,), i), value), i)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (product(2, 3, 4), "expected a loop whose bound depends on range 0"),
        (by_data(), "expected the bound of range 1 to grow evenly with range 0"),
        (past_the_end(), "expected loads in bounds for all of range 1"),
    ],
)
def test_refusals(body, message):
    with pytest.raises(ScheduleError, match=message):
        loosen(body, 0)
