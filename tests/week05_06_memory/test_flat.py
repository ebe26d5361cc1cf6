"""Offsets: one linear form over all axes, whatever an index was taken apart into."""

import pytest

from tests.week05_06_memory.bodies import number
from week01_uops.linear import Linear, linear
from week01_uops.ops import ADD, FLOORDIV, FLOORMOD, MUL
from week02_render.ops import loop
from week05_06_memory.flat import flat, put_together

I, J = loop(0, 6), loop(1, 40)


def offset(shape, *indices):
    return flat(shape, [linear(i) for i in indices])


def divided(x, by):
    return FLOORDIV(x, number(by)), FLOORMOD(x, number(by))


def test_row_major():
    assert offset((6, 40), I, ADD(J, number(3))) == Linear({I: 40, J: 1}, 3)
    assert offset((), *()) == Linear({}, 0)


def test_a_quotient_and_a_remainder_are_one_number():
    assert offset((10, 4), *divided(J, 4)) == Linear({J: 1}, 0)
    assert offset((10, 4), *divided(ADD(J, number(-4)), 4)) == Linear({J: 1}, -4)
    joint = ADD(MUL(I, number(40)), J)
    assert offset((60, 4, 2), divided(joint, 4)[0], divided(joint, 4)[1], I).terms == {J: 2, I: 81}


def test_three_axes():
    high, low = divided(J, 4)
    middle = divided(high, 5)
    assert offset((2, 5, 4), *middle, low) == Linear({J: 1}, 0)
    outer = FLOORDIV(J, number(20))  # as rules write a quotient of a quotient
    assert offset((2, 5, 4), outer, middle[1], low) == Linear({J: 1}, 0)
    assert J not in offset((2, 5, 4), FLOORDIV(J, number(19)), middle[1], low).terms


@pytest.mark.parametrize(("shape", "by"), [((10, 5), 4), ((4, 10), 4)])
def test_what_does_not_fit_stays(shape, by):
    """A padded row, and axes the other way around."""
    quotient, remainder = divided(J, by)
    indices = (quotient, remainder) if shape[0] == 10 else (remainder, quotient)
    assert J not in offset(shape, *indices).terms
    whole = put_together(Linear({quotient: 8, remainder: 2}, 1))
    assert whole == Linear({J: 2}, 1)
