"""What a nest costs as it is scheduled: cycles of one core, node by node.

A node is computed once for each iteration of the loops that it depends on; the lanes of a vector
count as often as they need registers. It is an estimate of whether threads are worth starting, so
neither latencies nor memory are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from week01_uops.node import UOp, toposort
from week01_uops.ops import ELEMENTWISE, MUL
from week02_render.ops import INDEX, LOAD, STORE, open_ranges
from week03_loops.ops import REDUCE
from week04_fusion.work import WEIGHTS
from week05_06_memory.machine import Machine
from week05_06_memory.nests import closes
from week05_06_memory.ops import kind_of

SCALAR_ACCESS = 0.5
"""Cycles of loading or storing one element; a vector takes one cycle."""


def in_loops(end: UOp) -> list[UOp]:
    """The nodes of a nest that depend on its loops, indices left out."""
    loops = frozenset(end.src[1:])

    def below(node: UOp) -> tuple[UOp, ...]:
        if closes(node) and open_ranges(node).isdisjoint(loops):
            return ()
        return node.src[:1] if node.op is INDEX else node.src

    found = toposort((end.src[0],), below)
    return [n for n in found if not open_ranges(n).isdisjoint(loops)]


def costs(end: UOp, machine: Machine) -> Mapping[UOp, float]:
    """The cycles of each node in the loops of a nest, in all their iterations."""
    nodes = in_loops(end)
    fused = {n.src[0] for n in nodes if n.op is REDUCE and n.src[0].op is MUL}
    return {n: _cycles(n, machine) for n in nodes if n not in fused}


def _cycles(node: UOp, machine: Machine) -> float:
    loops = open_ranges(node) | set(node.src[1:] if node.op is REDUCE else ())
    wide = any(kind_of(r) == "vector" for r in loops)
    if node.op in (LOAD, STORE):
        weight = 1.0 if wide else SCALAR_ACCESS
    elif node.op in ELEMENTWISE or node.op is REDUCE:
        weight = WEIGHTS.get(node.op, 1.0)
    else:
        return 0.0
    bits = node.src[1].dtype.bits if node.op is STORE else node.dtype.bits
    return weight * _iterations(loops, bits, machine)


def _iterations(loops: Iterable[UOp], bits: int, machine: Machine) -> float:
    return math.prod(
        max(1.0, r.arg.size * bits / 8 / machine.vector_bytes)
        if kind_of(r) == "vector"
        else float(r.arg.size)
        for r in loops
    )
