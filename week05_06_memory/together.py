"""Rows that are filled several at once: they share an operand, or one alone would wait for itself.

    for i: t[k] = Σ a[i, j]·b[j, k]; …  →  for i in strips of n: t[r, k] = Σ a[i + r, j]·b[j, k]; …

A row of a softmax is a chain: its maximum, what is computed from that, its sum, and the quotients.
If it is so short that registers hold it, a processor does not see the next row from there, and
idles. Several rows, each step for all of them before the next step of any, keep it busy.

A strip is a `split` of the loop over rows and a `widen` of what is filled in its inner part. The
nest that reads the rows has no sum of its own, for which a tile would divide the loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container
from typing import NamedTuple

from week01_uops.node import UOp
from week02_render.ops import ALLOC, open_ranges
from week05_06_memory.machine import Machine
from week05_06_memory.nests import ScheduleError, fresh_pair
from week05_06_memory.roles import Nest, nests_of
from week05_06_memory.schedule import Split, Widen, apply
from week05_06_memory.traffic import ROWS, bytes_of
from week05_06_memory.widen import filled_in

SHARED = "rows share what they are filled from"
ALONE = "one short row would wait for itself"


class Together(NamedTuple):
    """The steps that divide rows into strips, and why."""

    steps: tuple[Split, Widen]
    because: str


def strip_of_rows(body: UOp, whole: Container[int], machine: Machine) -> Together | None:
    """The steps that divide the first loop over such rows into strips; None if there is none.

    `whole` are the numbers of the ranges that are not divided yet. Half of the second cache holds
    what is filled for a strip. Of loops in one another it is the innermost in which something is.
    """
    nests = list(nests_of(body))
    fills = [n for n in nests if n.results and _is_temporary(n)]
    for nest in nests if fills else ():
        loops = () if nest.sums else nest.results
        inside = (r for r in reversed(loops) if any(r in open_ranges(n.root) for n in fills))
        item = next(inside, None)
        if item is None or item.src or item.arg.id not in whole:
            continue
        share = any(_share(n, item) for n in fills)
        if not share and not any(_waits(n, item) for n in fills):
            continue
        size = sum(map(bytes_of, filled_in(body, item)))
        rows = min(ROWS, item.arg.size, int(machine.l2 / 2 / max(size, 1.0)))
        if rows > 1 and (share or size <= machine.row):
            because = SHARED if share else ALONE
            pair = fresh_pair(body)
            steps = (Split(item.arg.id, rows, pair), Widen(pair[1]))
            with contextlib.suppress(ScheduleError):
                apply(body, steps)
                return Together(steps, because)
    return None


def _is_temporary(nest: Nest) -> bool:
    """Whether what a nest fills is local to a kernel."""
    return any(a.writes and a.storage.op is ALLOC for a in nest.accesses)


def _waits(fill: Nest, item: UOp) -> bool:
    """Whether what fills is computed from a reduction that differs from row to row."""
    return any(item in open_ranges(row) for row in fill.rows)


def _share(fill: Nest, item: UOp) -> bool:
    """Whether the loop decides what fills, but not one of the operands of its sums."""
    operands = [a for a in fill.inner_accesses if not a.depends.isdisjoint(fill.results)]
    shares = bool(fill.sums) and any(item not in a.depends for a in operands)
    return shares and item in open_ranges(fill.root)
