"""Elementwise arithmetic, comparisons and logic from the ops of week 1.

Sources broadcast; a Python number stands for a constant of the other source's dtype. The
transcendental functions compute float16 and bfloat16 in float32 and round once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import ParamSpec

from week01_uops.dtypes import DType, Value, bfloat16, bool_, float16, float32
from week01_uops.node import UOp, const
from week01_uops.ops import ADD, CAST, CMPLT, CMPNE, EXP2, LOG2, MAX, MUL, NEG, RECIP, WHERE
from week03_loops.library.check import expect, expect_float

Operand = UOp | Value
P = ParamSpec("P")
NARROW = (float16, bfloat16)


def operands(a: Operand, b: Operand) -> tuple[UOp, UOp]:
    """Both as nodes: a number becomes a constant of the other's dtype."""
    dtype = next((x.dtype for x in (a, b) if isinstance(x, UOp)), None)
    if dtype is None:
        raise TypeError(f"expected a UOp among the operands, got {a!r} and {b!r}")
    first, second = (x if isinstance(x, UOp) else number(x, dtype) for x in (a, b))
    return first, second


def number(value: Value, dtype: DType) -> UOp:
    """A constant; an integer is welcome where a float is due."""
    return const(float(value) if dtype.is_float else value, dtype)


def cast(x: UOp, dtype: DType) -> UOp:
    """Convert x; x itself if it has the dtype."""
    return x if x.dtype is dtype else UOp.apply_to(CAST, (x,), dtype)


def widened(function: Callable[P, UOp]) -> Callable[P, UOp]:
    """Let a function compute in float32 what comes in float16 or bfloat16, and round once.

    f(x, …) → CAST(f(CAST(x, float32), …), dtype of x) where x, the first argument, is narrow.
    """

    def widen(argument: object) -> object:
        narrow = isinstance(argument, UOp) and argument.dtype in NARROW
        return cast(argument, float32) if narrow and isinstance(argument, UOp) else argument

    @functools.wraps(function)
    def wide(*args: P.args, **kwargs: P.kwargs) -> UOp:
        dtype = next((a.dtype for a in args if isinstance(a, UOp)), None)
        if dtype not in NARROW or dtype is None:
            return function(*args, **kwargs)
        named = {key: widen(value) for key, value in kwargs.items()}
        return cast(function(*map(widen, args), **named), dtype)  # type: ignore[arg-type]

    return wide


def add(a: Operand, b: Operand) -> UOp:
    """Sum a + b."""
    return _node(ADD(*operands(a, b)))


def sub(a: Operand, b: Operand) -> UOp:
    """Difference a − b = a + (−b); integers wrap."""
    first, second = operands(a, b)
    return _node(ADD(first, NEG(second)))


def mul(a: Operand, b: Operand) -> UOp:
    """Product a·b."""
    return _node(MUL(*operands(a, b)))


def square(x: UOp) -> UOp:
    """Square x·x."""
    return mul(x, x)


@widened
def div(a: Operand, b: Operand) -> UOp:
    """Quotient a·RECIP(b) of floats; 0 where 1 / b is subnormal (in float32 |b| > 2^126)."""
    first, second = operands(a, b)
    expect_float("div", a=first, b=second)
    return _node(MUL(first, RECIP(second)))


def maximum(a: Operand, b: Operand) -> UOp:
    """The larger; NaN if one is; of bools: or."""
    return _node(MAX(*operands(a, b)))


def reversed_order(x: UOp) -> UOp:
    """A bijection that reverses the order: −x of floats, −1 − x of integers, not x of bools."""
    if x.dtype is bool_:
        return logical_not(x)
    negative = _node(NEG(x))
    return negative if x.dtype.is_float else add(negative, x.dtype.wrap(-1))


def minimum(a: Operand, b: Operand) -> UOp:
    """The smaller, reversed(MAX(reversed a, reversed b)); NaN if one is; of bools: and."""
    first, second = operands(a, b)
    return reversed_order(maximum(reversed_order(first), reversed_order(second)))


def clamp(x: UOp, low: Operand, high: Operand) -> UOp:
    """min(max(x, low), high)."""
    return minimum(maximum(x, low), high)


def absolute(x: UOp) -> UOp:
    """|x| = MAX(x, −x); the signed minimum stays as it is."""
    return x if x.dtype.kind == "uint" else maximum(x, _node(NEG(x)))


def lt(a: Operand, b: Operand) -> UOp:
    """Whether a < b; false with NaN."""
    return _node(CMPLT(*operands(a, b)))


def gt(a: Operand, b: Operand) -> UOp:
    """Whether a > b; false with NaN."""
    return lt(b, a)


def ne(a: Operand, b: Operand) -> UOp:
    """Whether a ≠ b; true with NaN."""
    return _node(CMPNE(*operands(a, b)))


def eq(a: Operand, b: Operand) -> UOp:
    """Whether a = b; false with NaN."""
    return logical_not(ne(a, b))


def le(a: Operand, b: Operand) -> UOp:
    """Whether a ≤ b: not b < a of integers; a < b or a = b of floats, false with NaN."""
    first, second = operands(a, b)
    if first.dtype.is_int:
        return logical_not(lt(second, first))
    return maximum(lt(first, second), eq(first, second))


def ge(a: Operand, b: Operand) -> UOp:
    """Whether a ≥ b; false with NaN."""
    return le(b, a)


def logical_not(x: UOp) -> UOp:
    """CMPNE(x, true) of a bool."""
    expect(x.dtype is bool_, "E402", f"logical_not: expected a bool x, got {x.dtype}", x)
    return _node(CMPNE(x, True))


def where(condition: UOp, a: Operand, b: Operand) -> UOp:
    """Select a where the condition holds, b elsewhere; all three broadcast."""
    return _node(WHERE(condition, *operands(a, b)))


@widened
def exp(x: UOp) -> UOp:
    """e^x = EXP2(x·log2 e); relative error about |x| ulp."""
    expect_float("exp", x=x)
    return _node(EXP2(MUL(x, math.log2(math.e))))


@widened
def log(x: UOp) -> UOp:
    """Natural logarithm ln x = LOG2(x)·ln 2; −inf at 0, NaN below."""
    expect_float("log", x=x)
    return _node(MUL(LOG2(x), math.log(2)))


@widened
def sqrt(x: UOp) -> UOp:
    """√x = EXP2(½·LOG2 x): 0 at 0, since LOG2 0 = −inf; NaN below."""
    expect_float("sqrt", x=x)
    return _node(EXP2(MUL(LOG2(x), 0.5)))


@widened
def rsqrt(x: UOp) -> UOp:
    """1 / √x = EXP2(−½·LOG2 x); inf at 0, NaN below."""
    expect_float("rsqrt", x=x)
    return _node(EXP2(MUL(LOG2(x), -0.5)))


def _node(node: UOp) -> UOp:
    """The type of what an op gives when applied to nodes."""
    return node
