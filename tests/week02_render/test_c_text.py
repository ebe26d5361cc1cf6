"""Every op on every dtype, compiled, against NumPy and exact arithmetic."""

import functools
import math
import shutil
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.week02_render.by_hand import Launch, elementwise, joined, loaded
from week01_uops import dtypes
from week01_uops.dtypes import ALL, FLOATS, INTEGERS, bool_
from week01_uops.node import const
from week01_uops.ops import (
    ADD,
    CAST,
    CMPLT,
    CMPNE,
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
from week02_render.ops import KEEP, LOAD, STORE
from week02_render.render import render_c
from week02_render.sanitize import run_sanitized
from week02_render.toolchain import BuildError, Toolchain, find_toolchain

HALVES = (dtypes.float16, dtypes.bfloat16)
FLOAT_VALUES = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 3.0, -7.25, 255.5, 1e4, -65504.0, 65519.0, 65520.0),
    *(2.0**-14, 2.0**-24, 2.0**-25, 1.5 * 2.0**-24, -3.0 * 2.0**-26, 1e-38, 1e-40, -1e-45),
    *(2.0**-133, 1.5 * 2.0**-134, 3e38, -3.4e38, 3.3961776e38),
    *(2.0**31, -(2.0**31), 2.0**63, 2.0**64),
    *(1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11),
    *(math.inf, -math.inf, math.nan),
]
WIDE_VALUES = [
    *(1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-24 + 2.0**-50, 2.0**53, math.pi),
    *(1e300, -1e-310, 5e-324, 3.3961775292304957e38, 65519.99999999),
]


def integer_values(dtype, rng):
    edges = {dtype.min, dtype.min + 1, dtype.max, dtype.max - 1, 0, 1, 2, 3, 7, 100}
    if dtype.kind == "int":
        edges |= {-1, -2, -3, -7, -100}
    edges |= {2**k + d for k in (8, 16, 24, 25, 53, 62) for d in (-1, 0, 1)}
    # Halfway between two bfloat16s, and next to it: a double does not tell these apart.
    halfway = [sign * (2**62 + odd * 2**54) for sign in (1, -1) for odd in (1, 3)]
    edges |= {value + d for value in halfway for d in (-1, 0, 1)}
    edges = [v for v in sorted(edges) if dtype.min <= v <= dtype.max]
    some = rng.integers(dtype.min, dtype.max, 40, dtype.numpy, endpoint=True)
    return [*edges, *some.tolist()]


def values_of(dtype, rng):
    """Special and random values, as an array."""
    if dtype is bool_:
        return np.array([False, True])
    if dtype.is_int:
        return np.array(integer_values(dtype, rng), dtype.numpy)
    values = FLOAT_VALUES + (WIDE_VALUES if dtype is dtypes.float64 else [])
    some = rng.standard_normal(20) * 2.0 ** rng.integers(-12, 12, 20)
    with np.errstate(all="ignore"):
        return np.array([*values, *some]).astype(dtype.numpy)


PAIRS = {}
for _dtype in ALL:
    _values = values_of(_dtype, np.random.default_rng(7))
    _a, _b = np.meshgrid(_values, _values, indexing="ij")
    PAIRS[_dtype] = (_a.ravel().copy(), _b.ravel().copy())


def on_integers(function):
    """A reference on Python's integers, wrapped into the dtype."""

    def reference(a, b, dtype):
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        return np.array([dtype.wrap(function(x, y)) for x, y in pairs], dtype.numpy)

    return reference


def on_floats(function):
    """A reference in NumPy's arithmetic of the dtype itself."""
    return lambda a, b, dtype: function(a, b).astype(dtype.numpy)


def mean(integers, floats=None):
    """The reference for integers and bool, and the one for floats."""

    def reference(a, b, dtype):
        chosen = on_floats(floats) if dtype.is_float else on_integers(integers)
        return chosen(a, b, dtype)

    return reference


NUMBERS = (*INTEGERS, *FLOATS)
BINARY = [
    (ADD, NUMBERS, mean(lambda x, y: x + y, np.add)),
    (MUL, ALL, mean(lambda x, y: x * y, np.multiply)),
    (MAX, ALL, mean(max, np.maximum)),
    (FLOORDIV, INTEGERS, mean(lambda x, y: x // y if y else 0)),
    (FLOORMOD, INTEGERS, mean(lambda x, y: x % y if y else x)),
    (CMPLT, NUMBERS, lambda a, b, dtype: a < b),
    (CMPNE, ALL, lambda a, b, dtype: a != b),
    (NEG, NUMBERS, mean(lambda x, y: -x, lambda a, b: -a)),
    (WHERE, ALL, lambda a, b, dtype: np.where(a != b, b, a)),
]


def apply(op, a, b):
    if op is WHERE:
        return WHERE(CMPNE(a, b), b, a)
    return op(a) if op is NEG else op(a, b)


def unit(cases):
    """A program of many small kernels, and its inputs: PAIRS of every dtype."""
    inputs, launches, arrays = {}, [], {}
    for number, dtype in enumerate(ALL):
        for side in (0, 1):
            slot = 2 * number + side
            arrays[slot] = PAIRS[dtype][side]
            inputs[slot] = param(slot, dtype, arrays[slot].shape)
    for name, function, dtype, result in cases:
        first = 2 * ALL.index(dtype)
        size = PAIRS[dtype][0].size
        body = elementwise(function, size, (dtype, dtype), result)
        launches.append(Launch(body, (first, first + 1), name))
    return joined(inputs, launches), arrays


def run_all(cases, toolchain):
    """The outputs of many small kernels, compiled as one unit."""
    whole, arrays = unit(cases)
    return loaded(whole, toolchain=toolchain).run(arrays)


def run_watched(cases):
    """The same under sanitizers, which stop at anything that C leaves undefined."""
    whole, arrays = unit(cases)
    try:
        return run_sanitized(render_c(whole), whole, arrays)
    except BuildError:
        pytest.skip("no sanitizers")


def same(result, expected):
    """Equal, NaN to NaN, whatever the sign of a zero."""
    if result.dtype.kind in "biu":
        return result == expected
    wide, other = result.astype(np.float64), expected.astype(np.float64)
    return (wide == other) | (np.isnan(wide) & np.isnan(other))


@functools.cache
def toolchains():
    """Compilers and processors to test on, by name."""
    chain = find_toolchain()
    native = "-march=native"
    flags = {
        "native": chain.flags,
        "f16c": tuple("-march=x86-64-v3" if f == native else f for f in chain.flags),
        "no _Float16": (*chain.flags, "-U__FLT16_MANT_DIG__"),
    }
    found = {name: replace(chain, flags=f) for name, f in flags.items()}
    if clang := shutil.which("clang"):
        plain = tuple(f for f in chain.flags if f != "-fopenmp")
        found["clang"] = Toolchain((clang,), "clang", plain)
        found["clang x86-64-v2"] = replace(
            found["clang"], flags=tuple("-march=x86-64-v2" if f == native else f for f in plain)
        )
    return found


NAMES = ("native", "f16c", "no _Float16", "clang", "clang x86-64-v2")


def toolchain_named(name):
    if name not in toolchains():
        pytest.skip("no clang")
    return toolchains()[name]


CASES = [(op, dtype, reference) for op, allowed, reference in BINARY for dtype in allowed]


def binary_cases():
    for op, dtype, _ in CASES:
        result = bool_ if op in (CMPLT, CMPNE) else dtype
        yield f"{op} {dtype}", functools.partial(apply, op), dtype, result


def check_binary(results):
    for (op, dtype, reference), result in zip(CASES, results, strict=True):
        a, b = PAIRS[dtype]
        with np.errstate(all="ignore"):
            expected = reference(a, b, dtype)
        wrong = np.flatnonzero(~same(result, expected))
        shown = [(a[k], b[k], result[k], expected[k]) for k in wrong[:5]]
        assert not wrong.size, (op, dtype, shown)


@pytest.mark.parametrize("name", NAMES)
def test_binary_ops(name):
    check_binary(run_all(binary_cases(), toolchain_named(name)))


def test_binary_ops_leave_nothing_undefined():
    check_binary(run_watched(binary_cases()))


def test_products_of_16_bits_do_not_overflow_an_int():
    """C would multiply two uint16_t as int; gcc and its sanitizer do not show it."""
    whole, _ = unit([("mul", MUL, dtypes.uint16, dtypes.uint16)])
    assert "(uint16_t)((uint32_t)x0 * (uint32_t)x1)" in render_c(whole)


def round_exactly(value: Fraction, dtype):
    """The float of `dtype` nearest to an exact value, ties to even."""
    if value == 0:
        return 0.0
    exponent = math.floor(math.log2(abs(value))) if abs(value) < 2**1000 else 1000
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** max(
        exponent - dtype.precision + 1, 2 - dtype.max_exponent - dtype.precision
    )
    rounded = round(value / quantum) * quantum
    if abs(rounded) >= Fraction(2) ** (dtype.max_exponent + 1):
        return math.copysign(math.inf, value)
    return float(rounded)


def cast_exactly(value, dtype):
    """CAST; None where the format leaves the value open."""
    if dtype is bool_:
        return value != 0
    if dtype.is_float:
        finite = not isinstance(value, float) or math.isfinite(value)
        return round_exactly(Fraction(value), dtype) if finite else value
    if isinstance(value, float):
        open_ = not math.isfinite(value) or not dtype.min <= math.trunc(value) <= dtype.max
        return None if open_ else math.trunc(value)
    return dtype.wrap(int(value))


def exact_values(array):
    if array.dtype.kind in "biu":
        return array.tolist()
    return array.astype(np.float64).tolist()


CASTS = [(source, dtype) for source in ALL for dtype in ALL]


def cast_cases():
    for source, dtype in CASTS:
        yield f"{source} to {dtype}", lambda a, b, dtype=dtype: CAST(a, arg=dtype), source, dtype


def check_casts(results):
    for (source, dtype), result in zip(CASTS, results, strict=True):
        step = round(len(result) ** 0.5)
        given = exact_values(PAIRS[source][0][::step])
        got = exact_values(result[::step])
        for value, answer in zip(given, got, strict=True):
            wanted = cast_exactly(value, dtype)
            ok = wanted is None or answer == wanted or (answer != answer and wanted != wanted)
            assert ok, (source, dtype, value, answer, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_casts(name):
    """Rounded once, wrapped, truncated."""
    check_casts(run_all(cast_cases(), toolchain_named(name)))


def test_casts_leave_nothing_undefined():
    """Out of range too."""
    check_casts(run_watched(cast_cases()))


ULPS = {dtypes.float16: 1, dtypes.bfloat16: 1, dtypes.float32: 2, dtypes.float64: 4}


@pytest.mark.parametrize("name", NAMES)
def test_functions(name):
    """EXP2, LOG2 and RECIP within the format's ulps."""
    functions = {EXP2: np.exp2, LOG2: np.log2, RECIP: lambda x: 1 / x}
    cases = [(op, dtype) for op in functions for dtype in FLOATS]
    results = run_all(
        [(f"{op} {d}", lambda a, b, op=op: op(a), d, d) for op, d in cases], toolchain_named(name)
    )
    for (op, dtype), result in zip(cases, results, strict=True):
        x = PAIRS[dtype][0].astype(np.longdouble)
        with np.errstate(all="ignore"):
            exact = functions[op](x)
            wanted = exact.astype(np.float64).astype(dtype.numpy).astype(np.float64)
        got = result.astype(np.float64)
        least = 2.0 ** (2 - dtype.max_exponent - dtype.precision)
        _, exponent = np.frexp(np.where(np.isfinite(wanted), wanted, 0.0))
        ulp = np.maximum(np.ldexp(1.0, np.maximum(exponent - dtype.precision, -1074)), least)
        with np.errstate(all="ignore"):
            near = np.abs(got - exact) <= ULPS[dtype] * ulp
        flushed = (got == 0) & (np.abs(exact) < 2.0 ** (1 - dtype.max_exponent))
        good = near | flushed | (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        assert good.all(), (op, dtype, x[~good][:5], got[~good][:5], wanted[~good][:5])


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_product_is_rounded(name):
    """a·b − b with KEEP is two roundings."""
    shown = [dtypes.float32, dtypes.float64, *HALVES]
    cases = [(f"keep {d}", lambda a, b: ADD(KEEP(MUL(a, b)), NEG(b)), d, d) for d in shown]
    results = run_all(cases, toolchain_named(name))
    for k, dtype in enumerate(shown):
        a, b = PAIRS[dtype]
        with np.errstate(all="ignore"):
            product = (a * b).astype(dtype.numpy)
            twice = (product - b).astype(dtype.numpy)
        assert same(results[k], twice).all(), dtype


@pytest.mark.parametrize("name", NAMES)
def test_sums_are_grouped_as_they_are(name):
    """a + (b + 0.1) is not (a + b) + 0.1, and a + (b + b) not fma(2, b, a)."""
    tenth = {dtype: const(0.1, dtype) for dtype in FLOATS}
    cases = [(f"twice {d}", lambda a, b: ADD(a, ADD(b, b)), d, d) for d in FLOATS]
    cases += [(f"tenth {d}", lambda a, b, d=d: ADD(a, ADD(b, tenth[d])), d, d) for d in FLOATS]
    results = run_all(cases, toolchain_named(name))
    for k, dtype in enumerate(FLOATS):
        a, b = PAIRS[dtype]
        with np.errstate(all="ignore"):
            assert same(results[k], a + (b + b)).all(), dtype
            constant = np.array(0.1).astype(dtype.numpy)
            assert same(results[k + len(FLOATS)], a + (b + constant)).all(), dtype


def test_subtraction_of_a_constant_is_written_so():
    less = param(0, dtypes.int64, (), (1, 5))
    value = LOAD(param(1, dtypes.int64, (), (1, 5)))
    body = STORE(param(0, dtypes.int64), ADD(value, const(-1, dtypes.int64)))
    assert "p0[0] = x0 - 1;" in render_c(joined({0: less}, [Launch(body, (0,))]))
