"""A tile: how a nest is divided, how often it reads operands again, which of them are packed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from week01_uops.node import UOp
from week05_06_memory.roles import Access, Nest


@dataclass(frozen=True)
class Tile:
    """How a nest is divided.

    Attributes:
        vector: the loop whose iterations are lanes; None: all is scalar.
        lanes: of a vector.
        copies: unrolled loop → iterations of it in a tile, of the vector's loop in vectors.
    """

    vector: UOp | None
    lanes: int
    copies: Mapping[UOp, int]

    def extent(self, item: UOp) -> int:
        """Iterations of a loop that one tile covers."""
        return self.copies.get(item, 1) * (self.lanes if item is self.vector else 1)

    def trips(self, item: UOp) -> int:
        """Tiles along a loop."""
        return max(1, -(-int(item.arg.size) // self.extent(item)))

    def turns(self, item: UOp) -> float:
        """Tiles along a loop until its bound ends it: the mean, every bound as often as others.

        The last tile counts as a whole one, so that of two tiles the shorter wastes less.
        """
        if not item.src:
            return float(self.trips(item))
        most: int = item.arg.size
        low, high = (min(max(int(end), 0), most) for end in item.src[0].interval)
        extent = self.extent(item)
        tiles = _whole_tiles(high, extent) - _whole_tiles(low - 1, extent)
        return max(tiles / (high - low + 1), 1.0)

    def copies_of(self, depends: frozenset[UOp]) -> int:
        """Copies of what depends on these loops."""
        count = 1
        for item, copies in self.copies.items():
            if item in depends:
                count *= copies
        return count


def _whole_tiles(most: int, extent: int) -> int:
    """Σ ⌈b / extent⌉ over all b from 1 to `most`."""
    full, rest = divmod(max(most, 0), extent)
    return extent * full * (full + 1) // 2 + rest * (full + 1)


def reuse(access: Access, tile: Tile, nest: Nest) -> int:
    """How often a tile's operand is read again, along loops that it does not depend on."""
    loops = [r for r in (*nest.around, *nest.results) if r not in access.depends]
    return math.prod(tile.trips(r) for r in loops)


def reads(access: Access, nest: Nest) -> float:
    """How often an element is read by the loops that the access depends on: windows overlap."""
    loops = [r for r in (*nest.results, *nest.summed) if r in access.depends]
    return float(math.prod(r.arg.size for r in loops) / max(access.storage.size, 1))


def is_scattered(access: Access, tile: Tile) -> bool:
    """Whether the lanes of a vector do not lie next to each other."""
    vector = tile.vector
    return vector is not None and vector in access.depends and access.stride(vector) != 1


def is_packed(access: Access, tile: Tile, nest: Nest) -> bool:
    """Whether an operand of sums is scattered, and read again when packed."""
    if not nest.sums or tile.vector is None or not is_scattered(access, tile):
        return False
    return access.steps.get(tile.vector) == 1 and reuse(access, tile, nest) > 1


def packing_cycles(tile: Tile, *, scattered: bool) -> float:
    """Cycles of packing a vector: load, store, and if it is scattered its part of turning a square.

    A square of n × n is turned in registers by n·log₂ n operations.
    """
    return 2.0 + (math.log2(tile.lanes) if scattered else 0.0)
