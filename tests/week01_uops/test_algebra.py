"""Identities: which fire, and which must not."""

import math

import pytest

from week01_uops.algebra import ALGEBRA, CASTS, holds
from week01_uops.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
)
from week01_uops.node import const
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
    RECIP,
    WHERE,
    param,
)
from week01_uops.rewrite import Trace, rewrite
from week01_uops.simplify import SIMPLIFY, simplify

f, g = param(0, float32), param(1, float32)
i, j = param(2, int32), param(3, int32)
p, q = param(4, bool_), param(5, bool_)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ADD(f, 0.0), f),
        (ADD(-0.0, f), f),
        (MUL(1.0, f), f),
        (MUL(f, -1.0), NEG(f)),
        (NEG(NEG(f)), f),
        (MUL(NEG(f), NEG(g)), MUL(f, g)),
        (MUL(NEG(f), 3.0), MUL(f, -3.0)),
        (MAX(f, f), f),
        (MAX(f, -math.inf), f),
        (MAX(MAX(f, 1.0), 2.0), MAX(f, 2.0)),
        (CMPLT(f, f), const(False, bool_)),
        (CMPLT(NEG(f), NEG(g)), CMPLT(g, f)),
        (MUL(0, i), const(0, int32)),
        (ADD(i, NEG(i)), const(0, int32)),
        (FLOORDIV(i, 1), i),
        (FLOORDIV(i, -1), NEG(i)),
        (FLOORDIV(i, 0), const(0, int32)),
        (FLOORMOD(i, 1), const(0, int32)),
        (FLOORMOD(i, -1), const(0, int32)),
        (FLOORMOD(i, 0), i),
        (CMPNE(i, i), const(False, bool_)),
        (MUL(p, True), p),
        (MUL(p, False), const(False, bool_)),
        (MAX(p, True), const(True, bool_)),
        (CMPNE(CMPNE(p, True), True), p),
        (MUL(p, CMPNE(p, True)), const(False, bool_)),
        (MAX(CMPNE(p, True), p), const(True, bool_)),
        (MUL(p, MAX(q, p)), p),
        (MAX(p, MUL(q, p)), p),
        (WHERE(True, f, g), f),
        (WHERE(False, f, g), g),
        (WHERE(p, f, f), f),
        (WHERE(CMPNE(p, True), f, g), WHERE(p, g, f)),
        (WHERE(p, WHERE(p, f, g), 0.0), WHERE(p, f, 0.0)),
        (WHERE(p, 0.0, WHERE(p, f, g)), WHERE(p, 0.0, g)),
        (WHERE(p, WHERE(q, f, 0.0), 0.0), WHERE(MUL(p, q), f, 0.0)),
        (WHERE(p, True, False), p),
        (WHERE(p, False, True), CMPNE(p, True)),
        (WHERE(p, q, False), MUL(p, q)),
        (WHERE(p, True, q), MAX(p, q)),
        (CMPLT(2.0, NEG(f)), CMPLT(f, -2.0)),
        (CMPLT(NEG(f), 2.0), CMPLT(-2.0, f)),
        (CMPNE(NEG(f), NEG(g)), CMPNE(f, g)),
        (CMPNE(NEG(f), 2.0), CMPNE(f, -2.0)),
        (CMPLT(CAST(i, arg=int64), CAST(j, arg=int64)), CMPLT(i, j)),
        (CMPNE(CAST(f, arg=float64), CAST(g, arg=float64)), CMPNE(f, g)),
        (CMPNE(CAST(p, arg=float32), 0.0), p),
        (CAST(CAST(param(7, int64, (), (0, 9)), arg=int8), arg=int64), param(7, int64, (), (0, 9))),
        (CAST(f, arg=float32), f),
        (CAST(CAST(f, arg=float64), arg=float32), f),
    ],
    ids=str,
)
def test_fires(before, after):
    assert simplify(before) is after
    assert simplify(after) is after


@pytest.mark.parametrize(
    "program",
    [
        MUL(f, 0.0),  # NaN and infinity
        ADD(f, NEG(f)),
        ADD(ADD(f, g), NEG(g)),
        ADD(ADD(f, 1e20), -1e20),
        ADD(ADD(f, 1.0), 1.0),
        MUL(MUL(f, 3.0), 0.5),
        MUL(f, RECIP(f)),
        ADD(f, f),  # a product could be fused into a sum, and then not overflow
        CMPNE(f, f),  # the test for NaN
        RECIP(RECIP(f)),
        NEG(MUL(f, 3.0)),  # no product where there was none
        NEG(ADD(f, g)),
        MAX(f, math.inf),  # NaN
        WHERE(CMPLT(f, g), g, f),
        CAST(CAST(f, arg=float16), arg=float32),
        CAST(CAST(f, arg=int32), arg=float32),
        CAST(CAST(i, arg=int8), arg=int32),
        CMPLT(CAST(i, arg=int8), CAST(j, arg=int8)),
        CMPLT(CAST(i, arg=float32), CAST(j, arg=float32)),
        CMPLT(CAST(p, arg=int8), CAST(q, arg=int8)),
        MUL(g, NEG(f)),
        WHERE(p, f, g),
        MAX(p, q),
    ],
    ids=str,
)
def test_declines(program):
    assert simplify(program) is program


def test_commuting_sources_have_one_order():
    assert simplify(MUL(g, f)) is simplify(MUL(f, g))
    assert simplify(MAX(NEG(f), f)) is simplify(MAX(f, NEG(f)))
    assert simplify(CMPNE(q, p)) is simplify(CMPNE(p, q))


@pytest.mark.parametrize(
    ("wide", "narrow", "answer"),
    [
        (int32, int16, True),
        (int32, uint16, True),
        (int16, uint16, False),
        (uint32, int8, False),
        (float32, int16, True),
        (float32, int32, False),
        (float64, int32, True),
        (float64, int64, False),
        (float16, int8, True),
        (bfloat16, uint8, True),
        (bfloat16, int16, False),
        (float32, float16, True),
        (float32, bfloat16, True),
        (bfloat16, float16, False),
        (float16, bfloat16, False),
        (int8, bool_, True),
        (int8, float16, False),
        (bool_, int8, False),
    ],
)
def test_holds(wide, narrow, answer):
    assert holds(wide, narrow) is answer


def test_integers_that_narrow_twice():
    x = param(0, int64)
    assert rewrite(CAST(CAST(x, arg=int32), arg=int8), CASTS) is CAST(x, arg=int8)
    assert rewrite(CAST(CAST(x, arg=uint8), arg=int8), CASTS) is CAST(x, arg=int8)


def test_shapes_are_kept():
    row, column = param(0, float32, (3,)), param(1, float32, (2, 1))
    wide = WHERE(CMPLT(column, 0.0), row, row)
    assert simplify(wide) is wide
    assert simplify(MUL(param(0, int32, (3,)), 0)).shape == (3,)
    assert simplify(NEG(MUL(param(0, int32, (3,)), 0))).shape == (3,)


def test_reasons_are_traced():
    trace = Trace()
    big = param(0, int32)
    rewrite(FLOORDIV(ADD(big, 3), 2), SIMPLIFY, trace=trace)
    ((name, reason),) = trace.declined
    assert name == "divide"
    assert "wrap" in reason


def test_subjects_are_small():
    """A table has one subject and about twenty rows."""
    assert all(rule.exact for rule in ALGEBRA)
    assert len({rule.name for rule in SIMPLIFY}) == len(SIMPLIFY.rows)
