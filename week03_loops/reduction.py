"""Reductions: from axes to loops, and from loops to accumulators.

REDUCE(x, axes n)[at]  →  REDUCE(x[k…, at], k…)                                    (lower)
REDUCE(v, k…)          →  acc ← identity; for k…: acc ← op(acc, v); LOAD(acc)   (accumulate)
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Generator

from week01_uops.dtypes import DType, bfloat16, float16, float32
from week01_uops.node import UOp, const, make, recursive
from week01_uops.ops import CAST
from week01_uops.rewrite import Trace
from week02_render.lower import Element, Lowering
from week02_render.ops import AFTER, ALLOC, END, LOAD, RANGE, STORE, AllocArg, in_each, open_ranges
from week03_loops.ops import REDUCE, ReduceArg, identity


@recursive
def reduction_level(node: UOp) -> int:
    """How many reductions, one inside or behind the other, a node needs."""
    return max(map(reduction_level, node.src), default=0) + (node.op is REDUCE)


def element(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
    """The element of a REDUCE: its source's, reduced over new loops or over its own."""
    x, *own = e.node.src
    ranges = []
    for item in own:
        ranges.append((yield Element(item, ())))
    axes: int = e.node.arg.axes
    if axes:
        ranges = list(state.shared_ranges(x.shape[:axes], reduction_level(e.node)))
    value = yield Element(x, (*ranges[:axes], *e.at), e.gate)
    loops = [r for r in ranges if r.op is RANGE]
    return make(REDUCE, (value, *loops), ReduceArg(e.node.arg.op, 0)) if loops else value


def accumulator_dtype(dtype: DType) -> DType:
    """What a reduction accumulates in: float32 for the 16-bit floats, else the dtype itself."""
    return float32 if dtype in (float16, bfloat16) else dtype


Terms = Callable[[UOp], tuple[UOp, ...]]


Arrange = Callable[[list[UOp]], list[UOp]]


def accumulate_with(
    terms: Terms, arrange: Arrange = lambda sums: sums
) -> Callable[[UOp, Trace], UOp]:
    """The pass that makes each REDUCE of a kernel body a register, its loops, and a LOAD.

    Reductions over the same loops of which none needs another share one nest.

    Args:
        terms: what a REDUCE adds to its register in one iteration, one after the other.
        arrange: puts the sums of one nest in order.
    """

    def run(body: UOp, trace: Trace) -> UOp:
        return _accumulate(body, terms, arrange)

    return run


accumulate = accumulate_with(lambda node: node.src[:1])
"""REDUCE(v, k…) → acc ← identity; for k…: acc ← op(acc, v); LOAD(acc)."""


def _accumulate(body: UOp, terms: Terms, arrange: Arrange) -> UOp:
    order = body.toposort()
    groups: dict[tuple[object, ...], list[UOp]] = defaultdict(list)
    for node in order:
        if node.op is REDUCE:
            groups[node.src[1:], open_ranges(node), reduction_level(node)].append(node)
    arranged = map(arrange, groups.values())
    group_of = {node: members for members in arranged for node in members}
    slots = itertools.count(max((n.arg.slot for n in order if n.op is ALLOC), default=-1) + 1)
    return _Accumulate(group_of, slots, terms).run(body)


class _Accumulate:
    def __init__(
        self, group_of: dict[UOp, list[UOp]], slots: itertools.count[int], terms: Terms
    ) -> None:
        self.group_of = group_of
        self.slots = slots
        self.terms = functools.cache(terms)
        self.done: dict[UOp, UOp] = {}

    def run(self, body: UOp) -> UOp:
        """Rebuild bottom-up; the first member of a group to be reached builds the whole nest."""
        stack = [body]
        done = self.done
        while stack:
            node = stack[-1]
            members = self.group_of.get(node, [node])
            missing = [s for m in members for s in self._sources(m) if s not in done]
            if node in done:
                stack.pop()
            elif missing:
                stack += missing[::-1]
            elif node.op is REDUCE:
                self._nest(members)
            else:
                done[node] = node.with_src(tuple([done[s] for s in node.src]))
        return done[body]

    def _sources(self, node: UOp) -> tuple[UOp, ...]:
        return (*self.terms(node), *node.src[1:]) if node.op is REDUCE else node.src

    def _nest(self, members: list[UOp]) -> None:
        done = self.done
        ranges = tuple([done[r] for r in members[0].src[1:]])
        outer = [done.get(r, r) for r in open_ranges(members[0])]
        places = [self._register(m.dtype) for m in members]
        updates = [
            self._updates(m, place, outer, ranges) for m, place in zip(members, places, strict=True)
        ]
        # One term of all sums before the next of any: what they share is then used at once.
        order = [u for step in itertools.zip_longest(*updates) for u in step if u is not None]
        effect = order[0] if len(order) == 1 else make(AFTER, tuple(order))
        end = make(END, (effect, *ranges))
        for member, place in zip(members, places, strict=True):
            total = make(LOAD, (make(AFTER, (place, end)),))
            same = total.dtype is member.dtype
            done[member] = total if same else make(CAST, (total,), member.dtype)

    def _register(self, dtype: DType) -> UOp:
        arg = AllocArg(next(self.slots), accumulator_dtype(dtype), (), "REG")
        return make(ALLOC, (), arg)

    def _updates(
        self, member: UOp, place: UOp, outer: list[UOp], ranges: tuple[UOp, ...]
    ) -> list[UOp]:
        """One STORE for each term, the first behind the identity, each other behind the last."""
        op = member.arg.op
        start = in_each(place, outer)
        before = make(STORE, (start, const(identity(op, place.dtype), place.dtype)))
        found = []
        for term in self.terms(member):
            value = self.done[term]
            if value.dtype is not place.dtype:
                value = make(CAST, (value,), place.dtype)
            inside = make(AFTER, (place, before, *ranges))
            before = make(STORE, (inside, make(op, (make(LOAD, (inside,)), value))))
            found.append(before)
        return found
