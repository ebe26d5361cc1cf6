"""Rows that are filled several at once: they share an operand, or one alone would wait for itself.

    for i: t[k] = Σ a[i, j]·b[j, k]; …  →  for i in strips of n: t[r, k] = Σ a[i + r, j]·b[j, k]; …

A row of a softmax is a chain: its maximum, what is computed from that, its sum, and the quotients.
If it is so short that registers hold it, a processor does not see the next row from there, and
idles. Several rows, each step for all of them before the next step of any, keep it busy.

A strip is a `split` of the loop over rows, a `hold` of the sums that more is made of than results,
and a `widen` of what is filled and held in its inner part. The nest that reads the rows has no sum
of its own, for which a tile would divide the loop.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Container, Iterable
from typing import NamedTuple

from week01_uops.node import UOp, toposort
from week02_render.ops import ALLOC, open_ranges
from week03_loops.ops import REDUCE
from week03_loops.reduction import accumulator_dtype
from week05_06_memory.dependence import lasting, reads
from week05_06_memory.machine import Machine
from week05_06_memory.nests import ScheduleError, fresh_pair
from week05_06_memory.roles import Nest, nests_of
from week05_06_memory.schedule import Hold, Split, Step, Widen, apply
from week05_06_memory.traffic import ROWS, bytes_of
from week05_06_memory.widen import filled_in

SHARED = "rows share what they are filled from"
ALONE = "one short row would wait for itself"


class Together(NamedTuple):
    """The steps that divide rows into strips, and why."""

    steps: tuple[Step, ...]
    because: str


def strip_of_rows(body: UOp, whole: Container[int], machine: Machine) -> Together | None:
    """The steps that divide the first loop over such rows into strips; None if there is none.

    `whole` are the numbers of the ranges that are not divided yet. Half of the second cache holds
    what is filled for a strip. Of loops in one another it is the innermost in which something is.
    """
    nests = list(nests_of(body))
    fills = [n for n in nests if n.results and _is_temporary(n)]
    rows = {row for n in nests for row in n.rows}
    inner = frozenset().union(*map(open_ranges, (*rows, *(n.root for n in fills))))
    for nest in nests:
        item = next((r for r in reversed(nest.results) if r in inner and not nest.sums), None)
        if item is None or item.src or item.arg.id not in whole:
            continue
        share = any(_share(n, item) for n in fills)
        waiting = [row for row in rows if item in open_ranges(row)]
        short = bool(waiting) and max(map(_length, waiting)) <= machine.row
        if not share and not short:
            continue
        sums = sums_to_hold(body, item, nest)
        filled = filled_in(body, item)
        count = min(ROWS, item.arg.size, int(machine.l2 / 2 / max(sum(map(bytes_of, filled)), 1.0)))
        if count > 1 and (filled or sums):
            pair = fresh_pair(body)
            hold = (Hold(sums),) if sums else ()
            steps = (Split(item.arg.id, count, pair), *hold, Widen(pair[1]))
            with contextlib.suppress(ScheduleError):
                apply(body, steps)
                return Together(steps, SHARED if share else ALONE)
    return None


def sums_to_hold(body: UOp, item: UOp, last: Nest | None = None) -> tuple[int, ...]:
    """The ranges of sums that wait in each iteration of a loop, and are better done for all first.

    They are those of which another sum or what is filled is made. One behind these that only the
    results of the nest `last` are made of stays beside them: registers hold the row meanwhile. But
    it is held too where copies of that nest for several rows share what they load.
    """
    nests = list(nests_of(body))
    used = {node for n in nests if _is_temporary(n) or n.root.op is REDUCE for node in n.nodes}
    shared = last is not None and any(
        a.depends and item not in a.depends for a in last.accesses if not a.writes
    )
    rows = {row for n in nests for row in n.rows if item in open_ranges(row)}
    changed = lasting(body)
    first = rows & used
    held = {r for r in (rows if first and shared else first) if not reads(r, changed)}
    others = {n for n in toposort((body,)) if n.op is REDUCE and n not in held}
    return tuple(sorted(_numbers(held) - _numbers(others)))


def _numbers(sums: Iterable[UOp]) -> set[int]:
    return {item.arg.id for total in sums for item in total.src[1:]}


def _is_temporary(nest: Nest) -> bool:
    """Whether what a nest fills is local to a kernel."""
    return any(a.writes and a.storage.op is ALLOC for a in nest.accesses)


def _length(row: UOp) -> int:
    """Bytes of what a sum adds up."""
    count: int = math.prod(r.arg.size for r in row.src[1:])
    return count * accumulator_dtype(row.dtype).bits // 8


def _share(fill: Nest, item: UOp) -> bool:
    """Whether the loop decides what fills, but not one of the operands of its sums."""
    operands = [a for a in fill.inner_accesses if not a.depends.isdisjoint(fill.results)]
    shares = bool(fill.sums) and any(item not in a.depends for a in operands)
    return shares and item in open_ranges(fill.root)
