"""Loops that an operand takes apart become two."""

from dataclasses import replace

from tests.week05_06_memory.bodies import agree, number, place
from week01_uops.node import make
from week01_uops.ops import ADD, FLOORDIV, FLOORMOD, MUL
from week02_render.ops import END, STORE, load, loop
from week03_loops.ops import reduce
from week05_06_memory.machine import detect
from week05_06_memory.plan import Planner
from week05_06_memory.schedule import Kind, Split

MACHINE = replace(detect(), vector_bytes=64, vector_registers=32, datapath=64)


def heads(width, apart):
    """p0[i, j] = Σ over k of p1[k, i]·p2[j // apart, k, j mod apart]."""
    i, j, k = loop(0, 24), loop(1, width), loop(2, 20)
    head, at = make(FLOORDIV, (j, number(apart))), make(FLOORMOD, (j, number(apart)))
    left = load(place(1, (20, 24), k, i))
    right = load(place(2, (-(-width // apart), 20, apart), head, k, at))
    return END(STORE(place(0, (24, width), i, j), reduce(ADD, MUL(left, right), 0, k)), i, j)


def test_a_loop_over_heads_becomes_two():
    body = heads(64, 16)
    planner = Planner(body, MACHINE).run()
    first = planner.steps[0].step
    assert isinstance(first, Split)
    assert (first.range, first.by) == (1, 16)
    vectors = [p.step.range for p in planner.steps if p.step == Kind(first.into[1], "vector")]
    assert vectors == [first.into[1]]
    agree(body, planner.body)


def test_a_loop_that_does_not_divide_stays_one():
    body = heads(60, 16)
    planner = Planner(body, MACHINE).run()
    assert "elsewhere" not in " ".join(p.because for p in planner.steps)
    agree(body, planner.body)


def test_rows_that_lie_one_behind_the_other_stay_one_loop():
    """Index j is (j // 16, j mod 16) of an array that is read as it lies."""
    i, j, k = loop(0, 24), loop(1, 64), loop(2, 20)
    head, at = make(FLOORDIV, (j, number(16))), make(FLOORMOD, (j, number(16)))
    left = load(place(1, (20, 24), k, i))
    right = load(place(2, (20, 4, 16), k, head, at))
    body = END(STORE(place(0, (24, 64), i, j), reduce(ADD, MUL(left, right), 0, k)), i, j)
    planner = Planner(body, MACHINE).run()
    assert "elsewhere" not in " ".join(p.because for p in planner.steps)
    agree(body, planner.body)
