"""Conjunctions and disjunctions: MUL and MAX of bools.

A condition is flattened into its parts. A part that compares integers is a bound: an interval of
one sum Σ cᵢ·tᵢ. Of a conjunction, the bounds of one sum meet: a bound that another one implies is
dropped, bounds that no value meets make it false. A disjunction is treated as the negation of the
conjunction of the negated parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from week01_uops.algebra import boolean
from week01_uops.compare import difference
from week01_uops.dtypes import bool_
from week01_uops.node import CONST, Op, UOp, const
from week01_uops.ops import CMPLT, CMPNE, MAX, MUL
from week01_uops.order import order
from week01_uops.pattern import Rule, var
from week01_uops.rewrite import Rules

LIMIT = 16
"""Parts of a condition at most; a longer one is left alone."""


class Bound(NamedTuple):
    """The condition low ≤ Σ terms ≤ high."""

    terms: frozenset[tuple[UOp, int]]
    low: float
    high: float

    def negated(self) -> Bound:
        """The opposite of a bound on one side."""
        if self.low == -math.inf:
            return self._replace(low=self.high + 1, high=math.inf)
        return self._replace(low=-math.inf, high=self.low - 1)


def bound(part: UOp) -> Bound | None:
    """The bound that a comparison of integers a < b is: a − b ≤ −1; None for another part."""
    gap = difference(*part.src) if part.op is CMPLT and part.src[0].dtype.is_int else None
    if gap is None or not gap.terms:
        return None
    first = min(gap.terms, key=order)
    if gap.terms[first] > 0:
        return Bound(frozenset(gap.terms.items()), -math.inf, -1 - gap.constant)
    return Bound(frozenset(gap.times(-1).terms.items()), gap.constant + 1, math.inf)


def parts(condition: UOp, op: Op) -> list[UOp]:
    """The operands of nested `op`s, left to right; stops soon after `LIMIT`."""
    found: list[UOp] = []
    stack = [condition]
    while stack and len(found) <= LIMIT:
        node = stack.pop()
        if node.op is op:
            stack.extend(reversed(node.src))
        else:
            found.append(node)
    return found


def negation(part: UOp) -> UOp:
    """NOT of a bool."""
    if part.op is CMPNE and part.src[1].op is CONST and part.src[1].arg.value is True:
        return part.src[0]
    opposite: UOp = CMPNE(part, True)
    return opposite


def condense(node: UOp) -> UOp | None:
    """Drop the parts of a conjunction that others imply (of a disjunction: that imply others)."""
    op = node.op
    found = parts(node, op)
    if len(found) > LIMIT or any(part.shape != node.shape for part in found):
        return None
    once = dict.fromkeys(found)
    kept = None if any(negation(part) in once for part in once) else _kept(once, op is MAX)
    if kept is None:
        return const(op is MAX, bool_)
    return _joined(op, kept) if len(kept) < len(found) else None


def _kept(found: Iterable[UOp], negate: bool) -> list[UOp] | None:
    """The parts that matter; None if no value meets them all."""
    bounds = {part: b.negated() if negate else b for part in found if (b := bound(part))}
    tightest: dict[frozenset[tuple[UOp, int]], tuple[float, float]] = {}
    for b in bounds.values():
        low, high = tightest.get(b.terms, (-math.inf, math.inf))
        tightest[b.terms] = max(low, b.low), min(high, b.high)
    if any(low > high for low, high in tightest.values()):
        return None
    return [
        part
        for part in found
        if part not in bounds or _matters(bounds[part], tightest[bounds[part].terms])
    ]


def _matters(b: Bound, tightest: tuple[float, float]) -> bool:
    return b.low == tightest[0] if b.high == math.inf else b.high == tightest[1]


def _joined(op: Op, items: Iterable[UOp]) -> UOp:
    first, *others = items
    for item in others:
        first = op(first, item)
    return first


CONDITIONS = Rules(
    "conjunctions and disjunctions",
    (
        Rule("condense_and", MUL(var("b", boolean), var("p")), condense, keeps_shape=True),
        Rule("condense_or", MAX(var("b", boolean), var("p")), condense, keeps_shape=True),
    ),
)
