"""Sums without loops: every rule fires, declines where it must, and keeps the meaning."""

import itertools

import pytest

from tests.rules import check_rule
from week01_uops.dtypes import float16, float32, int8, int64
from week01_uops.node import UOp, const, make
from week01_uops.ops import ADD, CAST, CMPLT, CMPNE, MAX, MUL, NEG, WHERE, param, program
from week02_render.ops import AFTER, ALLOC, END, INDEX, STORE, AllocArg, loop
from week03_loops.counting import COUNTING
from week03_loops.ops import REDUCE, ReduceArg

I, R, Q = loop(0, 6), loop(1, 5), loop(2, 3)


def filled(total: UOp) -> UOp:
    """A program of the totals for each value of the outer loop."""
    place = make(ALLOC, (), AllocArg(0, total.dtype, (6,)))
    effect = END(STORE(INDEX(place, I), total), I)
    return program(make(AFTER, (place, effect)))


def total(value: UOp, *ranges: UOp, op=ADD) -> UOp:
    return make(REDUCE, (value, *ranges), ReduceArg(op, 0))


def gates():
    edges = [ADD(R, I), ADD(NEG(R), I), ADD(MUL(R, 2), NEG(I)), ADD(MUL(R, -3), I), R]
    for edge, limit in itertools.product(edges, (-4, 0, 2, 3, 9)):
        yield CMPLT(edge, limit)
        yield CMPLT(const(limit, int64), edge)
    yield MUL(CMPLT(R, I), CMPLT(const(0, int64), R))
    yield MUL(CMPLT(R, I), CMPLT(I, 3))
    yield MUL(MUL(CMPLT(R, I), CMPLT(R, 3)), CMPLT(const(1, int64), ADD(R, I)))


def gated(number: UOp, *ranges: UOp):
    nothing = const(0.0 if number.dtype.is_float else 0, number.dtype)
    return [filled(total(WHERE(gate, number, nothing), *ranges)) for gate in gates()]


PROGRAMS = {
    "count_gated": lambda: (
        gated(const(3, int64), R) + gated(const(1.0, float32), R) + gated(const(-7, int8), Q, R)
    ),
    "count_cast": lambda: [filled(total(CAST(gate, arg=int64), R)) for gate in gates()],
    "sum_of_one": lambda: [filled(total(ADD(I, 1), R)), filled(total(ADD(I, Q), Q, R))],
}


def test_every_rule_has_programs():
    assert {rule.name for rule in COUNTING} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rule_keeps_the_meaning(name):
    fired = [check_rule(COUNTING, name, case, seeds=1) for case in PROGRAMS[name]()]
    assert sum(fired) > len(fired) // 2


@pytest.mark.parametrize(
    "value",
    [
        WHERE(CMPNE(R, I), 1, const(0, int64)),  # no comparison that bounds r
        WHERE(CMPLT(R, I), 1, const(1, int64)),  # not 0 outside
        WHERE(CMPLT(MUL(R, R), I), 1, const(0, int64)),  # not linear
        WHERE(CMPLT(R, I), const(0.1, float32), const(0.0, float32)),  # sums of 0.1 round
        WHERE(CMPLT(R, I), const(float("inf"), float32), const(0.0, float32)),
        CAST(R, arg=float16),
    ],
)
def test_rules_decline(value):
    for rule in COUNTING:
        assert not check_rule(COUNTING, rule.name, filled(total(value, R)))


def test_only_sums_are_counted():
    value = WHERE(CMPLT(R, I), 1, const(0, int64))
    for rule in COUNTING:
        assert not check_rule(COUNTING, rule.name, filled(total(value, R, op=MAX)))


def test_bounded_ranges_are_left_alone():
    bounded = loop(1, 5, ADD(I, 1))
    value = WHERE(CMPLT(bounded, 3), 1, const(0, int64))
    for rule in COUNTING:
        assert not check_rule(COUNTING, rule.name, filled(total(value, bounded)))


def test_parameters_bound_too():
    """A limit that is an input, with a declared range, counts as well as a constant."""
    limit = param(0, int64, (), (0, 9))
    value = WHERE(CMPLT(R, ADD(limit, I)), 1, const(0, int64))
    assert check_rule(COUNTING, "count_gated", filled(total(value, R)))
