"""Expressions where a condition is known to hold, as an index behind its gate.

Each part of the condition that bounds a sum of integers narrows what the expression can be: the
sum is given a name with the narrower range (a PARAM that stands in for it), the expression is
simplified, and the name is replaced by the sum again.

    given 0 ≤ i − 1 < 8:    (i − 1) mod 8  →  i − 1
    given i·4 + j < 12:     (i·4 + j) // 12  →  0
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from week01_uops.calls import substitute
from week01_uops.compare import difference
from week01_uops.conditions import Bound, bound, negation, parts
from week01_uops.dtypes import DType
from week01_uops.linear import Linear, bounds, build, fits, single
from week01_uops.node import UOp
from week01_uops.ops import CMPNE, MUL, param
from week01_uops.order import order
from week01_uops.rewrite import Rules, rewrite

STAND_IN = 1 << 62
"""The slot of the PARAM that stands in for a sum: no program has so many."""


def given(condition: UOp, expression: UOp, rules: Rules) -> UOp:
    """An expression of no more nodes that is equal wherever the condition (a bool) holds.

    `rules` simplify it on the way; the condition itself should be simplified before.
    """
    for name, terms in narrowed(condition):
        solved = _solved(name, terms)
        if solved is not None:
            lead, value = solved
            simpler = rewrite(substitute(expression, {lead: value}), rules)
            simpler = rewrite(substitute(simpler, {name: build(terms, name)}), rules)
            if len(simpler.toposort()) < len(expression.toposort()):
                expression = simpler
    return expression


def narrowed(condition: UOp) -> Iterator[tuple[UOp, Linear]]:
    """Sums that a condition bounds more closely than their terms' ranges, each with a name."""
    ranges: dict[frozenset[tuple[UOp, int]], Bound] = {}
    for part in parts(condition, MUL):
        found = bound(part) or _equality(part)
        if found is not None:
            known = ranges.get(found.terms, found)
            low, high = max(known.low, found.low), min(known.high, found.high)
            ranges[found.terms] = Bound(found.terms, low, high)
    for terms, known in ranges.items():
        form = Linear(dict(sorted(terms, key=lambda term: order(term[0]))), 0)
        dtype = next(iter(form.terms)).dtype
        interval = _within(known, form, dtype)
        if interval is not None:
            yield param(STAND_IN, dtype, (), interval), form


def _equality(part: UOp) -> Bound | None:
    """The bound that a = b is, written NOT (a ≠ b)."""
    differ = negation(part)
    if part.op is not CMPNE or differ.op is not CMPNE or not differ.src[0].dtype.is_int:
        return None
    gap = difference(*differ.src)
    if gap is None or not gap.terms:
        return None
    return Bound(frozenset(gap.terms.items()), -gap.constant, -gap.constant)


def _within(known: Bound, form: Linear, dtype: DType) -> tuple[int, int] | None:
    """The bound met with the sum's own; None if it says nothing new, or the sum may wrap."""
    low, high = bounds(form)
    if not fits(form, dtype) or any(term.shape for term in form.terms):
        return None
    low = low if known.low == -math.inf else max(low, int(known.low))
    high = high if known.high == math.inf else min(high, int(known.high))
    return (low, high) if low <= high else None


def _solved(name: UOp, terms: Linear) -> tuple[UOp, UOp] | None:
    """The sum solved for a term of coefficient ±1: t = ±(name − the other terms)."""
    lead = next((t for t, c in reversed(list(terms.terms.items())) if abs(c) == 1), None)
    if lead is None:
        return None
    sign = terms.terms[lead]
    rest = terms.plus(single(lead), -sign)
    return lead, build(single(name).plus(rest, -1).times(sign), name)
