"""The default scheduler: from a kernel's body to its schedule.

Nest by nest, those first that need others: loops that lie in memory as one are joined, a tile is
chosen (`tiling`), the loops over tiles are put in order and operands staged (`order`); a sum over
the rows of a matrix that is read once is hoisted. What is decided follows from strides, sizes and
the machine; no op is known by its name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from week01_uops.node import CONST, UOp, toposort
from week01_uops.ops import FLOORMOD, PARAM
from week02_render.ops import END, LOAD, RANGE, open_ranges
from week05_06_memory.dependence import combines
from week05_06_memory.fetch import read_again
from week05_06_memory.loosen import open_ranges_of_bound
from week05_06_memory.machine import Machine
from week05_06_memory.model import short_sums
from week05_06_memory.nests import ScheduleError, fresh_numbers, fresh_pair, ranges_of
from week05_06_memory.order import Order, Packing, best_order
from week05_06_memory.roles import Access, Nest, nests_of, touched_before
from week05_06_memory.schedule import (
    Fetch,
    Hoist,
    Hold,
    Join,
    Kind,
    Loosen,
    Reorder,
    Split,
    Stage,
    Step,
    Stream,
    Widen,
)
from week05_06_memory.tile import reuse
from week05_06_memory.tiling import Choice, best_tiles, widths
from week05_06_memory.together import strip_of_rows, sums_to_hold
from week05_06_memory.widen import filled_in

ROWS_AT_ONCE = 8
"""Rows that are added, in one pass over them, to sums that stay in the cache."""


@dataclass(frozen=True)
class Planned:
    """A step, and why it was chosen."""

    step: Step
    because: str


@dataclass(frozen=True)
class Decision:
    """A nest with the tile that was chosen for it, and the order of its loops."""

    nest: Nest
    choice: Choice | None
    order: Order | None


@dataclass(frozen=True)
class Parts:
    """What a loop became: over tiles, unrolled, vector; each may be missing.

    `rests` are loops of their own behind the last tile of a vector's loop.
    """

    tiles: int | None
    unrolled: int | None
    vector: int | None
    rests: frozenset[int] = frozenset()

    @property
    def inner(self) -> list[int]:
        """The numbers of the ranges within a tile."""
        return [n for n in (self.unrolled, self.vector) if n is not None]


@dataclass
class Planner:
    """The scheduling of one body.

    Attributes:
        body: as far as it is scheduled.
        machine: what it is scheduled for.
        steps: the schedule so far.
        refused: steps that were tried, and why they were refused.
        decisions: nest by nest.
    """

    body: UOp
    machine: Machine
    steps: list[Planned] = field(default_factory=list)
    refused: list[Planned] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    _done: set[int] = field(default_factory=set)

    def run(self) -> Planner:
        """Schedule every nest."""
        self._join_loops()
        self._divide_loops()
        self._hold_rows()
        while (nest := next(self._waiting(), None)) is not None:
            self._schedule(nest)
        for slot, loop, line in read_again(self.body, self.machine):
            self._do(Fetch(slot, loop, line), "memory is idle while a row is read again")
        return self

    def _waiting(self) -> Iterator[Nest]:
        nests = list(nests_of(self.body))
        for number, nest in enumerate(nests):
            if self._done.isdisjoint(r.arg.id for r in nest.root.src[1:]):
                around, touched = _around(self.body, nest), touched_before(nests, number)
                yield replace(nest, around=tuple(around), touched=touched)

    def _do(self, step: Step, because: str) -> bool:
        """Apply a step; False if it is refused."""
        try:
            after = step.apply(self.body)
        except ScheduleError as refusal:
            self.refused.append(Planned(step, str(refusal)))
            return False
        if after is not self.body:
            self.steps.append(Planned(step, because))
            self.body = after
        return True

    # Loops that are one -----------------------------------------------------------------------

    def _join_loops(self) -> None:
        while any(self._joined(nest) for nest in nests_of(self.body)):
            pass

    def _joined(self, nest: Nest) -> bool:
        """Join the first two loops of a nest, or of its sums, that lie in memory as one."""
        closers = (nest.root, *nest.sums)
        pairs = [pair for c in closers for pair in itertools.pairwise(c.src[1:])]
        for outer, inner in pairs:
            if _lie_as_one(nest, outer, inner):
                step = Join(outer.arg.id, inner.arg.id, next(fresh_numbers(self.body)))
                if self._do(step, "every access has one stride over both"):
                    return True
        return False

    def _divide_loops(self) -> None:
        """A loop of a sum's results that an operand takes apart by mod becomes two."""
        while parts := [part for nest in nests_of(self.body) for part in _taken_apart(nest)]:
            item, by = min(parts, key=lambda part: part[1])
            step = Split(item.arg.id, by, fresh_pair(self.body))
            if not self._do(step, f"an operand has its rows of {by} elsewhere"):
                return

    def _hold_rows(self) -> None:
        """Rows that share what they are filled from, or are short, are filled several at once."""
        known = ranges_of(self.body)
        while found := strip_of_rows(self.body, known, self.machine):
            for step in found.steps:
                self._do(step, found.because)

    # One nest ---------------------------------------------------------------------------------

    def _schedule(self, nest: Nest) -> None:
        choices = best_tiles(nest, self.machine)
        choice = choices[0]
        if choice.tile.vector is None:
            self.decisions.append(Decision(nest, choice, None))
            self._done |= {r.arg.id for r in nest.root.src[1:]}
            return
        streamed = _streamed(nest, choice, self.machine)
        if streamed is not None and self._hoist(nest, streamed):
            return
        choice, order = self._with_order(nest, choices)
        self.decisions.append(Decision(nest, choice, order))
        parts = {r: self._split(r, choice) for r in (*nest.results, *nest.summed)}
        self._done |= {r.arg.id for r in nest.root.src[1:]}
        self._arrange(nest, choice, order, parts)
        for packing in order.packings:
            self._pack(packing, order, parts, nest.around)
        self._set_kinds(nest, parts)
        self._unroll_short_sums(nest, parts)
        for name in itertools.chain.from_iterable(p.rests for p in parts.values()):
            self._vectorize(name, choice.tile.lanes)
        if _worth_streaming(nest, self.machine):
            self._do(Stream(), "the results are larger than the caches")

    def _with_order(self, nest: Nest, choices: list[Choice]) -> tuple[Choice, Order]:
        """The tile that is best with the traffic of its loops' best order."""
        orders = [(c, best_order(nest, c.tile, self.machine)) for c in choices]
        return min(orders, key=lambda pair: pair[0].cost.cycles + pair[1].cycles)

    def _split(self, item: UOp, choice: Choice) -> Parts:
        """The loop into tiles, the tile into vectors."""
        tile = choice.tile
        extent, lanes = tile.extent(item), tile.lanes
        name: int = item.arg.id
        if extent == 1:
            return Parts(name, None, None)
        tiles: int | None = None
        rests: frozenset[int] = frozenset()
        if extent < item.arg.size:
            tiles, inner = fresh_pair(self.body)
            known = {tiles, inner, *ranges_of(self.body)}
            done = self._do(Split(name, extent, (tiles, inner)), f"tiles of {extent}")
            if not done:
                return Parts(name, None, None)
            self._done |= {tiles, inner}
            name = inner
            rests = frozenset(ranges_of(self.body).keys() - known)
        if item is not tile.vector:
            return Parts(tiles, name, None)
        if extent == lanes:
            return Parts(tiles, None, name, rests)
        unrolled, vector = fresh_pair(self.body)
        self._do(Split(name, lanes, (unrolled, vector)), f"vectors of {lanes}")
        self._done |= {unrolled, vector}
        return Parts(tiles, unrolled, vector, rests)

    def _vectorize(self, name: int, most: int) -> None:
        """A loop that is left behind the last tile, as vectors if it is as long as one."""
        size = _named(self.body, name)[0].arg.size
        lanes = next(iter(widths(size, most)), 0)
        if 0 < lanes < size:
            unrolled, vector = fresh_pair(self.body)
            if self._do(Split(name, lanes, (unrolled, vector)), f"{size} left: vectors of {lanes}"):
                self._do(Kind(unrolled, "unroll"), "several vectors in one turn")
                self._do(Kind(vector, "vector"), "elements lie next to each other")
        elif lanes:
            self._do(Kind(name, "vector"), f"{size} left: a vector")

    def _arrange(self, nest: Nest, choice: Choice, order: Order, parts: dict[UOp, Parts]) -> None:
        """Loops over tiles outside, in their order; then what a tile repeats, the vector last."""
        if nest.results:
            outer = [parts[r].tiles for r in (*order.loops, *nest.results)]
            loops = [n for n in dict.fromkeys(outer) if n is not None]
            # The vector's own copies innermost: a scalar is then used up before the next is loaded.
            by_vector = sorted(nest.results, key=lambda r: r is choice.tile.vector)
            own = [parts[r].unrolled for r in by_vector] + [parts[r].vector for r in by_vector]
            inner = [n for n in own if n is not None]
            at = _rows_end(nest, loops, parts, choice)
            self._reorder([*loops[:at], *inner, *loops[at:]], "tiles outside, their parts inside")
        for total in nest.sums:
            outer = [parts[r].tiles for r in total.src[1:]]
            vectors = [parts[r].vector for r in total.src[1:]]
            unrolled = [parts[r].unrolled for r in total.src[1:]]
            inner = [n for n in (*vectors, *unrolled) if n is not None]
            if inner:
                rest = [n for n in outer if n is not None]
                self._reorder([*inner, *rest], "an accumulator for each part of a tile")

    def _reorder(self, names: list[int], because: str) -> None:
        if len(names) > 1:
            self._do(Reorder(tuple(names)), because)

    def _pack(
        self, packing: Packing, order: Order, parts: dict[UOp, Parts], around: Sequence[UOp]
    ) -> None:
        within = [parts[r].tiles for r in order.loops if r in packing.within]
        if within:
            at = within[-1]
        else:
            depends = packing.access.depends
            first = next((i for i, r in enumerate(around) if r not in depends), len(around))
            at = around[first - 1].arg.id if first else None
        slot = packing.access.storage.arg.slot
        self._do(Stage(slot, at, packing.layout), packing.because)

    def _set_kinds(self, nest: Nest, parts: dict[UOp, Parts]) -> None:
        for item, part in parts.items():
            for name in part.inner:
                if self._decides_bound(name):
                    self._do(Loosen(name), "the rows of a tile end together")
                rows = _named(self.body, name)
                if any(filled_in(self.body, r) for r in rows):
                    sums = {n for r in rows for n in sums_to_hold(self.body, r)}
                    if sums:
                        self._do(Hold(tuple(sorted(sums))), "what is filled waits for them")
                    self._do(Widen(name), "a tile's rows are filled before it")
            if part.unrolled is not None:
                shared = "copies share operands" if nest.sums else "several vectors in one turn"
                why = shared if item in nest.results else "independent sums"
                self._do(Kind(part.unrolled, "unroll"), why)
            if part.vector is not None:
                self._do(Kind(part.vector, "vector"), "elements lie next to each other")

    def _decides_bound(self, name: int) -> bool:
        """Whether the bound of some loop depends on this one."""
        ranges = [n for n in toposort((self.body,)) if n.op is RANGE]
        bounds = frozenset().union(*map(open_ranges_of_bound, ranges))
        return any(r.arg.id == name for r in bounds)

    def _unroll_short_sums(self, nest: Nest, parts: dict[UOp, Parts]) -> None:
        """The innermost loops of a sum as copies, where they are short and not the only ones."""
        for item in short_sums(nest):
            if parts[item].inner:
                break
            self._do(Kind(item.arg.id, "unroll"), f"{item.arg.size} iterations are no loop")

    # Sums that stay in the cache --------------------------------------------------------------

    def _hoist(self, nest: Nest, access: Access) -> bool:
        """All sums of a row at once, `ROWS_AT_ONCE` rows in a pass; False if refused."""
        (total,) = nest.sums
        along = total.src[1]
        far = abs(access.stride(along) or 0)
        over = [r for r in nest.results if 0 < abs(access.stride(r) or 0) < far]
        names = [r.arg.id for r in over]
        most = self.machine.l1 // 2 // access.bytes
        if len(over) == 1 and over[0].arg.size > most:
            outer, inner = fresh_pair(self.body)
            self._do(Split(names[0], most, (outer, inner)), "sums that fit the first cache")
            names = [inner]
        outer, inner = fresh_pair(self.body)
        if not self._do(Split(along.arg.id, ROWS_AT_ONCE, (outer, inner)), "rows at once"):
            return False
        if not self._do(Hoist(outer, tuple(names)), "a matrix is read as it lies in memory"):
            return False
        return self._do(Kind(inner, "unroll"), "one pass over the sums for several rows")


def _named(body: UOp, name: int) -> list[UOp]:
    return [n for n in toposort((body,)) if n.op is RANGE and n.arg.id == name]


def _lie_as_one(nest: Nest, outer: UOp, inner: UOp) -> bool:
    if outer.src or inner.src:
        return False
    for access in nest.accesses:
        near, far = access.stride(inner), access.stride(outer)
        if near is None or far is None or far != near * inner.arg.size:
            return False
    return True


def _taken_apart(nest: Nest) -> Iterator[tuple[UOp, int]]:
    """Result loops r with r mod n in the index of an operand, and n, which divides their size."""
    for access in nest.inner_accesses if nest.sums else ():
        for node in toposort(access.node.src[:1], lambda n: () if n.op is LOAD else n.src):
            if node.op is FLOORMOD and node.src[0] in nest.results and node.src[1].op is CONST:
                item, by = node.src[0], int(node.src[1].arg.value)
                if access.stride(item) is not None or item.src:
                    continue  # its rows lie one behind the other
                if 1 < by < item.arg.size and item.arg.size % by == 0:
                    yield item, by


def _around(body: UOp, nest: Nest) -> list[UOp]:
    """The loops of other nests that this one stands in, outermost first."""
    wanted = open_ranges(nest.root)
    found: list[UOp] = []
    for node in reversed(toposort((body,))):
        if node.op is END and node is not nest.root:
            found += [r for r in node.src[1:] if r in wanted and r not in found]
    return found


def _rows_end(nest: Nest, loops: list[int], parts: dict[UOp, Parts], choice: Choice) -> int:
    """Where a tile's own ranges stand: inside all loops, or right inside those of its rows."""
    of_rows = {r for row in nest.rows for r in open_ranges(row)}
    if choice.tile.vector not in of_rows:
        return len(loops)
    last = [
        i for i, n in enumerate(loops) if any(parts[r].tiles == n for r in of_rows & set(parts))
    ]
    return max(last, default=-1) + 1


def _streamed(nest: Nest, choice: Choice, machine: Machine) -> Access | None:
    """A matrix that is read once, from memory, in stripes shorter than its rows."""
    tile = choice.tile
    if len(nest.sums) != 1 or len(nest.summed) != 1 or tile.vector not in nest.results:
        return None
    along = nest.summed[0]
    if along.src or along.arg.size < 2 * ROWS_AT_ONCE or nest.root.op is not END:
        return None
    for access in nest.inner_accesses:
        large = access.storage.size * access.bytes > machine.l2
        far = abs(access.stride(along) or 0) > tile.extent(tile.vector)
        once = reuse(access, tile, nest) == 1 and set(nest.results) <= access.depends
        if large and far and once and access.stride(tile.vector) == 1:
            return access
    return None


def _worth_streaming(nest: Nest, machine: Machine) -> bool:
    """Whether a nest only copies and computes, into memory that no cache holds."""
    if nest.sums or nest.rows or nest.root.op is not END or combines(nest.root):
        return False
    written = [a for a in nest.accesses if a.writes and a.storage.op is PARAM]
    return bool(written) and all(a.storage.size * a.bytes > machine.l3 for a in written)
