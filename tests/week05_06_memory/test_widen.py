"""Widen: temporaries of all iterations of a loop, filled before it."""

import pytest

from tests.week05_06_memory.bodies import agree, column_sums, copy, number, place, product, text
from week01_uops.dtypes import float32
from week01_uops.ops import ADD, MUL, param
from week02_render.ops import AFTER, ALLOC, END, LOAD, STORE, index, load, loop
from week03_loops.ops import reduce
from week05_06_memory.arrange import reorder, set_kind
from week05_06_memory.hoist import hoist
from week05_06_memory.nests import ScheduleError
from week05_06_memory.split import split
from week05_06_memory.staging import stage
from week05_06_memory.widen import filled_in, widen


def test_an_axis_for_the_loop():
    body = stage(product(4, 3, 2), 1, 0)
    after = widen(body, 0)
    assert text(after).startswith(
        "t0 = local float32[4, 3]\n"
        "for i4 in 0..4:\n"
        "  for i3 in 0..3:\n"
        "    t0[i4, i3] = p1[i4, i3]\n"
    )
    agree(body, after, set_kind(after, 0, "vector"))


def test_a_row_for_each_iteration_of_a_tile():
    body = split(product(7, 3, 2), 0, 3, (3, 4))
    packed = stage(reorder(body, (3, 4, 1)), 1, 4)
    after = set_kind(widen(packed, 4), 4, "unroll")
    assert "t0 = local float32[3, 3]" in text(after)
    agree(body, packed, after)


def scalars():
    """t = p1[i]·p1[i]; p0[i, j] = t + p2[j]."""
    i, j = loop(0, 4), loop(1, 3)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    x = load(place(1, (4,), i))
    held = AFTER(t, STORE(AFTER(t, i), MUL(x, x)))
    return END(STORE(place(0, (4, 3), i, j), ADD(LOAD(held), load(place(2, (3,), j)))), i, j)


def test_a_variable_becomes_an_array():
    body = scalars()
    after = widen(body, 0)
    assert "t0 = local float32[4]" in text(after)
    agree(body, after, set_kind(after, 0, "unroll"), reorder(after, (1, 0)))


def test_sums_in_memory_are_widened_with_their_clearing():
    """All that fills a temporary gets a loop of its own: the clearing and the adding."""
    body = product(4, 6, 5)
    after = widen(hoist(body, 2, (1,)), 0)
    assert "t0 = local float32[4, 5]" in text(after)
    agree(body, after)


def test_one_temporary_from_another():
    """Both are widened."""
    body = stage(hoist(product(4, 6, 5), 2, (1,)), 1, 0)
    assert len(filled_in(body, body.src[1])) == 2
    agree(body, widen(body, 0))


def test_a_bound_stays():
    """The rows of a triangle: of a temporary in a bounded loop, only what is filled is read."""
    i = loop(0, 4)
    k = loop(1, 4, ADD(i, number(1)))
    term = MUL(load(place(1, (4,), i)), load(place(2, (4,), k)))
    body = END(STORE(place(0, (4,), i), reduce(ADD, term, 0, k)), i)
    packed = stage(body, 2, 1)
    agree(body, packed, widen(packed, 1), widen(stage(body, 1, 0), 0))
    with pytest.raises(ScheduleError, match="expected no bound by range 0 of range 1"):
        widen(packed, 0)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: widen(copy(4), 0), "expected a temporary that is filled in the loop of range 0"),
        (lambda: widen(copy(4), 2), "expected one of the ranges 0, got 2"),
        (lambda: widen(from_results(), 0), "but the kernel changes what they are filled from"),
    ],
)
def test_refusals(step, message):
    with pytest.raises(ScheduleError, match=message):
        step()


def from_results():
    """t = p0[i]; p0[i + 1] = t + p1[i]."""
    i = loop(0, 4)
    t = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "LOCAL"})
    first = STORE(place(0, (5,), number(0)), load(place(1, (4,), number(0))))
    base = AFTER(param(0, float32, (5,)), first, i)
    held = AFTER(t, STORE(AFTER(t, i), LOAD(index(base, i))))
    new = ADD(LOAD(held), load(place(1, (4,), i)))
    return END(STORE(index(base, ADD(i, number(1))), new), i)


def test_what_is_filled_in_no_loop_has_nothing_to_widen():
    body = column_sums(3, 4)
    assert filled_in(body, body.src[1]) == []
    packed = stage(product(4, 3, 2), 2, None)
    assert filled_in(packed, packed.src[1]) == []
