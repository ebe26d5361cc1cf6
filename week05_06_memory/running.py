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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from week01_uops.calls import substitute
from week01_uops.dtypes import DType, int64
from week01_uops.linear import build, linear
from week01_uops.node import CONST, UOp, const, make, toposort
from week01_uops.ops import ADD, CAST, CMPNE, EXP2, FLOORDIV, MAX, MUL, NEG, RECIP, WHERE
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    KEEP,
    LOAD,
    STORE,
    AllocArg,
    index,
    loop,
    open_ranges,
)
from week02_render.reads import free_slots
from week03_loops.ops import REDUCE, ReduceArg
from week03_loops.reduction import accumulator_dtype
from week05_06_memory.masks import closes, cuts, least, unstaged
from week05_06_memory.nests import fresh_numbers, joined, number, plus, renamed, times
from week05_06_memory.share import HEAVY


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


@dataclass
class Blocks:
    """The form in blocks of a body.

    Attributes:
        body: the body.
        running: its maximum, and the sums.
        strip: the loop whose iterations are rows of one block; None: a block is of one row.
        size: of a block, along the counter.
    """

    body: UOp
    running: Running
    strip: UOp | None
    size: int
    _held: dict[UOp, UOp] = field(default_factory=dict)
    _begun: dict[UOp, UOp] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = fresh_numbers(self.body)
        next(self._numbers)  # the counter's
        self._slots = free_slots(self.body)
        self._rows = (self.strip,) if self.strip else ()
        self._outer = sorted(self.running.loops.difference(self._rows), key=lambda r: int(r.arg.id))
        self._weights = list(dict.fromkeys(t.weight for t in self.running.totals))

    def run(self) -> UOp:
        """The body over what the blocks come to."""
        self._begin()
        whole, rest = divmod(self.running.counter.arg.size, self.size)
        inside = loop(next(self._numbers), self.size)
        self._repeat(whole, inside, 0)
        if rest:
            self._repeat(1, loop(next(self._numbers), rest), whole * self.size)
        return substitute(self.body, self._results())

    def _begin(self) -> None:
        """The maximum is −inf, the sums are 0."""
        top = self.running.top
        self._state(top, top.dtype, self._rows, -math.inf)
        for total in self.running.totals:
            self._state(total.node, total.dtype, self._axes(total), 0.0)

    def _axes(self, total: Total) -> tuple[UOp, ...]:
        """The rows, and the loops that a sum alone depends on."""
        own = open_ranges(total.node) - self.running.loops
        return (*self._rows, *sorted(own, key=lambda r: int(r.arg.id)))

    def _state(self, node: UOp, dtype: DType, axes: tuple[UOp, ...], start: float) -> None:
        place = self._alloc(dtype, axes)
        begin = index(make(AFTER, (place, *self._outer)) if self._outer else place, *axes)
        self._held[node] = place
        self._begun[node] = self._closed(make(STORE, (begin, const(start, dtype))), *axes)

    def _repeat(self, count: int, inside: UOp, first: int) -> None:
        """A loop over blocks, from an element on; it ends where all elements are −inf."""
        size: int = inside.arg.size
        bound: UOp | None = None
        for edge in self.running.edges():
            if (last := self._last(edge)) is not None:
                ahead = plus(last, number(size - 1 - first))
                blocks = make(FLOORDIV, (ahead, number(size)))
                bound = blocks if bound is None else least(bound, blocks)
        block = loop(next(self._numbers), count, bound)
        at = plus(plus(times(block, size), number(first)) if count > 1 else number(first), inside)
        updated = self._block(block, inside, at)
        end = make(END, (joined(list(updated.values())), block))
        self._begun = dict.fromkeys(self._begun, end)

    def _last(self, edge: UOp) -> UOp | None:
        """The largest value of an edge in the rows of a strip, if it grows evenly with them."""
        form = linear(edge)
        step = form.terms.get(self.strip, 0) if self.strip else 0
        rest = {t: c for t, c in form.terms.items() if t is not self.strip}
        if any(r in open_ranges(t) for t in rest for r in self._rows):
            return None
        last = self.strip.arg.size - 1 if self.strip and step > 0 else 0
        return build(form._replace(terms=rest, constant=form.constant + step * last), edge)

    def _block(self, block: UOp, inside: UOp, at: UOp) -> Mapping[UOp, UOp]:
        """What is done in one block: the maximum, then the sums."""
        running, top = self.running, self.running.top
        here = {running.counter: at}
        x = substitute(running.x, here)
        if not HEAVY.isdisjoint(n.op for n in x.toposort()):
            x = self._kept(x, block, inside)
        place = index(make(AFTER, (self._held[top], self._begun[top], block)), *self._rows)
        old = make(LOAD, (place,))
        new = make(MAX, (old, self._total(MAX, x, inside)))
        scales = {w: self._alloc(accumulator_dtype(top.dtype), self._rows) for w in self._weights}
        stores = [
            make(STORE, (self._fresh(held, block), self._scale(weight, old, new)))
            for weight, held in scales.items()
        ]
        risen = self._closed(joined([*stores, make(STORE, (place, new))]), *self._rows)
        now = _subtracted(self._load(self._held[top], risen, self._rows))
        weights = {w: substitute(w, {running.x: x, top: now}) for w in self._weights}
        for weight, value in weights.items():
            users = [t for t in running.totals if t.weight is weight]
            if len(users) > 1 or open_ranges(users[0].node) - running.loops:
                weights[weight] = self._kept(value, block, inside)
        updated = {}
        for total in running.totals:
            factors = [weights[total.weight], *(substitute(f, here) for f in total.rest)]
            added = self._total(ADD, _product(factors, total.dtype), inside)
            scale = self._load(scales[total.weight], risen, self._rows)
            updated[total.node] = self._added(total, block, scale, added)
        return {top: risen, **updated}

    def _scale(self, weight: UOp, old: UOp, new: UOp) -> UOp:
        """By how much what is summed so far counts beside a new maximum."""
        exponent = substitute(
            weight.src[0], {self.running.x: old, self.running.top: _subtracted(new)}
        )
        return make(EXP2, (_cast(exponent, accumulator_dtype(exponent.dtype)),))

    def _added(self, total: Total, block: UOp, scale: UOp, added: UOp) -> UOp:
        """t ← t·c + Σ."""
        axes = self._axes(total)
        held, begun = self._held[total.node], self._begun[total.node]
        place = index(make(AFTER, (held, begun, block)), *axes)
        before = _product([make(LOAD, (place,)), scale], total.dtype)
        sum_ = make(ADD, (before, added))
        return self._closed(make(STORE, (place, sum_)), *axes)

    def _kept(self, value: UOp, block: UOp, inside: UOp) -> UOp:
        """A value of each element of a block, held for it."""
        axes = (*self._rows, inside)
        place = self._alloc(value.dtype, axes)
        begin = make(AFTER, (place, *self._outer, block))
        full = self._closed(make(STORE, (index(begin, *axes), value)), *axes)
        return self._load(place, full, axes)

    def _load(self, held: UOp, after: UOp, axes: tuple[UOp, ...]) -> UOp:
        return make(LOAD, (index(make(AFTER, (held, after)), *axes),))

    def _fresh(self, held: UOp, block: UOp) -> UOp:
        return index(make(AFTER, (held, *self._outer, block)), *self._rows)

    def _total(self, op: object, value: UOp, inside: UOp) -> UOp:
        """The value combined over a block."""
        new = renamed(inside, next(self._numbers))
        return make(REDUCE, (substitute(value, {inside: new}), new), ReduceArg(op, 0))  # type: ignore[arg-type]

    def _closed(self, effect: UOp, *ranges: UOp) -> UOp:
        """The effect in loops of its own over some ranges."""
        if not ranges:
            return effect
        new = {r: renamed(r, next(self._numbers)) for r in ranges}
        return make(END, (substitute(effect, new), *new.values()))

    def _alloc(self, dtype: DType, axes: tuple[UOp, ...]) -> UOp:
        shape = tuple([r.arg.size for r in axes])
        space = "LOCAL" if axes else "REG"
        return make(ALLOC, (), AllocArg(next(self._slots), dtype, shape, space))

    def _results(self) -> Mapping[UOp, UOp]:
        """What stands in place of the maximum and of the sums."""
        top = self.running.top
        found = {top: self._load(self._held[top], self._begun[top], self._rows)}
        seen = make(CMPNE, (found[top], const(-math.inf, top.dtype)))
        for total in self.running.totals:
            axes = self._axes(total)
            value = self._load(self._held[total.node], self._begun[total.node], axes)
            value = make(WHERE, (seen, value, const(math.nan, value.dtype)))
            outer = [substitute(f, found) for f in total.outer]
            found[total.node] = _cast(_product([value, *outer], total.dtype), total.node.dtype)
        return found


def _product(factors: list[UOp], dtype: DType) -> UOp:
    product, *others = [_cast(factor, dtype) for factor in factors]
    for factor in others:
        product = make(MUL, (product, factor))
    return product


def _cast(value: UOp, dtype: DType) -> UOp:
    return value if value.dtype is dtype else make(CAST, (value,), dtype)


def _subtracted(top: UOp) -> UOp:
    """What is subtracted: the maximum; 0 where it is −inf."""
    lowest = const(-math.inf, top.dtype)
    return make(WHERE, (make(CMPNE, (top, lowest)), top, const(0.0, top.dtype)))
