"""The step `hold`: a sum that is used again and again is a temporary of one element.

    END(STORE(p[i, j], f(REDUCE(x, k))), i, j)
      →   t = AFTER(ALLOC, STORE(ALLOC, REDUCE(x, k)));  END(STORE(p[i, j], f(LOAD(t))), i, j)

By itself it changes no order: the sum is computed where it was. But `widen` gives the temporary an
axis for i, and then the sums of all rows come before what waits for the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from week01_uops.calls import substitute
from week01_uops.node import UOp, make, toposort
from week02_render.ops import AFTER, ALLOC, LOAD, STORE, AllocArg, in_each, open_ranges
from week02_render.reads import free_slots
from week03_loops.ops import REDUCE
from week05_06_memory.nests import ScheduleError, find_ranges
from week05_06_memory.ops import kind_of


def hold(body: UOp, sums: Iterable[int]) -> UOp:
    """Each REDUCE over one of the RANGEs `sums` is stored to a temporary, and loaded from there.

    Raises:
        ScheduleError: no REDUCE is over such a range, or one that is depends on copies or lanes.
    """
    ranges = {item for name in sums for item in find_ranges(body, name)}
    slots = free_slots(body)
    held: dict[UOp, UOp] = {}
    for node in toposort((body,)):
        if node.op is REDUCE and not ranges.isdisjoint(node.src[1:]):
            around = open_ranges(node)
            many = sorted(int(r.arg.id) for r in around if kind_of(r) in ("vector", "unroll"))
            if many:
                raise ScheduleError(f"expected a sum for one iteration of ranges {many} at a time")
            place = make(ALLOC, (), AllocArg(next(slots), node.dtype, (), "REG"))
            store = make(STORE, (in_each(place, around), substitute(node, held)))
            held[node] = make(LOAD, (make(AFTER, (place, store)),))
    if not held:
        known = {r.arg.id for n in toposort((body,)) if n.op is REDUCE for r in n.src[1:]}
        there = ", ".join(map(str, sorted(known))) or "none"
        raise ScheduleError(f"expected ranges of reductions, some of {there}, got {sorted(sums)}")
    return substitute(body, held)
