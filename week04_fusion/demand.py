"""Demands: in which nest, and at which indices, elements of a value are wanted.

A demand is met in the outermost loop in which all the ranges of its indices are open; the number
of iterations down to that loop is how often the element is computed for it. A demand of a node
is passed on to the node's sources by the same index maps that the loops are made with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from week01_uops.node import UOp
from week02_render.lower import Indices, broadcast_indices
from week02_render.ops import AFTER, INDEX, LOAD, loop, open_ranges
from week03_loops.movement import INDEX_MAPS, ZERO
from week03_loops.ops import REDUCE
from week03_loops.reduction import reduction_level
from week04_fusion.ops import STAGE
from week04_fusion.stage import COMPUTED


@dataclass(frozen=True)
class Demand:
    """Elements wanted in one nest at one set of indices.

    Attributes:
        nest: the STORE or STAGE that is filled.
        at: the indices, in terms of the nest's ranges.
        loops: the loops down to the one where the element is computed, outermost first.
    """

    nest: UOp
    at: Indices
    loops: tuple[UOp, ...]

    @property
    def evaluations(self) -> int:
        """Iterations of the loops."""
        return math.prod(r.arg.size for r in self.loops)


def demand(nest: UOp, at: Indices, loops: tuple[UOp, ...]) -> Demand:
    """A demand inside some loops: it is met in the innermost that its indices depend on."""
    needed = frozenset().union(*map(open_ranges, at))
    depth = max((k for k, r in enumerate(loops, 1) if r in needed), default=0)
    return Demand(nest, at, loops[:depth])


def whole_nest(nest: UOp, shape: tuple[int, ...]) -> Demand:
    """The loops of a nest over a shape, inside whatever loops the program opened itself."""
    outer = sorted(open_ranges(nest), key=lambda r: r.arg.id)
    first = max((r.arg.id + 1 for r in outer), default=0)
    at = tuple(loop(first + k, size) for k, size in enumerate(shape))
    return demand(nest, at, (*outer, *at))


Moves = Callable[[UOp, Indices], Indices]


def remembered_moves() -> Moves:
    """The index maps of movement ops, each worked out once in all rounds."""
    known: dict[tuple[UOp, Indices], Indices] = {}

    def moves(node: UOp, at: Indices) -> Indices:
        found = known.get((node, at))
        if found is None:
            found = known[node, at] = INDEX_MAPS[node.op](node, at)[0]
        return found

    return moves


def sources(node: UOp, d: Demand, moves: Moves) -> list[tuple[UOp, Demand]]:
    """What a demand of one node's element demands of the node's sources."""
    if node.op in INDEX_MAPS:
        return [(node.src[0], demand(d.nest, moves(node, d.at), d.loops))]
    if node.op is REDUCE:
        return [(node.src[0], _reduced(node, d))]
    if node.op in COMPUTED:
        return [
            (s, demand(d.nest, broadcast_indices(d.at, s.shape, node.shape), d.loops))
            for s in node.src
        ]
    if node.op is INDEX:
        return _indexed(node, d)
    if node.op is STAGE:
        return _staged(node, d)
    if node.op in (LOAD, AFTER):
        gates = [s for s in node.src[1:] if not s.shape or s.shape == node.shape]
        inside = [(s, demand(d.nest, d.at if s.shape else (), d.loops)) for s in gates]
        return [(node.src[0], d), *inside]
    return []


LEVEL = 10_000
"""Range numbers of reductions start here; each level of reductions has its own."""


def _reduced(node: UOp, d: Demand) -> Demand:
    """Inside a reduction: its loops below those that it depends on.

    Reductions of one level and shape share their loops; those of different levels run one after
    the other.
    """
    outer = d.loops
    axes: int = node.arg.axes
    if not axes:
        return demand(d.nest, d.at, (*outer, *node.src[1:]))
    first = LEVEL * reduction_level(node)
    ranges = tuple(loop(first + k, size) for k, size in enumerate(node.src[0].shape[:axes]))
    return demand(d.nest, (*ranges, *d.at), (*outer, *ranges))


def _indexed(node: UOp, d: Demand) -> list[tuple[UOp, Demand]]:
    """The indices' elements, and the place's at whatever loops those depend on."""
    rest = list(d.at)
    at: list[UOp] = []
    found: list[tuple[UOp, Demand]] = []
    for item in node.src[1:]:
        inner = (rest.pop(0),) if item.shape else ()
        found.append((item, demand(d.nest, inner, d.loops)))
        at.append(inner[0] if inner else next(iter(open_ranges(item)), ZERO))
    found.append((node.src[0], demand(d.nest, (*at, *rest), d.loops)))
    return found


def _staged(node: UOp, d: Demand) -> list[tuple[UOp, Demand]]:
    """A STAGE over loops of the program itself."""
    x, *ranges = node.src
    inner = demand(d.nest, d.at[len(ranges) :], (*d.loops, *ranges))
    return [(x, inner)]
