"""Linear forms: exactness, splitting, and one node for each form."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.week01_uops.meaning import INT4, UINT4, assignments, evaluate, params
from tests.week01_uops.prove import a_sum, integers
from week01_uops.dtypes import int8, int32, int64, uint8
from week01_uops.linear import (
    LIMIT,
    Linear,
    bounds,
    build,
    divisors,
    exact,
    fits,
    linear,
    signed,
    split,
    wrapped,
)
from week01_uops.ops import ADD, FLOORDIV, MUL, NEG, param

x, y = param(0, int32), param(1, int32)


def test_forms():
    assert linear(ADD(MUL(x, 3), NEG(ADD(y, 5)))) == Linear({x: 3, y: -1}, -5)
    assert linear(MUL(ADD(x, y), 4)) == Linear({x: 4, y: 4}, 0)
    assert linear(ADD(x, NEG(x))) == Linear({}, 0)
    assert linear(MUL(x, y)) == Linear({MUL(x, y): 1}, 0)
    assert linear(FLOORDIV(x, 2)) == Linear({FLOORDIV(x, 2): 1}, 0)
    assert linear(param(2, int64, (), (5, 5))) == Linear({}, 5)


def test_forms_of_shapes():
    """Broadcast sources are not looked through: sums of other shapes would be made."""
    row, column = param(0, int32, (3,)), param(1, int32, (2, 1))
    assert linear(ADD(row, MUL(row, 2))) == Linear({row: 3}, 0)
    assert linear(ADD(row, 1)) == Linear({row: 1}, 1)
    assert linear(ADD(row, column)) == Linear({ADD(row, column): 1}, 0)
    assert linear(ADD(row, x)) == Linear({ADD(row, x): 1}, 0)


def test_long_sums_are_one_term():
    total = param(0, int64)
    for slot in range(1, LIMIT + 1):
        total = ADD(total, param(slot, int64))
    assert linear(total) == Linear({total: 1}, 0)


@pytest.mark.parametrize(("value", "bits", "wanted"), [(255, 8, -1), (-129, 8, 127), (7, 4, 7)])
def test_signed(value, bits, wanted):
    assert signed(value, bits) == wanted


@given(st.integers(0, 10**6))
def test_a_form_has_the_value_of_its_node(seed):
    """Modulo 2^n always; as integers where it is exact; and so has the node built from it."""
    rng = random.Random(seed)
    dtype = rng.choice((INT4, UINT4))
    node = a_sum(rng, integers(rng, dtype, 2))
    form = linear(node)
    given_ = assignments(params(node))
    values = evaluate(node, given_)
    terms = {t: evaluate(t, given_) for t in form.terms}
    total = sum(c * terms[t] for t, c in form.terms.items()) + form.constant
    assert ((values - total) % (1 << dtype.bits) == 0).all()
    assert (evaluate(build(form, node), given_) == values).all()
    strict = exact(form, dtype)
    if strict is not None:
        total = sum(c * terms[t] for t, c in strict.terms.items()) + strict.constant
        assert (values == total).all()
        assert fits(strict, dtype)


@given(st.integers(0, 10**6), st.integers(2, 12))
def test_split(seed, g):
    """form = g·A + S with 0 ≤ S < g for every value of the terms."""
    rng = random.Random(seed)
    terms = integers(rng, INT4, 3)
    form = Linear(
        {t: rng.randint(1, 20) * rng.choice((1, -1)) for t in terms}, rng.randint(-30, 30)
    )
    parts = split(form, g)
    if parts is not None:
        whole, rest = parts
        assert whole.times(g).plus(rest) == form
        low, high = bounds(rest)
        assert 0 <= low <= high < g


def test_split_chooses_remainders_of_either_sign():
    i, j = param(0, int64, (), (0, 3)), param(1, int64, (), (0, 1))
    assert split(Linear({i: 15}, 3), 16) == (Linear({i: 1}, 0), Linear({i: -1}, 3))
    assert split(Linear({j: 3}, 6), 8) == (Linear({j: 1}, 0), Linear({j: -5}, 6))
    assert split(Linear({i: 3}, 6), 8) is None


def test_exact_of_unsigned():
    """x − 3 for x in [3, 10] is exact, though −3 is 253."""
    near = param(0, uint8, (), (3, 10))
    assert exact(linear(ADD(near, 253)), uint8) == Linear({near: 1}, -3)
    assert exact(linear(ADD(param(0, uint8, (), (0, 10)), 253)), uint8) is None
    bit = param(0, uint8, (), (0, 1))
    assert exact(linear(MUL(bit, 200)), uint8) == Linear({bit: 200}, 0)


def test_divisors():
    i, j = param(0, int64), param(1, int64)
    assert divisors(Linear({i: 12, j: 18}, 5), 72) == [72, 18, 12, 6]
    assert divisors(Linear({i: 12, j: 18}, 5), 0) == [18, 12, 6]
    assert divisors(Linear({i: 1}, 0), 0) == []


def test_build_shares_multiples():
    assert build(Linear({x: 3, y: 3}, 1), x) is ADD(MUL(ADD(x, y), 3), 1)
    assert build(Linear({x: 1, y: 8}, 0), x) is ADD(MUL(y, 8), x)
    assert build(Linear({x: -1, y: -1}, 0), x) is NEG(ADD(x, y))
    assert build(Linear({}, 300), param(0, int8)).arg.value == 44


def test_wrapped():
    assert wrapped(Linear({x: 256, y: 255}, 128), 8) == Linear({y: -1}, -128)
