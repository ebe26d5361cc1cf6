"""The choice of a tile: all that could be sensible are estimated, the cheapest is taken."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from week01_uops.node import UOp
from week02_render.ops import END, open_ranges
from week05_06_memory.dependence import carried, combines
from week05_06_memory.loosen import open_ranges_of_bound
from week05_06_memory.machine import Machine
from week05_06_memory.model import Estimate, estimate
from week05_06_memory.ops import kind_of
from week05_06_memory.roles import Nest
from week05_06_memory.tile import Tile

VECTORS = (1, 2, 3, 4, 5, 6, 7, 8)
"""Vectors along the vector's loop in a tile."""

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
"""Iterations of another loop of results in a tile."""

CHAINS = (1, 2, 4, 8)
"""Accumulators of one result."""

FINALISTS = 4
"""Tiles of which the order of loops decides, and how much worse than the best they may be."""

ABOUT = 1.05

SMALLEST = 4
"""Lanes below which a loop is not worth a vector."""

CODE = 1e-3
"""What a copy costs, as a part of the whole, so that of equal tiles the smaller one is taken."""


@dataclass(frozen=True)
class Choice:
    """A tile with its estimate."""

    tile: Tile
    cost: Estimate


def best_tiles(nest: Nest, machine: Machine) -> list[Choice]:
    """The cheapest tiles of a nest, best first, as far as they are about as good."""
    found: list[tuple[float, Choice]] = []
    least = math.inf
    for tile in candidates(nest, machine):
        cost = estimate(nest, tile, machine, least * ABOUT)
        if cost is not None:
            copies = tile.copies_of(frozenset(tile.copies))
            total = (cost.cycles + cost.packing) * (1.0 + CODE * copies)
            found.append((total, Choice(tile, cost)))
            least = min(least, total)
    found.sort(key=lambda pair: pair[0])
    return [choice for total, choice in found[:FINALISTS] if total <= found[0][0] * ABOUT]


def candidates(nest: Nest, machine: Machine) -> Iterator[Tile]:
    """Tiles with each loop as the vector, and none; of loops of sums, those that all sums have."""
    free = tileable(nest)
    counts = {r: _counts(nest, r) for r in nest.results if r in free and not r.src}
    common = [r for r in nest.summed if all(r in s.src[1:] for s in nest.sums)]
    for vector in [r for r in (*nest.results, *common) if r in free]:
        for lanes in _lanes(nest, vector, machine):
            yield from _with_vector(nest, vector, lanes, counts, free)
    yield Tile(None, 1, {})


def tileable(nest: Nest) -> frozenset[UOp]:
    """The loops that may be tiled: of kind loop, their iterations in any order.

    Loops around nothing but other nests stay as they are.
    Where a row is computed in an outer loop, that loop is tiled only for the sake of a joint sum.
    """
    if not nest.accesses:
        return frozenset()
    loops = {r for r in (*nest.results, *nest.summed) if kind_of(r) == "loop"}
    if nest.root.op is END:
        loops -= carried(nest.root)
    if nest.rows and not nest.sums:
        of_rows = {r for row in nest.rows for r in open_ranges(row)}
        if loops - of_rows:
            loops -= of_rows
    return frozenset(loops)


def _lanes(nest: Nest, item: UOp, machine: Machine) -> list[int]:
    """Numbers of lanes: a whole register of the widest element, and less where the loop is short.

    A sum that is no maximum needs whole vectors of new elements, so lanes up to its length.
    """
    widest = max((a.storage.dtype.bits // 8 for a in nest.accesses), default=4)
    most = machine.vector_bytes // max(widest, 4)
    size = item.arg.size
    found = widths(size, most)
    if item.src:
        found = [n for n in found if size % n == 0]
    return found


def widths(size: int, most: int) -> list[int]:
    """Numbers of lanes up to `most` that a loop fills, the largest first."""
    return [n for n in (most, most // 2, most // 4) if SMALLEST <= n <= size]


def _counts(nest: Nest, item: UOp) -> list[int]:
    """Numbers of iterations in a tile; where tiles must not overlap, those that leave no rest."""
    found = [count for count in ROWS[1:] if count <= item.arg.size]
    even = [count for count in found if item.arg.size % count == 0]
    alone = nest.root.op is END and combines(nest.root)
    return even if alone and max(even, default=1) >= SMALLEST else found


def _with_vector(
    nest: Nest,
    vector: UOp,
    lanes: int,
    counts: Mapping[UOp, Sequence[int]],
    free: frozenset[UOp],
) -> Iterator[Tile]:
    whole = vector.arg.size // lanes
    rest = {r: several for r, several in counts.items() if r is not vector}
    if vector in nest.summed:
        for chains in [c for c in CHAINS if c <= whole]:
            for others in _rows(nest, vector, rest, free - {vector}, lanes):
                yield Tile(vector, lanes, {vector: chains, **others})
        return
    for vectors in [v for v in VECTORS if v <= whole]:
        if vector.src and vector.arg.size % (vectors * lanes):
            continue
        for others in _rows(nest, vector, rest, free - {vector}, lanes):
            yield Tile(vector, lanes, {vector: vectors, **others})


def _rows(
    nest: Nest, vector: UOp, counts: Mapping[UOp, Sequence[int]], free: frozenset[UOp], lanes: int
) -> Iterator[dict[UOp, int]]:
    """Copies along one or two further loops of results, where an operand is shared by them.

    Also along whole loops where the vector's has a bound: more vectors of a row might lie past it.
    """
    yield {}
    loops = [r for r in counts if nest.sums and _shares(nest, r)]
    ended = open_ranges_of_bound(vector)
    for item in counts if vector.src else ():
        if item not in loops and item not in ended and item.arg.size in counts[item]:
            yield {item: item.arg.size}
    if not nest.sums:
        yield from _squares(nest, free, lanes)
        return
    for item in loops:
        for count in counts[item]:
            yield {item: count}
    for first, second in itertools.combinations(loops, 2):
        pairs = itertools.product(counts[first], counts[second])
        yield from ({first: a, second: b} for a, b in pairs if max(a, b) <= SMALLEST)


def _squares(nest: Nest, free: frozenset[UOp], lanes: int) -> Iterator[dict[UOp, int]]:
    """As many copies as lanes, of a loop along which what is loaded is contiguous."""
    for item in nest.results:
        if (
            item in free
            and not item.src
            and item.arg.size >= lanes
            and any(a.stride(item) == 1 and not a.writes for a in nest.accesses)
        ):
            yield {item: lanes}


def _shares(nest: Nest, item: UOp) -> bool:
    """Whether some operand of the sums does not depend on the loop."""
    return any(item not in a.depends for a in nest.inner_accesses if not a.writes)
