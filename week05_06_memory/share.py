"""What two nests of a kernel compute alike is computed once, and held.

    END(STORE(p[i, j], EXP2(x[i, j]) · RECIP(REDUCE(EXP2(x[i, k]), k))), i, j)
      →   e = STAGE(EXP2(x[i, s]), s)
          END(STORE(p[i, j], LOAD(e[j]) · RECIP(REDUCE(LOAD(e[k]), k))), i, j)

Two values are alike if they are equal up to the names of ranges. Those that differ (j and k) become
the axes of the STAGE; those that both have (i) are the loops around it, and come first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from week01_uops.calls import substitute
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import EXP2, LOG2, RECIP
from week01_uops.passes import PassFunction, on_kernels
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, END, LOAD, RANGE, STORE, index, open_ranges, storage_of
from week03_loops.ops import REDUCE
from week04_fusion.ops import STAGE, stage
from week04_fusion.stage import COMPUTED
from week04_fusion.work import own_work
from week05_06_memory.machine import Machine
from week05_06_memory.nests import fresh_numbers
from week05_06_memory.strips import is_order_free

HEAVY = frozenset({EXP2, LOG2, RECIP, REDUCE})
"""A value without one of these is not worth holding."""

HELD = 2.0
"""Operations in the time of storing, or loading, an element of a row in cache."""


def share(machine: Machine) -> PassFunction:
    """The pass that computes once what the nests of a kernel have in common."""

    def run(body: UOp, trace: Trace) -> UOp:
        refused: set[tuple[UOp, ...]] = set()
        while (found := _next(body, refused)) is not None:
            reason = found.reason(body, machine)
            if reason is None:
                body = found.shared(body)
                trace.fired["share"] += 1
            else:
                refused.add(found.values)
                trace.decline("share", reason, found.values[0])
        return body

    return on_kernels(run)


def _next(body: UOp, refused: set[tuple[UOp, ...]]) -> _Alike | None:
    """The largest value that saves work when it is computed once."""
    found = [a for a in _alike(body) if a.values not in refused and a.saves]
    return max(found, key=lambda alike: len(alike.values[0].toposort()), default=None)


def _alike(body: UOp) -> Iterator[_Alike]:
    """All values of a body that are equal up to the names of their ranges."""
    heavy: set[UOp] = set()
    found: dict[UOp, dict[UOp, tuple[UOp, ...]]] = defaultdict(dict)
    for node in body.toposort():
        if node.op in HEAVY or (node.op is not STAGE and not heavy.isdisjoint(node.src)):
            heavy.add(node)
            if node.op in COMPUTED and open_ranges(node):
                renamed, ranges = _renamed(node)
                found[renamed][node] = ranges
    for ranges_of in found.values():
        if len(ranges_of) > 1:
            yield _Alike(tuple(ranges_of), tuple(zip(*ranges_of.values(), strict=True)))


def _renamed(value: UOp) -> tuple[UOp, tuple[UOp, ...]]:
    """The value with its RANGEs numbered as they come, and the open ones in this order."""
    done: dict[UOp, UOp] = {}
    ranges: list[UOp] = []
    for node in toposort((value,)):
        src = tuple([done[s] for s in node.src])
        if node.op is RANGE:
            done[node] = make(RANGE, src, replace(node.arg, id=len(ranges)))
            ranges.append(node)
        else:
            done[node] = node.with_src(src)
    return done[value], tuple([r for r in ranges if r in open_ranges(value)])


@dataclass(frozen=True)
class _Alike:
    """Values that are equal up to the names of ranges.

    Attributes:
        values: the values.
        ranges: for each range that is open in them, its name in each of the values.
    """

    values: tuple[UOp, ...]
    ranges: tuple[tuple[UOp, ...], ...]

    @property
    def own(self) -> list[tuple[UOp, ...]]:
        """The ranges whose names differ."""
        return [names for names in self.ranges if len(set(names)) > 1]

    @property
    def outer(self) -> set[UOp]:
        """The ranges of one name."""
        return {names[0] for names in self.ranges if len(set(names)) == 1}

    @property
    def saves(self) -> bool:
        """Whether computing each element again costs more than storing and loading it."""
        count = len(self.values)
        return not self.own or (count - 1) * self._work() > HELD * (count + 1)

    def _work(self) -> float:
        """Operations for one element, without what the outer loops compute once."""
        value = self.values[0]
        own = {names[0] for names in self.own}
        inside = toposort((value,), lambda n: () if n.op in (LOAD, STAGE, RANGE) else n.src)
        total = 0.0
        for node in inside:
            if not own.isdisjoint(open_ranges(node)):
                times = math.prod([r.arg.size for r in open_ranges(node) - open_ranges(value)])
                total += own_work(node) * times
        return total

    def reason(self, body: UOp, machine: Machine) -> str | None:
        """Why the values have to be computed again; None if one will do."""
        written = {storage_of(n.src[0]) for n in body.toposort() if n.op is STORE}
        for node in self.values[0].toposort():
            if node.op is AFTER or (node.op is LOAD and storage_of(node.src[0]) in written):
                return "it is read from storage that changes meanwhile"
        size = math.prod([names[0].arg.size for names in self.own])
        size *= self.values[0].dtype.bits // 8
        if size > machine.l2 // 2:
            return f"{size} bytes of it are more than half of the second cache"
        if self._ordered(body) is not body and not is_order_free(body):
            return "the loops have to stay in order"
        if any(self._is_inside_out(body, k) for k in range(len(self.values))):
            return "it would be held anew in each turn of a loop over its elements"
        return None

    def _is_inside_out(self, body: UOp, number: int) -> bool:
        """Whether a reduction that closes an outer loop lies in a loop over a value's own range."""
        value, own = self.values[number], {names[number] for names in self.own}
        above = {value}
        inside: set[UOp] = set()
        for node in body.toposort():
            if above.isdisjoint(node.src):
                continue
            above.add(node)
            closed = set(node.src[1:]) if node.op.closes else set()
            if not own.isdisjoint(closed) and not inside.isdisjoint(node.src):
                return True
            if not inside.isdisjoint(node.src) or not self.outer.isdisjoint(closed):
                inside.add(node)
        return False

    def _ordered(self, body: UOp) -> UOp:
        """The body with the outer loops before those of which an element is held."""
        if body.op is not END:
            return body
        effect, *ranges = body.src
        own = {name for names in self.own for name in names}
        last = max((k for k, r in enumerate(ranges, 1) if r in self.outer), default=0)
        early = [r for r in ranges[:last] if r in own]
        order = [r for r in ranges[:last] if r not in own] + early + ranges[last:]
        return body.with_src((effect, *order))

    def shared(self, body: UOp) -> UOp:
        """The body with one of the values, held if it has ranges of its own."""
        ordered = self._ordered(body)
        if not self.own:
            return substitute(ordered, dict.fromkeys(self.values, self.values[0]))
        numbers = fresh_numbers(body)
        renamed: dict[UOp, UOp] = {}
        for item, *_ in self.own:
            bound = tuple([substitute(b, renamed) for b in item.src])
            renamed[item] = make(RANGE, bound, replace(item.arg, id=next(numbers)))
        held = stage(substitute(self.values[0], renamed), *renamed.values())
        loads = {
            value: make(LOAD, (index(held, *(names[k] for names in self.own)),))
            for k, value in enumerate(self.values)
        }
        return substitute(ordered, loads)
