"""Sums over exp2(x − max x), found by their algebra, in the form that is computed block by block.

    m = REDUCE(MAX, x(j), j);   t = REDUCE(ADD, EXP2(a·x(k) − a·m)·v(k), k)
      →   m, t ← −inf, 0
          for each block J:   n ← max(m, max of x in J);   c ← EXP2(a·m − a·n);   m ← n
                              t ← t·c + Σ of EXP2(a·x − a·m)·v in J

Any number of sums share a maximum: the denominator of a softmax (v = 1) and the results of an
attention. A factor 1/t₁ of a term stays outside; t₁ is at least 1, or NaN.

What the sums have seen is −inf and no NaN while m is −inf: then 0 is subtracted in its place. Rows
that are −inf to the end are NaN, as exp2(−inf − −inf) makes them. An infinite v counts as soon as
its weight is more than 0 in its own block, although it may be 0 beside the last maximum.

Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
"FlashAttention", 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.dtypes import DType, int64
from week01_uops.node import CONST, UOp, toposort
from week01_uops.ops import ADD, CAST, EXP2, MAX, MUL, NEG, RECIP
from week02_render.ops import KEEP, loop, open_ranges
from week03_loops.ops import REDUCE
from week03_loops.reduction import accumulator_dtype
from week05_06_memory.masks import closes, cuts, unstaged
from week05_06_memory.nests import fresh_numbers


class NoBlocks(Exception):  # noqa: N818 - a decision, no error
    """Why a body has no form in blocks."""


@dataclass(frozen=True)
class Total:
    """A sum Σ EXP2(a·x − a·m)·Π rest, times Π outer.

    Attributes:
        node: the REDUCE.
        weight: the EXP2, over the counter.
        rest: the other factors of a term, over the counter.
        outer: the reciprocals of other sums.
    """

    node: UOp
    weight: UOp
    rest: tuple[UOp, ...]
    outer: tuple[UOp, ...]

    @property
    def dtype(self) -> DType:
        """What it is summed up in."""
        dtypes = [accumulator_dtype(n.dtype) for n in (self.node, self.weight)]
        return max(dtypes, key=lambda dtype: dtype.bits)


@dataclass(frozen=True)
class Running:
    """A maximum, and the sums that subtract it.

    Attributes:
        top: the REDUCE of MAX.
        counter: a RANGE that stands for those of all the REDUCEs.
        x: the term of the maximum, over the counter.
        totals: the sums, those first that others need.
    """

    top: UOp
    counter: UOp
    x: UOp
    totals: tuple[Total, ...]

    @property
    def loops(self) -> frozenset[UOp]:
        """The loops around: each of their iterations has a maximum of its own."""
        return open_ranges(self.top)

    def width(self, total: Total) -> int:
        """Results of a sum for each maximum."""
        return math.prod(r.arg.size for r in open_ranges(total.node) - self.loops)

    def edges(self) -> Iterator[UOp]:
        """Where −inf begins: x is that of all elements from an edge on."""
        (item,) = self.top.src[1:]
        for cut in cuts(self.top.src[0], item, self.loops):
            if cut.constant == -math.inf and cut.edge.dtype is int64:
                yield cut.edge


def find_running(body: UOp) -> Running:
    """The one maximum of a body that sums subtract; says why there is none."""
    order = body.toposort()
    counter = loop(next(fresh_numbers(body)), 0)
    found = [r for n in order if _is_row(n, MAX) and (r := _running(n, order, counter))]
    if len(found) != 1:
        known = "several" if found else "no"
        raise NoBlocks(f"it has {known} maxima that sums over exp2 subtract")
    return found[0]


def _is_row(node: UOp, op: object) -> bool:
    """Whether the node is a REDUCE over one loop without a bound."""
    return node.op is REDUCE and node.arg.op is op and len(node.src) == 2 and not node.src[1].src


def _running(top: UOp, order: list[UOp], counter: UOp) -> Running | None:
    size = top.src[1].arg.size
    counter = loop(counter.arg.id, size)
    x = _term(top, counter)
    if x is None or not size:
        return None
    totals: list[Total] = []
    for node in order:
        if _is_row(node, ADD) and node.src[1].arg.size == size:
            term = _term(node, counter)
            total = _total(node, term, top, x, totals) if term is not None else None
            totals += [total] if total else []
    return Running(top, counter, x, tuple(totals)) if totals else None


def _term(node: UOp, counter: UOp) -> UOp | None:
    """The term of a REDUCE over the counter, with what STAGEs hold of it in their place."""
    value, item = node.src
    whole = unstaged(value, item)
    return None if closes(whole, item) else substitute(whole, {item: counter})


def _total(node: UOp, term: UOp, top: UOp, x: UOp, known: Iterable[Total]) -> Total | None:
    """The sum as one of those that subtract the maximum."""
    plain = {t.node for t in known if not t.rest and not t.outer}
    weights: list[UOp] = []
    rest: list[UOp] = []
    outer: list[UOp] = []
    for factor in _factors(term, top):
        if factor.op is EXP2 and _subtracts(factor.src[0], x, top):
            weights.append(factor)
        elif top not in factor.toposort():
            rest.append(factor)
        elif factor.op is RECIP and factor.src[0] in plain:
            outer.append(factor)
        else:
            return None
    return Total(node, weights[0], tuple(rest), tuple(outer)) if len(weights) == 1 else None


def _factors(term: UOp, top: UOp) -> list[UOp]:
    """The factors of a product of products; of a rounded weight, before it was rounded."""
    found: list[UOp] = []
    waiting = [term]
    while waiting:
        node = waiting.pop()
        if node.op in (MUL, KEEP) or (_is_rounding(node) and _weighs(node.src[0], top)):
            waiting += node.src
        else:
            found.append(node)
    return found


def _is_rounding(node: UOp) -> bool:
    return node.op is CAST and node.dtype.is_float and node.src[0].dtype.is_float


def _weighs(node: UOp, top: UOp) -> bool:
    """Whether all factors of a product depend on the maximum."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.op in (MUL, KEEP) or _is_rounding(node):
            waiting += node.src
        elif top not in node.toposort():
            return False
    return True


def _subtracts(exponent: UOp, x: UOp, top: UOp) -> bool:
    """Whether an exponent is a·x − a·m for some a > 0."""
    forms: dict[UOp, tuple[float, float] | None] = {x: (1.0, 0.0), top: (0.0, 1.0)}
    for node in toposort((exponent,), lambda n: () if n in (x, top) else n.src):
        if node not in forms:
            forms[node] = _form(node, [forms[s] for s in node.src])
    form = forms[exponent]
    return form is not None and form[0] > 0 and form[0] == -form[1]


def _form(node: UOp, sources: list[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The coefficients of x and of the maximum; None if there is anything else."""
    known = [f for f in sources if f is not None]
    if node.op is ADD and len(known) == 2:
        return known[0][0] + known[1][0], known[0][1] + known[1][1]
    if node.op in (NEG, KEEP) and known:
        sign = -1.0 if node.op is NEG else 1.0
        return sign * known[0][0], sign * known[0][1]
    if node.op is MUL and known:
        factors = [s.arg.value for s in node.src if s.op is CONST]
        return (known[0][0] * factors[0], known[0][1] * factors[0]) if factors else None
    return None
