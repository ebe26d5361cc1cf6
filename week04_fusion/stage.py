"""STAGE put everywhere, and STAGE turned into storage.

    ADD(MUL(a, b), c)   →   STAGE(ADD(STAGE(MUL(a, b)), c))          (stage_all)
    STAGE(x)            →   AFTER(t, STORE(t, x)), t a new ALLOC     (store_stages)

Between the two stands the fusion pass, which takes STAGEs off.
"""

from __future__ import annotations

from collections.abc import Iterator

from week01_uops.dtypes import void
from week01_uops.node import UOp, make
from week01_uops.ops import ELEMENTWISE
from week01_uops.rewrite import Trace
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    KEEP,
    OUTPUT,
    STORE,
    AllocArg,
    in_each,
    index,
    open_ranges,
)
from week02_render.reads import free_slots
from week03_loops.ops import REDUCE
from week04_fusion.ops import STAGE

COMPUTED = ELEMENTWISE | {KEEP, REDUCE}
"""Ops whose values can be staged: the others only name, move or hold elements."""


def stage_all(program: UOp, trace: Trace) -> UOp:
    """A STAGE around every computed value that no loop of the program is open in."""
    order = program.toposort()
    kept_products = {node.src[0] for node in order if node.op is KEEP}
    done: dict[UOp, UOp] = {}
    for node in order:
        new = node.with_src(tuple([done[s] for s in node.src]))
        if node.op in COMPUTED and node not in kept_products and not open_ranges(node):
            new = make(STAGE, (new,))
            trace.fired["stage"] += 1
        done[node] = new
    return done[program]


def store_stages(program: UOp, trace: Trace) -> UOp:
    """Each STAGE becomes storage, filled by loops over its ranges.

        STAGE(x, r…)   →   AFTER(t, END(STORE(INDEX(t, r…), x), r…))

    A value that is stored in an OUTPUT as it is needs no other storage. Inside the loops of a
    kernel the temporary is local to them.
    """
    order = program.toposort()
    outputs = _output_of(order)
    slots = free_slots(program)
    done: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([done[s] for s in node.src])
        if node.op is STAGE:
            done[node] = _stored(node, src, outputs.get(node), slots)
        elif node.op is STORE and outputs.get(node.src[1]) is node.src[0]:
            done[node] = src[1].src[1]
        else:
            done[node] = node.with_src(src)
    return done[program]


def _output_of(order: list[UOp]) -> dict[UOp, UOp]:
    """The first OUTPUT that each STAGE is stored in whole."""
    found: dict[UOp, UOp] = {}
    for node in order:
        if node.op is STORE and node.src[0].op is OUTPUT and node.src[1].op is STAGE:
            found.setdefault(node.src[1], node.src[0])
    return found


def _stored(node: UOp, src: tuple[UOp, ...], output: UOp | None, slots: Iterator[int]) -> UOp:
    value, *ranges = src
    outer = open_ranges(node)
    place = output or _temporary(node, outer, slots)
    effect = make(STORE, (index(in_each(place, outer), *ranges), value))
    if ranges:
        effect = make(END, (effect, *ranges))
    assert effect.dtype is void
    return make(AFTER, (place, effect))


def _temporary(node: UOp, outer: frozenset[UOp], slots: Iterator[int]) -> UOp:
    """Memory between kernels; inside loops, what the STAGE asks for, or local memory."""
    asked = node.arg.addrspace if node.arg is not None else None
    space = (asked if asked not in (None, "MEM") else "LOCAL") if outer else None
    return make(ALLOC, (), AllocArg(next(slots), node.dtype, node.shape, space))
