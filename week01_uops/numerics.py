"""Exact arithmetic on NumPy arrays in every dtype of the format.

Floats narrower than 32 bits are computed in float64 and rounded once more. That second rounding
is harmless: float64 has q = 53 ≥ 2p + 2 bits for every p ≤ 24, so that sums, products and
quotients of p-bit floats, rounded to q bits and then to p, are those rounded to p at once
(Figueroa, "When is double rounding innocuous?", 1995). Where the result is subnormal a sum is
exact before it is rounded, because it is a multiple of the least subnormal, and so is a product,
which has 2p ≤ 53 bits.

Nothing here warns or traps; callers run inside `np.errstate(all="ignore")` where they start from
scalars. Arrays hold one element each in `dtype.numpy`, which may be wider than `dtype.bits`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from week01_uops.dtypes import DType, Value

Array = npt.NDArray[Any]

_ROUNDED_BY_NUMPY = (np.dtype(np.float16), np.dtype(np.float32))
_COMPUTED_BY_NUMPY = (np.dtype(np.float32), np.dtype(np.float64))
_ODD_BITS = 11


def constant(value: Value, dtype: DType) -> Array:
    """The scalar array of a value that the dtype holds."""
    if dtype.is_float:
        return np.asarray(value, np.float64).astype(dtype.numpy)
    return np.asarray(value, dtype.numpy)


def is_float(x: Array) -> bool:
    """Whether the elements are floats, those that NumPy does not know included."""
    return x.dtype.kind not in "biu"


def wide(x: Array) -> Array:
    """Floats as float64, exactly; others unchanged."""
    return x.astype(np.float64, copy=False) if is_float(x) else x


def round_to(x: Array, dtype: DType) -> Array:
    """float64 → a float dtype, rounded once to nearest even; overflow gives an infinity."""
    if dtype.precision >= 53:
        return x
    if dtype.numpy not in _ROUNDED_BY_NUMPY:
        x = quantize(x, dtype)
    return x.astype(dtype.numpy)


def quantize(x: Array, dtype: DType) -> Array:
    """The nearest values of a float dtype, as float64.

    x = m·2^e with ½ ≤ |m| < 1 goes to the nearest multiple of 2^(e − precision), but of no less
    than the least subnormal. Every step but the rounding is exact.
    """
    lowest = 2 - dtype.max_exponent - dtype.precision
    quantum = np.maximum(np.frexp(x)[1] - dtype.precision, lowest)
    rounded = np.ldexp(np.rint(np.ldexp(x, -quantum)), quantum)
    largest = math.ldexp(2 - 2.0 ** (1 - dtype.precision), dtype.max_exponent)
    return np.where(np.abs(rounded) > largest, np.copysign(np.inf, x), rounded)


def cast(x: Array, dtype: DType) -> Array:
    """CAST: the value of x in another dtype.

    To a float, rounded once; to an integer, a float truncated toward zero (0 where it is out of
    range or NaN) and an integer wrapped; to bool, x ≠ 0.
    """
    if dtype.kind == "bool":
        return np.not_equal(wide(x), 0)
    if not dtype.is_float:
        return _truncate(x, dtype) if is_float(x) else wrap(x, dtype)
    if is_float(x):
        return round_to(wide(x), dtype)
    if dtype.precision >= 53:
        return x.astype(dtype.numpy)
    return round_to(_round_to_odd(x), dtype)


def _round_to_odd(x: Array) -> Array:
    """Integers as float64; where 53 bits are too few, the last one kept is 1 if any was lost.

    Rounding that to at most 51 bits equals rounding the integer (Boldo and Melquiond, 2008).
    """
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    kept = (x >> _ODD_BITS) | ((x & ((1 << _ODD_BITS) - 1)) != 0)
    small = (x >> 53 == 0) | (x >> 53 == -1) if x.dtype.kind == "i" else x >> 53 == 0
    return np.where(small, x.astype(np.float64), kept.astype(np.float64) * 2.0**_ODD_BITS)


def _truncate(x: Array, dtype: DType) -> Array:
    whole = np.trunc(wide(x))
    inside = (whole >= float(dtype.min)) & (whole < float(dtype.max + 1))
    return np.where(inside, whole, 0.0).astype(dtype.numpy)


def wrap(x: Array, dtype: DType) -> Array:
    """Integers modulo 2^bits, read back in an integer dtype."""
    low = x.astype(dtype.numpy, copy=False)
    if dtype.numpy.itemsize * 8 == dtype.bits:
        return low
    bits = low & dtype.numpy.type((1 << dtype.bits) - 1)
    sign = dtype.numpy.type(1 << (dtype.bits - 1) if dtype.kind == "int" else 0)
    return np.asarray((bits ^ sign) - sign)


def _in_floats(function: Callable[..., Any], dtype: DType, *x: Array) -> Array:
    """A float function rounded once to the dtype."""
    if dtype.numpy in _COMPUTED_BY_NUMPY:
        return np.asarray(function(*x))
    return round_to(np.asarray(function(*map(wide, x))), dtype)


def negate(dtype: DType, x: Array) -> Array:
    """−x; integers wrap."""
    if dtype.is_float:
        return _in_floats(np.negative, dtype, x)
    return wrap(np.asarray(np.negative(x)), dtype)


def add(dtype: DType, a: Array, b: Array) -> Array:
    """The sum a + b, rounded or wrapped."""
    if dtype.is_float:
        return _in_floats(np.add, dtype, a, b)
    return wrap(np.asarray(np.add(a, b)), dtype)


def multiply(dtype: DType, a: Array, b: Array) -> Array:
    """The product a · b, rounded or wrapped; of bools, and."""
    if dtype.is_float:
        return _in_floats(np.multiply, dtype, a, b)
    return wrap(np.asarray(np.multiply(a, b)), dtype)


def maximum(dtype: DType, a: Array, b: Array) -> Array:
    """The larger; NaN if either is; of bools, or."""
    if dtype.is_float:
        return _in_floats(np.maximum, dtype, a, b)
    return np.asarray(np.maximum(a, b))


def floor_divide(dtype: DType, a: Array, b: Array) -> Array:
    """⌊a / b⌋; 0 where b = 0; the least integer divided by −1 wraps to itself."""
    quotient = np.floor_divide(a, np.where(_harmless(dtype, b), b, 1))
    if dtype.kind == "int":
        quotient = np.where(b == -1, np.negative(a), quotient)
    return wrap(np.where(b == 0, 0, quotient), dtype)


def floor_modulo(dtype: DType, a: Array, b: Array) -> Array:
    """The rest a − b·⌊a / b⌋, which has the sign of b; a where b = 0."""
    rest = np.remainder(a, np.where(_harmless(dtype, b), b, 1))
    return wrap(np.where(b == 0, a, rest), dtype)


def _harmless(dtype: DType, b: Array) -> Array:
    """Divisors that can neither trap nor overflow."""
    return np.asarray((b != 0) & (b != -1) if dtype.kind == "int" else b != 0)


def less(dtype: DType, a: Array, b: Array) -> Array:
    """Whether a < b; false where either is NaN."""
    return np.asarray(np.less(wide(a), wide(b)))


def differ(dtype: DType, a: Array, b: Array) -> Array:
    """Whether a ≠ b; true where either is NaN; of bools, exclusive or."""
    return np.asarray(np.not_equal(wide(a), wide(b)))


def exp2(dtype: DType, x: Array) -> Array:
    """2^x, rounded from float64's."""
    return round_to(np.asarray(np.exp2(wide(x))), dtype)


def log2(dtype: DType, x: Array) -> Array:
    """log₂ x, rounded from float64's."""
    return round_to(np.asarray(np.log2(wide(x))), dtype)


def reciprocal(dtype: DType, x: Array) -> Array:
    """1 / x, correctly rounded."""
    return round_to(np.asarray(np.divide(1.0, wide(x))), dtype)


def select(dtype: DType, condition: Array, a: Array, b: Array) -> Array:
    """Where the condition is true a, else b."""
    return np.where(condition, a, b)
