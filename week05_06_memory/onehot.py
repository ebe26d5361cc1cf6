"""One-hot sums: a sum that a comparison of its counter leaves one term of needs no loop.

    Σ_{k<n} [k = e]·x(k)   →   WHERE(0 ≤ e < n, x(e), 0)      and x is never read out of range
    Σ_{k<n} x              →   n·x

So `one_hot(i) @ W` reads the rows of W. What a mask makes 0 does not count, whatever stands beside
it: 0·∞ is 0 here, as the format allows. The integers are exact; of floats, n·x is rounded once
where the sum is rounded n − 1 times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial, reduce
from typing import NamedTuple

from week01_uops.conditions import negation
from week01_uops.dtypes import bool_, int64, void
from week01_uops.linear import Linear, build, linear, wrapped
from week01_uops.node import CONST, UOp, const, make, recursive, toposort
from week01_uops.ops import ADD, CAST, CMPLT, CMPNE, MUL, NEG, WHERE
from week01_uops.pattern import Rule, any_of, var
from week01_uops.rewrite import Rules
from week02_render.ops import KEEP, LOAD, open_ranges, zero
from week03_loops.ops import REDUCE, ReduceArg, identity

x = var("x")


class Masked(NamedTuple):
    """A value where all conditions hold, and 0 (or false) elsewhere."""

    conditions: tuple[UOp, ...]
    value: UOp


ZERO_KEEPING = frozenset({MUL, NEG, KEEP, CAST, WHERE})
"""Ops that make 0 of a source that is 0, or select it."""


def _is_zero(node: UOp) -> bool:
    return node.op is CONST and node.arg.value == 0


def conditions(gate: UOp) -> tuple[UOp, ...]:
    """What a gate is the conjunction of, left to right."""
    found: dict[UOp, None] = {}
    stack = [gate]
    while stack:
        item = stack.pop()
        if item.op is MUL:
            stack += item.src[::-1]
        else:
            found[item] = None
    return tuple(found)


def is_equality(condition: UOp) -> bool:
    """Whether it says that two integers are equal: NOT (a ≠ b)."""
    return condition.op is CMPNE and _compares_integers(negation(condition))


def _compares_integers(node: UOp) -> bool:
    return node.op is CMPNE and node.src[0].dtype.is_int


def _masked(node: UOp) -> Masked:
    src = node.src
    if node.op is WHERE and _is_zero(src[2]):
        inner = masked(src[1])
        return Masked(conditions(src[0]) + inner.conditions, inner.value)
    if node.op is WHERE and _is_zero(src[1]):
        inner = masked(src[2])
        return Masked((negation(src[0]), *inner.conditions), inner.value)
    if node.dtype is bool_:
        return Masked(conditions(node), const(True, bool_))
    if node.op is CAST and src[0].dtype is bool_:
        return Masked(conditions(src[0]), _one(node))
    if node.op in ZERO_KEEPING - {WHERE}:
        parts = [masked(s) for s in src]
        found = tuple([c for part in parts for c in part.conditions])
        return Masked(found, node.with_src(tuple([part.value for part in parts])))
    return Masked((), node)


def _one(node: UOp) -> UOp:
    return const(1.0 if node.dtype.is_float else 1, node.dtype)


masked = partial(recursive, sources=lambda n: n.src if n.op in ZERO_KEEPING else ())(_masked)
"""The masks among a value's factors: [p]·x, [p]·x·[q], WHERE(p, x, 0)·y …; see `Masked`."""


def term(node: UOp) -> Masked:
    """The term of a REDUCE; outside its masks it is the identity."""
    op, value = node.arg.op, node.src[0]
    neutral = identity(op, value.dtype)
    if neutral == 0:
        return masked(value)
    if value.op is WHERE and value.src[2].op is CONST and value.src[2].arg.value == neutral:
        return Masked(conditions(value.src[0]), value.src[1])
    if value.op is WHERE and value.src[1].op is CONST and value.src[1].arg.value == neutral:
        return Masked((negation(value.src[0]),), value.src[2])
    return Masked((), value)


def position(condition: UOp, r: UOp) -> UOp | None:
    """The int64 e without r such that the condition is r = e; None for another condition.

    Modulo 2^n, e is found exactly; what a CAST keeps all values of may be compared behind it.
    """
    if not is_equality(condition):
        return None
    x, e = negation(condition).src
    while True:
        gap = wrapped(linear(x).plus(linear(e), -1), x.dtype.bits)
        moving = [t for t in gap.terms if r in open_ranges(t)]
        if len(moving) != 1 or abs(gap.terms[moving[0]]) != 1:
            return None
        (t,) = moving
        if t is not r and not _keeps_values(t):
            return None
        rest = Linear({s: f for s, f in gap.terms.items() if s is not t}, gap.constant)
        e = build(rest.times(-gap.terms[t]), x)
        if t is r:
            return e
        x = t.src[0]
        e = e if e.dtype is x.dtype else make(CAST, (e,), x.dtype)


def _keeps_values(t: UOp) -> bool:
    """Whether it is a CAST to a dtype that holds every integer it is given."""
    if t.op is not CAST or not t.src[0].dtype.is_int:
        return False
    low, high = t.src[0].interval
    return t.dtype.min <= low and high <= t.dtype.max


def within(e: UOp, r: UOp) -> UOp:
    """The condition that r takes the value e: 0 ≤ e < size, and e < bound."""
    limits = (const(r.arg.size, int64), *r.src)
    parts = [make(CMPLT, (const(-1, int64), e))]
    for limit in limits:
        same = limit if limit.dtype is int64 else make(CAST, (limit,), int64)
        parts.append(make(CMPLT, (e, same)))
    return both(parts)


def both(parts: Iterable[UOp]) -> UOp:
    """All of some conditions; true if there are none."""
    return reduce(lambda a, b: make(MUL, (a, b)), parts) if parts else const(True, bool_)


def at(root: UOp, given: Mapping[UOp, UOp], gate: UOp | None) -> UOp | None:
    """The value for other counters; what it loads at other places is loaded where the gate holds.

    None where something is stored on the way to the value.
    """
    done = dict(given)
    for node in toposort((root,), lambda n: () if n in done else n.src):
        if node in done:
            continue
        src = tuple([done[s] for s in node.src])
        if node.dtype is void and src != node.src:
            return None
        done[node] = node.with_src(src)
        if node.op is LOAD and gate is not None and src[0] is not node.src[0]:
            done[node] = _gated(done[node], gate)
    return done[root]


def _gated(loaded: UOp, gate: UOp) -> UOp:
    place, *rest = loaded.src
    conditions = make(MUL, (gate, rest[0])) if rest else gate
    other = rest[1] if len(rest) > 1 else const(zero(loaded.dtype), loaded.dtype)
    return make(LOAD, (place, conditions, other))


class Selection(NamedTuple):
    """A masked term's one element in a loop: where it is, the gate, and its value there."""

    e: UOp
    gate: UOp
    value: UOp


def select(found: Masked, r: UOp) -> Selection | None:
    """The term at the one value of r that its conditions allow; None if they allow several."""
    for k, condition in enumerate(found.conditions):
        e = position(condition, r)
        if e is None:
            continue
        inside = within(e, r)
        rest = [at(c, {r: e}, inside) for i, c in enumerate(found.conditions) if i != k]
        gate = None if None in rest else both([inside, *[c for c in rest if c is not None]])
        value = None if gate is None else at(found.value, {r: e}, gate)
        if gate is not None and value is not None:
            return Selection(e, gate, value)
    return None


def _without(node: UOp, r: UOp, value: UOp) -> UOp:
    """The REDUCE of another value over its ranges but r."""
    others = tuple([item for item in node.src[1:] if item is not r])
    return make(REDUCE, (value, *others), ReduceArg(node.arg.op, 0)) if others else value


def _free(node: UOp) -> list[UOp]:
    """The ranges of a REDUCE that none of its other ranges is bounded by, innermost first."""
    ranges = node.src[1:]
    return [r for r in ranges[::-1] if not any(r in open_ranges(o) - {o} for o in ranges)]


def _one_hot(node: UOp) -> UOp | None:
    found = term(node)
    if not found.conditions:
        return None
    neutral = const(identity(node.arg.op, node.dtype), node.dtype)
    for r in _free(node):
        selected = select(found, r)
        if selected is not None:
            return _without(node, r, make(WHERE, (selected.gate, selected.value, neutral)))
    return None


def _repeated(node: UOp, x: UOp) -> UOp | None:
    """A sum of floats over a range that they do not depend on, if its size is such a float."""
    if node.arg.op is not ADD or not node.dtype.is_float:
        return None
    for r in _free(node):
        if not r.src and r not in open_ranges(x) and r.arg.size <= 1 << node.dtype.precision:
            size = r.arg.size
            times = const(float(size), node.dtype)
            return _without(node, r, make(MUL, (x, times)) if size else const(0.0, node.dtype))
    return None


ONE_HOT = Rules(
    "one-hot sums",
    (
        Rule("one_hot", any_of({REDUCE}, x).with_more(), _one_hot, False, "evaluator"),
        Rule("sum_of_float", any_of({REDUCE}, x).with_more(), _repeated, False, "evaluator"),
    ),
)
