"""Intervals hold for every value, and are as narrow as their rules can make them."""

import random

import pytest

from tests.week01_uops.meaning import INT3, INT4, UINT3, UINT4, assignments, evaluate, params
from tests.week01_uops.prove import a_sum, integers
from week01_uops.dtypes import bool_, float32, int8, int32, int64, uint8
from week01_uops.node import const
from week01_uops.ops import (
    ADD,
    CALL,
    CAST,
    CMPLT,
    CMPNE,
    FLOORDIV,
    FLOORMOD,
    MAX,
    MUL,
    NEG,
    WHERE,
    param,
)

OPS = (ADD, MUL, MAX, FLOORDIV, FLOORMOD, CMPLT, CMPNE)


@pytest.mark.parametrize("op", OPS, ids=str)
@pytest.mark.parametrize("dtype", [INT3, UINT3], ids=str)
def test_every_pair_of_ranges(op, dtype):
    """Exhaustively: no value of x ∘ y lies outside, for x and y of every range."""
    ranges = [(a, b) for a in range(dtype.min, dtype.max + 1) for b in range(a, dtype.max + 1)]
    for first in ranges:
        for second in ranges:
            node = op(param(0, dtype, (), first), param(1, dtype, (), second))
            values = evaluate(node, assignments(params(node)))
            low, high = node.interval
            assert low <= values.min(), (first, second)
            assert values.max() <= high, (first, second)


@pytest.mark.parametrize("seed", range(100))
def test_programs(seed):
    rng = random.Random(seed)
    dtype = rng.choice((INT4, UINT4))
    terms = integers(rng, dtype, 2)
    a, b = a_sum(rng, terms), a_sum(rng, terms)
    for node in (MAX(a, b), WHERE(CMPLT(a, b), a, NEG(b)), CAST(a, arg=INT3), CAST(a, arg=bool_)):
        values = evaluate(node, assignments(params(node)))
        low, high = node.interval
        assert low <= values.min()
        assert values.max() <= high


i, j = param(0, int64, (), (0, 7)), param(1, int64, (), (3, 5))


@pytest.mark.parametrize(
    ("node", "interval"),
    [
        (const(5, int8), (5, 5)),
        (const(True, bool_), (1, 1)),
        (ADD(i, j), (3, 12)),
        (NEG(j), (-5, -3)),
        (MUL(NEG(i), j), (-35, 0)),
        (MAX(i, j), (3, 7)),
        (FLOORDIV(i, j), (0, 2)),
        (FLOORDIV(NEG(i), 4), (-2, 0)),
        (FLOORMOD(i, j), (0, 4)),
        (FLOORMOD(i, 8), (0, 7)),
        (FLOORMOD(ADD(j, 16), 16), (3, 5)),
        (FLOORMOD(i, 0), (0, 7)),
        (CMPLT(i, 8), (1, 1)),
        (CMPLT(i, 7), (0, 1)),
        (CMPNE(i, 8), (1, 1)),
        (CMPNE(j, j), (0, 1)),
        (WHERE(param(2, bool_), i, j), (0, 7)),
        (WHERE(CMPLT(i, 8), j, i), (3, 5)),
        (CAST(i, arg=int8), (0, 7)),
        (CAST(ADD(i, 250), arg=uint8), (0, 255)),
        (CAST(j, arg=bool_), (1, 1)),
        (CAST(param(2, float32), arg=int8), (-128, 127)),
        (ADD(param(2, int8), 1), (-128, 127)),
        (CMPLT(param(2, float32), 1.0), (0, 1)),
        (param(2, int32), (int32.min, int32.max)),
        (CALL(ADD(i, 1), param(4, int64)), (1, 8)),
    ],
    ids=str,
)
def test_narrow(node, interval):
    assert node.interval == interval


def test_overflow_of_a_step_gives_the_whole_dtype():
    near = param(0, int8, (), (100, 120))
    assert ADD(near, near).interval == (-128, 127)
    assert ADD(near, 7).interval == (107, 127)
    assert NEG(param(0, uint8, (), (1, 2))).interval == (0, 255)
