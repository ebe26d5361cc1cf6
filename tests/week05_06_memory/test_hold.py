"""Hold: sums that more is made of stand in temporaries."""

import numpy as np
import pytest

from tests.week05_06_memory.bodies import agree, copy, place, product, row_sums, text, values
from week01_uops.dtypes import float16, float32
from week01_uops.ops import ADD, MAX, MUL, NEG
from week02_render.ops import AFTER, ALLOC, END, STORE, index, load, loop
from week03_loops.ops import reduce
from week05_06_memory.arrange import set_kind
from week05_06_memory.hold import hold
from week05_06_memory.nests import ScheduleError
from week05_06_memory.split import split
from week05_06_memory.widen import widen


def distances(rows, columns, dtype=float32):
    """t[k] = p1[i, k] − max over j of p1[i, j]; p0[i] = Σ t[k]."""
    i, j, k, s = loop(0, rows), loop(1, columns), loop(2, columns), loop(3, columns)
    top = reduce(MAX, load(place(1, (rows, columns), i, j, dtype=dtype)), 0, j)
    t = ALLOC(arg={"slot": 0, "dtype": dtype, "shape": (columns,), "addrspace": "LOCAL"})
    value = ADD(load(place(1, (rows, columns), i, k, dtype=dtype)), NEG(top))
    held = AFTER(t, END(STORE(index(AFTER(t, i), k), value), k))
    total = reduce(ADD, load(index(held, s)), 0, s)
    return END(STORE(place(0, (rows,), i, dtype=dtype), total), i)


def variances(rows, columns, *, weighed=False):
    """p0[i, j] = (p1[i, j] − Σ p1[i])·Σ (p1[i, k] − Σ p1[i])², and with weights that · p2[j]."""
    i, j, k, m = loop(0, rows), loop(1, columns), loop(2, columns), loop(3, columns)
    there = [load(place(1, (rows, columns), i, r)) for r in (j, k, m)]
    minus = NEG(reduce(ADD, there[2], 0, m))
    apart = ADD(there[1], minus)
    value = MUL(ADD(there[0], minus), reduce(ADD, MUL(apart, apart), 0, k))
    value = MUL(value, load(place(2, (columns,), j))) if weighed else value
    return END(STORE(place(0, (rows, columns), i, j), value), i, j)


def test_a_sum_in_a_temporary():
    body = row_sums(4, 3)
    after = hold(body, [1])
    assert text(after) == ("for i0 in 0..4:\n  t0 = Σ[i1 in 0..3] p1[i0, i1]\n  p0[i0] = t0\n")
    agree(body, after)


def test_all_maxima_come_before_what_waits_for_them():
    body = distances(4, 3)
    after = widen(hold(body, [1]), 0)
    assert text(after).startswith(
        "t0 = local float32[4, 3]\n"
        "t1 = local float32[4]\n"
        "for i4 in 0..4:\n"
        "  t1[i4] = max[i1 in 0..3] p1[i4, i1]\n"
        "for i5 in 0..4:\n"
        "  for i2 in 0..3:\n"
        "    t0[i5, i2] = p1[i5, i2] - t1[i5]\n"
    )
    agree(body, after, set_kind(after, 0, "unroll"), set_kind(after, 4, "vector"))


def test_one_sum_is_made_of_another():
    body = variances(7, 5)
    held = hold(split(body, 0, 3, (4, 5)), [2, 3])
    after = widen(held, 5)
    agree(body, hold(body, [2]), held, after, set_kind(after, 5, "unroll"))
    assert "(p1[min(i4*3, 4) + i5, i1] - t0[i5]) * t1[i5]" in text(after)


def test_a_sum_of_narrow_floats_is_rounded_once():
    body, arrays = distances(4, 9, float16), [values(4, 9).astype(np.float16)]
    agree(body, hold(body, [1, 3]), widen(hold(body, [1]), 0), arrays=arrays)


def test_a_sum_for_each_result():
    body = product(3, 4, 5)
    after = hold(body, [2])
    agree(body, after, widen(after, 1), widen(after, 0))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: hold(copy(4), [0]), r"expected ranges of reductions, some of none, got \[0\]"),
        (lambda: hold(row_sums(4, 3), [0]), r"ranges of reductions, some of 1, got \[0\]"),
        (lambda: hold(row_sums(4, 3), []), r"ranges of reductions, some of 1, got \[\]"),
        (lambda: hold(copy(4), [2]), "expected one of the ranges 0, got 2"),
        (
            lambda: hold(set_kind(row_sums(4, 3), 0, "unroll"), [1]),
            r"expected a sum for one iteration of ranges \[0\] at a time",
        ),
    ],
)
def test_refusals(step, message):
    with pytest.raises(ScheduleError, match=message):
        step()
