"""Arithmetic against exact integers, fractions and decimals of Python."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from week01_uops import dtypes, numerics
from week01_uops.dtypes import DType

INT4 = DType("int4", "int", 4, np.dtype(np.int8))
UINT3 = DType("uint3", "uint", 3, np.dtype(np.uint8))
FLOAT8 = DType("float8_e5m2", "float", 8, np.dtype(ml_dtypes.float8_e5m2), 3, 15)
SMALL_INTEGERS = (INT4, UINT3, dtypes.int8, dtypes.uint8)
NARROW_FLOATS = (FLOAT8, dtypes.float16, dtypes.bfloat16)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def values_of(dtype):
    """All finite values of a narrow float ≥ 0, in order, as float64."""
    bits = np.arange(1 << (dtype.bits - 1)).astype(f"uint{dtype.bits}")
    found = bits.view(dtype.numpy).astype(np.float64)
    return found[np.isfinite(found)]


def unit(x, dtype):
    """The exponent of the last place of a Fraction other than 0, as a float dtype would hold it."""
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    if abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    return max(exponent + 1, 2 - dtype.max_exponent) - dtype.precision


def nearest(x, dtype):
    """The value of a float dtype nearest to a Fraction, ties to even."""
    if x == 0:
        return 0.0
    step = Fraction(2) ** unit(x, dtype)
    result = round(x / step) * step  # Python's round on Fractions is exact, ties to even
    overflows = abs(result) >= 2 ** (dtype.max_exponent + 1)
    return math.copysign(math.inf, x) if overflows else float(result)


def same(got, want):
    return np.array_equal(got.astype(np.float64), want, equal_nan=True)


@pytest.mark.parametrize("dtype", NARROW_FLOATS, ids=str)
def test_every_halfway_case_of_float64_rounds_to_even(dtype):
    values = values_of(dtype)
    low, high = values[:-1], values[1:]
    middle = (low + high) / 2  # exact
    even = np.where(np.arange(len(low)) % 2 == 0, low, high)
    for sign in (1, -1):
        assert same(numerics.cast(sign * middle, dtype), sign * even)
        assert same(numerics.cast(sign * np.nextafter(middle, np.inf), dtype), sign * high)
        assert same(numerics.cast(sign * np.nextafter(middle, -np.inf), dtype), sign * low)
        assert same(numerics.cast(sign * values, dtype), sign * values)


@pytest.mark.parametrize("dtype", NARROW_FLOATS, ids=str)
def test_overflow_and_non_finite_values(dtype):
    top = values_of(dtype)[-1]
    edge = top + math.ldexp(1, dtype.max_exponent - dtype.precision)
    x = np.array([np.nextafter(edge, 0), edge, -edge, 1e300, np.inf, -np.inf, np.nan, -0.0])
    got = numerics.cast(x, dtype).astype(np.float64)
    want = [top, np.inf, -np.inf, np.inf, np.inf, -np.inf, np.nan, 0]
    assert np.array_equal(got, want, equal_nan=True)


def test_float32_halfway_cases():
    rng = np.random.default_rng(0)
    low = rng.integers(0, 0x7F7FFFFF, 20_000, np.uint32)
    a, b = (x.view(np.float32).astype(np.float64) for x in (low, low + 1))
    middle = (a + b) / 2
    assert same(numerics.cast(middle, dtypes.float32), np.where(low % 2 == 0, a, b))
    assert same(numerics.cast(np.nextafter(middle, np.inf), dtypes.float32), b)


@pytest.mark.parametrize("source", [dtypes.int64, dtypes.uint64, dtypes.int32], ids=str)
@pytest.mark.parametrize("dtype", [*dtypes.FLOATS, FLOAT8], ids=str)
def test_integers_round_once(source, dtype):
    rng = np.random.default_rng(1)
    near = set()
    for exponent in range(source.bits):
        for _ in range(8):
            base = (1 << exponent) | int(rng.integers(0, 1 << 62)) % (1 << exponent)
            step = 1 << max(exponent - dtype.precision, 0)
            middle = base // step * step
            near |= {sign * (middle + d) for sign in (1, -1) for d in (-1, 0, 1)}
    exact = [v for v in sorted(near) if source.min <= v <= source.max] + [source.min, source.max]
    got = numerics.cast(np.array(exact, source.numpy), dtype).astype(np.float64)
    assert got.tolist() == [nearest(Fraction(v), dtype) for v in exact]


@pytest.mark.parametrize("dtype", [*dtypes.INTEGERS, INT4, UINT3], ids=str)
def test_floats_truncate(dtype):
    inside = [
        v for v in (0, 1, -1, 7, -8, 100, dtype.max, dtype.min) if dtype.min <= v <= dtype.max
    ]
    for source in dtypes.FLOATS:
        for v in inside:
            if abs(v) >= 2**10:
                continue
            x = np.array([v, v + 0.25 if v >= 0 else v - 0.25], np.float64).astype(source.numpy)
            assert numerics.cast(x, dtype).tolist() == [math.trunc(float(e)) for e in x]
    wild = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300])
    assert numerics.cast(wild, dtype).dtype == dtype.numpy
    if dtype.bits == 64:
        edge = np.array([2.0**63 - 1024, -(2.0**63) if dtype.min else 0.0])
        assert numerics.cast(edge, dtype).tolist() == [int(e) for e in edge]
    assert numerics.cast(np.array([-0.75]), dtype).tolist() == [0]


def test_integers_wrap_and_bools_count():
    x = np.array([0, 1, -1, 300, -300, 2**63 - 1, -(2**63)])
    for dtype in (*dtypes.INTEGERS, INT4, UINT3):
        assert numerics.cast(x, dtype).tolist() == [dtype.wrap(int(v)) for v in x]
        assert numerics.cast(np.array([False, True]), dtype).tolist() == [0, 1]
    assert numerics.cast(x, dtypes.bool_).tolist() == [False, True, True, True, True, True, True]
    for dtype in (*dtypes.FLOATS, FLOAT8):
        assert numerics.cast(np.array([False, True]), dtype).astype(float).tolist() == [0, 1]
        x = np.array([0.0, -0.0, 1.0, np.nan, np.inf]).astype(dtype.numpy)
        assert numerics.cast(x, dtypes.bool_).tolist() == [False, False, True, True, True]
        least = np.array([1], f"uint{dtype.bits}").view(dtype.numpy)
        assert numerics.cast(least, dtypes.bool_).tolist() == [True]


def python_integers(dtype, a, b):
    return {
        numerics.add: dtype.wrap(a + b),
        numerics.multiply: dtype.wrap(a * b),
        numerics.maximum: max(a, b),
        numerics.floor_divide: dtype.wrap(a // b) if b else 0,
        numerics.floor_modulo: dtype.wrap(a % b) if b else a,
        numerics.less: a < b,
        numerics.differ: a != b,
    }


def check_integers(dtype, pairs):
    a, b = (np.array(column, dtype.numpy) for column in zip(*pairs, strict=True))
    expected = [python_integers(dtype, x, y) for x, y in pairs]
    for function in expected[0]:
        assert function(dtype, a, b).tolist() == [row[function] for row in expected]
    assert numerics.negate(dtype, a).tolist() == [dtype.wrap(-x) for x, _ in pairs]


@pytest.mark.parametrize("dtype", SMALL_INTEGERS, ids=str)
def test_all_pairs_of_small_integers(dtype):
    values = range(dtype.min, dtype.max + 1)
    check_integers(dtype, list(product(values, values)))


@pytest.mark.parametrize("dtype", dtypes.INTEGERS, ids=str)
def test_extreme_and_random_integers(dtype):
    rng = np.random.default_rng(2)
    values = {0, 1, 2, 3, dtype.max, dtype.max - 1, dtype.min, dtype.min + 1, dtype.wrap(-1)}
    values |= {int(v) for v in rng.integers(dtype.min, dtype.max, 20, dtype.numpy, endpoint=True)}
    check_integers(dtype, list(product(sorted(values), repeat=2)))


def test_scalars_neither_warn_nor_trap():
    lowest = np.asarray(-128, np.int8)
    minus, zero = np.asarray(-1, np.int8), np.asarray(0, np.int8)
    assert numerics.floor_divide(dtypes.int8, lowest, minus) == -128
    assert numerics.floor_modulo(dtypes.int8, lowest, minus) == 0
    assert numerics.floor_divide(dtypes.int8, lowest, zero) == 0
    assert numerics.floor_modulo(dtypes.int8, lowest, zero) == -128
    assert numerics.add(dtypes.int8, lowest, minus) == 127
    assert numerics.negate(dtypes.int8, lowest) == -128


def test_bool_arithmetic():
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert numerics.multiply(dtypes.bool_, a, b).tolist() == [False, False, False, True]
    assert numerics.maximum(dtypes.bool_, a, b).tolist() == [False, True, True, True]
    assert numerics.differ(dtypes.bool_, a, b).tolist() == [False, True, True, False]
    assert numerics.multiply(dtypes.bool_, a, b).dtype == bool


def float_samples(dtype):
    """Values of all sizes: subnormal, near one, near overflow, exact powers."""
    rng = np.random.default_rng(3)
    if dtype is FLOAT8:
        finite = values_of(dtype)
        return np.concatenate([finite, -finite]).astype(dtype.numpy)
    bits = rng.integers(0, 1 << dtype.bits, 50, f"uint{dtype.bits}")
    small = np.array([0, 1, 2, 3, 5], f"uint{dtype.bits}")
    near = rng.uniform(-2, 2, 40).astype(dtype.numpy)
    found = np.concatenate([bits.view(dtype.numpy), small.view(dtype.numpy), near])
    return found[np.isfinite(found.astype(np.float64))]


@pytest.mark.parametrize("dtype", [*NARROW_FLOATS, dtypes.float32], ids=str)
def test_float_sums_products_and_reciprocals_are_rounded_once(dtype):
    x = float_samples(dtype)
    exact = [Fraction(float(v)) for v in x]
    a, b = (grid.reshape(-1) for grid in np.meshgrid(x, x))
    sums = numerics.add(dtype, a, b).astype(np.float64).tolist()
    products = numerics.multiply(dtype, a, b).astype(np.float64).tolist()
    pairs = list(product(exact, exact))
    assert sums == [nearest(q + p, dtype) for p, q in pairs]
    assert products == [nearest(q * p, dtype) for p, q in pairs]
    nonzero = x[x != 0]
    got = numerics.reciprocal(dtype, nonzero).astype(np.float64).tolist()
    assert got == [nearest(1 / Fraction(float(v)), dtype) for v in nonzero]


def test_float64_arithmetic_is_python_s():
    x = float_samples(dtypes.float64)
    a, b = (grid.reshape(-1) for grid in np.meshgrid(x, x))
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert numerics.add(dtypes.float64, a, b).tolist() == [p + q for p, q in pairs]
    assert numerics.multiply(dtypes.float64, a, b).tolist() == [p * q for p, q in pairs]


@pytest.mark.parametrize("dtype", [*dtypes.FLOATS, FLOAT8], ids=str)
def test_nan_and_comparisons(dtype):
    values = [-np.inf, -1.5, -0.0, 0.0, 1.0, np.inf, np.nan]
    a, b = zip(*product(values, repeat=2), strict=True)
    left, right = (np.array(side).astype(dtype.numpy) for side in (a, b))
    pairs = list(zip(a, b, strict=True))
    assert numerics.less(dtype, left, right).tolist() == [p < q for p, q in pairs]
    assert numerics.differ(dtype, left, right).tolist() == [p != q for p, q in pairs]
    either = [math.nan if p != p or q != q else max(p, q) for p, q in pairs]
    assert same(numerics.maximum(dtype, left, right), either)
    assert numerics.maximum(dtype, left, right).dtype == dtype.numpy
    assert same(numerics.negate(dtype, left), [-p for p in a])


def ulps(got, exact, dtype):
    """The error in units of the last place of the exact value, as a float."""
    exact = Fraction(exact)
    return float(abs(Fraction(float(got)) - exact) / Fraction(2) ** unit(exact, dtype))


ALLOWED_ULPS = {dtypes.float16: 1, dtypes.bfloat16: 1, dtypes.float32: 2, dtypes.float64: 4}


@pytest.mark.parametrize("dtype", dtypes.FLOATS, ids=str)
def test_exp2_and_log2_against_decimals(dtype):
    rng = np.random.default_rng(4)
    emax = dtype.max_exponent
    x = np.concatenate([rng.uniform(-emax + 1, emax, 300), rng.uniform(-1, 1, 100)])
    x = x.astype(dtype.numpy)
    y = np.concatenate([np.exp2(rng.uniform(-emax + 2, emax, 300)), rng.uniform(0.9, 1.1, 100)])
    y = y.astype(dtype.numpy)
    allowed = ALLOWED_ULPS[dtype]
    with localcontext() as context:
        context.prec = 50
        for v, got in zip(x, numerics.exp2(dtype, x), strict=True):
            exact = Decimal(2) ** Decimal(float(v))
            assert ulps(got, exact, dtype) <= allowed
        for v, got in zip(y, numerics.log2(dtype, y), strict=True):
            exact = Decimal(float(v)).ln() / Decimal(2).ln()
            assert ulps(got, exact, dtype) <= allowed


@pytest.mark.parametrize("dtype", dtypes.FLOATS, ids=str)
def test_special_values_of_exp2_log2_and_reciprocal(dtype):
    x = np.array([-np.inf, np.inf, np.nan, 0.0, 3.0]).astype(dtype.numpy)
    assert same(numerics.exp2(dtype, x), [0, np.inf, np.nan, 1, 8])
    y = np.array([0.0, -1.0, np.inf, np.nan, 8.0]).astype(dtype.numpy)
    assert same(numerics.log2(dtype, y), [-np.inf, np.nan, np.inf, np.nan, 3])
    z = np.array([0.0, np.inf, np.nan, 4.0]).astype(dtype.numpy)
    assert same(numerics.reciprocal(dtype, z), [np.inf, 0, np.nan, 0.25])


def test_constants_hold_their_value_exactly():
    for dtype in dtypes.INTEGERS:
        for value in (dtype.min, dtype.max):
            assert numerics.constant(value, dtype).tolist() == value
    assert numerics.constant(True, dtypes.bool_).dtype == bool
    for dtype in (*dtypes.FLOATS, FLOAT8):
        least = math.ldexp(1, 2 - dtype.max_exponent - dtype.precision)
        assert float(numerics.constant(least, dtype)) == least
