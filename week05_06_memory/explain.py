"""Why a kernel is arranged as it is, in numbers.

A kernel has to do its operations, and to move each byte that it reads or writes at least once:

    time ≥ max(operations / peak, bytes / bandwidth)          the roofline (Williams et al., 2009)

What an operand is to a loop (reuse, contiguous, …) decides the tile; what the model expects of the
tile stands beside the roofline. Operations are counted as in fusion: an exponential is several.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from week01_uops.dtypes import bool_, int64
from week01_uops.node import UOp, toposort
from week01_uops.ops import CAST, ELEMENTWISE, NEG, PARAM
from week02_render.ops import INDEX, LOAD, RANGE, STORE, open_ranges
from week03_loops.ops import REDUCE
from week04_fusion.work import WEIGHTS
from week05_06_memory.machine import Machine
from week05_06_memory.model import Estimate, estimate, short_sums
from week05_06_memory.nests import ranges_of
from week05_06_memory.ops import SQRT, kind_of
from week05_06_memory.order import Order
from week05_06_memory.roles import Access, Nest, describe_access, nests_of, touched_before
from week05_06_memory.schedule import Join, Split, Stage, Step, Widen
from week05_06_memory.scheduling import Arranged, arrange
from week05_06_memory.tile import Tile

COUNTED = (ELEMENTWISE - {NEG, CAST}) | {REDUCE, SQRT}
"""Ops that are operations; a sign and the dtype of an access cost nothing of their own."""


def mean_size(item: UOp) -> float:
    """Iterations of a loop; of a bounded one, on the average."""
    size: int = item.arg.size
    if not item.src:
        return float(size)
    ends = [min(max(end, 0), size) for end in item.src[0].interval]
    return sum(ends) / 2


def iterations(ranges: Iterable[UOp]) -> float:
    """Iterations of the innermost of some loops."""
    return math.prod(map(mean_size, ranges))


@dataclass(frozen=True)
class Work:
    """What a kernel has to do whatever its order.

    Attributes:
        operations: weighted, a multiply-add as two.
        read: bytes of arguments that are read, each counted once.
        written: bytes of arguments that are written.
    """

    operations: float
    read: float
    written: float

    @property
    def bytes(self) -> float:
        """Moved at least."""
        return self.read + self.written

    @property
    def intensity(self) -> float | None:
        """Operations per byte; None where no byte is moved."""
        return self.operations / self.bytes if self.bytes else None


def _computed(node: UOp) -> tuple[UOp, ...]:
    """What a node is computed from, without its indices, gates and bounds."""
    if node.op is RANGE:
        return ()
    if node.op in (INDEX, LOAD):
        return node.src[:1]
    return node.src[:2] if node.op is STORE else node.src


def work_of(body: UOp) -> Work:
    """The work of a kernel's body."""
    operations = 0.0
    moved: dict[tuple[UOp, bool], float] = {}
    for node in toposort((body,), _computed):
        if node.op in COUNTED and node.dtype not in (int64, bool_):
            around = open_ranges(node) | (set(node.src[1:]) if node.op is REDUCE else set())
            operations += WEIGHTS.get(node.op, 8.0 if node.op is SQRT else 1.0) * iterations(around)
        elif node.op in (LOAD, STORE):
            access = describe_access(node)
            if access.storage.op is PARAM:
                key = (access.storage, access.writes)
                moved[key] = max(moved.get(key, 0.0), touched(access))
    return Work(
        operations,
        sum(size for (_, writes), size in moved.items() if not writes),
        sum(size for (_, writes), size in moved.items() if writes),
    )


def touched(access: Access) -> float:
    """Bytes of the storage that an access touches in all iterations."""
    elements = math.prod(r.arg.size for r in access.depends)
    return float(min(elements, access.storage.size) * access.bytes)


def role(access: Access, item: UOp, nest: Nest) -> str | None:
    """What a loop is to an access: reuse, contiguous, strided, irregular; None if not inside."""
    if item in nest.summed and access not in nest.inner_accesses:
        return None
    stride = access.stride(item)
    if stride is None:
        return "irregular"
    return {0: "reuse", 1: "contiguous", -1: "contiguous"}.get(stride, "strided")


@dataclass(frozen=True)
class Tiling:
    """A nest with the tile that it is divided into.

    Attributes:
        nest: before it was divided.
        tile: what one turn of the loops over tiles computes.
        estimate: None if the tile needs more registers than there are.
        order: of the loops over tiles, and what is packed; None if the schedule was given.
    """

    nest: Nest
    tile: Tile
    estimate: Estimate | None
    order: Order | None = None

    @property
    def times(self) -> float:
        """How often the nest is carried out."""
        return iterations(self.nest.around)

    @property
    def cycles(self) -> float:
        """Of all times, in the tiles; NaN if the tile does not fit."""
        return self.estimate.cycles * self.times if self.estimate else math.nan


@dataclass(frozen=True)
class Explanation:
    """What a kernel has to do, and how it is arranged."""

    done: Arranged
    machine: Machine

    @cached_property
    def work(self) -> Work:
        """Of the kernel as written."""
        return work_of(self.done.before)

    @cached_property
    def nests(self) -> tuple[Nest, ...]:
        """The kernel as written, those first that others need."""
        return tuple(nests_of(self.done.before))[::-1]

    @cached_property
    def tilings(self) -> tuple[Tiling, ...]:
        """The nests that were divided, those first that others need."""
        if self.done.decisions:
            return tuple(
                Tiling(d.nest, d.choice.tile, d.choice.cost, d.order)
                for d in reversed(self.done.decisions)
                if d.choice
            )
        steps = [item.step for item in self.done.steps]
        return tuple(given_tilings(self.done.before, steps, self.machine))[::-1]

    @property
    def compute_seconds(self) -> float:
        """Of the operations at the machine's peak."""
        return self.work.operations / self.machine.peak_flops

    @property
    def memory_seconds(self) -> float:
        """Of the bytes at the machine's bandwidth."""
        return self.work.bytes / self.machine.bandwidth

    @property
    def roofline_seconds(self) -> float:
        """The kernel can be no faster."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def bound(self) -> str:
        """What the roofline is made of."""
        return "compute" if self.compute_seconds >= self.memory_seconds else "memory"

    def seconds(self, cycles: float) -> float:
        """Of cycles of the model, in which `units` vector multiply-adds begin."""
        in_cycle = 2 * self.machine.units * self.machine.vector_bytes / 4
        return cycles * in_cycle / self.machine.peak_flops

    @property
    def tile_seconds(self) -> float:
        """The model's time in the tiles; NaN if one does not fit the registers."""
        return self.seconds(sum(t.cycles for t in self.tilings))

    @property
    def share(self) -> float | None:
        """The part of the roofline that the model expects; None if it expects nothing."""
        expected = max(self.tile_seconds, self.memory_seconds)
        return self.roofline_seconds / expected if expected > 0 else None

    @cached_property
    def default(self) -> Explanation:
        """The same kernel with the default schedule."""
        done = self.done
        return Explanation(arrange(done.kernel, done.before, self.machine), self.machine)


def given_tilings(before: UOp, steps: Sequence[Step], machine: Machine) -> list[Tiling]:
    """The tiles of a body's nests, and of those that fill its stages, by a given schedule.

    A loop's part of the tile is what its splits have left of kind vector and unroll.
    """
    parents: dict[int, int] = {}
    nests = _nests_around(before)
    body = before
    for step in steps:
        known = ranges_of(body).keys()
        body = step.apply(body)
        fresh = ranges_of(body).keys() - known
        if isinstance(step, Join) and not parents:
            nests = _nests_around(body)
        elif isinstance(step, Split):
            parents |= dict.fromkeys(fresh, step.range)
        elif isinstance(step, Stage | Widen):
            there = _nests_around(body)
            strips = _of_strips(there, step, parents)
            new = [n for n in there if fresh & _numbers(n).keys()]
            gone = [_numbers(n).keys() for n in new]
            kept = [n for n in nests if not any(_numbers(n).keys() < other for other in gone)]
            nests = [strips.get(frozenset(_numbers(n)), n) for n in kept] + new
    tiles = [_tile(nest, ranges_of(body), parents) for nest in nests]
    return [Tiling(n, t, estimate(n, t, machine)) for n, t in zip(nests, tiles, strict=True)]


def _of_strips(
    nests: Iterable[Nest], step: Step, parents: Mapping[int, int]
) -> dict[frozenset[int], Nest]:
    """By the loops they had, the nests of which a `widen` has divided but one loop: into strips.

    They read what was widened, and before that a row's own.
    """
    whole = parents.get(step.range) if isinstance(step, Widen) else None
    pair = {number for number, parent in parents.items() if whole is not None and parent == whole}
    found: dict[frozenset[int], Nest] = {}
    for nest in nests:
        own = _numbers(nest).keys()
        if own & pair and not (own - pair) & parents.keys():
            found[frozenset(parents[n] if n in pair else n for n in own)] = nest
    return found


def _nests_around(body: UOp) -> list[Nest]:
    """The nests of a body with the loops that they stand in."""
    nests = list(nests_of(body))
    return [
        replace(nest, around=tuple(open_ranges(nest.root)), touched=touched_before(nests, number))
        for number, nest in enumerate(nests)
    ]


def _numbers(nest: Nest) -> dict[int, UOp]:
    """The loops of a nest by number."""
    return {r.arg.id: r for r in (*nest.results, *nest.summed)}


def _tile(nest: Nest, final: Mapping[int, UOp], parents: Mapping[int, int]) -> Tile:
    """The tile of a nest, from the final loops and the loop that each was split from."""
    own = _numbers(nest)
    vector, lanes, copies = None, 1, dict[UOp, int]()
    for number, part in final.items():
        while number not in own and number in parents:
            number = parents[number]
        item = own.get(number)
        if item is not None and kind_of(part) == "vector":
            vector, lanes = item, part.arg.size
        elif item is not None and kind_of(part) == "unroll" and item not in short_sums(nest):
            copies[item] = copies.get(item, 1) * part.arg.size
    if vector is not None:
        copies.setdefault(vector, 1)
    return Tile(vector, lanes, copies)
