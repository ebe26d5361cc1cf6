"""Every op on every dtype, as vectors of several widths, against the evaluator."""

import functools

import numpy as np
import pytest

from tests.week02_render.by_hand import Launch, joined
from tests.week02_render.test_c_text import (
    BINARY,
    CASTS,
    NAMES,
    PAIRS,
    ULPS,
    apply,
    same,
    toolchain_named,
    values_of,
)
from tests.week05_06_memory.vectors import elementwise
from week01_uops.dtypes import ALL, FLOATS, bool_, int32
from week01_uops.node import const
from week01_uops.ops import ADD, CAST, CMPLT, CMPNE, EXP2, LOG2, MAX, MUL, NEG, RECIP, param
from week02_render.ops import KEEP
from week02_render.runtime import load
from week02_render.sanitize import run_sanitized
from week02_render.toolchain import BuildError
from week05_06_memory.c_vector import render_vector_c
from week05_06_memory.evaluate import evaluate
from week05_06_memory.ops import SQRT

WIDTHS = (2, 8, 16)
SIZE = 256


def operands(dtype):
    """Pairs of special values, in a length that every width divides."""
    rng = np.random.default_rng(3)
    if dtype is bool_:
        return rng.integers(0, 2, SIZE).astype(bool), rng.integers(0, 2, SIZE).astype(bool)
    a, b = PAIRS[dtype]
    chosen = rng.integers(0, a.size, SIZE)
    a, b = a[chosen], b[chosen]
    singles = values_of(dtype, rng)
    a[: singles.size] = singles
    return a, b


PAIR = {dtype: operands(dtype) for dtype in ALL}


def unit(cases, width):
    """A program of many small kernels, and its inputs."""
    inputs, arrays, launches = {}, {}, []
    for number, dtype in enumerate(ALL):
        for side in (0, 1):
            slot = 2 * number + side
            arrays[slot] = PAIR[dtype][side]
            inputs[slot] = param(slot, dtype, (SIZE,))
    for name, function, dtype, result in cases:
        first = 2 * ALL.index(dtype)
        body = elementwise(function, SIZE, (dtype, dtype), result, width)
        launches.append(Launch(body, (first, first + 1), name))
    return joined(inputs, launches), arrays


def check(cases, width, chain=None, ulps=lambda op, dtype: 0, watched=False):
    """Run the kernels and compare each with the evaluator."""
    cases = list(cases)
    whole, arrays = unit(cases, width)
    text = render_vector_c(whole)
    expected = evaluate(whole, arrays)
    if watched:
        try:
            results = run_sanitized(text, whole, arrays)
        except BuildError:
            pytest.skip("no sanitizers")
    else:
        results = load(text, whole, toolchain=chain).run(arrays)
    for (name, _, dtype, kind), wanted, got in zip(cases, expected, results, strict=True):
        good = same(got, wanted) | left_open(PAIR[dtype][0], dtype, kind)
        allowed = ulps(name.split()[0], kind)
        if allowed:
            good |= distance(got, wanted, kind) <= allowed
        wrong = np.flatnonzero(~good)[:5]
        given = [PAIR[dtype][side][wrong] for side in (0, 1)]
        assert not wrong.size, (name, width, *given, got[wrong], wanted[wrong])


def left_open(x, source, dtype):
    """Where a cast from a float to an integer may give anything."""
    if not (source.is_float and dtype.is_int):
        return np.zeros(x.shape, bool)
    with np.errstate(all="ignore"):
        whole = np.trunc(x.astype(np.float64))
        return ~((whole >= float(dtype.min)) & (whole < float(dtype.max + 1)))


def distance(got, wanted, dtype):
    """In units of the last place of what is wanted."""
    wide = wanted.astype(np.float64)
    _, exponent = np.frexp(np.where(np.isfinite(wide), wide, 0.0))
    least = 2 - dtype.max_exponent - dtype.precision
    ulp = np.ldexp(1.0, np.maximum(exponent - dtype.precision, least))
    with np.errstate(all="ignore"):
        return np.abs(got.astype(np.float64) - wide) / ulp


def binary_cases():
    for op, allowed, _ in BINARY:
        for dtype in allowed:
            result = bool_ if op in (CMPLT, CMPNE) else dtype
            yield f"{op} {dtype}", functools.partial(apply, op), dtype, result


def scalar_cases():
    """One source is the same in all lanes."""
    for op, allowed, _ in BINARY:
        for dtype in allowed:
            result = bool_ if op in (CMPLT, CMPNE) else dtype
            k = const(True, bool_) if dtype is bool_ else const(3, dtype)
            yield f"{op} {dtype} k", lambda a, b, op=op, k=k: apply(op, a, k), dtype, result
            if op is not NEG:
                yield f"k {op} {dtype}", lambda a, b, op=op, k=k: apply(op, k, a), dtype, result


def cast_cases():
    for source, dtype in CASTS:
        yield f"{source} to {dtype}", lambda a, b, dtype=dtype: CAST(a, arg=dtype), source, dtype


def function_cases():
    for op in (EXP2, LOG2, RECIP, SQRT):
        for dtype in FLOATS:
            yield f"{op} {dtype}", lambda a, b, op=op: op(a), dtype, dtype


def allowed_ulps(op, dtype):
    return ULPS[dtype] if op in ("EXP2", "LOG2", "RECIP", "SQRT") else 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "cases", [binary_cases, scalar_cases, cast_cases], ids=lambda f: f.__name__
)
def test_ops(cases, width):
    check(cases(), width)


@pytest.mark.parametrize("width", [2, 4, 8, 16, 32, 64])
def test_functions(width):
    check(function_cases(), width, ulps=allowed_ulps)


def size_cases():
    """The larger of x and −x, on either side."""
    for dtype in (*FLOATS, int32):
        yield f"x MAX -x {dtype}", lambda a, b: MAX(a, NEG(a)), dtype, dtype
        yield f"-x MAX x {dtype}", lambda a, b: MAX(NEG(a), a), dtype, dtype
        yield f"x MAX -y {dtype}", lambda a, b: MAX(a, NEG(b)), dtype, dtype


@pytest.mark.parametrize("width", [2, 4, 16])
def test_sizes(width):
    check(size_cases(), width)
    for case in size_cases():
        text = render_vector_c(unit([case], width)[0])
        assert ("abs_" in text) == ("-y" not in case[0] and "int" not in case[0])


@pytest.mark.parametrize("width", [4, 16, 32])
def test_a_kept_product_is_rounded(width):
    """a·b − b with KEEP is two roundings."""
    cases = [(f"KEEP {d}", lambda a, b: ADD(KEEP(MUL(a, b)), NEG(b)), d, d) for d in (*FLOATS,)]
    check(cases, width)


def test_sums_of_one_value_with_itself_are_rounded():
    """a + (b + b) is not fma(2, b, a)."""
    check([(f"ADD {d}", lambda a, b: ADD(a, ADD(b, b)), d, d) for d in FLOATS], 8)


@pytest.mark.parametrize("name", NAMES[1:])
def test_ops_with_other_compilers(name):
    cases = [*binary_cases(), *cast_cases(), *function_cases()]
    check(cases, 16, toolchain_named(name), allowed_ulps)


def test_ops_leave_nothing_undefined():
    check([*binary_cases(), *cast_cases()], 8, watched=True)


@pytest.mark.parametrize("op", [MUL, MAX, CMPNE], ids=str)
def test_a_cast_binds_its_operand(op):
    """Of a bool made of an operator, above all an or, whose | binds less tightly than &."""
    cases = [
        (f"{op} {dtype}", lambda a, b, d=dtype: CAST(op(a, b), arg=d), bool_, dtype)
        for dtype in ALL
        if dtype is not bool_
    ]
    check(cases, 8)
