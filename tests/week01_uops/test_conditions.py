"""Comparisons, conjunctions, disjunctions, and what follows from them."""

import random

import pytest

from tests.week01_uops.meaning import INT4, UINT4, assignments, evaluate, params
from tests.week01_uops.prove import a_sum, integers, text
from week01_uops.dtypes import bool_, float32, int8, int32, int64, uint8
from week01_uops.given import given
from week01_uops.node import const
from week01_uops.ops import ADD, CMPLT, CMPNE, FLOORDIV, FLOORMOD, MAX, MUL, NEG, WHERE, param
from week01_uops.simplify import SIMPLIFY, simplify

TRUE, FALSE = const(True, bool_), const(False, bool_)
x, y, f = param(0, int32), param(1, int32), param(2, float32)
i, j = param(3, int64, (), (0, 7)), param(4, int64, (), (0, 15))
p, q = param(5, bool_), param(6, bool_)


def no(condition):
    return CMPNE(condition, True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # decided
        (CMPLT(i, 8), TRUE),
        (CMPLT(i, 0), FALSE),
        (CMPLT(i, ADD(i, 1)), TRUE),
        (CMPLT(ADD(i, j), i), FALSE),
        (CMPNE(i, 8), TRUE),
        (CMPNE(ADD(x, 3), ADD(x, 4)), TRUE),
        (CMPNE(ADD(x, 3), ADD(3, x)), FALSE),
        (CMPNE(MUL(i, 8), 63), TRUE),
        (CMPNE(ADD(MUL(i, 8), 3), MUL(j, 4)), TRUE),
        # reduced
        (CMPLT(ADD(i, 3), 5), CMPLT(i, 2)),
        (CMPLT(5, ADD(i, 3)), CMPLT(2, i)),
        (CMPLT(NEG(i), -3), CMPLT(3, i)),
        (CMPLT(MUL(i, 4), 10), CMPLT(i, 3)),
        (CMPLT(ADD(MUL(j, 8), i), 64), CMPLT(j, 8)),
        (CMPLT(MUL(i, 4), ADD(MUL(j, 4), 2)), CMPLT(i, ADD(j, 1))),
        (CMPLT(FLOORDIV(j, 4), 2), CMPLT(j, 8)),
        (CMPLT(1, FLOORDIV(j, 4)), CMPLT(7, j)),
        (CMPNE(ADD(x, 3), 5), CMPNE(x, 2)),
        (CMPNE(NEG(x), y), CMPNE(ADD(x, y), 0)),
        (CMPNE(MUL(i, 4), 8), CMPNE(i, 2)),
        (no(CMPLT(x, 5)), CMPLT(4, x)),
        (no(CMPLT(5, x)), CMPLT(x, 6)),
        # conjunctions
        (MUL(no(CMPLT(x, 5)), no(CMPLT(x, 7))), CMPLT(6, x)),
        (MUL(CMPLT(x, 5), CMPLT(x, 7)), CMPLT(x, 5)),
        (MUL(CMPLT(5, x), MUL(p, CMPLT(7, x))), MUL(CMPLT(7, x), p)),
        (MUL(CMPLT(x, 5), CMPLT(5, x)), FALSE),
        (MUL(CMPLT(x, 5), MUL(p, CMPLT(4, x))), FALSE),
        (MUL(p, MUL(q, p)), MUL(p, q)),
        (MUL(p, MUL(q, no(p))), FALSE),
        (MUL(CMPLT(i, 8), p), p),
        # disjunctions
        (MAX(CMPLT(x, 5), CMPLT(x, 7)), CMPLT(x, 7)),
        (MAX(CMPLT(x, 5), CMPLT(4, x)), TRUE),
        (MAX(CMPLT(x, 5), MAX(p, CMPLT(3, x))), TRUE),
        (MAX(p, MAX(q, no(p))), TRUE),
    ],
    ids=lambda node: text(node)[:60],
)
def test_fires(before, after):
    assert simplify(before) is after
    assert simplify(after) is after


@pytest.mark.parametrize(
    "program",
    [
        CMPLT(ADD(x, 3), 5),  # x + 3 may wrap
        CMPLT(x, y),
        no(CMPLT(x, y)),
        no(CMPLT(f, 5.0)),
        CMPLT(f, 5.0),
        CMPNE(f, f),
        CMPLT(ADD(MUL(j, 8), i), 65),
        CMPLT(FLOORDIV(x, y), 2),
        CMPNE(MUL(x, 4), 8),  # x may be 2 + 2³⁰
        MUL(CMPLT(x, 5), CMPLT(y, 5)),
        MUL(CMPLT(x, 7), CMPLT(4, x)),
        MAX(CMPLT(x, 5), CMPLT(5, x)),
        MUL(p, q),
    ],
    ids=lambda node: text(node)[:60],
)
def test_declines(program):
    after = simplify(program)
    assert after is program or after is program.with_src(program.src[::-1])


def test_inequalities_have_one_form():
    """a ≠ b and b ≠ a, moved from side to side, are one node."""
    forms = [
        CMPNE(ADD(x, 1), MUL(y, 3)),
        CMPNE(MUL(y, 3), ADD(x, 1)),
        CMPNE(NEG(MUL(y, 3)), NEG(ADD(x, 1))),
        CMPNE(ADD(x, NEG(MUL(y, 3))), -1),
    ]
    assert len({simplify(form) for form in forms}) == 1


@pytest.mark.parametrize("dtype", [int8, uint8])
def test_the_least_coefficient_is_its_own_opposite(dtype):
    a, b = param(0, dtype), param(1, dtype)
    before = CMPNE(MUL(a, dtype.wrap(128)), ADD(b, dtype.wrap(128)))
    after = simplify(before)
    assert simplify(after) is after


# given


def test_given_a_bound():
    assert given(CMPLT(j, 8), FLOORMOD(j, 8), SIMPLIFY) is j
    assert given(MUL(CMPLT(3, j), CMPLT(j, 8)), FLOORDIV(j, 4), SIMPLIFY) is const(1, int64)
    assert given(CMPLT(j, 9), FLOORMOD(j, 8), SIMPLIFY) is FLOORMOD(j, 8)


def test_given_a_bound_of_a_sum():
    offset = simplify(ADD(MUL(i, 4), j))
    assert given(CMPLT(offset, 14), FLOORDIV(offset, 14), SIMPLIFY) is const(0, int64)
    assert given(CMPLT(offset, 14), FLOORMOD(offset, 14), SIMPLIFY) is offset


def test_given_an_equality():
    assert given(no(CMPNE(i, 3)), simplify(ADD(MUL(i, 5), j)), SIMPLIFY) is ADD(j, 15)


def test_given_nothing_of_use():
    program = FLOORMOD(x, 8)
    assert given(p, program, SIMPLIFY) is program
    assert given(CMPLT(f, 2.0), program, SIMPLIFY) is program
    assert given(CMPLT(y, 3), program, SIMPLIFY) is program


@pytest.mark.parametrize("seed", range(200))
def test_given_is_right_where_the_condition_holds(seed):
    rng = random.Random(seed)
    dtype = rng.choice((INT4, UINT4))
    terms = integers(rng, dtype, 2)
    condition = simplify(
        MUL(CMPLT(a_sum(rng, terms, 0), 3), CMPLT(rng.choice(terms), rng.choice(terms)))
    )
    program = simplify(a_sum(rng, terms))
    after = given(condition, program, SIMPLIFY)
    assert len(after.toposort()) <= len(program.toposort())
    inputs = assignments(sorted({*params(condition, program)}, key=lambda n: n.arg.slot) or terms)
    both = WHERE(condition, program, 0), WHERE(condition, after, 0)
    old, new = (evaluate(node, inputs) for node in both)
    assert (old == new).all()
