"""LATER x v: values that wait for others, told to the compiler as storage that is written first.

LATER x v   →   AFTER(x, s),   v   →   AFTER(t, s),   s = STORE t v,   t a new ALLOC
"""

from __future__ import annotations

from week01_uops.node import UOp, make
from week02_render.ops import AFTER, STORE
from week02_render.reads import free_slots, fresh_alloc
from week09_10_autodiff.ops import LATER


def in_order(program: UOp) -> UOp:
    """The program without LATERs."""
    order = program.toposort()
    awaited = {value for node in order if node.op is LATER for value in node.src[1:]}
    if not awaited:
        return program
    slots = free_slots(program)
    done: dict[UOp, UOp] = {}
    stores: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([done[source] for source in node.src])
        if node.op is LATER:
            new = make(AFTER, (src[0], *[stores[value] for value in node.src[1:]]))
        else:
            new = node.with_src(src)
        if node in awaited:
            place = fresh_alloc(slots, new)
            stores[node] = make(STORE, (place, new))
            new = make(AFTER, (place, stores[node]))
        done[node] = new
    return done[program]
