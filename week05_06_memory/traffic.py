"""What is moved between caches and memory, and what that costs.

A temporary between two kernels is written and read at the level of the memory hierarchy that holds
all of it. Held in the second kernel, a strip of it is written and read at the level that holds the
strip; but what does not depend on the strip is read again for each strip:

    saved = 2·bytes(t)·(cost(level of t) − cost(level of a strip))
    extra = strips·bytes(read again)·cost(level of that and the strip) / HIDDEN

Two products in a row (a perceptron) read all weights again for each strip of rows; attention reads
the keys and values of one head, which stay in cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from week01_uops.node import UOp, toposort
from week02_render.ops import LOAD, open_ranges, storage_of
from week04_fusion.ops import STAGE
from week05_06_memory.machine import Machine

ROWS = 8
"""Iterations of the innermost shared loop that a strip holds."""

COSTS = (0.0, 1.0, 4.0)
"""Time of a byte in L1, L2 and L3, behind what computing hides, as multiples of one in L2."""

MEMORY = 10.0
"""The same of a byte in memory."""

HIDDEN = 8.0
"""What a strip reads again stands behind the arithmetic of all its rows, which hides most of it."""


def byte_cost(machine: Machine, size: float) -> float:
    """The cost of a byte of something of this size: of the nearest cache that holds all of it."""
    caches = (machine.l1, machine.l2, machine.l3)
    return next((cost for cost, c in zip(COSTS, caches, strict=True) if size <= c), MEMORY)


def bytes_of(node: UOp) -> float:
    """Bytes of all elements of a node."""
    return node.size * node.dtype.bits / 8


@dataclass(frozen=True)
class Strip:
    """The loops that a value is held in: `row` is split into strips, `outer` stand around it."""

    row: UOp
    outer: frozenset[UOp]

    @property
    def rows(self) -> int:
        """Iterations of `row` in a strip."""
        size: int = self.row.arg.size
        return min(ROWS, max(size, 1))

    @property
    def strips(self) -> int:
        """Strips in all iterations of the loops."""
        (size,) = _sizes((self.row,))
        return -(-size // self.rows) * math.prod(_sizes(self.outer))

    def read_again(self, *values: UOp) -> float:
        """Bytes that values read from storage in each strip although they are no part of it."""
        found: dict[UOp, float] = {}
        for node in toposort(values):
            if node.op is LOAD and self.row not in open_ranges(node.src[0]):
                storage = storage_of(node.src[0])
                if storage.op is not STAGE:
                    inner = open_ranges(node.src[0]) - self.outer
                    elements = min(math.prod(_sizes(inner)), storage.size)
                    size = elements * storage.dtype.bits / 8
                    found[storage] = max(found.get(storage, 0.0), size)
        return sum(found.values())

    def held(self, *values: UOp) -> float:
        """Bytes that the STAGEs of values hold for one strip."""
        stages = [node for node in toposort(values) if node.op is STAGE]
        return sum([bytes_of(n) * (self.rows if self.row in open_ranges(n) else 1) for n in stages])


def _sizes(ranges: Iterable[UOp]) -> list[int]:
    return [r.arg.size for r in ranges]


def has_stage(value: UOp) -> bool:
    """Whether a value is computed in strips already."""
    return any(node.op is STAGE for node in value.toposort())
