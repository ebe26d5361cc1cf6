"""What a mask leaves of a value where its condition does not hold.

To see that exp2(WHERE(k < e, x, −inf) − m)·v is 0 for k ≥ e, it is assumed of masked elements that
−inf + y is −inf and 0·y is 0, whatever y: inf and NaN that nothing but masked elements meet are not
seen, as the format allows. What a row without any other element comes to is not assumed: where e
may be less than 1, such a mask ends at max(e, 1), so that the first element is computed as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from week01_uops.calls import substitute
from week01_uops.compare import difference
from week01_uops.dtypes import Value, bool_
from week01_uops.linear import ZERO, Linear, bounds, value_of
from week01_uops.node import CONST, UOp, const, make, toposort
from week01_uops.ops import ADD, CMPLT, MAX, MUL, WHERE
from week01_uops.pattern import Rule, any_of, constant_var, var
from week01_uops.rewrite import Rules, rewrite
from week01_uops.signatures import floating, integer
from week01_uops.simplify import SIMPLIFY
from week02_render.contract import KEEPING
from week02_render.ops import INDEX, LOAD, RANGE, open_ranges, zero
from week03_loops.counting import Bounds, bounds_of
from week03_loops.ops import REDUCE, identity
from week04_fusion.ops import STAGE


def uppers(item: UOp) -> set[UOp]:
    """What the values of a RANGE are less than, by its bound; of min(a, b), both."""
    found: set[UOp] = set()
    stack = list(item.src)
    while stack:
        node = stack.pop()
        if _is_least(node):
            stack += node.src[1:]
        else:
            found.add(node)
    return found


def least(a: UOp, b: UOp) -> UOp:
    """min(a, b)."""
    return make(WHERE, (make(CMPLT, (a, b)), a, b))


def _is_least(node: UOp) -> bool:
    if node.op is not WHERE:
        return False
    less = make(CMPLT, node.src[1:])
    return node.src[0] in (less, rewrite(less, SIMPLIFY))


def at_least_one(edge: UOp) -> UOp:
    """max(edge, 1)."""
    return make(MAX, (edge, const(1, edge.dtype)))


def is_below(index: UOp, edge: UOp) -> bool:
    """Whether an index is a RANGE that is bounded by the edge, or by one that is no larger."""
    known = uppers(index) if index.op is RANGE else set()
    return edge in known or any(at_least_one(upper) is edge for upper in known)


def _decided_by_bound(a: UOp, b: UOp) -> UOp | None:
    """A < b, where the bound of a RANGE r < u says so: r is u − 1 at most."""
    gap = difference(a, b) or ZERO
    for item, factor in gap.terms.items():
        for upper in uppers(item) if item.op is RANGE else ():
            last = value_of(upper).plus(Linear({item: 1}, 1), -1)
            low, high = bounds(gap.plus(last, factor))
            if factor > 0 and high < 0:
                return const(True, bool_)
            if factor < 0 and low >= 0:
                return const(False, bool_)
    return None


BOUNDED = Rules(
    "comparisons of a RANGE with its bound",
    (
        Rule(
            "decided_by_bound",
            CMPLT(var("a", integer), var("b")),
            _decided_by_bound,
            proof="evaluator",
        ),
    ),
)

c = constant_var("c", floating)


def _masked_term(node: UOp, c: UOp) -> UOp | None:
    return c if c.arg.value == identity(node.arg.op, node.dtype) else None


MASKED = Rules(
    "masked elements",
    (
        Rule(
            "masked_sum",
            ADD(c, var("y")),
            lambda c: c if c.arg.value == -math.inf else None,
            False,
            "evaluator",
        ),
        Rule(
            "masked_product",
            MUL(c, var("y")),
            lambda c: c if c.arg.value == 0 else None,
            False,
            "evaluator",
        ),
        Rule("masked_terms", any_of({REDUCE}, c).with_more(), _masked_term, proof="evaluator"),
    ),
)
EXACTLY = SIMPLIFY + KEEPING
ASSUMING = EXACTLY + MASKED


LEAST_ENDED = 0.1
"""The part of a loop's iterations that a bound has to end: those of a padded window end few."""


def ended(item: UOp, edge: UOp) -> float:
    """The part of a RANGE's iterations that an edge ends, if it is anywhere in its interval."""
    size: int = item.arg.size
    low, high = edge.interval
    first, last = min(max(low, 0), size), min(max(high, 0), size)
    inside = (last - first + 1) * (2 * size - first - last) // 2
    below, above = max(-low, 0), max(high - size, 0)
    return (inside + below * size) / (size * (last - first + 1 + below + above))


class Cut(NamedTuple):
    """For each value of a RANGE from `edge` on, a value is this constant.

    Attributes:
        certain: nothing is assumed of rows in which no value of the RANGE is below `edge`.
    """

    edge: UOp
    constant: Value
    certain: bool


def cuts(value: UOp, item: UOp, known: frozenset[UOp]) -> Iterator[Cut]:
    """Where a value's masks make it constant along a RANGE, before where the RANGE ends anyway.

    The edges depend on known ranges only.
    """
    whole = unstaged(value, item)
    if closes(whole, item):
        return
    for condition in whole.toposort():
        if condition.op is CMPLT and item in open_ranges(condition):
            found = bounds_of(condition, item) or Bounds([], [], [])
            for edge in found.upper or found.lower:
                edge = rewrite(edge, SIMPLIFY)
                if is_below(item, edge) or is_below(item, at_least_one(edge)):
                    continue
                if open_ranges(edge) <= known and ended(item, edge) >= LEAST_ENDED:
                    masked = substitute(whole, {condition: const(not found.upper, bool_)})
                    yield from _cut(edge, masked)


def _cut(edge: UOp, masked: UOp) -> Iterator[Cut]:
    exact = rewrite(masked, EXACTLY)
    assumed = rewrite(exact, ASSUMING)
    if assumed.op is CONST:
        certain = exact.op is CONST or edge.interval[0] >= 1
        yield Cut(edge if certain else at_least_one(edge), assumed.arg.value, certain)


def unstaged(value: UOp, item: UOp) -> UOp:
    """The value with what it loads of STAGEs, at places that depend on a RANGE, in their place.

    LOAD(INDEX(STAGE(v, s), e(r)))   →   v[s := e(r)]
    """
    while loads := [n for n in _outside_stages(value) if _is_open(n, item)]:
        value = substitute(value, {node: _element(node) for node in loads})
    return value


def _outside_stages(value: UOp) -> list[UOp]:
    return toposort((value,), lambda n: () if n.op is STAGE else n.src)


def _is_open(node: UOp, item: UOp) -> bool:
    """Whether the node loads, at a place that depends on a RANGE, what can be put in its place."""
    if not is_staged(node) or item not in open_ranges(node):
        return False
    places, held = node.src[0].src[1:], node.src[0].src[0].src[0]
    return not any(closes(held, r) for place in places for r in open_ranges(place))


def closes(value: UOp, item: UOp) -> bool:
    """Whether a RANGE that is open outside of a value is closed inside it too, as another."""
    return any(n.op.closes and item in n.src[1:] for n in value.toposort())


def is_staged(node: UOp) -> bool:
    """Whether the node loads an element of a STAGE."""
    return node.op is LOAD and node.src[0].op is INDEX and node.src[0].src[0].op is STAGE


def is_staged_plainly(node: UOp) -> bool:
    """The same, without a gate."""
    return is_staged(node) and len(node.src) == 1


def _element(load: UOp) -> UOp:
    place, *gate = load.src
    staged, *indices = place.src
    value, *ranges = staged.src
    found = substitute(value, dict(zip(ranges, indices, strict=True)))
    if not gate:
        return found
    other = gate[1] if len(gate) > 1 else const(zero(load.dtype), load.dtype)
    return make(WHERE, (gate[0], found, other))
