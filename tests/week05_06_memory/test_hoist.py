"""Hoist: a reduction's loop outside of the loops over results."""

import numpy as np
import pytest

from tests.week05_06_memory.bodies import (
    agree,
    cleared,
    copy,
    number,
    place,
    product,
    row_sums,
    text,
    total,
    values,
)
from week01_uops.dtypes import float16, float32, int64
from week01_uops.ops import ADD, MAX, MUL, NEG
from week02_render.ops import AFTER, END, LOAD, STORE, index, load, loop
from week03_loops.ops import reduce
from week05_06_memory.arrange import reorder, set_kind
from week05_06_memory.hoist import hoist
from week05_06_memory.nests import ScheduleError
from week05_06_memory.split import split
from week05_06_memory.staging import stage


def columns(rows, width, op=ADD, dtype=float32):
    """p0[j] = Σ p1[k, j]; j is range 0, k range 1."""
    j, k = loop(0, width), loop(1, rows)
    value = reduce(op, load(place(1, (rows, width), k, j, dtype=dtype)), 0, k)
    return END(STORE(place(0, (width,), j, dtype=dtype), value), j)


def test_all_sums_at_once():
    body = columns(5, 4)
    after = hoist(body, 1, (0,))
    assert text(after) == (
        "t0 = local float32[4]\n"
        "for i2 in 0..4:\n"
        "  t0[i2] = 0.0\n"
        "for i1 in 0..5:\n"
        "  for i3 in 0..4:\n"
        "    t0[i3] = t0[i3] + p1[i1, i3]\n"
        "for i0 in 0..4:\n"
        "  p0[i0] = t0[i0]\n"
    )
    agree(body, after, set_kind(split(after, 3, 2, (4, 5)), 5, "vector"), split(after, 1, 2))


def test_some_rows_at_a_time():
    """What is left of the reduction stays inside, and may be unrolled."""
    body = columns(8, 5)
    after = hoist(split(body, 1, 4, (2, 3)), 2, (0,))
    agree(body, after, set_kind(after, 3, "unroll"), split(after, 2, 2))


@pytest.mark.parametrize("op", [ADD, MUL, MAX])
def test_every_reduction(op):
    body = columns(5, 4, op)
    agree(body, hoist(body, 1, (0,)))


def test_half_precision_is_summed_in_float32():
    body = columns(7, 3, dtype=float16)
    after = hoist(body, 1, (0,))
    assert "t0 = local float32[3]" in text(after)
    agree(body, after, arrays=[(values(7, 3) / 3).astype(np.float16)])


def test_over_some_of_the_results():
    body = product(3, 4, 5)
    for over in ((1,), (0,), (0, 1), (1, 0)):
        after = hoist(body, 2, over)
        agree(body, after, reorder(after, (1, 0)))


def test_several_sums_of_one_loop():
    j, k = loop(0, 4), loop(1, 5)
    x = load(place(1, (5, 4), k, j))
    both = ADD(reduce(ADD, x, 0, k), reduce(MAX, NEG(x), 0, k))
    body = END(STORE(place(0, (4,), j), both), j)
    agree(body, hoist(body, 1, (0,)))


def test_temporaries_in_the_sum_are_its_own():
    """One packed row serves two sums; the hoisted one fills another."""
    i, k, l = loop(0, 3), loop(1, 4), loop(2, 4)
    x = load(place(1, (3, 4), i, k))
    y = load(place(1, (3, 4), i, l))
    both = MUL(reduce(ADD, x, 0, k), reduce(ADD, MUL(y, y), 0, l))
    body = END(STORE(place(0, (3,), i), both), i)
    packed = stage(body, 1, 0)
    agree(body, hoist(packed, 1, (0,)), hoist(hoist(packed, 1, (0,)), 2, (0,)))


def test_a_bounded_reduction():
    body = columns(5, 4)
    j, k = loop(0, 4), loop(1, 5, number(3))
    body = END(STORE(place(0, (4,), j), reduce(ADD, load(place(1, (5, 4), k, j)), 0, k)), j)
    agree(body, hoist(body, 1, (0,)))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_sums_of_nothing_and_of_one(shape):
    body = columns(*shape)
    agree(body, hoist(body, 1, (0,)))


def in_place():
    """p0[j] = Σ p0[j]·p1[k, j]: the sums read what the kernel changes."""
    j, k = loop(0, 3), loop(1, 4)
    here = index(AFTER(cleared((3,), (2,)), j), j)
    return END(STORE(here, reduce(ADD, MUL(LOAD(here), load(place(1, (4, 3), k, j))), 0, k)), j)


def triangle():
    """p0[i] = Σ p1[i, k] for k < i + 1."""
    return row_sums(4, 4, bound=lambda i: ADD(i, number(1)))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: hoist(copy(3), 0, (0,)), "expected a reduction over range 0 that depends on"),
        (lambda: hoist(total(3), 0, ()), r"over range 0 that depends on the ranges \[\]"),
        (lambda: hoist(product(3, 4, 5), 2, (0, 7)), "expected one of the ranges 0, 1, 2, got 7"),
        (lambda: hoist(triangle(), 1, (0,)), r"expected no bound of, or by, the ranges \[0\]"),
        (lambda: hoist(in_place(), 1, (0,)), "of what the kernel does not change"),
        (
            lambda: hoist(set_kind(columns(4, 3), 1, "vector"), 1, (0,)),
            r"expected the ranges \[1\] to be loops",
        ),
        (
            lambda: hoist(set_kind(product(4, 3, 2), 0, "vector"), 2, (1,)),
            r"expected the ranges \[0\] to be loops",
        ),
    ],
)
def test_refusals(step, message):
    with pytest.raises(ScheduleError, match=message):
        step()


def test_integers_stay_integers():
    body = columns(4, 3, dtype=int64)
    agree(body, hoist(body, 1, (0,)), arrays=[np.arange(12).reshape(4, 3)])
