"""Rows that are filled several at once: what is divided, what is not, and that nothing changes."""

from dataclasses import replace

import pytest

from tests.week05_06_memory.bodies import agree, number, place, text
from tests.week05_06_memory.test_fetch import MACHINE
from tests.week05_06_memory.test_hold import variances
from week01_uops.dtypes import float32
from week01_uops.node import make, toposort
from week01_uops.ops import ADD, MAX, MUL, NEG
from week02_render.ops import AFTER, ALLOC, END, RANGE, STORE, AllocArg, index, load, loop
from week03_loops.ops import reduce
from week05_06_memory.plan import Planner
from week05_06_memory.schedule import Hold, Split, Widen, apply
from week05_06_memory.together import strip_of_rows

ALL = range(1 << 20)


def scores(rows, keys, width, *, shared=True, bound=None):
    """p0[i, j] = t[j] − max t, where t[j] = Σ p1[i, k]·p2[k, j]; i is range 0."""
    i, k = loop(0, rows, bound), loop(2, width)
    j, m, q = (loop(name, keys) for name in (1, 3, 4))
    own = place(2, (width, keys), k, q) if shared else place(2, (rows, width, keys), i, k, q)
    value = reduce(ADD, MUL(load(place(1, (rows, width), i, k)), load(own)), 0, k)
    t = make(ALLOC, (), AllocArg(0, float32, (keys,), "LOCAL"))
    full = make(AFTER, (t, END(STORE(index(make(AFTER, (t, i)), q), value), q)))
    largest = reduce(MAX, load(index(full, m)), 0, m)
    last = ADD(load(index(full, j)), NEG(largest))
    return END(STORE(place(0, (rows, keys), i, j), last), i, j)


def weights(rows, keys):
    """p0[i, j] = t[j] · Σ t, where t[j] = p1[i, j] − max p1[i]; i is range 0."""
    i = loop(0, rows)
    j, m, q, s = (loop(name, keys) for name in (1, 2, 3, 4))
    x = place(1, (rows, keys), i, q)
    largest = reduce(MAX, load(place(1, (rows, keys), i, m)), 0, m)
    t = make(ALLOC, (), AllocArg(0, float32, (keys,), "LOCAL"))
    value = ADD(load(x), NEG(largest))
    full = make(AFTER, (t, END(STORE(index(make(AFTER, (t, i)), q), value), q)))
    total = reduce(ADD, load(index(full, s)), 0, s)
    return END(STORE(place(0, (rows, keys), i, j), MUL(load(index(full, j)), total)), i, j)


def steps_of(body, machine=MACHINE, whole=ALL):
    found = strip_of_rows(body, whole, machine)
    return found and found.steps


def test_a_strip_of_rows_is_filled_at_once():
    body = scores(16, 24, 5)
    assert steps_of(body) == (Split(0, 8, (5, 6)), Widen(6))
    after = apply(body, steps_of(body))
    assert "t0 = local float32[8, 24]" in text(after)
    agree(body, after)


@pytest.mark.parametrize("rows", [2, 7, 8, 19])
def test_any_number_of_rows(rows):
    body = scores(rows, 12, 3)
    planner = Planner(body, MACHINE).run()
    assert any(isinstance(planned.step, Widen) for planned in planner.steps)
    agree(body, planner.body)


def test_rows_that_share_nothing_stay_alone():
    assert steps_of(scores(16, 80, 5, shared=False)) is None


@pytest.mark.parametrize("rows", [2, 8, 19])
def test_short_rows_that_wait_for_their_maxima_are_taken_together(rows):
    body = weights(rows, 48)
    assert steps_of(body) == (Split(0, min(rows, 8), (5, 6)), Hold((2,)), Widen(6))
    agree(body, Planner(body, MACHINE).run().body)


def test_sums_of_a_row_that_are_made_of_one_another_are_held():
    """With a weight for each column, which rows share, the last sum as well."""
    for weighed, held in (False, (3,)), (True, (2, 3)):
        body = variances(16, 48, weighed=weighed)
        assert steps_of(body) == (Split(0, 8, (4, 5)), Hold(held), Widen(5))
        agree(body, apply(body, steps_of(body)), Planner(body, MACHINE).run().body)


def test_one_sum_of_a_row_is_not_worth_a_strip():
    i, j, k = loop(0, 16), loop(1, 48), loop(2, 48)
    total = reduce(ADD, load(place(1, (16, 48), i, k)), 0, k)
    value = MUL(load(place(1, (16, 48), i, j)), total)
    body = END(STORE(place(0, (16, 48), i, j), MUL(value, load(place(2, (48,), j)))), i, j)
    assert steps_of(body) is None


def test_long_rows_keep_a_processor_busy():
    registers = MACHINE.vector_registers * MACHINE.vector_bytes // 4
    assert steps_of(weights(16, registers // 2)) is not None
    assert steps_of(weights(16, registers // 2 + 1)) is None


def test_why_is_said():
    shared, short = (strip_of_rows(b, ALL, MACHINE) for b in (scores(16, 24, 5), weights(16, 48)))
    assert (shared.because, short.because) == (
        "rows share what they are filled from",
        "one short row would wait for itself",
    )


def test_one_row_stays_alone():
    assert steps_of(scores(1, 24, 5)) is None


def test_rows_that_no_cache_holds_together_stay_alone():
    body = scores(16, 1024, 5)
    assert steps_of(body, replace(MACHINE, l1=4096, l2=16384))[0].by == 2
    assert steps_of(body, replace(MACHINE, l1=4096, l2=8192)) is None


def test_a_loop_is_divided_once():
    body = scores(64, 24, 5)
    names = {n.arg.id for n in toposort((body,)) if n.op is RANGE}
    after = apply(body, steps_of(body, whole=names))
    assert steps_of(after, whole=names) is None


def test_rows_of_a_bounded_loop_stay_alone():
    assert steps_of(scores(16, 24, 5, bound=number(8))) is None
