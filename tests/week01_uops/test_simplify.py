"""All rules together: random programs mean the same, to the bit, and are at a fixed point."""

import random

import pytest

from tests.week01_uops.meaning import FLOAT8, INT4, INT5, UINT4, UnspecifiedError, difference
from tests.week01_uops.prove import a_constant, text
from week01_uops.dtypes import DType, bool_, int16, uint16
from week01_uops.node import UOp, const
from week01_uops.ops import (
    ADD,
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
from week01_uops.simplify import simplify

SMALL = (INT4, UINT4, INT5)
COMMON = (ADD, ADD, MUL, MAX)
TYPES = {bool_: (MUL, MAX, CMPNE, WHERE), FLOAT8: (*COMMON, NEG, WHERE)}
INTEGER = (*COMMON, FLOORDIV, FLOORMOD, FLOORDIV, FLOORMOD, NEG, WHERE)


def leaf(rng: random.Random, dtype: DType) -> UOp:
    if dtype is bool_:
        return param(2, bool_)
    if dtype is FLOAT8:
        numbers = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, float("inf"), float("-inf"), float("nan"))
        return const(rng.choice(numbers), dtype) if rng.random() < 0.3 else param(3, dtype)
    if rng.random() < 0.35:
        return a_constant(rng, dtype)
    bounds = None if dtype.bits <= 5 and rng.random() < 0.5 else (0, 5)
    return rng.choice((param(0, dtype, (), (0, 7)), param(1, dtype, (), bounds)))


def expression(rng: random.Random, dtype: DType, depth: int, number: DType) -> UOp:
    """A random program of this dtype, whose integers are of one dtype."""
    if depth == 0 or rng.random() < 0.1:
        return leaf(rng, dtype)

    def inner(of: DType) -> UOp:
        return expression(rng, of, depth - 1, number)

    if dtype is bool_ and rng.random() < 0.6:
        of = rng.choice((number, number, FLOAT8))
        return rng.choice((CMPLT, CMPLT, CMPNE))(inner(of), inner(of))
    if rng.random() < 0.08:
        return CAST(inner(rng.choice((bool_, number))), arg=dtype)
    op = rng.choice(TYPES.get(dtype, INTEGER))
    if op is NEG:
        return NEG(inner(dtype))
    if op is WHERE:
        return WHERE(inner(bool_), inner(dtype), inner(dtype))
    second = inner(dtype)
    if op in (FLOORDIV, FLOORMOD, MUL) and dtype is number and rng.random() < 0.7:
        second = a_constant(rng, dtype)
    return op(inner(dtype), second)


def operations(node: UOp) -> int:
    return sum(bool(n.src) for n in node.toposort())


@pytest.mark.parametrize("block", range(12))
def test_random_programs(block):
    grown = 0
    for seed in range(150 * block, 150 * (block + 1)):
        rng = random.Random(seed)
        number = rng.choice((*SMALL, int16, uint16))
        dtype = rng.choice((number, number, bool_, FLOAT8))
        before = expression(rng, dtype, rng.randint(2, 5), number)
        after = simplify(before)
        assert simplify(after) is after, (seed, text(before))
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
        try:
            wrong = difference(before, after)
        except UnspecifiedError:
            continue
        assert wrong is None, f"seed {seed}: {text(before)} → {text(after)}: {wrong}"
        grown += operations(after) > operations(before)
    assert grown <= 5, "simpler programs are not longer, but for a shared part taken apart"
