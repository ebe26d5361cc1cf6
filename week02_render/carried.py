"""How many iterations of a loop may be carried out at once.

Iterations may run side by side if no element is written in one and read or written in another.
That is found out by looking: before a loop runs, the element numbers that its accesses touch are
computed for all iterations, and compared. Where they cannot be computed beforehand, the
iterations run one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from week01_uops.evaluate import run
from week01_uops.node import UOp, toposort
from week01_uops.numerics import Array
from week01_uops.ops import CALL
from week02_render.nests import accesses, base_of, is_opaque
from week02_render.ops import AFTER, ALLOC, INDEX, RANGE, open_ranges
from week02_render.places import Storage
from week02_render.scopes import LoopScope

LIMIT = 1 << 22
"""Elements of one array, above which a loop is cut into pieces."""


class Access(NamedTuple):
    """A place that is accessed in a loop: the node, whether it is written, the storage."""

    place: UOp
    writes: bool
    storage: Storage


class Loop(NamedTuple):
    """One loop about to run: the scope around it, the node that closes it, and its level."""

    scope: LoopScope
    closer: UOp
    level: int

    @property
    def range(self) -> UOp:
        """Its counter."""
        return self.scope.body.nests[self.closer].ranges[self.level]

    @property
    def inside(self) -> frozenset[UOp]:
        """The nodes computed in it."""
        return self.scope.body.inside(self.closer, self.level)


def width(loop: Loop, start: int, stop: int) -> int:
    """How many of the iterations [start, stop) to carry out at once, the first ones."""
    body = loop.scope.body
    if stop - start <= 1 or (loop.closer, loop.level) in body.sequential:
        return 1
    inside = loop.inside
    around = loop.closer.src[0].size  # of a value that may depend on no loop, and is read whole
    largest = max((n.size for n in inside if _holds_elements(n)), default=1)
    count = _fit(loop.scope, max(largest, around), stop - start)
    if any(map(is_opaque, inside)) or (count > 1 and (touched := _touched(loop, inside)) is None):
        count = 1
    elif count > 1 and touched:
        count = _independent(loop, inside, touched, start, count)
    if count == 1:
        body.sequential.add((loop.closer, loop.level))
    return count


def _holds_elements(node: UOp) -> bool:
    return node.place is None or node.op is ALLOC or node.op.closes


def _fit(scope: LoopScope, each: int, count: int) -> int:
    """As many iterations as stay within the limit, if each takes `each` elements in a lane."""
    return max(1, min(count, LIMIT // max(1, each * scope.active.size)))


def _touched(loop: Loop, inside: frozenset[UOp]) -> list[Access] | None:
    """The accesses to storage that is written in the loop; None if it overlaps in part only."""
    found = [
        Access(place, writes, storage)
        for node in inside
        for place, writes in accesses(node)
        if (storage := _storage(loop, inside, place)) is not None
    ]
    written = {access.storage for access in found if access.writes}
    touched = [a for a in found if any(_overlap(a.storage, w) for w in written)]
    same = all(_equal(a.storage, w) for a in touched for w in written if _overlap(a.storage, w))
    return touched if same else None


def _storage(loop: Loop, inside: frozenset[UOp], place: UOp) -> Storage | None:
    """The storage of a place if it outlives an iteration and can be written."""
    storage = None if base_of(place) in inside else loop.scope.storage(place)
    return storage if storage is not None and storage.memory.size else None


def _bytes(storage: Storage) -> tuple[int, int]:
    start: int = storage.memory.__array_interface__["data"][0]
    return start, start + storage.memory.nbytes


def _overlap(a: Storage, b: Storage) -> bool:
    (start, end), (other_start, other_end) = _bytes(a), _bytes(b)
    return start < other_end and other_start < end


def _equal(a: Storage, b: Storage) -> bool:
    return _bytes(a) == _bytes(b) and a.memory.dtype == b.memory.dtype


def _independent(
    loop: Loop, inside: frozenset[UOp], touched: Sequence[Access], start: int, count: int
) -> int:
    """The number of iterations that were found independent, at most `count`; 1 if unknown."""
    ranges = {a.place: _index_ranges(a.place) & inside - {loop.range} for a in touched}
    each = max(a.place.size * math.prod(r.arg.size for r in ranges[a.place]) for a in touched)
    count = _fit(loop.scope, each, count)
    if count == 1:
        return 1
    tables: dict[UOp, Array] = {}
    for place, inner in ranges.items():
        order = _index_nodes(loop, inside, touched, place)
        if order is None:
            return 1
        # Each place by itself: all of their loops together may have any number of iterations.
        counters = (loop.range, *sorted(inner, key=lambda r: r.arg.id))
        trial = loop.scope.trial(counters, start, count)
        run(trial, order)
        tables[place] = trial.place(place).table
    conflict = any(
        _conflict(
            [(tables[a.place], a.writes) for a in touched if _equal(a.storage, w)],
            loop.scope.lanes,
            count,
        )
        for w in {a.storage for a in touched if a.writes}
    )
    return 1 if conflict else count


def _index_ranges(place: UOp) -> frozenset[UOp]:
    """The loops that the element numbers of a place depend on."""
    found: frozenset[UOp] = frozenset()
    base = base_of(place)
    while place is not base:
        if place.op is INDEX:
            found = found.union(*map(open_ranges, place.src[1:]))
        place = place.src[0]
    return found


def _index_nodes(
    loop: Loop, inside: frozenset[UOp], touched: Sequence[Access], of: UOp
) -> list[UOp] | None:
    """What a place needs, in order; None if that cannot be computed before the loop runs."""

    def needs(node: UOp) -> tuple[UOp, ...]:
        if node not in inside or node.op is RANGE:
            return ()
        return node.src[:1] if node.op is AFTER else node.src

    order = toposort((of,), needs)
    nodes = [n for n in order if n in inside and n.op is not RANGE]
    for node in nodes:
        if node.op is CALL or (node.op.closes and len(node.src) > 1):
            return None
        for place, _ in accesses(node):
            storage = _storage(loop, inside, place)
            if base_of(place) in inside or any(
                storage is not None and _overlap(storage, a.storage) for a in touched
            ):
                return None
    return nodes


def _conflict(tables: Sequence[tuple[Array, bool]], axis: int, count: int) -> bool:
    """Whether an element is written in one iteration and touched in another.

    Of each element, the first and the last iteration that touches it are found.

    Args:
        tables: the element numbers of each access, and whether it writes.
        axis: the loop's among the lanes.
        count: the number of iterations.
    """
    low = min((int(t.min()) for t, _ in tables if t.size), default=0)
    high = max((int(t.max()) for t, _ in tables if t.size), default=-1)
    low = max(low, 0)
    size = max(high + 1 - low, 0)
    first, last = np.full(size, count), np.full(size, -1)
    written = np.zeros(size, bool)
    for table, writes in tables:
        real = table >= 0
        numbers = table[real] - low
        if table.shape[axis] == 1:
            first[numbers], last[numbers] = 0, count - 1
        else:
            counter = np.arange(count).reshape(-1, *(1,) * (table.ndim - axis - 1))
            at = np.broadcast_to(counter, table.shape)[real]
            np.minimum.at(first, numbers, at)
            np.maximum.at(last, numbers, at)
        written[numbers] |= writes
    return bool((written & (first < last)).any())
