"""Functions of one or two values that the library lacks, as expressions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from week01_uops.dtypes import Value, bool_, float32, float64, int64
from week01_uops.node import UOp, const
from week01_uops.ops import ADD, EXP2, FLOORDIV, FLOORMOD, LOG2, MUL, NEG, RECIP
from week03_loops import library as lib
from week03_loops.library.arithmetic import number, widened
from week03_loops.library.check import expect
from week03_loops.ops import identity
from week09_10_autodiff.turns import sine


def floats(x: UOp) -> UOp:
    """x, or an integer or bool x as float32."""
    return x if x.dtype.is_float else lib.cast(x, float32)


def add(a: UOp, b: UOp) -> UOp:
    """a + b; of bools: or, as in NumPy."""
    return lib.maximum(a, b) if a.dtype is bool_ else lib.add(a, b)


def exactly(function: Callable[[UOp, UOp], UOp]) -> Callable[[UOp, UOp], UOp]:
    """Let a function of floats compute in float64 and round once."""

    @functools.wraps(function)
    def wide(a: UOp, b: UOp) -> UOp:
        if not a.dtype.is_float:
            return function(a, b)
        return lib.cast(function(lib.cast(a, float64), lib.cast(b, float64)), a.dtype)

    return wide


@exactly
def floor_divide(a: UOp, b: UOp) -> UOp:
    """⌊a / b⌋; of bools an error. In float64 the quotient is rounded before it is cut off."""
    result: UOp = floor(lib.div(a, b)) if a.dtype.is_float else FLOORDIV(a, b)
    return result


@exactly
def remainder(a: UOp, b: UOp) -> UOp:
    """a − ⌊a / b⌋·b, which has the sign of b."""
    if a.dtype.is_float:
        return lib.sub(a, lib.mul(floor(lib.div(a, b)), b))
    result: UOp = FLOORMOD(a, b)
    return result


def trunc(x: UOp) -> UOp:
    """The integer next to x on the side of 0; −0 for x in (−1, 0) becomes 0."""
    if not x.dtype.is_float:
        return x
    whole = lib.cast(lib.cast(x, int64), x.dtype)
    return lib.where(lib.lt(lib.absolute(x), 2.0 ** (x.dtype.precision - 1)), whole, x)


def floor(x: UOp) -> UOp:
    """The largest integer ≤ x."""
    if not x.dtype.is_float:
        return x
    whole = trunc(x)
    return lib.where(lib.lt(x, whole), lib.sub(whole, 1), whole)


def ceil(x: UOp) -> UOp:
    """The smallest integer ≥ x."""
    if not x.dtype.is_float:
        return x
    whole = trunc(x)
    return lib.where(lib.lt(whole, x), lib.add(whole, 1), whole)


def rounded(x: UOp) -> UOp:
    """The integer next to x, the even one of two."""
    if not x.dtype.is_float:
        return x
    low = floor(x)
    up = lib.sub(x, low)
    odd = lib.ne(lib.sub(low, lib.mul(floor(lib.mul(low, 0.5)), 2)), 0)
    is_up = lib.maximum(lib.gt(up, 0.5), lib.mul(lib.eq(up, 0.5), odd))
    return lib.add(low, lib.where(is_up, number(1, x.dtype), 0))


def sign(x: UOp) -> UOp:
    """−1, 0 or 1; NaN of NaN."""
    if x.dtype is bool_:
        return x
    positive = lib.cast(lib.gt(x, 0), x.dtype)
    result = (
        positive if x.dtype.kind == "uint" else lib.sub(positive, lib.cast(lib.lt(x, 0), x.dtype))
    )
    return lib.where(lib.ne(x, x), x, result) if x.dtype.is_float else result


def power(x: UOp, exponent: UOp) -> UOp:
    """x^y = 2^(y·log2 |x|), with the sign of x where y is odd; NaN for a fraction of x < 0."""
    if not x.dtype.is_float:
        return _integer_power(x, exponent)
    size = EXP2(MUL(exponent, LOG2(lib.absolute(x))))
    zero = lib.eq(exponent, 0)
    whole = floor(exponent)
    odd = lib.ne(lib.sub(whole, lib.mul(floor(lib.mul(whole, 0.5)), 2)), 0)
    signed = lib.where(odd, NEG(size), size)
    negative = lib.where(lib.eq(whole, exponent), signed, math.nan)
    return lib.where(zero, number(1, x.dtype), lib.where(lib.lt(x, 0), negative, size))


def _integer_power(x: UOp, exponent: UOp) -> UOp:
    """x^y by squaring, bit by bit of y; 0 for y < 0 unless x is 1 or −1."""
    result = lib.full(1, x.dtype, ())
    base, rest = x, exponent
    for _ in range(x.dtype.bits - (x.dtype.kind == "int")):
        result = lib.where(lib.ne(FLOORMOD(rest, 2), 0), lib.mul(result, base), result)
        base, rest = lib.mul(base, base), FLOORDIV(rest, 2)
    return result


@widened
def power_of_number(x: UOp, exponent: Value) -> UOp:
    """x^n by squaring for a whole n, √x for ½, otherwise as `power`."""
    if not x.dtype.is_float:
        wanted = "an exponent that is an integer ≥ 0"
        expect(exponent >= 0, "E311", f"pow: expected {wanted} for {x.dtype}, got {exponent}", x)
        return _whole_power(x, int(exponent))
    if exponent == 0.5:
        return lib.sqrt(x)
    if exponent == -0.5:
        return lib.rsqrt(x)
    whole = float(exponent).is_integer() and abs(exponent) <= 64
    if not whole:
        return power(x, const(float(exponent), x.dtype))
    result = _whole_power(x, abs(int(exponent)))
    return result if exponent >= 0 else RECIP(result)


def _whole_power(x: UOp, exponent: int) -> UOp:
    result: UOp | None = None
    while exponent:
        if exponent % 2:
            result = x if result is None else lib.mul(result, x)
        exponent //= 2
        x = lib.mul(x, x) if exponent else x
    return lib.full(1, x.dtype, x.shape) if result is None else result


@widened
def exp2(x: UOp) -> UOp:
    """2^x."""
    result: UOp = EXP2(x)
    return result


@widened
def log2(x: UOp) -> UOp:
    """Logarithm to base 2."""
    result: UOp = LOG2(x)
    return result


def isnan(x: UOp) -> UOp:
    """Whether x is NaN."""
    return lib.ne(x, x)


def isinf(x: UOp) -> UOp:
    """Whether x is an infinity."""
    if not x.dtype.is_float:
        return lib.full(False, bool_, x.shape)
    return lib.eq(lib.absolute(x), math.inf)


def isfinite(x: UOp) -> UOp:
    """Whether x is neither NaN nor an infinity."""
    if not x.dtype.is_float:
        return lib.full(True, bool_, x.shape)
    return lib.lt(lib.absolute(x), math.inf)


def relu(x: UOp) -> UOp:
    """x where it is above 0, else 0."""
    return lib.where(lib.le(x, 0), identity(ADD, x.dtype), x)


def at_least(x: UOp, low: UOp) -> UOp:
    """max(x, low), which has the derivative of x where both are equal."""
    return lib.where(lib.lt(x, low), low, x)


def at_most(x: UOp, high: UOp) -> UOp:
    """min(x, high), which has the derivative of x where both are equal."""
    return lib.where(lib.lt(high, x), high, x)


def sin(x: UOp) -> UOp:
    """The sine of an angle in radians, computed in float64; absolute error ½ ulp of x in turns."""
    r = _turns(x)
    folded = lib.sub(lib.where(lib.lt(r, 0), number(-0.5, float64), 0.5), r)
    return lib.cast(sine(lib.where(lib.lt(lib.absolute(r), 0.25), r, folded)), x.dtype)


def cos(x: UOp) -> UOp:
    """The cosine of an angle in radians, computed as `sin`."""
    return lib.cast(sine(lib.sub(0.25, lib.absolute(_turns(x)))), x.dtype)


def _turns(x: UOp) -> UOp:
    """An angle in radians as one of [−½, ½] turns, in float64."""
    turns = lib.mul(lib.cast(x, float64), 0.5 / math.pi)
    return lib.sub(turns, rounded(turns))
