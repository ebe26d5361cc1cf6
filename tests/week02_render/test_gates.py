"""Rules on gates: every one fires, declines where it must, and keeps the meaning."""

import pytest

from tests.rules import check_rule
from week01_uops.dtypes import bool_, float32
from week01_uops.node import const, make
from week01_uops.ops import CMPLT, MUL, WHERE, param, program
from week02_render.gates import GATES, conjuncts
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, AllocArg, load, loop

I = loop(0, 6)
X = param(0, float32, (4,))
INSIDE = CMPLT(I, 4)
EARLY = CMPLT(I, 2)
TRUE, FALSE = const(True, bool_), const(False, bool_)
ZERO = const(0.0, float32)


def filled(value):
    place = make(ALLOC, (), AllocArg(0, float32, (6,)))
    return program(make(AFTER, (place, END(STORE(INDEX(place, I), value), I))))


def gated(gate, other=ZERO):
    return LOAD(INDEX(X, I), gate, other)


PROGRAMS = {
    "gate_decided": [
        filled(gated(MUL(INSIDE, EARLY), LOAD(INDEX(X, const(0, I.dtype)), TRUE, ZERO))),
        filled(gated(FALSE, const(3.0, float32))),
    ],
    "gate_repeated": [
        filled(WHERE(INSIDE, gated(INSIDE), ZERO)),
        filled(WHERE(EARLY, gated(MUL(EARLY, INSIDE)), ZERO)),
    ],
}
DECLINED = [
    filled(WHERE(EARLY, gated(INSIDE), ZERO)),
    filled(WHERE(INSIDE, gated(INSIDE, const(1.0, float32)), ZERO)),
    filled(WHERE(INSIDE, gated(INSIDE), const(2.0, float32))),
]


def test_every_rule_has_programs():
    assert {rule.name for rule in GATES} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rule_keeps_the_meaning(name):
    assert all(check_rule(GATES, name, case) for case in PROGRAMS[name])


@pytest.mark.parametrize("case", DECLINED)
def test_gates_that_say_something_stay(case):
    assert not any(check_rule(GATES, rule.name, case) for rule in GATES)


def test_conjuncts():
    assert conjuncts(MUL(MUL(INSIDE, EARLY), INSIDE)) == {INSIDE, EARLY}


def test_load_of_a_gate_is_zero_outside():
    assert load(INDEX(X, I), INSIDE) is gated(INSIDE)
