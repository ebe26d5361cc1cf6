"""The cost model: how many cycles a nest takes, tiled in a certain way.

A tile is computed by one iteration of the loops around it: `lanes` elements of one loop as a vector
and copies for each iteration of the unrolled ones. In a joint sum all results of a tile have an
accumulator each, and one iteration of its loop costs

    max(arithmetic / units, accesses / ports, latency · chain) + accesses · beside + turn    cycles,

where what copies share counts once: an operand that does not depend on an unrolled loop is loaded
once for all copies. A port is busy with a scalar as long as with what a unit works on at once. The
loop's own instructions, `turn`, hide behind arithmetic or memory that takes longest, in a sum of
several results. A tile that needs more registers than there are is not considered.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from week01_uops.node import UOp
from week01_uops.ops import MUL
from week02_render.ops import open_ranges
from week03_loops.ops import REDUCE
from week05_06_memory.c_vector_squares import QUAD
from week05_06_memory.machine import Machine
from week05_06_memory.roles import Access, Nest
from week05_06_memory.tile import Tile, is_packed, is_scattered, packing_cycles, reads, reuse

SHORT = 16
"""Iterations of the innermost loops of a sum that are copied."""

ABREAST = 8
"""Rows side by side from which on they keep memory busy."""

TURNED = 4
"""Reads down the columns of a large matrix that are worth a copy with columns for rows."""


@dataclass(frozen=True)
class Estimate:
    """What a tile costs.

    Attributes:
        cycles: of the whole nest.
        inner: of one iteration of its innermost loop.
        arithmetic, loads, chain, memory: the slowest of them decides.
        registers: that one iteration needs.
        packing: cycles, besides, of packing what is scattered along the vector.
    """

    cycles: float
    inner: float
    arithmetic: float
    loads: float
    chain: float
    memory: float
    registers: int
    packing: float

    @property
    def limit(self) -> str:
        """What the innermost loop waits for."""
        parts = {
            "arithmetic": self.arithmetic,
            "loads": self.loads,
            "latency": self.chain,
            "memory": self.memory,
        }
        return max(parts, key=lambda name: parts[name])


def estimate(nest: Nest, tile: Tile, machine: Machine, most: float = math.inf) -> Estimate | None:
    """The cost of a tile; None if it needs more registers than there are, or cycles than `most`."""
    summed = nest.summed
    results = math.prod(c for r, c in tile.copies.items() if r not in summed)
    chains = math.prod(c for r, c in tile.copies.items() if r in summed and r is not tile.vector)
    accumulators = tile.copies_of(frozenset(tile.copies)) // max(chains, 1) if nest.sums else 0
    inner = [a for a in nest.inner_accesses if not a.writes or not nest.sums]
    held = sum(_held(a, tile, nest, accumulators) for a in inner) if nest.sums else 0
    registers = accumulators * max(len(nest.sums), 1) + held + 1
    if registers > machine.vector_registers - machine.spare and results > 1:
        return None
    arithmetic = _arithmetic(nest, tile, machine)
    tiles = math.prod(map(tile.turns, nest.results))
    turns = math.prod(map(tile.turns, summed))
    if tiles * turns * arithmetic / machine.units > most:
        return None
    repeated = [a for a in inner if _repeats(a, summed)]
    loads = sum(_load_cost(a, tile, nest, machine) for a in repeated)
    loads += _packed_in_vain(repeated, tile, nest, machine)
    loads *= 2 if _parts_vectors(nest, tile, machine) else 1
    chain = machine.latency * chains if nest.sums and turns > 1 else 0.0
    memory = _memory(repeated, tile, nest, machine)
    narrow = sum(tile.copies_of(a.depends) for a in repeated if tile.vector not in a.depends)
    busy = loads - narrow * (1.0 - _width(0, machine))
    shown = max(busy / machine.ports, chain)
    cycles = max(arithmetic / machine.units, memory)
    turn = machine.behind if nest.sums and results > 1 and cycles >= shown else 1.0
    cycles = max(cycles, shown) + machine.beside * loads + turn / copied(nest)
    cycles += machine.far_row * sum(_is_far(a, tile, nest, machine) for a in repeated)
    once = _once(nest, tile, turns, machine)
    total = tiles * (turns * cycles + once)
    packing = tiles * turns * sum(_packing(a, tile, nest) for a in repeated)
    return Estimate(total, cycles, arithmetic, loads, chain, memory, registers, packing)


def _parts_vectors(nest: Nest, tile: Tile, machine: Machine) -> bool:
    """Whether a nest loads a row that registers hold in pieces that no other one uses."""
    if not nest.outer or tile.vector is None:
        return False
    size = max((a.bytes for a in nest.accesses), default=4)
    row = size * nest.iterations
    return bool(tile.lanes * size < machine.vector_bytes <= row <= machine.row)


def _repeats(access: Access, summed: tuple[UOp, ...]) -> bool:
    """Whether an access is done in each iteration of the sums."""
    return not summed or not access.depends.isdisjoint(summed)


def _memory(accesses: list[Access], tile: Tile, nest: Nest, machine: Machine) -> float:
    """Cycles for what comes from memory and is used once, and for what it drives out of a cache."""
    streamed = [a for a in accesses if _is_streamed(a, tile, nest, machine)]
    total = 0.0
    for access in accesses if streamed else ():
        size = tile.lanes * access.bytes
        slower = 0.0
        if access in streamed:
            slower = machine.divided if size > machine.datapath else 1.0
            slower *= _apart(access, tile, machine) if nest.sums else 1.0
        elif nest.sums and 2 * access.storage.size * access.bytes > machine.l1:
            slower = machine.evicted
        total += tile.copies_of(access.depends) * size * machine.memory_byte * slower
    return total


def _is_streamed(access: Access, tile: Tile, nest: Nest, machine: Machine) -> bool:
    """Whether what is read comes from memory and is used once.

    A short row comes while others are computed, and what has been touched is in a cache.
    """
    own = access.depends.difference(nest.outer)
    loops = [r for r in (*nest.results, *nest.summed) if r in own]
    row = math.prod(r.arg.size for r in loops) * access.bytes
    near = machine.l2 // 2 if access.storage in nest.touched else machine.l1 // 8
    if nest.outer and row <= near:
        return False
    large = access.storage.size * access.bytes > machine.l2
    return large and reuse(access, tile, nest) == 1 and reads(access, nest) <= 1


def _apart(access: Access, tile: Tile, machine: Machine) -> float:
    """How much longer memory takes as a tile reads several rows side by side.

    Eight and more keep it busy, as far as the first cache holds a line of each.
    """
    steps = {r: abs(access.stride(r) or 0) * access.bytes for r in tile.copies}
    far = [r for r, step in steps.items() if r is not tile.vector and step > machine.line]
    rows = math.prod(tile.copies[r] for r in far)
    if rows == 1:
        return 1.0
    kept = min(lines_kept(machine.l1, machine.page, steps[r], machine) for r in far)
    return machine.abreast if ABREAST <= rows <= kept else machine.apart


def rows_kept(machine: Machine) -> int:
    """Rows of which a line each fills an eighth of the first cache."""
    return machine.l1 // 8 // machine.line


def lines_kept(cache: int, way: int, step: int, machine: Machine) -> int:
    """How many lines, so many bytes apart, stay in a cache of so many bytes, in ways of some."""
    return cache // max(math.gcd(step, way), machine.line)


def _is_far(access: Access, tile: Tile, nest: Nest, machine: Machine) -> bool:
    """Whether each iteration of a sum reads a row of its own, and nothing packs it."""
    if not nest.summed or access.storage.size * access.bytes <= machine.l2 // 2:
        return False
    last = nest.summed[-1]
    if last.arg.size <= rows_kept(machine):
        return False
    step = abs(access.stride(last) or 0)
    again = reuse(access, tile, nest)
    packed = again > 1 if tile.vector in access.depends else again >= TURNED
    return tile.vector is not last and step * access.bytes > machine.line and not packed


def _held(access: Access, tile: Tile, nest: Nest, accumulators: int) -> int:
    """Registers of an operand that several copies use, or the next iteration again."""
    own = tile.copies_of(access.depends)
    if tile.vector not in access.depends:
        return own if _slides(access, tile, nest) else 0
    return own if own < accumulators else 0


def _slides(access: Access, tile: Tile, nest: Nest) -> bool:
    """Whether copied iterations of a sum read what other copies of the tile have read."""
    windows = [(abs(access.stride(r) or 0), r.arg.size) for r in short_sums(nest)]
    copies = [abs(access.stride(r) or 0) for r, n in tile.copies.items() if n > 1]
    return any(
        0 < step < reach * size and step % reach == 0
        for step in copies
        for reach, size in windows
        if reach
    )


def short_sums(nest: Nest) -> list[UOp]:
    """The innermost loops of a sum that are copied: they are short, and not its only ones."""
    found: list[UOp] = []
    copies = 1
    for item in reversed(nest.summed[1:]):
        copies *= max(item.arg.size, 1)
        if copies > SHORT or item.src:
            break
        found.append(item)
    return found


def copied(nest: Nest) -> int:
    """Copies of the body of a sum's innermost loop."""
    return math.prod(r.arg.size for r in short_sums(nest))


def _arithmetic(nest: Nest, tile: Tile, machine: Machine) -> float:
    """Vector and scalar operations of one iteration; a product in a sum costs nothing more."""
    fused = {s.src[0] for s in nest.sums if s.src[0].op is MUL}
    total = 0.0
    for node, weight in nest.operations.items():
        if node in fused:
            continue
        depends = open_ranges(node) | (set(node.src[1:]) if node.op is REDUCE else set())
        width = _width(tile.lanes * node.dtype.bits // 8, machine)
        if tile.vector not in depends:
            width = machine.scalar
        total += weight * width * tile.copies_of(frozenset(depends))
    return total


def _width(size: int, machine: Machine) -> float:
    """Full vectors that one of so many bytes costs as much as."""
    part = max(size, machine.datapath) / machine.vector_bytes
    return machine.begun + (1.0 - machine.begun) * part


def _load_cost(access: Access, tile: Tile, nest: Nest, machine: Machine) -> float:
    count = tile.copies_of(access.depends)
    if tile.vector is None or tile.vector not in access.depends:
        return float(count)
    wide = _width(tile.lanes * access.bytes, machine)
    if access.stride(tile.vector) == 1:
        return wide * count
    if not nest.sums and turned(access, tile):
        return count * (wide + math.log2(tile.lanes))
    return count * (wide if is_packed(access, tile, nest) else machine.scattered * tile.lanes)


def _packing(access: Access, tile: Tile, nest: Nest) -> float:
    """Cycles of packing a tile's operand once, as a part for each time that it is read."""
    if not is_packed(access, tile, nest):
        return 0.0
    cycles = tile.copies_of(access.depends) * packing_cycles(tile, scattered=True)
    return cycles / reuse(access, tile, nest)


def _packed_in_vain(accesses: list[Access], tile: Tile, nest: Nest, machine: Machine) -> float:
    """Of operands that are scattered along the vector, those of some loops are packed for all uses.

    Others, in the loops inside, are packed anew as often as they are read.
    """
    each = machine.scattered * tile.lanes
    saved: dict[frozenset[UOp], float] = defaultdict(float)
    for access in accesses:
        if is_scattered(access, tile):
            cost = tile.copies_of(access.depends) * each - _load_cost(access, tile, nest, machine)
            saved[access.depends.intersection(nest.results)] += cost
    return sum(saved.values()) - max(saved.values()) if nest.sums and saved else 0.0


def _lines(access: Access, tile: Tile, machine: Machine) -> float:
    """Lines of the cache that a tile touches."""
    extents = dict(tile.copies)
    if tile.vector is not None:
        extents[tile.vector] = tile.extent(tile.vector)
    steps = sorted(
        (abs(step), n)
        for r, n in extents.items()
        if (step := access.stride(r)) is not None and step
    )
    apart, span = 1, access.bytes
    for step, n in steps:
        if step * access.bytes <= max(span, machine.line):
            span += step * (n - 1) * access.bytes
        else:
            apart *= n
    return apart * max(1.0, span / machine.line)


def turned(access: Access, tile: Tile) -> bool:
    """Whether loads along another loop's copies are a square that is transposed in registers."""
    along = [r for r, n in tile.copies.items() if access.stride(r) == 1 and n == tile.lanes]
    return bool(along) and not access.writes and tile.lanes in (4, 8, 16)


def in_quads(access: Access, tile: Tile) -> bool:
    """Whether copies store to neighbours, so that the lanes of four are stored together."""
    return any(n >= QUAD and access.stride(r) == 1 for r, n in tile.copies.items())


def _scattering(access: Access, tile: Tile, nest: Nest, machine: Machine) -> float:
    """Cycles of a vector whose lanes lie apart, in all rows that the tile touches."""
    assert tile.vector is not None
    step = abs(access.stride(tile.vector) or 0) * access.bytes
    kept = lines_kept(machine.l1, machine.page, step, machine)
    others = {
        a.storage for a in nest.accesses if a.stride(tile.vector) == access.stride(tile.vector)
    }
    if tile.extent(tile.vector) * len(others) > kept:
        return machine.crowded * tile.lanes
    inplace = any(a.storage is access.storage and not a.writes for a in nest.accesses)
    quads = access.writes and in_quads(access, tile) and not inplace
    return machine.scattered * tile.lanes / (QUAD if quads else 1)


def _once(nest: Nest, tile: Tile, turns: float, machine: Machine) -> float:
    """Cycles of what a tile does outside its sums: results stored, copies and lanes combined."""
    if not nest.sums:
        return 0.0
    cost = 0.0
    for access in nest.accesses:
        if access.writes or access not in nest.inner_accesses:
            count = tile.copies_of(access.depends)
            vector = tile.vector is not None and tile.vector in access.depends
            scattered = vector and access.stride(tile.vector) != 1  # type: ignore[arg-type]
            cost += count * (_scattering(access, tile, nest, machine) if scattered else 1.0)
            cost += machine.written_line * _lines(access, tile, machine)
    if tile.vector in nest.summed:
        results = math.prod(c for r, c in tile.copies.items() if r not in nest.summed)
        parts = tile.copies_of(frozenset(nest.summed)) if turns > 1 else 1
        size = tile.lanes * max(s.dtype.bits for s in nest.sums) // 8
        halves = (size >> n for n in range(1, tile.lanes.bit_length()))
        across = 2.0 * sum(_width(half, machine) for half in halves)
        cost += results * (parts - 1 + across) / machine.units
    return cost + 4.0
