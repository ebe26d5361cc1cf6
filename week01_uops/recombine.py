"""Quotients and remainders that meet in a sum.

With u mod d = u − d·(u // d) in exact integers, and so modulo 2^n:

    c·(u mod d) + c·d·(u // d)            →  c·u
    c·(u mod d) + c·d·((u // d) mod b)  →  c·(u mod (d·b))
    c·u − c·d·(u // d)                     →  c·(u mod d)
    c·u − c·(u mod d)                      →  c·d·(u // d)

In the second line, u // d may stand as Q + v // d, after multiples of d were pulled out of it.
"""

from __future__ import annotations

from week01_uops.linear import Linear, build, fits, linear, signed, single, value_of, wrapped
from week01_uops.node import CONST, UOp
from week01_uops.ops import FLOORDIV, FLOORMOD


def positive_divisor(node: UOp) -> int:
    """The divisor of a quotient or remainder if it is a positive constant, else 0."""
    if node.op is not FLOORDIV and node.op is not FLOORMOD:
        return 0
    divisor = node.src[1]
    return max(divisor.arg.value, 0) if divisor.op is CONST else 0


def recombined(form: Linear, bits: int) -> Linear:
    """The form after all four equations above, each of which leaves fewer terms."""
    better: Linear | None = form
    while better is not None:
        form = better
        steps = [(t, d) for t in form.terms if (d := positive_divisor(t))]
        better = next(filter(None, (_step(form, t, d, bits) for t, d in steps)), None)
    return form


def _step(form: Linear, t: UOp, d: int, bits: int) -> Linear | None:
    """One equation, applied at a quotient or remainder t of the sum, by d."""
    c = form.terms[t]
    if t.op is FLOORMOD:
        return _met(form, t, d, bits) or _exchanged(form, t, -c, bits)
    return _exchanged(form, t, -c // d, bits) if c % d == 0 else None


def _exchanged(form: Linear, t: UOp, c: int, bits: int) -> Linear | None:
    """Where all of c·u is in the sum: c·u − c·d·(u // d) → c·(u mod d), and the other way round."""
    u = t.src[0]
    whole = wrapped(linear(u).times(c), bits)
    if not whole.terms or any(form.terms.get(s) != k for s, k in whole.terms.items()):
        return None
    rest = form.plus(whole, -1).plus(single(t), -form.terms[t])
    other = FLOORMOD(*t.src) if t.op is FLOORDIV else FLOORDIV(*t.src)
    times = c if t.op is FLOORDIV else c * positive_divisor(t)
    return wrapped(rest.plus(single(other), times), bits)


def _met(form: Linear, t: UOp, d: int, bits: int) -> Linear | None:
    """c·(u mod d) + c·d·s → c·(…), for a quotient or remainder s that fits."""
    c = form.terms[t]
    wanted = signed(c * d, bits)
    for s, k in form.terms.items():
        joined = _joined(t, s) if k == wanted and s is not t else None
        if joined is not None:
            rest = form.plus(single(t), -c).plus(single(s), -k)
            return wrapped(rest.plus(joined, c), bits)
    return None


def _joined(t: UOp, s: UOp) -> Linear | None:
    """The sum (u mod d) + d·s in fewer terms, for t = u mod d."""
    u, d, b = t.src[0], positive_divisor(t), positive_divisor(s)
    if s.op is FLOORDIV and b == d and _same_residue(s.src[0], u, d):
        return linear(s.src[0])
    if s.op is FLOORMOD and b and d * b <= t.dtype.max:
        whole = _undivided(s.src[0], u, d)
        if whole is not None and fits(whole, t.dtype):
            return single(FLOORMOD(build(whole, t), d * b))
    return None


def _undivided(w: UOp, u: UOp, d: int) -> Linear | None:
    """The form v + d·Q, where w = Q + v // d and v ≡ u modulo d."""
    form = value_of(w)
    for q, k in form.terms.items():
        if k == 1 and q.op is FLOORDIV and positive_divisor(q) == d:
            v = q.src[0]
            if _same_residue(v, u, d):
                return value_of(v).plus(form.plus(single(q), -1), d)
    return None


def _same_residue(v: UOp, u: UOp, d: int) -> bool:
    """Whether v ≡ u modulo d."""
    if v is u:
        return True
    gap = value_of(v).plus(value_of(u), -1)
    return not gap.terms and gap.constant % d == 0
