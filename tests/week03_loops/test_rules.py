"""Every movement rule: it fires, declines, and keeps the meaning."""

import itertools

import pytest

from tests.rules import check_rule
from week01_uops.dtypes import float32, int32
from week01_uops.node import UOp
from week01_uops.ops import ADD, param, program
from week03_loops.ops import EXPAND, FLIP, PAD, PERMUTE, REDUCE, RESHAPE, SHRINK, ReduceArg
from week03_loops.rules import MOVEMENT_RULES


def value(shape, dtype=int32) -> UOp:
    """A value of a shape that is no place."""
    x = param(0, dtype, shape)
    return ADD(x, x)


def nothing_moved():
    yield RESHAPE(value((2, 3)), arg=(2, 3))
    yield EXPAND(value((2, 3)), arg=(2, 3))
    yield PERMUTE(value((2, 3)), arg=(0, 1))
    yield FLIP(value((2, 3)), arg=())
    yield PAD(value((2, 3)), arg=((0, 0), (0, 0)))
    yield SHRINK(value((2, 3)), arg=((0, 2), (0, 3)))


def permuted_twice():
    for p, q in itertools.product(itertools.permutations(range(3)), repeat=2):
        yield PERMUTE(PERMUTE(value((2, 3, 4)), arg=p), arg=q)


def flipped_twice():
    axes = [(), (0,), (1,), (0, 1)]
    for a, b in itertools.product(axes, repeat=2):
        yield FLIP(FLIP(value((2, 3)), arg=a), arg=b)


def padded_twice():
    for a, b, c in itertools.product(range(3), repeat=3):
        yield PAD(PAD(value((2,), float32), arg=((a, b),)), arg=((c, a),))


def shrunk_twice():
    for a, b in itertools.combinations(range(6), 2):
        for c, d in itertools.combinations(range(b - a + 1), 2):
            yield SHRINK(SHRINK(value((5,)), arg=((a, b),)), arg=((c, d),))


PROGRAMS = {
    "move_nothing": nothing_moved,
    "reduce_nothing": lambda: [REDUCE(value((2, 3)), arg=ReduceArg(ADD, 0))],
    "reshape_reshape": lambda: [
        RESHAPE(RESHAPE(value((2, 6)), arg=a), arg=b)
        for a in ((12,), (3, 4), (2, 6, 1))
        for b in ((4, 3), (2, 3, 2), (2, 6))
    ],
    "expand_expand": lambda: [EXPAND(EXPAND(value((1, 3)), arg=(1, 3)), arg=(4, 2, 3))],
    "permute_permute": permuted_twice,
    "shrink_shrink": shrunk_twice,
    "pad_pad": padded_twice,
    "flip_flip": flipped_twice,
}


def test_every_rule_has_programs():
    assert {rule.name for rule in MOVEMENT_RULES} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rule_keeps_the_meaning(name):
    fired = [check_rule(MOVEMENT_RULES, name, program(x), seeds=1) for x in PROGRAMS[name]()]
    assert any(fired)


def test_moves_that_move_something_stay():
    for x in (
        FLIP(value((2, 3)), arg=(0,)),
        PERMUTE(value((3, 3)), arg=(1, 0)),
        REDUCE(value((2, 3)), arg=ReduceArg(ADD, 1)),
        RESHAPE(value((2, 3)), arg=(3, 2)),
    ):
        for rule in MOVEMENT_RULES:
            assert not check_rule(MOVEMENT_RULES, rule.name, program(x), seeds=1)
