"""Running sums over blocks: the body that `running` describes, and `online` chooses.

    top, totals   →   AFTER(state, END(AFTER(…), blocks)), loaded where the REDUCEs stood

All that a block needs of a strip of rows is held for it: the elements x, if they take more than a
load, the weights, if several sums or results use them, and by how much the sums so far count less.
Each of these is filled by loops of its own, so that they can be scheduled one by one. A rest of the
row is a block of another size, and a mask that ends all rows of a strip ends the loop over blocks.

Weights that are the output as well (`weights`) lie in it, as they are beside the maximum so far,
which is held too; afterwards each block is multiplied by what it counts less beside the last one:

    p[j] ← EXP2(a·x(j) − a·m_J);   p[j] ← p[j]·(EXP2(a·m_J − a·m)·f)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from week01_uops.calls import substitute
from week01_uops.dtypes import DType
from week01_uops.linear import build, linear
from week01_uops.node import UOp, const, make
from week01_uops.ops import ADD, CAST, CMPNE, EXP2, FLOORDIV, MAX, MUL, WHERE
from week02_render.ops import AFTER, ALLOC, END, LOAD, STORE, AllocArg, index, loop, open_ranges
from week02_render.reads import free_slots
from week03_loops.ops import REDUCE, ReduceArg
from week03_loops.reduction import accumulator_dtype
from week05_06_memory.masks import least
from week05_06_memory.nests import joined, number, plus, renamed, times
from week05_06_memory.ops import NUMBER
from week05_06_memory.running import Running, Total
from week05_06_memory.share import HEAVY
from week05_06_memory.weights import Weights


@dataclass
class Blocks:
    """The form in blocks of a body.

    Attributes:
        body: the body.
        running: its maximum, and the sums.
        strip: the loop whose iterations are the rows of a block.
        size: of a block, along the counter.
        weights: the rows that become the output.
        free: whether the maximum may lose a NaN (`numbers`).
    """

    body: UOp
    running: Running
    strip: UOp
    size: int
    weights: Weights | None = None
    free: bool = False
    _held: dict[UOp, UOp] = field(default_factory=dict)
    _begun: dict[UOp, UOp] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1 + max(self.running.counter.arg.id, self.strip.arg.id))
        self._slots = free_slots(self.body)
        self._outer = sorted(self.running.loops - {self.strip}, key=lambda r: int(r.arg.id))
        self._weights = list(dict.fromkeys(t.weight for t in self.running.totals))

    def run(self) -> UOp:
        """The body over what the blocks come to."""
        self._begin()
        whole, rest = divmod(self.running.counter.arg.size, self.size)
        inside = loop(next(self._numbers), self.size)
        self._repeat(whole, inside, 0)
        if rest:
            self._repeat(1, loop(next(self._numbers), rest), whole * self.size)
        found = self._results()
        if self.weights is None:
            return substitute(self.body, found)
        return self._rescaled(self.weights, found)

    def _begin(self) -> None:
        """The maximum is −inf, the sums are 0."""
        top = self.running.top
        self._state(top, top.dtype, (self.strip,), -math.inf)
        if self.weights:
            arg = (self.running.counter.arg.size // self.size,)
            self._tops = make(ALLOC, (), AllocArg(next(self._slots), top.dtype, arg, "LOCAL"))
        for total in self.running.totals:
            self._state(total.node, total.dtype, self._axes(total), 0.0)

    def _axes(self, total: Total) -> tuple[UOp, ...]:
        """The rows, and the loops that a sum alone depends on."""
        own = open_ranges(total.node) - self.running.loops
        return (self.strip, *sorted(own, key=lambda r: int(r.arg.id)))

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
        step = form.terms.get(self.strip, 0)
        rest = {t: c for t, c in form.terms.items() if t is not self.strip}
        if any(self.strip in open_ranges(t) for t in rest):
            return None
        last = self.strip.arg.size - 1 if step > 0 else 0
        return build(form._replace(terms=rest, constant=form.constant + step * last), edge)

    def _block(self, block: UOp, inside: UOp, at: UOp) -> Mapping[UOp, UOp]:
        """What is done in one block: the maximum, then the sums."""
        running, top = self.running, self.running.top
        here = {running.counter: at}
        x = substitute(running.x, here)
        if not HEAVY.isdisjoint(n.op for n in x.toposort()):
            x = self._kept(x, block, inside)
        place = index(make(AFTER, (self._held[top], self._begun[top], block)), self.strip)
        old = make(LOAD, (place,))
        terms = make(NUMBER, (x,)) if self.free else x
        new = make(MAX, (old, self._total(MAX, terms, inside)))
        scales = {
            w: self._alloc(accumulator_dtype(top.dtype), (self.strip,)) for w in self._weights
        }
        stores = [
            make(STORE, (self._fresh(held, block), self._scale(weight, old, new)))
            for weight, held in scales.items()
        ]
        risen = self._closed(joined([*stores, make(STORE, (place, new))]), self.strip)
        highest = self._load(self._held[top], risen, (self.strip,))
        now = _subtracted(highest)
        weights = {w: substitute(w, {running.x: x, top: now}) for w in self._weights}
        for weight, value in weights.items():
            users = [t for t in running.totals if t.weight is weight]
            if self.weights and weight is self.weights.over:
                weights[weight] = self._stored(self.weights, value, at, block, inside)
            elif len(users) > 1 or open_ranges(users[0].node) - running.loops:
                weights[weight] = self._kept(value, block, inside)
        updated = {}
        if self.weights:
            held = index(make(AFTER, (self._tops, *self._outer)), block)
            updated[self.weights.node] = make(STORE, (held, highest))
        for total in running.totals:
            factors = [weights[total.weight], *(substitute(f, here) for f in total.rest)]
            added = self._total(ADD, _product(factors, total.dtype), inside)
            scale = self._load(scales[total.weight], risen, (self.strip,))
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
        axes = (self.strip, inside)
        place = self._alloc(value.dtype, axes)
        begin = make(AFTER, (place, *self._outer, block))
        full = self._closed(make(STORE, (index(begin, *axes), value)), *axes)
        return self._load(place, full, axes)

    def _stored(self, weights: Weights, value: UOp, at: UOp, block: UOp, inside: UOp) -> UOp:
        """A weight where it is part of the output."""
        place, here = weights.row.place.src[0], {weights.item: at}
        begin = make(AFTER, (place, *self._outer, block))
        full = self._closed(make(STORE, (weights.row.element(begin, here), value)), inside)
        return make(LOAD, (weights.row.element(make(AFTER, (place, full)), here),))

    def _rescaled(self, weights: Weights, found: dict[UOp, UOp]) -> UOp:
        """The body with what its weights became, block by block."""
        top, size, row = self.running.top, self.size, weights.row
        block = loop(next(self._numbers), weights.item.arg.size // size)
        inside = loop(next(self._numbers), size)
        begun = self._begun[top]
        held = make(LOAD, (row.element(make(AFTER, (row.place.src[0], begun)), {}),))
        factor = self._scale(weights.over, self._load(self._tops, begun, (block,)), found[top])
        found[weights.node] = make(MUL, (held, factor))
        for node in row.value.toposort():
            if node.op is MUL and weights.node in node.src:
                other = node.src[node.src[0] is weights.node]
                found[node] = make(MUL, (held, make(MUL, (factor, substitute(other, found)))))
        store, *loops = self.body.src
        at = {weights.item: plus(times(block, size), inside)}
        inner = make(END, (substitute(substitute(store, found), at), inside))
        rows = [r for r in loops if r is not weights.item]
        whole = make(END, (inner, block))
        return make(END, (whole, *rows)) if rows else whole

    def _load(self, held: UOp, after: UOp, axes: tuple[UOp, ...]) -> UOp:
        return make(LOAD, (index(make(AFTER, (held, after)), *axes),))

    def _fresh(self, held: UOp, block: UOp) -> UOp:
        return index(make(AFTER, (held, *self._outer, block)), self.strip)

    def _total(self, op: object, value: UOp, inside: UOp) -> UOp:
        """The value combined over a block."""
        new = renamed(inside, next(self._numbers))
        return make(REDUCE, (substitute(value, {inside: new}), new), ReduceArg(op, 0))  # type: ignore[arg-type]

    def _closed(self, effect: UOp, *ranges: UOp) -> UOp:
        """The effect in loops of its own over some ranges."""
        new = {r: renamed(r, next(self._numbers)) for r in ranges}
        return make(END, (substitute(effect, new), *new.values()))

    def _alloc(self, dtype: DType, axes: tuple[UOp, ...]) -> UOp:
        shape = tuple([r.arg.size for r in axes])
        return make(ALLOC, (), AllocArg(next(self._slots), dtype, shape, "LOCAL"))

    def _results(self) -> dict[UOp, UOp]:
        """What stands in place of the maximum and of the sums."""
        top = self.running.top
        found = {top: self._load(self._held[top], self._begun[top], (self.strip,))}
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
