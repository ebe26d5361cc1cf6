"""The step `hoist`: a reduction's loop outside the loops over the results.

    END(STORE(p[i, j], f(REDUCE(x, k))), i, j)                one sum at a time
      →   t ← ALLOC[j];  END(STORE(t[j], 0), j);  END(STORE(t[j], t[j] ⊕ x), k, j);
          END(STORE(p[i, j], f(LOAD(t[j]))), i, j)            all sums at once

A matrix is then read row by row, as it lies in memory, while the sums stay in the cache. What is
left of the reduction's loops (k split into k and k1) stays inside.
"""

from __future__ import annotations

from week01_uops.calls import substitute
from week01_uops.node import UOp, const, make, toposort
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
from week03_loops.ops import REDUCE, identity
from week03_loops.reduction import accumulator_dtype
from week05_06_memory.nests import ScheduleError, find_range, fresh_numbers


def hoist(body: UOp, name: int, over: tuple[int, ...]) -> UOp:
    """Each REDUCE over RANGE `name` accumulates in memory, its loop outside those of `over`.

    Raises:
        ScheduleError: no REDUCE over the range depends on all of `over`.
    """
    item = find_range(body, name)
    loops = [find_range(body, n) for n in over]
    sums = [
        node
        for node in toposort((body,))
        if node.op is REDUCE and item in node.src[1:] and open_ranges(node).issuperset(loops)
    ]
    if not sums or any(r.src for r in loops):
        raise ScheduleError(
            f"expected a reduction over range {name} that depends on the ranges {list(over)}, "
            "and those without bounds"
        )
    names, slots = fresh_numbers(body), free_slots(body)
    replaced: dict[UOp, UOp] = {}
    for node in sums:
        starts = [loop(next(names), r.arg.size) for r in loops]
        steps = [loop(next(names), r.arg.size) for r in loops]
        dtype, op = accumulator_dtype(node.dtype), node.arg.op
        shape = tuple(r.arg.size for r in loops)
        place = make(ALLOC, (), AllocArg(next(slots), dtype, shape, "LOCAL"))
        outer = sorted(open_ranges(node).difference(loops), key=lambda r: int(r.arg.id))
        zero = const(identity(op, dtype), dtype)
        begin = make(AFTER, (place, *outer)) if outer else place
        cleared = make(END, (make(STORE, (make(INDEX, (begin, *starts)), zero)), *starts))
        value = substitute(node.src[0], dict(zip(loops, steps, strict=True)))
        kept = [r for r in node.src[1:] if r is not item]
        if value.dtype is not dtype:
            value = make(CAST, (value,), dtype)
        if kept:
            value = make(REDUCE, (value, *kept), node.arg)
        inside = make(INDEX, (make(AFTER, (place, cleared, item)), *steps))
        added = make(STORE, (inside, make(op, (make(LOAD, (inside,)), value))))
        done = make(END, (added, item, *steps))
        total = make(LOAD, (make(INDEX, (make(AFTER, (place, done)), *loops)),))
        replaced[node] = total if dtype is node.dtype else make(CAST, (total,), node.dtype)
    return substitute(body, replaced)
