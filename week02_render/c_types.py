"""How element types and constants are written in C.

A float16 or bfloat16 is held as a `float` with the same value while it is computed with, and
rounded after each operation; in memory it has 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from week01_uops import dtypes
from week01_uops.dtypes import DType, Value


class Term(NamedTuple):
    """A C expression.

    Attributes:
        text: the expression.
        level: how tightly its outermost operator binds.
        lanes: how many values it holds: more than one if it is a vector (weeks 5 and 6).
    """

    text: str
    level: int
    lanes: int = 1


CHOICE, BITS, EQUAL, ORDER, SUM, PRODUCT, UNARY, ATOM = range(8)
"""Levels of C's operators, loosest first."""


def at(level: int, term: Term) -> str:
    """The text of a term, in parentheses unless it binds at least as tightly as `level`."""
    return term.text if term.level >= level else f"({term.text})"


SHORT: Mapping[DType, str] = {
    dtypes.bool_: "bool",
    dtypes.float16: "f16",
    dtypes.bfloat16: "bf16",
    dtypes.float32: "f32",
    dtypes.float64: "f64",
    **{dtype: f"{dtype.kind[0]}{dtype.bits}" for dtype in dtypes.INTEGERS},
}
"""Suffixes of the helper functions of each dtype."""

HALVES = frozenset({dtypes.float16, dtypes.bfloat16})
"""Floats that are computed in float."""

VALUE_TYPE: Mapping[DType, str] = {
    dtypes.bool_: "_Bool",
    dtypes.float16: "float",
    dtypes.bfloat16: "float",
    dtypes.float32: "float",
    dtypes.float64: "double",
    **{dtype: f"{dtype.name}_t" for dtype in dtypes.INTEGERS},
}
"""The C type that a value is computed in."""

STORAGE_TYPE: Mapping[DType, str] = {
    **VALUE_TYPE,
    dtypes.float16: "f16_t",
    dtypes.bfloat16: "bf16_t",
}
"""The C type of an element in memory."""


def literal(value: Value, dtype: DType) -> Term:
    """A constant, exact, with the C type that values of its dtype have."""
    if dtype.is_float:
        return _float_literal(float(value), "" if dtype is dtypes.float64 else "f")
    number = int(value)
    if dtype.kind == "int" and number == dtype.min and dtype.bits >= 32:
        suffix = "L" if dtype.bits == 64 else ""
        return Term(f"-{dtype.max}{suffix} - 1", SUM)
    suffix = {dtypes.int64: "L", dtypes.uint32: "u", dtypes.uint64: "uL"}.get(dtype, "")
    return Term(f"{number}{suffix}", UNARY if number < 0 else ATOM)


def _float_literal(value: float, suffix: str) -> Term:
    if math.isnan(value):
        return Term(f'__builtin_nan{suffix}("")', ATOM)
    if math.isinf(value):
        infinity = f"__builtin_inf{suffix}()"
        return Term(infinity, ATOM) if value > 0 else Term(f"-{infinity}", UNARY)
    text = repr(value) if _is_plain(value) else _hexadecimal(value)
    return Term(text + suffix, UNARY if text.startswith("-") else ATOM)


def _is_plain(value: float) -> bool:
    """Short in decimal and exact: a multiple of 1/64 below a million."""
    return abs(value) < 1e6 and (value * 64).is_integer()


def _hexadecimal(value: float) -> str:
    mantissa, exponent = value.hex().split("p")
    mantissa = mantissa.rstrip("0").removesuffix(".") if "." in mantissa else mantissa
    return f"{mantissa}p{exponent}"
