"""Which loops are carried, what is a temporary, what an overlap is."""

import pytest

from tests.week05_06_memory.bodies import (
    cleared,
    column_sums,
    copy,
    number,
    overwritten,
    place,
    product,
    running,
)
from week01_uops.dtypes import float32, int64
from week01_uops.ops import ADD, FLOORDIV, FLOORMOD, MAX, MUL, NEG, param
from week02_render.ops import AFTER, ALLOC, END, LOAD, STORE, index, load, loop
from week05_06_memory.dependence import carried, carries, combines, lasting, reads
from week05_06_memory.hoist import hoist
from week05_06_memory.split import split
from week05_06_memory.staging import stage


def numbers(body):
    """The loops of the outermost nest that are carried."""
    return {r.arg.id for r in carried(body)}


def stored(at, *ranges, size=64):
    """p0[at] = p1[0] + the last range, which is another value in each iteration."""
    return END(STORE(place(0, (size,), at, dtype=int64), ranges[-1]), *ranges)


def updated(at, old, *ranges, size=64):
    """p0[at] = p0[old] + p1[0], p0 filled before."""
    base = AFTER(cleared((size,), (9,)), *ranges)
    value = ADD(LOAD(index(base, old)), load(place(1, (1,), number(0))))
    return END(STORE(index(base, at), value), *ranges)


I, J, K = loop(0, 4), loop(1, 8), loop(2, 3)
IJ = ADD(MUL(I, number(8)), J)


def joined_index():
    """p0[j // 2, j % 2] = j."""
    at = FLOORDIV(J, number(2)), FLOORMOD(J, number(2))
    return END(STORE(place(0, (4, 2), *at, dtype=int64), J), J)


LOCAL = {"slot": 0, "dtype": int64, "shape": (), "addrspace": "LOCAL"}

CASES = {
    "different elements": (copy(3, 4), set()),
    "the same in each row": (overwritten(3, 4), {0}),
    "one element": (END(STORE(param(0, int64, ()), I), I), {0}),
    "one element of a temporary": (END(STORE(ALLOC(arg=LOCAL), I), I), {0}),
    "sums over rows": (column_sums(3, 4), {0}),
    "the one before": (running(5), {0}),
    "two loops in one index": (stored(IJ, I, J), set()),
    "two loops that overlap": (stored(ADD(MUL(I, number(7)), J), I, J), {0, 1}),
    "backwards": (stored(ADD(NEG(IJ), number(40)), I, J), set()),
    "with an offset from outside": (stored(ADD(IJ, K), I, J), set()),
    "an index that wraps": (stored(FLOORMOD(J, number(4)), J), {1}),
    "pairs": (stored(FLOORDIV(J, number(2)), J), {1}),
    "a joined index": (joined_index(), set()),
    "in place": (updated(J, J, J), set()),
    "to another row": (updated(ADD(IJ, number(8)), IJ, I, J), {0, 1}),
    "to what is never read": (updated(IJ, ADD(IJ, number(32)), I, J), set()),
    "to the same row, moved": (updated(IJ, ADD(IJ, number(1)), I, J), {0, 1}),
    "the first of a row": (updated(IJ, MUL(I, number(8)), I, J), {1}),
    "a loop of one iteration": (stored(number(3), loop(5, 1)), set()),
}


@pytest.mark.parametrize("name", CASES)
def test_carried(name):
    body, expected = CASES[name]
    assert numbers(body) == expected


def test_an_outer_loop_that_stands_still_decides_for_the_inner():
    body = updated(ADD(IJ, number(8)), IJ, I, J)
    assert carries(body, I)
    assert not carries(body, J)
    assert carries(overwritten(3, 4), loop(0, 3))


def test_tiles_that_overlap_hold_iterations_twice():
    """However deep: they store the same value to the same element."""
    body = split(split(copy(7, 5), 0, 4, (2, 3)), 1, 3, (4, 5))
    assert numbers(body) == set()
    deeper = split(split(body, 3, 3, (6, 7)), 2, 1, (8, 9))
    assert numbers(deeper) == set()
    assert numbers(split(overwritten(7, 5), 0, 4, (2, 3))) == {2, 3}
    assert numbers(split(overwritten(5, 7), 1, 4, (2, 3))) == {0}


def test_numbers_that_look_like_an_overlap_are_none():
    """min(i·4, 3) + j written by hand: two iterations store different values."""
    i, j = loop(0, 2), loop(1, 4)
    first = NEG(MAX(MUL(i, number(-4)), number(-3)))
    assert numbers(stored(ADD(first, j), i, j, size=7)) == {0, 1}


def test_combines():
    assert not combines(copy(3))
    assert not combines(overwritten(3, 4))
    assert combines(column_sums(3, 4))
    assert combines(updated(J, J, J))


def test_temporaries_belong_to_the_iteration_that_fills_them():
    packed = stage(product(4, 3, 2), 1, 0)
    assert numbers(packed) == set()
    summed = hoist(product(4, 3, 2), 2, (1,))
    assert numbers(summed) == set()
    assert lasting(summed) == {param(0, float32, (4, 2))}
    inner = next(n for n in summed.toposort() if n.op is END and combines(n))
    assert {r.arg.id for r in carried(inner)} == {2}


def alloc(shape=()):
    return ALLOC(arg={"slot": 0, "dtype": float32, "shape": shape, "addrspace": "LOCAL"})


def test_a_temporary_that_goes_on_is_none():
    """t is set before the loop, and added to in it."""
    i, t = loop(0, 4), alloc()
    begin = STORE(t, load(place(1, (4,), number(0))))
    here = AFTER(t, begin, i)
    added = AFTER(t, STORE(here, ADD(LOAD(here), load(place(1, (4,), i)))))
    assert numbers(END(STORE(place(0, (4,), i), LOAD(added)), i)) == {0}


def test_a_temporary_of_a_row_is_shared_by_its_elements():
    """t is set once a row, and added to for each element."""
    i, j, t = loop(0, 3), loop(1, 4), alloc()
    begin = STORE(AFTER(t, i), load(place(1, (3, 4), i, number(0))))
    here = AFTER(t, begin, i, j)
    added = AFTER(t, STORE(here, ADD(LOAD(here), load(place(1, (3, 4), i, j)))))
    assert 1 in numbers(END(STORE(place(0, (3, 4), i, j), LOAD(added)), i, j))


def test_a_temporary_that_is_filled_in_part_is_none():
    i, t = loop(0, 4), alloc((4,))
    filled = STORE(index(AFTER(t, i), i), load(place(1, (4,), i)))
    value = LOAD(index(AFTER(t, filled), number(0)))
    assert numbers(END(STORE(place(0, (4,), i), value), i)) == {0}


def test_reads():
    body = product(4, 3, 2)
    assert reads(body, [param(1, float32, (4, 3))])
    assert not reads(body, [param(0, float32, (4, 2))])
