"""The step `part`: a reduction in parts, each with a result of its own.

    REDUCE(x, k)   →   END(STORE(t[p], REDUCE(x[k := p·n + k'], k')), p : parallel)
                       REDUCE(LOAD(t[q]), q)                       n = size of k // parts
    REDUCE(x, k)   →   … ⊕ REDUCE(x[k := parts·n + l], l)          where a rest is left

Threads can then share a reduction of which there are few results. The parts are combined in one
order, and their number is a part of the schedule: the result does not depend on who did what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from week01_uops.node import UOp, make, toposort
from week01_uops.ops import CAST
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    INDEX,
    LOAD,
    STORE,
    AllocArg,
    loop,
    open_ranges,
)
from week02_render.reads import free_slots
from week03_loops.ops import REDUCE
from week03_loops.reduction import accumulator_dtype
from week05_06_memory.dependence import lasting, reads
from week05_06_memory.nests import (
    ScheduleError,
    find_range,
    fresh_numbers,
    map_closers,
    number,
    plus,
    put,
    times,
)
from week05_06_memory.ops import kind_of


def part(body: UOp, name: int, parts: int) -> UOp:
    """Each REDUCE over RANGE `name` as a reduction of `parts` partial results.

    Raises:
        ScheduleError: no REDUCE is over the range, it is no loop or has too few iterations, a
            bound is in the way, or the REDUCE reads what changes in the loops around it.
    """
    item = find_range(body, name)
    sums = [n for n in toposort((body,)) if n.op is REDUCE and item in n.src[1:]]
    if not sums:
        raise ScheduleError(f"expected a reduction over range {name}, to carry it out in parts")
    if item.src or kind_of(item) != "loop" or item.arg.size < parts:
        raise ScheduleError(
            f"expected a loop without a bound and of at least {parts} iterations, got range {name}"
        )
    changed = lasting(body)
    for node in sums:
        if any(r.src for r in open_ranges(node)):
            raise ScheduleError(f"expected no bounds of loops around the reduction over {name}")
        filled = [n for n in toposort((node,)) if n.op is END and open_ranges(n)]
        if filled or reads(node, changed):
            raise ScheduleError(
                f"expected a reduction over range {name} of what does not change in the loops "
                "around it"
            )
    maker = _Part(item, parts, fresh_numbers(body), free_slots(body))
    return map_closers(body, lambda n: maker.sum(n) if n.op is REDUCE else n)


@dataclass
class _Part:
    """The RANGE of a reduction, and what it becomes."""

    item: UOp
    parts: int
    names: Iterator[int]
    slots: Iterator[int]

    def __post_init__(self) -> None:
        self.each, self.rest = divmod(int(self.item.arg.size), self.parts)
        self.number = loop(next(self.names), self.parts, kind="parallel")
        self.inner = loop(next(self.names), self.each)
        self.other = loop(next(self.names), self.parts)
        self.tail = loop(next(self.names), self.rest)

    def sum(self, node: UOp) -> UOp:
        """A REDUCE as one over partial results, if it is over the RANGE."""
        if self.item not in node.src[1:]:
            return node
        results = sorted(open_ranges(node), key=lambda r: int(r.arg.id))
        copies = {r: loop(next(self.names), r.arg.size) for r in results}
        dtype = accumulator_dtype(node.dtype)
        shape = (self.parts, *(r.arg.size for r in results))
        place = make(ALLOC, (), AllocArg(next(self.slots), dtype, shape, "LOCAL"))
        at = plus(times(self.number, self.each), self.inner)
        own = self._over(node, at, self.inner)
        for item, copy in copies.items():
            own = put(own, item, copy)
        ranges = (self.number, *copies.values())
        filled = make(END, (make(STORE, (make(INDEX, (place, *ranges)), own)), *ranges))
        full = make(AFTER, (place, filled))
        total = make(LOAD, (make(INDEX, (full, self.other, *results)),))
        total = make(REDUCE, (total, self.other), node.arg)
        if self.rest:
            at = plus(self.tail, number(self.parts * self.each))
            total = make(node.arg.op, (total, self._over(node, at, self.tail)))
        return total if dtype is node.dtype else make(CAST, (total,), node.dtype)

    def _over(self, node: UOp, at: UOp, item: UOp) -> UOp:
        """The REDUCE over another RANGE, which counts the elements `at`."""
        value = put(node.src[0], self.item, at)
        dtype = accumulator_dtype(node.dtype)
        if value.dtype is not dtype:
            value = make(CAST, (value,), dtype)
        return make(
            REDUCE, (value, *(item if r is self.item else r for r in node.src[1:])), node.arg
        )
