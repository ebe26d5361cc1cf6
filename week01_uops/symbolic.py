"""Sums, quotients and remainders of integers whose ranges are known.

Let x = g·A + S exactly, with 0 ≤ S < g (`linear.split`), and let g divide d > 0. Then

    x // d    =  A // (d/g)
    x mod d  =  g·(A mod (d/g)) + S

since ⌊(g·A + S)/d⌋ = ⌊⌊(g·A + S)/g⌋/(d/g)⌋. With g = d the quotient is A and the remainder S.
These two lines undo reshapes: a flattened index is such a sum. If d is a power of two, the second
holds even where x wraps.
"""

from __future__ import annotations

from week01_uops.linear import (
    SUMS,
    Linear,
    build,
    divisors,
    exact,
    fits,
    linear,
    single,
    split,
    value_of,
)
from week01_uops.node import CONST, Op, UOp, const
from week01_uops.ops import ADD, ELEMENTWISE, EXP2, FLOORDIV, FLOORMOD, LOG2, MUL, NEG, RECIP
from week01_uops.pattern import Rule, Skip, any_of, constant_var, var
from week01_uops.recombine import positive_divisor, recombined
from week01_uops.rewrite import Rules
from week01_uops.signatures import integer

OVERFLOW = Skip("the exact value may leave the dtype and wrap")


def bounded(node: UOp) -> UOp | None:
    """A scalar integer or bool whose interval is one value → that value."""
    if node.dtype.is_float:
        return None
    low, high = node.interval
    if low != high:
        return None
    return const(low == 1 if node.dtype.kind == "bool" else low, node.dtype)


def collect(node: UOp) -> UOp:
    """A sum → its canonical form: like terms collected, the constant last.

    x + x → x·2, x − x → 0, (x + 3)·2 − y·2 → x·2 + y·(−2) + 6; u mod d + d·(u // d) → u.
    """
    if node.src[0].op not in SUMS and (node.op is NEG or node.src[1].op is CONST):
        return node
    form = linear(node)
    return node if node in form.terms else build(recombined(form, node.dtype.bits), node)


def divide(x: UOp, d: UOp) -> UOp | Skip | None:
    """Apply the first line to x // d; else merge quotients or pull multiples of d out."""
    divisor: int = d.arg.value
    if divisor <= 1:
        return _negated_divisor(x, divisor, FLOORDIV)
    form = exact(linear(x), x.dtype)
    if form is None:
        return _quotient_of_quotient(single(x), x, divisor) or OVERFLOW
    for g in divisors(form, divisor):
        if parts := split(form, g):
            return _divided(build(parts[0], x), divisor // g)
    return _quotient_of_quotient(form, x, divisor) or _pull(form, x, divisor)


def modulo(x: UOp, d: UOp) -> UOp | Skip | None:
    """Apply the second line to x mod d; else leave multiples of d out of x."""
    divisor: int = d.arg.value
    if divisor <= 1:
        return _negated_divisor(x, divisor, FLOORMOD)
    wraps = not divisor & (divisor - 1)
    form = exact(linear(x), x.dtype) or (linear(x) if wraps else None)
    if form is None:
        return OVERFLOW
    form = _without_remainders(form, x, divisor, wraps=wraps)
    for g in divisors(form, divisor):
        if parts := split(form, g):
            inner = _remainder(build(parts[0], x), divisor // g)
            return build(parts[1].plus(linear(inner), g), x)
    smaller = {t: c - divisor * _toward_zero(c, divisor) for t, c in form.terms.items()}
    rest = Linear({t: c for t, c in smaller.items() if c}, form.constant % divisor)
    return _remainder(build(rest if wraps or fits(rest, x.dtype) else form, x), divisor)


def _divided(x: UOp, divisor: int) -> UOp:
    quotient: UOp = x if divisor == 1 else FLOORDIV(x, divisor)
    return quotient


def _remainder(x: UOp, divisor: int) -> UOp:
    remainder: UOp = const(0, x.dtype) if divisor == 1 else FLOORMOD(x, divisor)
    return remainder


def _toward_zero(c: int, divisor: int) -> int:
    return c // divisor if c > 0 else -(-c // divisor)


def _negated_divisor(x: UOp, divisor: int, op: Op) -> UOp | Skip | None:
    """FLOORDIV(x, −d) → (−x) // d and FLOORMOD(x, −d) → −((−x) mod d), unless −x or −d wraps."""
    if not x.dtype.min < divisor < -1:
        return None
    low, high = x.interval
    if -low > x.dtype.max or -high < x.dtype.min:
        return OVERFLOW
    positive: UOp = op(NEG(x), -divisor)
    return positive if op is FLOORDIV else NEG(positive)


def _quotient_of_quotient(form: Linear, like: UOp, divisor: int) -> UOp | None:
    """(A + y // a) // d → (a·A + y) // (a·d) and (y mod (d·b)) // d → (y // d) mod b."""
    dtype = like.dtype
    for t, c in form.terms.items():
        if c != 1 or t.op not in (FLOORDIV, FLOORMOD) or not (inner := positive_divisor(t)):
            continue
        rest = form.plus(single(t), -1)
        alone = not rest.terms and not rest.constant
        if t.op is FLOORMOD:
            if alone and inner % divisor == 0:
                return _remainder(_divided(t.src[0], divisor), inner // divisor)
        elif inner * divisor <= dtype.max:
            total = value_of(t.src[0]).plus(rest, inner)
            if alone or fits(total, dtype):
                return _divided(t.src[0] if alone else build(total, like), inner * divisor)
    return None


def _pull(form: Linear, like: UOp, divisor: int) -> UOp | None:
    """(d·Q + R) // d → Q + R // d, where that leaves smaller coefficients or no constant in R."""
    whole = {t: q for t, c in form.terms.items() if (q := _toward_zero(c, divisor))}
    turns = form.constant // divisor if whole or form.constant % divisor == 0 else 0
    pulled = Linear(whole, turns)
    rest = form.plus(pulled, -divisor)
    if not (whole or turns) or not fits(rest, like.dtype):
        return None
    quotient: UOp = ADD(build(pulled, like), FLOORDIV(build(rest, like), divisor))
    return quotient


def _without_remainders(form: Linear, like: UOp, divisor: int, *, wraps: bool) -> Linear:
    """c·(y mod m) → c·y in a sum that is taken modulo d, where d divides c·m."""
    for t, c in list(form.terms.items()):
        if t.op is FLOORMOD and (m := positive_divisor(t)) and c * m % divisor == 0:
            total = form.plus(single(t), -c).plus(value_of(t.src[0]), c)
            if wraps or fits(total, like.dtype):
                form = total
    return form


def divide_multiple(m: UOp, x: UOp, y: UOp) -> UOp | None:
    """x·y // y → x, where y is never 0 and the product does not wrap."""
    return x if _exact_multiple(m, x, y) else None


def modulo_multiple(m: UOp, x: UOp, y: UOp) -> UOp | None:
    """x·y mod y → 0, where y is never 0 and the product does not wrap."""
    return const(0, x.dtype) if _exact_multiple(m, x, y) else None


def _exact_multiple(m: UOp, x: UOp, y: UOp) -> bool:
    (a, b), (c, d) = x.interval, y.interval
    corners = (a * c, a * d, b * c, b * d)
    return not c <= 0 <= d and m.dtype.min <= min(corners) and max(corners) <= m.dtype.max


def modulo_smaller(x: UOp, y: UOp) -> UOp | None:
    """FLOORMOD(x, y) → x, where 0 ≤ x < y always."""
    return x if x.interval[0] >= 0 and x.interval[1] < y.interval[0] else None


n, x, y = var("n", integer), var("x"), var("y")
c, d = constant_var("c"), constant_var("d")
INTEGERS = ELEMENTWISE - {RECIP, EXP2, LOG2}

SYMBOLIC = Rules(
    "integers with ranges",
    (
        Rule("bounded", any_of(INTEGERS, name="node"), bounded, keeps_shape=True),
        Rule(
            "collect_sum",
            any_of((ADD,), name="node").where(integer),
            collect,
            keeps_shape=True,
            proof="z3",
        ),
        Rule(
            "multiply_largest",
            MUL(n, c),
            lambda n, c: NEG(n) if n.dtype.kind == "uint" and c.arg.value == n.dtype.max else None,
        ),
        Rule("collect_multiple", MUL(n, c), collect, keeps_shape=True, proof="z3"),
        Rule("collect_negative", NEG(n), collect, keeps_shape=True, proof="z3"),
        Rule("divide", FLOORDIV(x, d), divide, keeps_shape=True, proof="z3"),
        Rule("modulo", FLOORMOD(x, d), modulo, keeps_shape=True, proof="z3"),
        Rule(
            "divide_multiple", FLOORDIV(MUL(x, y).named("m"), y), divide_multiple, keeps_shape=True
        ),
        Rule(
            "modulo_multiple", FLOORMOD(MUL(x, y).named("m"), y), modulo_multiple, keeps_shape=True
        ),
        Rule("modulo_smaller", FLOORMOD(x, y), modulo_smaller, keeps_shape=True),
    ),
)
