"""Comparisons of integers whose ranges are known.

Both sides exact, a < b is a − b < 0. Where a − b = g·A + S with 0 ≤ S < g (`linear.split`), this
is A < 0: common factors go, and so do inner indices that cannot decide. a ≠ b needs no ranges: it
is a − b ≢ 0 modulo 2^n. What is left is written with positive terms, the constants on one side.
"""

from __future__ import annotations

from week01_uops.dtypes import bool_
from week01_uops.linear import (
    Linear,
    bounds,
    build,
    divisors,
    exact,
    fits,
    linear,
    split,
    wrapped,
)
from week01_uops.node import CONST, UOp, const, make
from week01_uops.ops import CMPLT, CMPNE, FLOORDIV, MAX, WHERE
from week01_uops.order import order
from week01_uops.pattern import Rule, Skip, any_of, var
from week01_uops.recombine import positive_divisor
from week01_uops.rewrite import Rules
from week01_uops.signatures import integer
from week01_uops.symbolic import OVERFLOW


def difference(a: UOp, b: UOp) -> Linear | None:
    """The form a − b in exact integers; None if a side may wrap."""
    left, right = exact(linear(a), a.dtype), exact(linear(b), b.dtype)
    return left.plus(right, -1) if left is not None and right is not None else None


def less(a: UOp, b: UOp) -> UOp | Skip:
    """Decide a < b, or leave out of it what cannot decide it."""
    gap = difference(a, b)
    if gap is None:
        return OVERFLOW
    low, high = bounds(gap)
    if high < 0 or low >= 0:
        return const(high < 0, bool_)
    for g in divisors(gap, 0):
        if parts := split(gap, g):
            gap = parts[0]
            break
    return _written(_undivided(gap), a)


def _undivided(gap: Linear) -> Linear:
    """As forms < 0: y // d < c → y < c·d, and c < y // d → c·d + d − 1 < y."""
    if len(gap.terms) != 1:
        return gap
    ((t, c),) = gap.terms.items()
    d = positive_divisor(t) if t.op is FLOORDIV and abs(c) == 1 else 0
    if not d:
        return gap
    return Linear({t.src[0]: c}, gap.constant * d + (0 if c > 0 else d - 1))


def sides(gap: Linear) -> tuple[Linear, Linear]:
    """The positive terms and the negated negative ones; a constant not negative, or alone."""
    left = Linear({t: c for t, c in gap.terms.items() if c > 0}, 0)
    right = Linear({t: -c for t, c in gap.terms.items() if c < 0}, 0)
    if left.terms and (gap.constant < 0 or not right.terms):
        return left, right._replace(constant=-gap.constant)
    return left._replace(constant=gap.constant), right


def _written(gap: Linear, like: UOp) -> UOp | Skip:
    """The comparison gap < 0, sign by sign."""
    left, right = sides(gap)
    if not fits(left, like.dtype) or not fits(right, like.dtype):
        return OVERFLOW
    result: UOp = CMPLT(build(left, like), build(right, like))
    return result


def differ(node: UOp) -> UOp | None:
    """Decide a ≠ b for integers, or leave common terms and factors out of it."""
    a, b = node.src
    if not a.dtype.is_int:
        return None
    bits = a.dtype.bits
    gap = wrapped(linear(a).plus(linear(b), -1), bits)
    low, high = bounds(gap)
    if low >> bits == high >> bits and low % (1 << bits):
        return const(True, bool_)
    if not gap.terms:
        return const(False, bool_)
    if -1 << bits < low and high < 1 << bits:
        reduced = _reduced(gap)
        if reduced is None:
            return const(True, bool_)
        gap = reduced
    gap = _leading(gap, bits)
    left, right = sides(gap)
    if not left.terms:
        left, right = right, left
    result: UOp = CMPNE(build(left, a), build(right, a))
    return result


def _reduced(gap: Linear) -> Linear | None:
    """A with gap ≠ 0 just where A ≠ 0; None if gap is never 0."""
    for g in divisors(gap, 0):
        if parts := split(gap, g):
            whole, rest = parts
            low, high = bounds(rest)
            if low > 0:
                return None
            if high == 0:
                return whole
    return gap


def _leading(gap: Linear, bits: int) -> Linear:
    """The form or its negation, modulo 2^bits: the largest coefficient becomes positive.

    A coefficient of −2^(bits−1) is its own opposite, and has no say; the constant has the last one.
    """
    half = 1 << (bits - 1)
    signs = {t: c for t, c in gap.terms.items() if abs(c) != half}
    size = max(map(abs, signs.values()), default=0)
    first = min((t for t, c in signs.items() if abs(c) == size), key=order, default=None)
    lead = -gap.constant if first is None else signs[first]
    form = wrapped(gap.times(-1) if lead < 0 else gap, bits)
    return form._replace(terms={t: abs(c) if abs(c) == half else c for t, c in form.terms.items()})


def larger(node: UOp) -> UOp | None:
    """MAX(a, b) → the one that is never less."""
    a, b = node.src
    gap = difference(a, b)
    if gap is None:
        return None
    low, high = bounds(gap)
    return a if low >= 0 else b if high <= 0 else None


def not_less(a: UOp, b: UOp) -> UOp | None:
    """NOT (a < c) → c − 1 < a and NOT (c < b) → b < c + 1, for a constant c."""
    if b.op is CONST and b.arg.value > b.dtype.min:
        return make(CMPLT, (const(b.arg.value - 1, b.dtype), a))
    if a.op is CONST and a.arg.value < a.dtype.max:
        return make(CMPLT, (b, const(a.arg.value + 1, a.dtype)))
    return None


a, b = var("a", integer), var("b")

COMPARE = Rules(
    "comparisons of integers",
    (
        Rule("less", CMPLT(a, b), less, keeps_shape=True, proof="z3"),
        Rule("differ", any_of((CMPNE,), name="node"), differ, keeps_shape=True, proof="z3"),
        Rule(
            "larger",
            any_of((MAX,), name="node").where(integer),
            larger,
            keeps_shape=True,
            proof="z3",
        ),
        Rule("not_less", CMPNE(CMPLT(a, b), True), not_less),
        Rule("where_larger", WHERE(CMPLT(a, b), b, a), lambda a, b: MAX(a, b), keeps_shape=True),
    ),
)
