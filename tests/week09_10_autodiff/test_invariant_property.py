"""Random values made of x and maxima of it: no derivative is dropped."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.week09_10_autodiff.autograd import agree, normal, ours, same_program, theirs
from tests.week09_10_autodiff.maxima import powers, top, total
from week01_uops.dtypes import float64
from week01_uops.node import const
from week01_uops.ops import ADD, CAST, EXP2, LOG2, MAX, MUL, WHERE, param
from week03_loops import library as lib
from week03_loops.ops import expand, flip, permute, reshape

SQUARE = param(0, float64, (4, 4))


class Pool:
    """Values of shapes (4, 4), (4, 1), (1, 4) and () made of x and its maxima."""

    def __init__(self, x, draw):
        self.draw = draw
        m = draw(st.sampled_from([top(x, 1), top(x, 0), lib.reduce_max(x)]))
        self.signed, self.positive = [x, m, lib.sub(x, m)], [powers(x, m)]

    def one(self, kind):
        return self.draw(st.sampled_from(getattr(self, kind)))

    def step(self):
        kind = self.draw(st.sampled_from(sorted(STEPS)))
        result, positive = STEPS[kind](self)
        (self.positive if positive else self.signed).append(result)


def _number(pool):
    return pool.draw(st.sampled_from([-1.0, 0.5, 2.0, math.log2(math.e), math.log(2)]))


def _axis(pool):
    return pool.draw(st.sampled_from([0, 1, (0, 1)]))


def _full(x):
    return expand(reshape(x, (*[1] * (2 - len(x.shape)), *x.shape)), (4, 4))


def _where(pool, kind, other):
    mask = lib.lower_triangle(4, 4, 1)
    return WHERE(mask, pool.one(kind), const(other, float64))


STEPS = {
    "add": lambda pool: (ADD(pool.one("signed"), pool.one("signed")), False),
    "sub": lambda pool: (lib.sub(pool.one("signed"), pool.one("signed")), False),
    "scale": lambda pool: (MUL(pool.one("signed"), _number(pool)), False),
    "exp2": lambda pool: (EXP2(pool.one("signed")), True),
    "log2": lambda pool: (LOG2(pool.one("positive")), False),
    "mul": lambda pool: (MUL(pool.one("positive"), pool.one("positive")), True),
    "div": lambda pool: (lib.div(pool.one("positive"), pool.one("positive")), True),
    "plus": lambda pool: (ADD(pool.one("positive"), pool.one("positive")), True),
    "mixed": lambda pool: (MUL(pool.one("signed"), pool.one("positive")), False),
    "max": lambda pool: (MAX(pool.one("positive"), pool.one("positive")), True),
    "total": lambda pool: (total(_full(pool.one("positive")), _axis(pool)), True),
    "sum": lambda pool: (total(_full(pool.one("signed")), _axis(pool)), False),
    "top": lambda pool: (top(_full(pool.one("signed")), _axis(pool)), False),
    "turn": lambda pool: (permute(_full(pool.one("signed")), (1, 0)), False),
    "flip": lambda pool: (flip(_full(pool.one("positive")), (0,)), True),
    "zero": lambda pool: (_where(pool, "positive", 0.0), False),
    "one": lambda pool: (_where(pool, "positive", 1.0), True),
    "cast": lambda pool: (CAST(pool.one("signed"), arg="float64"), False),
}


@st.composite
def expressions(draw):
    """A value made of x and of a maximum of it."""
    pool = Pool(SQUARE, draw)
    for _ in range(draw(st.integers(1, 9))):
        pool.step()
    last = (pool.positive + pool.signed)[-1] if draw(st.booleans()) else pool.signed[-1]
    quotient = lib.div(pool.positive[-1], total(_full(pool.positive[-1])))
    return MUL(last, quotient) if draw(st.booleans()) else ADD(last, quotient)


@settings(max_examples=250, deadline=None)
@given(expressions(), st.integers(0, 5))
def test_no_derivative_is_dropped(node, seed):
    """Random values of x and a maximum have PyTorch's derivatives, wherever those are tame."""
    x = normal(4, 4, seed=seed) / 2

    def function(_):
        return node

    wanted = theirs(same_program(function, [x]), [x])
    if np.isfinite(wanted[0]).all() and np.abs(wanted[0]).max() < 1e6:
        agree(ours(function, [x]), wanted, 1e-7)
