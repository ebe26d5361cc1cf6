"""Constant folding: each op on Python scalars, in the exact arithmetic of the dtype.

A float of at most 24 significant bits is a Python float (a double) that happens to be
representable. ADD, MUL and RECIP of such values are computed in double and rounded into the
dtype; this double rounding changes nothing. A product of two 24-bit significands has at most
48 bits, so the double is exact. For sums and quotients, 53 ≥ 2·24 + 2 bits are enough
(Figueroa, "When is double rounding innocuous?", 1995) while the result is normal; a subnormal
sum is exact, because both terms are multiples of the least subnormal.

EXP2 and LOG2 of the C library are within 1 ulp of a double, so the rounded value is within
0.51 ulp of a narrower dtype; the format allows 4 ulp for float64 and 1 or 2 for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from week01_uops.constant import Constant
from week01_uops.dtypes import DType, Value
from week01_uops.intervals import floordiv, floormod
from week01_uops.node import CONST, Op, UOp, make
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
)
from week01_uops.pattern import Rule, any_of, constant_var
from week01_uops.rewrite import Rules

Fold = Callable[..., Value | None]
"""(dtype of the result, value of each source, …) → the value, or None if it is not folded."""


def to_dtype(value: Any, dtype: DType) -> Value:  # noqa: ANN401
    """The result of exact or double arithmetic, brought into the dtype: wrapped or rounded."""
    if dtype.kind == "bool":
        return bool(value)
    return dtype.round(value) if dtype.is_float else dtype.wrap(value)


def add(dtype: DType, x: Any, y: Any) -> Value:  # noqa: ANN401
    """The sum x + y; inf − inf is NaN."""
    return to_dtype(x + y, dtype)


def multiply(dtype: DType, x: Any, y: Any) -> Value:  # noqa: ANN401
    """The product x · y, of bools their conjunction; 0 · inf is NaN."""
    return to_dtype(x * y, dtype)


def negate(dtype: DType, x: Any) -> Value:  # noqa: ANN401
    """−x; of an unsigned integer 2^n − x."""
    return to_dtype(-x, dtype)


def maximum(dtype: DType, x: Any, y: Any) -> Value:  # noqa: ANN401
    """The larger, of bools their disjunction; NaN if either is."""
    larger: Value = x if x != x or x > y else y
    return larger


def quotient(dtype: DType, x: int, y: int) -> Value:
    """⌊x / y⌋, with x // 0 = 0; the signed minimum over −1 wraps."""
    return dtype.wrap(floordiv(x, y))


def remainder(dtype: DType, x: int, y: int) -> Value:
    """The rest x − y·⌊x / y⌋, with x mod 0 = x."""
    return dtype.wrap(floormod(x, y))


def reciprocal(dtype: DType, x: float) -> Value:
    """1 / x, an infinity for a zero."""
    return dtype.round(1 / x) if x else math.copysign(math.inf, x)


def exp2(dtype: DType, x: float) -> Value:
    """2^x; overflow gives an infinity."""
    try:
        return dtype.round(math.exp2(x))
    except OverflowError:
        return math.inf


def log2(dtype: DType, x: float) -> Value:
    """log₂ x; −inf at zero, NaN below."""
    if x == 0:
        return -math.inf
    return dtype.round(math.log2(x)) if x > 0 else math.nan


def cast(dtype: DType, x: Any) -> Value | None:  # noqa: ANN401
    """CAST of x; None for a float whose integer part is not of the dtype."""
    if dtype.kind == "bool":
        return bool(x != 0)
    if dtype.is_float:
        return dtype.round(x) if isinstance(x, float) else _round_integer(x, dtype)
    if not isinstance(x, float):
        return dtype.wrap(x)
    if not math.isfinite(x) or not dtype.min <= math.trunc(x) <= dtype.max:
        return None
    return math.trunc(x)


def _round_integer(x: int, dtype: DType) -> float:
    """The integer x rounded once: what is cut off stays as a sticky last bit."""
    spare = max(abs(x).bit_length() - dtype.precision - 2, 0)
    head, tail = divmod(abs(x), 1 << spare)
    magnitude = dtype.round(math.ldexp(head | (tail != 0), spare))
    return math.copysign(magnitude, x)


FOLD: Mapping[Op, Fold] = MappingProxyType(
    {
        ADD: add,
        MUL: multiply,
        NEG: negate,
        MAX: maximum,
        FLOORDIV: quotient,
        FLOORMOD: remainder,
        RECIP: reciprocal,
        EXP2: exp2,
        LOG2: log2,
        CAST: cast,
        CMPLT: lambda dtype, x, y: x < y,
        CMPNE: lambda dtype, x, y: x != y,
        WHERE: lambda dtype, condition, x, y: x if condition else y,
    }
)


def fold(op: Op, values: tuple[Value, ...], dtype: DType) -> Value | None:
    """op(*values) with a result of `dtype`; None where the format leaves it open."""
    return FOLD[op](dtype, *values)


def folding(table: Mapping[Op, Fold]) -> Rules:
    """op(c, …) → the constant, for each op of a table."""

    def folded(node: UOp) -> UOp | None:
        value = table[node.op](node.dtype, *[source.arg.value for source in node.src])
        return None if value is None else make(CONST, (), Constant(value, node.dtype))

    def row(count: int) -> Rule:
        ops = frozenset(op for op in table if op.arity == (count, count))
        sources = [constant_var(f"c{i}") for i in range(count)]
        return Rule(f"fold_{count}", any_of(ops, *sources), folded)

    return Rules("constant folding", tuple(row(n) for n in sorted({op.arity[0] for op in table})))


FOLDING = folding(FOLD)
