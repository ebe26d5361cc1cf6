"""The order of a nest's outer loops, and what is staged in which of them.

An operand is worth a temporary of its own (packing) where a tile along some loop reads it again,
and where it does not lie as the tile walks it: its rows are far apart, its vectors are scattered,
or each element asks for its gate. It is filled in the loops that alone decide which part is read;
all at once if strips of columns are read often, or few of their rows stay in the cache until their
neighbours are read.
The order of loops is the one with the least traffic: an operand is read again from afar for each
iteration of a loop outside what fits the cache, and filled again for each iteration of the loops
around its filling.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from week01_uops.node import UOp
from week01_uops.ops import PARAM
from week02_render.ops import ALLOC, INDEX, LOAD, open_ranges
from week05_06_memory.machine import Machine
from week05_06_memory.model import TURNED, lines_kept, rows_kept
from week05_06_memory.roles import Access, Nest
from week05_06_memory.tile import Tile, packing_cycles, reads, reuse

MOST_LOOPS = 5
"""Loops whose orders are all compared; of more, the outer ones stay as they are."""


WORTH = 0.98
"""The part of the traffic below which another order than the program's is taken."""


@dataclass(frozen=True)
class Packing:
    """An operand that is staged.

    Attributes:
        access: the LOAD.
        within: the nest's loops that it is filled in.
        elements: of the temporary.
        layout: the axes of its storage, innermost last.
        because: what makes it worth while.
    """

    access: Access
    within: frozenset[UOp]
    elements: int
    layout: tuple[int, ...]
    because: str


@dataclass(frozen=True)
class Order:
    """Outer loops, outermost first, what is staged, and the cost of the traffic in cycles."""

    loops: tuple[UOp, ...]
    packings: tuple[Packing, ...]
    cycles: float


def axes_of(access: Access) -> list[frozenset[UOp]]:
    """The RANGEs in the index of each axis."""
    place = access.node.src[0]
    return [open_ranges(at) for at in place.src[1:]] if place.op is INDEX else []


def packings(nest: Nest, tile: Tile, machine: Machine) -> list[Packing]:
    """The operands of a nest's sums that are worth a temporary."""
    found = []
    for access in nest.inner_accesses:
        if nest.sums and access.node.op is LOAD and access.storage.op is PARAM:
            reason = _reason(access, nest, tile, machine)
            crowd = None if reason else _crowd(access, nest, tile, machine)
            if reason:
                found.append(_packing(access, nest, tile, reason))
            elif crowd:
                found.append(_turned(access, nest, crowd))
    return found


def _reason(access: Access, nest: Nest, tile: Tile, machine: Machine) -> str | None:
    vector = tile.vector
    again = reuse(access, tile, nest)
    gated = len(access.node.src) > 1 and not open_ranges(access.node.src[1]).isdisjoint(
        (*nest.results, *nest.summed)
    )
    times = reads(access, nest)
    if gated and (again > 1 or times > 1):
        return f"its gate is decided once for {max(again, round(times))} reads"
    if again < 2 or vector is None or vector not in access.depends:
        return None
    if access.stride(vector) is None:
        return None
    if access.stride(vector) != 1:
        return (
            f"its elements are {access.stride(vector)} apart along the vector, read {again} times"
        )
    bytes_ = access.storage.size * access.bytes
    far = [r for r in nest.summed if abs(access.stride(r) or 0) > tile.extent(vector)]
    if far and bytes_ > machine.l1:
        return f"its rows are {access.stride(far[0])} elements apart, read {again} times"
    return None


def _crowd(access: Access, nest: Nest, tile: Tile, machine: Machine) -> str | None:
    """Why strips of columns are read from memory again and again, or line by line."""
    large = access.storage.size * access.bytes > machine.l2 // 2
    moving = [r for r in (*nest.results, *nest.summed) if access.stride(r)]
    if not nest.sums or len(moving) < 2 or not large:
        return None
    rows = math.prod(r.arg.size for r in nest.summed)
    step = abs(access.stride(nest.summed[-1]) or 0) * access.bytes
    inside = {r for r, n in tile.copies.items() if n > 1 and access.stride(r) == 1}
    if tile.vector in access.depends or not inside or nest.around or not step:
        return None
    again = reuse(access, tile, nest)
    if again < 2 or len(axes_of(access)) != len(access.storage.shape):
        return None
    way = machine.l2 // machine.ways
    kept = lines_kept(machine.ways * way, way, step, machine)
    if rows > kept:
        return f"its rows are {step} bytes apart: of {rows} not more than {kept} stay in the cache"
    often = again >= TURNED and rows > rows_kept(machine)
    return f"it is read down its columns {again} times" if often else None


def _turned(access: Access, nest: Nest, reason: str) -> Packing:
    """All of an operand, with the axes of a sum last."""
    axes = axes_of(access)
    last = [a for a, axis in enumerate(axes) if not axis.isdisjoint(nest.summed)]
    layout = (*[a for a in range(len(axes)) if a not in last], *last)
    return Packing(access, frozenset(), access.storage.size, layout, reason)


def _packing(access: Access, nest: Nest, tile: Tile, reason: str) -> Packing:
    axes = axes_of(access)
    again = [r for r in nest.around if r not in access.depends]
    alone = {
        r
        for r in nest.results
        if any(r in axis for axis in axes) and not _shared(r, axes, nest.summed)
    }
    within = frozenset(alone) if not again else frozenset()
    elements = math.prod(_span(axis, access, within, nest, tile) for axis in axes)
    moving = [a for a, axis in enumerate(axes) if tile.vector in axis]
    last = moving[-1] if moving else len(axes) - 1
    layout = (*[a for a in range(len(axes)) if a != last], last)
    return Packing(access, within, min(elements, access.storage.size * 2), layout, reason)


def _span(
    axis: frozenset[UOp], access: Access, within: frozenset[UOp], nest: Nest, tile: Tile
) -> int:
    """Elements of an axis that a temporary holds: from the least index to the largest."""
    inner = axis.difference(nest.around)
    sizes = {r: tile.extent(r) if r in within else r.arg.size for r in inner}
    return 1 + sum(access.steps.get(r, 1) * (n - 1) for r, n in sizes.items())


def _shared(item: UOp, axes: Sequence[frozenset[UOp]], summed: Sequence[UOp]) -> bool:
    """Whether a loop decides an index together with a sum's: a window that moves with it."""
    return any(item in axis and not axis.isdisjoint(summed) for axis in axes)


def best_order(nest: Nest, tile: Tile, machine: Machine) -> Order:
    """The order of the loops over tiles with the least traffic."""
    staged = packings(nest, tile, machine)
    loops = [r for r in nest.results if tile.trips(r) > 1]
    fixed, free = loops[: max(0, len(loops) - MOST_LOOPS)], loops[-MOST_LOOPS:]
    best: Order | None = None
    once = _computed_once(nest)
    orders = [(*fixed, *order) for order in itertools.permutations(free)]
    ready = [whole for whole in orders if all(_leads(whole, loops) for loops in once)]
    for whole in ready or orders:
        cost = _cost(nest, tile, whole, staged, machine)
        if best is None or cost < best.cycles * WORTH:
            worth = tuple([p for p in staged if _is_worth(p, whole, tile)])
            best = Order(whole, worth, cost)
    assert best is not None
    return best


def _is_worth(packing: Packing, order: tuple[UOp, ...], tile: Tile) -> bool:
    """Whether what is filled is read more than once, or could not be read in vectors."""
    access = packing.access
    plain = tile.vector is not None and access.stride(tile.vector) == 1
    if not packing.within or not plain or len(access.node.src) > 1:
        return True
    last = max((order.index(r) for r in packing.within if r in order), default=-1)
    return any(tile.trips(r) > 1 for r in order[last + 1 :] if r not in access.depends)


def _computed_once(nest: Nest) -> list[frozenset[UOp]]:
    """The loops of rows and of what fills temporaries, each to be computed once in these."""
    results = frozenset(nest.results)
    found = [open_ranges(row) & results for row in nest.rows]
    for access in nest.accesses:
        if access.node.op is LOAD and access.storage.op is ALLOC:
            filled = access.depends.difference(access.strides)
            found.append(filled & results)
    return found


def _leads(order: Sequence[UOp], loops: frozenset[UOp]) -> bool:
    """Whether no other loop stands around one of these."""
    first = [item for item in order if item in loops]
    return list(order[: len(first)]) == first


def _cost(
    nest: Nest, tile: Tile, order: tuple[UOp, ...], staged: Sequence[Packing], machine: Machine
) -> float:
    cost = 0.0
    for packing in staged:
        last = max((order.index(r) for r in packing.within if r in order), default=-1)
        fills = math.prod(tile.trips(r) for r in order[: last + 1])
        scattered = tile.vector is not None and packing.access.stride(tile.vector) not in (0, 1)
        each = packing_cycles(tile, scattered=scattered) / tile.lanes
        per_byte = _per_byte(packing.access.storage.size * packing.access.bytes, machine)
        cost += fills * packing.elements * (each + packing.access.bytes * per_byte)
        size = packing.elements * packing.access.bytes
        if size > machine.l2:
            inside = [r for r in order[last + 1 :] if r not in packing.access.depends]
            again = math.prod(map(tile.trips, inside))
            cost += fills * size * again * _per_byte(size, machine)
    packed = {p.access.node for p in staged}
    for access in nest.accesses:
        if access.node not in packed and access.storage.op is PARAM:
            per_byte = _per_byte(access.storage.size * access.bytes, machine)
            cost += _traffic(access, nest, tile, order, machine) * per_byte
    return cost


def _per_byte(size: int, machine: Machine) -> float:
    """Cycles that reading a byte of so many takes beside computing, which hides most of it."""
    near = size <= max(machine.caches)
    return machine.memory_byte * (machine.near_byte if near else machine.far_byte)


def _traffic(
    access: Access, nest: Nest, tile: Tile, order: tuple[UOp, ...], machine: Machine
) -> float:
    """Bytes of an operand that come from beyond the second cache."""
    inside = {r: tile.extent(r) for r in nest.results} | {r: r.arg.size for r in nest.summed}
    read = float(_footprint(access, inside))
    for item in reversed(order):
        fits = sum(_footprint(a, inside) for a in nest.accesses) <= machine.l2
        inside[item] = item.arg.size
        whole = float(_footprint(access, inside))
        again = read * tile.trips(item)
        read = whole if fits or (item in access.depends and whole >= again) else again
    return read


def _footprint(access: Access, extents: dict[UOp, int]) -> int:
    elements = math.prod(n for r, n in extents.items() if access.stride(r) != 0)
    return min(elements, access.storage.size) * access.bytes
