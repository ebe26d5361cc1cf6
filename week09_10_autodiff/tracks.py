"""How values depend on a node m that is added or multiplied in: the rows of `invariant`'s theorem.

Each row says, of what forms the sources of an op are, of what form its result is, or that it has
neither; `known` holds the form of each source, broadcast to the rank of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from week01_uops.dtypes import DType
from week01_uops.node import Op, UOp
from week01_uops.ops import ADD, CAST, CMPLT, CMPNE, EXP2, LOG2, MAX, MUL, NEG, RECIP, WHERE
from week02_render.ops import LOAD
from week03_loops.ops import MOVEMENT, PAD, REDUCE
from week04_fusion.ops import STAGE
from week09_10_autodiff.alignment import View, moved, repeated
from week09_10_autodiff.factors import constant_of
from week09_10_autodiff.ops import DETACH

ROUNDINGS = 3.0
"""By how many roundings of constants two factors may differ that are meant to be equal."""


@dataclass(frozen=True)
class Track:
    """How a value depends on m: v₀ + factor·m′, or v₀·2^(factor·m′) if it `scales`."""

    scales: bool
    factor: float
    view: View


class Lost(Exception):  # noqa: N818 - an outcome
    """A value that depends on m in another way."""


Known = Track | None
"""None: it does not depend on m."""

Row = Callable[[UOp, Sequence[Known]], Known]
"""From an op's sources to its result; `Lost` if that has another form."""


def follow(node: UOp, known: Sequence[Known]) -> Known:
    """The form of a node, from those of its sources, of which one at least depends on m.

    Raises:
        Lost: it has another form.
    """
    if node.op in ENDS or (node.op is CAST and not node.dtype.is_float):
        return None
    if node.op not in ROWS:
        raise Lost
    if len(known) == 1:
        return ROWS[node.op](node, known)
    rank = len(node.shape)
    return ROWS[node.op](node, [x and replace(x, view=repeated(x.view, rank)) for x in known])


def _with(x: Track, factor: float, scale: float, dtype: DType) -> Known:
    """X with another factor; independent where that is 0 up to roundings of `scale`."""
    if not math.isfinite(factor):
        raise Lost
    gone = abs(factor) <= ROUNDINGS * 2.0**-dtype.precision * scale
    return None if gone else replace(x, factor=factor)


def _pair(node: UOp, known: Sequence[Known]) -> tuple[Track, Known, UOp]:
    """Of the last two sources one with a track, the track of the other, and the other."""
    first, second = (1, 2) if known[-1] is not None else (2, 1)
    one, two = known[-first], known[-second]
    assert one is not None
    if two is not None and (one.scales, one.view) != (two.scales, two.view):
        raise Lost
    return one, two, node.src[-second]


def _sum(one: Track, two: Track, sign: float, dtype: DType) -> Known:
    largest = max(abs(one.factor), abs(two.factor))
    return _with(one, one.factor + sign * two.factor, largest, dtype)


def _alike(node: UOp, known: Sequence[Known]) -> Known:
    """Sums, choices and maxima of scales of one factor, and choices and maxima of such shifts.

    Instead of one there may be a constant that m does not move: 0 or ∞ of scales, ±∞ of shifts.
    """
    one, two, other = _pair(node, known)
    if two is not None:
        good = _sum(one, two, -1.0, node.dtype) is None
    else:
        found = constant_of(other)
        value = math.inf if found is None else found.arg.value
        good = found is not None and (not math.isfinite(value) or (one.scales and value == 0))
    if not good:
        raise Lost
    return one


def _add(node: UOp, known: Sequence[Known]) -> Known:
    """Factors of shifts add up."""
    one, two, _ = _pair(node, known)
    if one.scales:
        return _alike(node, known)
    return one if two is None else _sum(one, two, 1.0, node.dtype)


def _mul(node: UOp, known: Sequence[Known]) -> Known:
    """Factors of scales add up; that of a shift is multiplied by a constant."""
    one, two, other = _pair(node, known)
    if one.scales:
        return one if two is None else _sum(one, two, 1.0, node.dtype)
    constant = constant_of(other)
    if constant is None or two is not None:
        raise Lost
    return _with(one, one.factor * constant.arg.value, 0.0, node.dtype)


def _function(before: bool, after: bool, sign: float = 1.0) -> Row:
    """2^(v₀ + k·m′) = 2^v₀·2^(k·m′), its inverse, and 1/(v₀·2^(k·m′)) = 1/v₀·2^(−k·m′)."""

    def row(node: UOp, known: Sequence[Known]) -> Known:
        (x,) = known
        if x is None or x.scales != before:
            raise Lost
        return replace(x, scales=after, factor=sign * x.factor)

    return row


def _negate(node: UOp, known: Sequence[Known]) -> Known:
    (x,) = known
    return x if x is None or x.scales else replace(x, factor=-x.factor)


def _same(node: UOp, known: Sequence[Known]) -> Known:
    if len(known) > 1:
        raise Lost
    return known[0]


def _reduce(node: UOp, known: Sequence[Known]) -> Known:
    """Over axes along which m′ is constant; n times the factor for n terms, or factors."""
    x, axes, op = known[0], node.arg.axes, node.arg.op
    if x is None or len(known) > 1 or any(x.view.strides[:axes]) or (op is MUL and not x.scales):
        raise Lost
    x = replace(x, view=View(x.view.offset, x.view.strides[axes:]))
    if op is (MUL if x.scales else ADD):
        count = math.prod(node.src[0].shape[:axes])
        return _with(x, x.factor * count, 0.0, node.dtype)
    return x


def _move(node: UOp, known: Sequence[Known]) -> Known:
    (x,) = known
    assert x is not None
    view = moved(x.view, node)
    if view is None or (node.op is PAD and not x.scales):
        raise Lost
    return replace(x, view=view)


ENDS = frozenset({CMPLT, CMPNE, DETACH})
"""Ops through which nothing is handed back."""

ROWS: Mapping[Op, Row] = {
    **dict.fromkeys(MOVEMENT, _move),
    **dict.fromkeys((CAST, STAGE, LOAD), _same),
    **dict.fromkeys((WHERE, MAX), _alike),
    ADD: _add,
    MUL: _mul,
    NEG: _negate,
    RECIP: _function(True, True, -1.0),
    EXP2: _function(False, True),
    LOG2: _function(True, False),
    REDUCE: _reduce,
}
