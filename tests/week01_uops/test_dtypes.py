"""Rounding and wrapping against NumPy."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.week01_uops.meaning import FLOAT8, INT4, UINT4, values_of
from week01_uops.dtypes import (
    ALL,
    BY_NAME,
    FLOATS,
    INTEGERS,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    from_numpy,
    int8,
    uint64,
)
from week01_uops.ops import param


@given(st.floats(), st.sampled_from((*FLOATS, FLOAT8)))
def test_rounding_is_numpys(value, dtype):
    with np.errstate(all="ignore"):
        expected = float(np.float64(value).astype(dtype.numpy))
    got = dtype.round(value)
    assert got == expected or (got != got and expected != expected)


@pytest.mark.parametrize("dtype", [FLOAT8, float16, bfloat16])
def test_every_value_of_a_short_float_is_its_own(dtype):
    for value in values_of(param(0, dtype)):
        assert dtype.round(value) == value or math.isnan(value)


@pytest.mark.parametrize("dtype", [FLOAT8, float16, bfloat16])
def test_halfway_goes_to_even(dtype):
    """Between neighbours the middle goes to the one with the even last bit, on both sides of 0."""
    positive = values_of(param(0, dtype))[: 1 << (dtype.bits - 1)]  # in the order of their bits
    finite = positive[np.isfinite(positive)]
    for n, (low, high) in enumerate(itertools.pairwise(finite)):
        middle = (low + high) / 2
        assert dtype.round(middle) == (low if n % 2 == 0 else high)
        assert dtype.round(-middle) == -(low if n % 2 == 0 else high)


def test_the_largest_doubles():
    for dtype in FLOATS:
        largest = math.nextafter(math.inf, 0)
        assert dtype.round(largest) == (largest if dtype is float64 else math.inf)
        assert dtype.round(-largest) == -(largest if dtype is float64 else math.inf)
    assert float32.round(3.4028235677973366e38) == math.inf
    assert float32.round(3.4028235677973362e38) == float(np.finfo(np.float32).max)


@given(st.integers(-(2**70), 2**70), st.sampled_from((*INTEGERS, INT4, UINT4)))
def test_wrapping(value, dtype):
    wrapped = dtype.wrap(value)
    assert dtype.min <= wrapped <= dtype.max
    assert (wrapped - value) % (1 << dtype.bits) == 0


def test_bounds():
    for dtype in INTEGERS:
        limits = np.iinfo(dtype.numpy)
        assert (dtype.min, dtype.max) == (limits.min, limits.max)
    assert (bool_.min, bool_.max) == (0, 1)
    assert bool_.wrap(-3) == 1
    assert uint64.max == 2**64 - 1


def test_kinds():
    assert [dtype.name for dtype in ALL if dtype.is_int] == [dtype.name for dtype in INTEGERS]
    assert [dtype.name for dtype in ALL if dtype.is_float] == [dtype.name for dtype in FLOATS]
    assert not bool_.is_int
    assert repr(bfloat16) == "bfloat16"
    assert BY_NAME["int8"] is int8


def test_numpy_and_back():
    for dtype in ALL:
        assert from_numpy(dtype.numpy) is dtype
    assert from_numpy(np.dtype(ml_dtypes.bfloat16)) is bfloat16
    with pytest.raises(TypeError, match="complex64"):
        from_numpy(np.dtype(np.complex64))


def test_new_dtypes_need_no_registration():
    tiny = DType("int2", "int", 2, np.dtype(np.int8))
    assert (tiny.min, tiny.max, tiny.wrap(2)) == (-2, 1, -2)
