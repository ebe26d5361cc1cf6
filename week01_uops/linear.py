"""Linear forms: an integer expression as a sum Σ cᵢ·tᵢ + c over nodes tᵢ that are no sums.

A form says what a node is modulo 2^n, whatever wraps on the way. It says what the node is
*exactly*, as an integer, when the bounds of the exact sum lie within the dtype (`exact`): two
integers of one n-bit dtype that agree modulo 2^n are equal. So no step of an expression has to
be shown free of overflow by itself.

All that is known about division, remainder and comparison comes from one question on forms:
`split`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import islice, product
from typing import NamedTuple

from week01_uops.constant import Constant
from week01_uops.dtypes import DType
from week01_uops.node import CONST, Interval, UOp, make, recursive
from week01_uops.ops import ADD, MUL, NEG
from week01_uops.order import order

LIMIT = 16
"""Terms of a form at most: a longer sum is one term, so that a chain of n sums costs O(n)."""


class Linear(NamedTuple):
    """Σ terms[t]·t + constant. No coefficient is 0."""

    terms: Mapping[UOp, int]
    constant: int

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Self + factor·other, in integers."""
        terms = dict(self.terms)
        for t, c in other.terms.items():
            total = terms.get(t, 0) + factor * c
            if total:
                terms[t] = total
            else:
                terms.pop(t, None)
        return Linear(terms, self.constant + factor * other.constant)

    def times(self, factor: int) -> Linear:
        """factor·self, in integers."""
        return ZERO.plus(self, factor)


ZERO = Linear({}, 0)


def single(node: UOp) -> Linear:
    """The form of a node that is not looked into."""
    return Linear({node: 1}, 0)


def signed(value: int, bits: int) -> int:
    """The representative of value modulo 2^bits in [−2^(bits−1), 2^(bits−1))."""
    half = 1 << (bits - 1)
    return value if -half <= value < half else ((value + half) & ((1 << bits) - 1)) - half


def wrapped(form: Linear, bits: int) -> Linear:
    """The form with coefficients and constant of least absolute value modulo 2^bits."""
    terms = {t: s for t, c in form.terms.items() if (s := signed(c, bits))}
    return Linear(terms, signed(form.constant, bits))


SUMS = frozenset({ADD, MUL, NEG})


def linear(node: UOp) -> Linear:
    """The form of an integer node; a node that is no sum, or too long a one, is its only term."""
    if node.op in SUMS:
        return _form(node) or single(node)
    if node.op is CONST:
        return Linear({}, node.arg.value)
    low, high = node.interval
    return Linear({}, low) if low == high else single(node)


def _of_sum(node: UOp) -> Linear | None:
    """The form of an ADD, MUL or NEG; None where it is a term itself."""
    forms = [linear(source) for source in node.src]
    if node.shape and any(t.shape != node.shape for form in forms for t in form.terms):
        return None
    found = _combined(node, forms)
    if found is None or len(found.terms) > LIMIT:
        return None
    return wrapped(found, node.dtype.bits)


def _combined(node: UOp, forms: list[Linear]) -> Linear | None:
    if node.op is ADD:
        return forms[0].plus(forms[1])
    if node.op is NEG:
        return forms[0].times(-1)
    for factor, form in (forms, forms[::-1]):
        if not factor.terms:
            return form.times(factor.constant)
    return None


def _summands(node: UOp) -> tuple[UOp, ...]:
    return tuple([source for source in node.src if source.op in SUMS])


_form = recursive(_of_sum, _summands)


def bounds(form: Linear) -> Interval:
    """The least and the largest exact value of the sum that the terms' intervals allow."""
    low = high = form.constant
    for t, c in form.terms.items():
        a, b = t.interval
        low += c * (a if c > 0 else b)
        high += c * (b if c > 0 else a)
    return low, high


def fits(form: Linear, dtype: DType) -> bool:
    """No exact value of the form leaves the dtype, so that its node has just this value."""
    low, high = bounds(form)
    return dtype.min <= low and high <= dtype.max


def exact(form: Linear, dtype: DType) -> Linear | None:
    """An equal form modulo 2^n that fits the dtype; None if none is seen.

    The constant can take up any multiple of 2^n. Of an unsigned dtype, coefficients are read as
    signed numbers first, then as unsigned ones.
    """
    period = 1 << dtype.bits
    low, high = bounds(form)
    turns = -((low - dtype.min) // period)
    if high + turns * period <= dtype.max:
        return form._replace(constant=form.constant + turns * period) if turns else form
    if dtype.kind == "uint" and any(c < 0 for c in form.terms.values()):
        return exact(Linear({t: c % period for t, c in form.terms.items()}, form.constant), dtype)
    return None


def value_of(node: UOp) -> Linear:
    """A form with the exact value of the node: its own if that is exact, else the node alone."""
    return exact(linear(node), node.dtype) or single(node)


def split(form: Linear, g: int) -> tuple[Linear, Linear] | None:
    """Form = g·A + S, exactly, with 0 ≤ S < g for all values of the terms; None if not seen.

    Each coefficient is a multiple of g and a remainder, of either sign. The remainders of least
    absolute value make S vary least, and are tried first.
    """
    choices = []
    for t, c in form.terms.items():
        low, high = t.interval
        r = c % g
        fitting = [v for v in ((r, r - g) if r else (0,)) if abs(v) * (high - low) < g]
        if not fitting:
            return None
        choices.append(sorted(fitting, key=abs))
    for remainders in islice(product(*choices), 64):
        part = dict(zip(form.terms, remainders, strict=True))
        low, high = bounds(Linear(part, form.constant))
        turns = low // g
        if turns == high // g:
            whole = {t: a for t, c in form.terms.items() if (a := (c - part[t]) // g)}
            rest = {t: r for t, r in part.items() if r}
            return Linear(whole, turns), Linear(rest, form.constant - turns * g)
    return None


def divisors(form: Linear, whole: int) -> list[int]:
    """Candidates g > 1 for `split`, from large to small: `whole`, and what the terms share.

    Those are the greatest common divisors of `whole` (0: of anything) and a set of coefficients.
    """
    found: set[int] = {whole}
    for c in form.terms.values():
        found |= {math.gcd(c, g) for g in found}
    return sorted(found - {0, 1}, reverse=True)


def build(form: Linear, like: UOp) -> UOp:
    """The canonical node of a form, with the dtype of `like`.

    Terms of one coefficient are added before they are scaled. Large coefficients, which as a rule
    belong to outer axes, come first, the constant last.
    """
    dtype = like.dtype
    half = 1 << (dtype.bits - 1)
    groups: dict[int, list[UOp]] = {}
    for t, c in wrapped(form, dtype.bits).terms.items():
        # Modulo 2·half, the coefficient −half is its own opposite: it counts as positive.
        groups.setdefault(half if c == -half else c, []).append(t)
    constant = dtype.wrap(form.constant)
    if not groups:
        return _constant(constant, dtype)
    ordered = sorted(groups, key=lambda c: (-abs(c), c < 0))
    node = _multiples([(c, _sum(groups[c])) for c in ordered])
    return make(ADD, (node, _constant(constant, dtype))) if constant else node


def _multiples(parts: list[tuple[int, UOp]]) -> UOp:
    """Σ c·x by Horner's scheme: 64·i + 16·j + k is (i·4 + j)·16 + k.

    What all coefficients share is taken out, unless that takes one product more. So a multiple of
    a sum stays one, and shares the sum.
    """
    *outer, (last, x) = parts
    if not outer:
        return _scale(x, last)
    shared = math.gcd(*[c for c, _ in parts]) * (1 if any(c > 0 for c, _ in parts) else -1)
    if shared != 1 and abs(shared) == abs(last):
        return _scale(_multiples([(c // shared, x) for c, x in parts]), shared)
    return make(ADD, (_multiples(outer), _scale(x, last)))


def _constant(value: int, dtype: DType) -> UOp:
    return make(CONST, (), Constant(value, dtype))


def _sum(nodes: list[UOp]) -> UOp:
    return nodes[0] if len(nodes) == 1 else _chain(sorted(nodes, key=order))


def _chain(nodes: Iterable[UOp]) -> UOp:
    first, *others = nodes
    for node in others:
        first = make(ADD, (first, node))
    return first


def _scale(node: UOp, factor: int) -> UOp:
    if factor == 1:
        return node
    if factor == -1:
        return make(NEG, (node,))
    return make(MUL, (node, _constant(node.dtype.wrap(factor), node.dtype)))
