"""The default scheduler with threads: which loops are divided among them.

Each nest that stands in no other is looked at as the scheduler of weeks 5 and 6 leaves it.

- What is too little work to start threads for stays as it is.
- The outermost loops whose iterations may be done in any order become parallel, as many as give
  enough iterations for all threads.
- Where they are too few, as the panels of a small matrix product are, a loop inside them is cut
  into blocks, and the blocks come first: each thread fills the panels that it needs.
- Where there are few results, or a matrix is read once row by row, the reduction is done in parts.

None of it depends on the number of threads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.dtypes import void
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import PARAM, ParamArg, parameters
from week02_render.ops import AFTER, ALLOC, END, LOAD, STORE, open_ranges, storage_of
from week03_loops.ops import REDUCE
from week05_06_memory.dependence import carried
from week05_06_memory.nests import fresh_pair, ranges_of
from week05_06_memory.ops import kind_of
from week05_06_memory.plan import Decision, Planner
from week05_06_memory.schedule import Hoist, Kind, Part, Reorder, Split
from week07_08_gpu.work import costs, in_loops

ENOUGH = 8
"""Iterations that keep the threads of most machines busy."""

PARTS = 16
"""Partial results of a reduction."""

REPEATED = 1 / 32
"""The part of the work that may be done again for the sake of more iterations."""


@dataclass
class ThreadPlanner(Planner):
    """The scheduling of one body for a machine of several cores."""

    def run(self) -> ThreadPlanner:
        """Schedule every nest."""
        if self.machine.cores == 1:
            super().run()
            return self
        self._join_loops()
        body, steps = self.body, list(self.steps)
        super().run()
        parts = [*self._few_results(body), *self._hoisted(body)]
        if parts:
            self.body, self.steps = body, steps
            self.refused, self.decisions, self._done = [], [], set()
            for step in parts:
                self._do(step, "a reduction of few results, by threads")
            super().run()
        place = 0
        while place < len(ends := outermost(self.body)):
            self._divide(ends[place])
            place += 1
        return self

    # Reductions in parts ----------------------------------------------------------------------

    def _few_results(self, body: UOp) -> Iterator[Part]:
        """Reductions with too few results to be divided by them."""
        known = ranges_of(body)
        for decision in self.decisions:
            names = [r.arg.id for r in decision.nest.summed]
            loops = [known[n] for n in names if n in known]
            long = [r for r in loops if not r.src and r.arg.size >= PARTS]
            if long and _iterations(decision) < ENOUGH and self._pays(decision):
                yield Part(long[0].arg.id, PARTS)

    def _pays(self, decision: Decision) -> bool:
        """Whether the work is worth threads, and much more than that of combining the parts."""
        if decision.choice is None:
            return False
        around = math.prod(r.arg.size for r in decision.nest.around)
        terms = math.prod(r.arg.size for r in decision.nest.summed)
        cycles = decision.choice.cost.cycles * around
        return bool(terms >= ENOUGH * PARTS and cycles >= 2 * self.machine.fork_cycles)

    def _hoisted(self, body: UOp) -> Iterator[Part]:
        """Sums over the rows of a matrix, whose columns do not lie together."""
        known = ranges_of(body)
        steps = [item.step for item in self.steps]
        copied = {s.range for s in steps if isinstance(s, Kind) and s.kind == "unroll"}
        halves = {
            s.into[0]: s.range
            for s in steps
            if isinstance(s, Split) and s.into and s.into[1] in copied
        }
        for step in steps:
            name = halves.get(step.range, -1) if isinstance(step, Hoist) else -1
            if name in known and known[name].arg.size >= ENOUGH * PARTS:
                yield Part(name, PARTS)

    # Loops divided among threads --------------------------------------------------------------

    def _divide(self, end: UOp) -> None:
        """The loops of a nest that become parallel, outside all others."""
        ranges = list(end.src[1:])
        ready = [r for r in ranges if kind_of(r) == "parallel"]
        if ready:
            self._reorder(_ids([*ready, *(r for r in ranges if r not in ready)]), "parts outside")
            return
        work = costs(end, self.machine)
        total = sum(work.values())
        if total < self.machine.fork_cycles:
            return
        free = free_loops(self.body, end)
        lead = _leading(end, free)
        names = _ids(lead)
        if math.prod(r.arg.size for r in lead) < ENOUGH:
            names = self._blocks(end, lead, free, work) + names
        for name in names:
            self._do(Kind(name, "parallel"), f"{total:.2g} cycles of work are worth threads")

    def _blocks(
        self, end: UOp, lead: Sequence[UOp], free: frozenset[UOp], work: Mapping[UOp, float]
    ) -> list[int]:
        """A loop inside the leading ones, in blocks if it is long, brought out of all others."""
        ranges = end.src[1:]
        rest = ranges[len(lead) :]
        inner = next((r for r in rest if _divides(r, free) and not r.src), None)
        if inner is None:
            return []
        again = sum(c for n, c in work.items() if inner not in open_ranges(n))
        most = 1 + int(REPEATED * sum(work.values()) / again) if again else ENOUGH
        count = min(inner.arg.size, most, -(-ENOUGH // math.prod(r.arg.size for r in lead)))
        if count < 2:
            return []
        first, within = fresh_pair(self.body)
        by = _even(inner.arg.size, count)
        if by == 1:
            first = within = inner.arg.id
        elif not self._do(Split(inner.arg.id, by, (first, within)), "blocks, for threads"):
            return []
        others = [within if r is inner else r.arg.id for r in ranges]
        order = tuple(dict.fromkeys([first, *others]))
        done = self._do(Reorder(order), "each thread fills what its blocks need")
        return [first] if done else []


def _iterations(decision: Decision) -> int:
    """Tiles of results, in all iterations of the loops around."""
    nest = decision.nest
    tile = decision.choice.tile if decision.choice else None
    own = [tile.trips(r) if tile else int(r.arg.size) for r in nest.results]
    return math.prod(own) * math.prod(int(r.arg.size) for r in nest.around)


def _ids(ranges: Iterable[UOp]) -> list[int]:
    return [r.arg.id for r in ranges]


def _even(size: int, count: int) -> int:
    """The size of `count` blocks or some more, all alike if that can be."""
    most = -(-size // count)
    return next((n for n in range(most, most // 2, -1) if size % n == 0), most)


def outermost(body: UOp) -> list[UOp]:
    """The nests that stand in no other, those first that others need."""
    order = toposort((body,))
    joined = lambda n: tuple(s for s in n.src if s.dtype is void) if n.op is AFTER else ()
    inner = {n for end in order if end.op is END for n in toposort((end.src[0],), joined)}
    return [n for n in order if n.op is END and not open_ranges(n) and n not in inner]


def free_loops(body: UOp, end: UOp) -> frozenset[UOp]:
    """The loops of a nest whose iterations may be done at once.

    A temporary that is used elsewhere too is one for all threads, as any other storage.
    """
    inside = set(in_loops(end))
    accesses = [n for n in toposort((body,)) if n.op in (LOAD, STORE)]
    shared = dict.fromkeys(storage_of(n.src[0]) for n in accesses if n not in inside)
    slots = itertools.count(max(parameters(body), default=-1) + 1)
    places = {
        n: make(PARAM, (), ParamArg(next(slots), n.dtype, n.shape)) for n in shared if n.op is ALLOC
    }
    kept = set(_ids(carried(substitute(end, places))))
    return frozenset(r for r in end.src[1:] if r.arg.id not in kept)


def _divides(item: UOp, free: frozenset[UOp]) -> bool:
    return item in free and kind_of(item) == "loop" and item.arg.size > 1


def _leading(end: UOp, free: frozenset[UOp]) -> list[UOp]:
    """The outermost loops that can be divided together: nothing is computed between them."""
    ranges = end.src[1:]
    nodes = [open_ranges(n) for n in in_loops(end) if n.op in (LOAD, REDUCE, END)]
    found: list[UOp] = []
    for place, item in enumerate(ranges):
        if not _divides(item, free) or (found and item.src):
            break
        found.append(item)
        inner = ranges[place + 1 :]
        between = any(item in loops and loops.isdisjoint(inner) for loops in nodes)
        if between or math.prod(r.arg.size for r in found) >= ENOUGH:
            break
    return found
