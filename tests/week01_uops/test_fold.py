"""Constant folding against NumPy's arithmetic, and at the corners of every dtype."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from week01_uops.dtypes import (
    ALL,
    FLOATS,
    INTEGERS,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint64,
)
from week01_uops.fold import FOLD, FOLDING, fold
from week01_uops.node import CONST, const
from week01_uops.ops import (
    ADD,
    CAST,
    CMPLT,
    CMPNE,
    ELEMENTWISE,
    EXP2,
    FLOORDIV,
    FLOORMOD,
    LOG2,
    MAX,
    MUL,
    NEG,
    RECIP,
    WHERE,
    param,
)
from week01_uops.rewrite import rewrite

INF, NAN = math.inf, math.nan


def same(a, b) -> bool:
    return a == b or (a != a and b != b)


def test_every_elementwise_op_is_folded():
    assert set(FOLD) == ELEMENTWISE


def values(dtype):
    if dtype.is_int:
        corners = st.sampled_from([dtype.min, dtype.max, 0, 1, 2])
        return st.integers(dtype.min, dtype.max) | corners
    return st.floats().map(dtype.round) | st.sampled_from([0.0, -0.0, INF, -INF, NAN])


two_of_a_kind = st.sampled_from(INTEGERS + FLOATS).flatmap(
    lambda dtype: st.tuples(st.just(dtype), values(dtype), values(dtype))
)


@given(two_of_a_kind)
def test_arithmetic_is_numpys(case):
    """ADD, MUL and MAX of every dtype; NumPy's own float16 and float32 round once."""
    dtype, x, y = case
    a, b = dtype.numpy.type(x), dtype.numpy.type(y)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for op, function in ((ADD, np.add), (MUL, np.multiply), (MAX, np.maximum)):
            expected = function(a, b).item() if dtype is not bfloat16 else None
            got = fold(op, (x, y), dtype)
            assert expected is None or same(got, expected), (op, dtype, x, y)
            assert fold(CMPNE, (got, got), bool_) == (got != got)


@given(st.floats(), st.floats())
def test_bfloat16_is_rounded_once(x, y):
    """Against exact rationals: the result is a nearest value, the even one of two."""
    x, y = bfloat16.round(x), bfloat16.round(y)
    if math.isfinite(x) and math.isfinite(y):
        for op, exact in ((ADD, x + y), (MUL, x * y)):
            got = fold(op, (x, y), bfloat16)
            # A double holds the product exactly; of the sum it keeps enough to round it again.
            assert got == bfloat16.round(exact)


@given(st.sampled_from(INTEGERS).flatmap(lambda d: st.tuples(st.just(d), values(d), values(d))))
def test_division_rounds_down(case):
    dtype, x, y = case
    quotient, rest = fold(FLOORDIV, (x, y), dtype), fold(FLOORMOD, (x, y), dtype)
    if y == 0:
        assert (quotient, rest) == (0, x)
    else:
        assert (quotient, rest) == (dtype.wrap(x // y), x % y)


def test_integers_wrap():
    assert fold(ADD, (127, 1), int8) == -128
    assert fold(MUL, (16, 16), uint8) == 0
    assert fold(NEG, (1,), uint8) == 255
    assert fold(NEG, (-128,), int8) == -128
    assert fold(FLOORDIV, (-128, -1), int8) == -128
    assert fold(FLOORMOD, (-128, -1), int8) == 0


def test_bools():
    for x in (False, True):
        for y in (False, True):
            assert fold(MUL, (x, y), bool_) is (x and y)
            assert fold(MAX, (x, y), bool_) is (x or y)
            assert fold(CMPNE, (x, y), bool_) is (x != y)


def test_nan():
    assert math.isnan(fold(MAX, (NAN, 1.0), float32))
    assert math.isnan(fold(MAX, (1.0, NAN), float32))
    assert fold(CMPLT, (NAN, 1.0), bool_) is False
    assert fold(CMPLT, (1.0, NAN), bool_) is False
    assert fold(CMPNE, (NAN, NAN), bool_) is True


@pytest.mark.parametrize("dtype", FLOATS)
def test_transcendental_corners(dtype):
    """No corner raises, and each gives the limit."""
    assert fold(EXP2, (1e300,), dtype) == INF
    assert fold(EXP2, (-1e300,), dtype) == 0
    assert fold(EXP2, (INF,), dtype) == INF
    assert fold(EXP2, (-INF,), dtype) == 0
    assert math.isnan(fold(EXP2, (NAN,), dtype))
    assert fold(LOG2, (0.0,), dtype) == -INF
    assert fold(LOG2, (-0.0,), dtype) == -INF
    assert math.isnan(fold(LOG2, (-1.0,), dtype))
    assert fold(LOG2, (INF,), dtype) == INF
    assert math.isnan(fold(LOG2, (NAN,), dtype))
    assert abs(fold(RECIP, (0.0,), dtype)) == INF
    assert fold(RECIP, (INF,), dtype) == 0
    assert math.isnan(fold(RECIP, (NAN,), dtype))
    assert fold(RECIP, (3.0,), dtype) == dtype.round(1 / 3)
    assert fold(EXP2, (10.0,), dtype) == 1024
    assert fold(LOG2, (1024.0,), dtype) == 10


def test_overflow_is_an_infinity():
    assert fold(ADD, (65504.0, 65504.0), float16) == INF
    assert fold(MUL, (-1e30, 1e30), float32) == -INF
    assert fold(MUL, (1e200, 1e200), float64) == INF


def test_subnormals_are_kept():
    least = 2.0**-149
    assert fold(ADD, (least, least), float32) == 2 * least
    assert fold(MUL, (2.0**-100, 2.0**-49), float32) == least
    assert fold(MUL, (2.0**-100, 2.0**-50), float32) == 0  # halfway, to even
    assert fold(EXP2, (-149.0,), float32) == least


def test_a_large_integer_is_rounded_once():
    """2⁵⁴ + 2³⁰ + 1 lies just above the middle of two float32s, which a double cannot say."""
    between = 2**54 + 2**30 + 1
    assert float(between) == 2**54 + 2**30
    assert fold(CAST, (between,), float32) == 2**54 + 2**31
    assert fold(CAST, (-between,), float32) == -(2**54 + 2**31)
    assert fold(CAST, (2**64 - 1,), float64) == 2.0**64
    assert fold(CAST, (2**64 - 1,), float16) == INF
    assert fold(CAST, (65519,), float16) == 65504
    assert fold(CAST, (65520,), float16) == INF


@given(st.sampled_from((float32, float64)), st.integers(-(2**63), 2**64 - 1))
def test_integer_to_float_is_numpys(dtype, value):
    source = np.int64 if value < 2**63 else np.uint64
    assert fold(CAST, (value,), dtype) == float(source(value).astype(dtype.numpy))


def test_cast_to_integer():
    assert fold(CAST, (-2.9,), int32) == -2
    assert fold(CAST, (255.9,), uint8) == 255
    assert fold(CAST, (-0.9,), uint8) == 0
    assert fold(CAST, (300,), uint8) == 44
    assert fold(CAST, (-1,), uint64) == 2**64 - 1
    assert fold(CAST, (True,), int8) == 1
    for open_ in (256.0, -1.0, INF, NAN):
        assert fold(CAST, (open_,), uint8) is None
    assert fold(CAST, (2.0**63,), int64) is None


def test_cast_to_bool():
    assert fold(CAST, (0,), bool_) is False
    assert fold(CAST, (-0.0,), bool_) is False
    assert fold(CAST, (NAN,), bool_) is True
    assert fold(CAST, (0.25,), bool_) is True


@pytest.mark.parametrize("dtype", ALL)
def test_a_folded_constant_is_of_its_dtype(dtype):
    one = const(True if dtype is bool_ else 1, dtype)
    folded = rewrite(MUL(one, one), FOLDING)
    assert folded is one
    assert type(folded.arg.value) is type(one.arg.value)


def test_what_is_left_open_is_not_folded():
    program = CAST(const(1e10, float32), arg=uint8)
    assert rewrite(program, FOLDING) is program


def test_only_constants_are_folded():
    x = param(0, int32)
    program = ADD(x, MUL(const(3, int32), 4))
    folded = rewrite(program, FOLDING)
    assert folded is ADD(x, 12)
    assert rewrite(WHERE(const(True, bool_), const(2, int32), const(3, int32)), FOLDING).op is CONST
