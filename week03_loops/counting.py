"""Sums that need no loop: how often a condition on a counter holds, and sums of one value.

    Σ_{r<n} [lo ≤ r < hi]·c   →   max(0, min(hi, n) − max(lo, 0))·c
    Σ_{r<n} c                 →   n·c

An arange is a running sum of ones, a causal mask compares two of them: with these rules both are
index arithmetic. They are exact for integers, and for floats while all partial sums are.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from week01_uops.compare import difference
from week01_uops.dtypes import DType, bool_
from week01_uops.linear import Linear, build, fits
from week01_uops.node import UOp, const, make
from week01_uops.ops import ADD, CAST, CMPLT, FLOORDIV, MAX, MUL, NEG, WHERE
from week01_uops.pattern import Rule, any_of, constant_var, var
from week01_uops.rewrite import Rules
from week02_render.gates import conjuncts
from week02_render.ops import open_ranges, zero
from week03_loops.ops import REDUCE, ReduceArg

c, z, x = constant_var("c"), constant_var("z"), var("x")
condition = var("condition")


class Bounds(NamedTuple):
    """Conditions on a range r: lower ≤ r, r < upper, and those that do not depend on r."""

    lower: list[UOp]
    upper: list[UOp]
    rest: list[UOp]


def bounds_of(gate: UOp, r: UOp) -> Bounds | None:
    """The gate as bounds of r; None if some condition is no comparison linear in r."""
    found = Bounds([], [], [])
    for item in sorted(conjuncts(gate), key=lambda node: r in open_ranges(node)):
        if r not in open_ranges(item):
            found.rest.append(item)
        elif not _add_bound(item, r, found):
            return None
    return found


def _add_bound(item: UOp, r: UOp, found: Bounds) -> bool:
    """With a < b as k·r + rest < 0: r < ⌈−rest / k⌉ for k > 0, r ≥ ⌊rest / −k⌋ + 1 for k < 0."""
    gap = difference(*item.src) if item.op is CMPLT else None
    k = gap.terms.get(r, 0) if gap is not None else 0
    if gap is None or not k:
        return False
    rest = Linear({t: f for t, f in gap.terms.items() if t is not r}, gap.constant)
    if any(r in open_ranges(t) for t in rest.terms):
        return False
    form = rest.times(-1).plus(Linear({}, k - 1)) if k > 0 else rest
    if not fits(form, r.dtype):
        return False
    edge = build(form, r)
    edge = make(FLOORDIV, (edge, const(abs(k), r.dtype))) if abs(k) != 1 else edge
    if k > 0:
        found.upper.append(edge)
    else:
        found.lower.append(ADD(edge, 1))
    return True


def _least(a: UOp, b: UOp) -> UOp:
    return make(WHERE, (make(CMPLT, (a, b)), a, b))


def count(bounds: Bounds, r: UOp) -> UOp:
    """How many values of r lie within the bounds."""
    low = reduce(lambda a, b: make(MAX, (a, b)), bounds.lower, const(0, r.dtype))
    high = reduce(_least, bounds.upper, const(r.arg.size, r.dtype))
    result: UOp = MAX(ADD(high, NEG(low)), 0)
    return result


def _exact(value: UOp, size: int, dtype: DType) -> bool:
    """All partial sums of so many copies of a constant are exact."""
    if not dtype.is_float:
        return True
    number = value.arg.value
    return bool(abs(number) * size <= 1 << min(dtype.precision, 24)) and number == int(number)


def _counted(node: UOp, gate: UOp, value: UOp) -> UOp | None:
    """A sum of WHERE(gate, value, 0), by its last range that can be counted."""
    if node.arg.op is not ADD or node.dtype is bool_:
        return None
    for r in reversed(node.src[1:]):
        if r.src or not _exact(value, r.arg.size, node.dtype):
            continue
        found = bounds_of(gate, r)
        if found is not None and (found.lower or found.upper):
            return _without(node, r, found, value)
    return None


def _without(node: UOp, r: UOp, found: Bounds, value: UOp) -> UOp:
    total = make(MUL, (make(CAST, (count(found, r),), node.dtype), value))
    if found.rest:
        gate = reduce(lambda a, b: make(MUL, (a, b)), found.rest)
        total = make(WHERE, (gate, total, const(zero(node.dtype), node.dtype)))
    others = tuple(item for item in node.src[1:] if item is not r)
    return make(REDUCE, (total, *others), ReduceArg(ADD, 0)) if others else total


def _gated(node: UOp, condition: UOp, c: UOp, z: UOp) -> UOp | None:
    if z.arg.value != 0 or not _is_finite(c):
        return None
    return _counted(node, condition, c)


def _is_finite(value: UOp) -> bool:
    number = value.arg.value
    return bool(number == number and abs(number) != float("inf"))


def _cast(node: UOp, condition: UOp) -> UOp | None:
    if condition.dtype is not bool_:
        return None
    one = const(1.0 if node.dtype.is_float else 1, node.dtype) if node.dtype is not bool_ else None
    return _counted(node, condition, one) if one is not None else None


def _repeated(node: UOp, x: UOp) -> UOp | None:
    """A sum of an integer over a range that it does not depend on."""
    if node.arg.op is not ADD or not node.dtype.is_int:
        return None
    for r in node.src[1:]:
        if not r.src and r not in open_ranges(x):
            times = const(node.dtype.wrap(r.arg.size), node.dtype)
            others = tuple(item for item in node.src[1:] if item is not r)
            total = make(MUL, (x, times))
            return make(REDUCE, (total, *others), node.arg) if others else total
    return None


COUNTING = Rules(
    "counting",
    (
        Rule(
            "count_gated",
            any_of({REDUCE}, any_of({WHERE}, condition, c, z)).with_more(),
            _gated,
            proof="evaluator",
        ),
        Rule("count_cast", any_of({REDUCE}, CAST(condition)).with_more(), _cast, proof="evaluator"),
        Rule("sum_of_one", any_of({REDUCE}, x).with_more(), _repeated, proof="evaluator"),
    ),
)
