"""The order of a temporary's axes in memory: that in which it is read.

    STAGE(x)   →   PERMUTE⁻¹(STAGE(PERMUTE(x)))      where PERMUTE's order is all that is wanted

The derivative of a product leaves the axes of its factors in another order, and whoever wants
the result permutes it, or a sum of such. Where every value that is made of a temporary element by
element, down to the next one in memory or to a RESHAPE, has its axes in one other order, the kernel
that writes it does so in that order, and the readers' rows are contiguous. Sums say nothing of
order: to put an axis in front is how it is summed over. Axes of size 1 have no order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from week01_uops.node import Shape, UOp, make
from week01_uops.ops import ELEMENTWISE
from week01_uops.rewrite import Trace
from week02_render.ops import KEEP
from week03_loops.ops import EXPAND, FLIP, PAD, PERMUTE, REDUCE, RESHAPE, SHRINK, permute
from week04_fusion.ops import STAGE

Axes = tuple[int | None, ...]
"""For each axis of a value, which axis of the temporary it is; None if it is none of them."""

POINTWISE = ELEMENTWISE | {KEEP, EXPAND}


def lay_out(program: UOp, trace: Trace) -> UOp:
    """The program with the axes of its temporaries in the order in which they are read."""
    order = program.toposort()
    readers: dict[UOp, list[UOp]] = defaultdict(list)
    for node in order:
        for source in set(node.src):
            readers[source].append(node)
    done: dict[UOp, UOp] = {}
    for node in order:
        new = node.with_src(tuple([done[s] for s in node.src]))
        axes = _wanted(node, readers) if node.op is STAGE and len(node.src) == 1 else None
        if axes is not None:
            inverse = sorted(range(len(axes)), key=lambda axis: axes[axis])
            held = make(STAGE, (permute(new.src[0], axes),), node.arg)
            new = permute(held, inverse)
            trace.fired["layout"] += 1
        done[node] = new
    return done[program]


def _wanted(stage: UOp, readers: Mapping[UOp, list[UOp]]) -> tuple[int, ...] | None:
    """The one order of axes in which a STAGE is read, if that is not its own."""
    start: Axes = tuple([a if size != 1 else None for a, size in enumerate(stage.shape)])
    orders: set[Axes] = set()
    waiting, seen = [(stage, start)], {(stage, start)}
    while waiting:
        node, axes = waiting.pop()
        for reader in readers[node]:
            moved = _through(reader, node.shape, axes)
            if moved is None:
                orders.add(tuple([a for a in axes if a is not None]))
            elif reader.op is not REDUCE and (reader, moved) not in seen:
                seen.add((reader, moved))
                waiting.append((reader, moved))
    if len(orders) != 1:
        return None
    (order,) = orders
    whole = len(order) == len([a for a in start if a is not None])
    if not whole or list(order) == sorted(a for a in order if a is not None):
        return None
    ones = [a for a, size in enumerate(stage.shape) if size == 1]
    return (*ones, *[a for a in order if a is not None])


def _through(reader: UOp, shape: Shape, axes: Axes) -> Axes | None:
    """The axes of a value that is made of one with these axes; None where an order is final."""
    if reader.op is PERMUTE:
        return tuple([axes[a] for a in reader.arg])
    if reader.op in POINTWISE:
        return (*[None] * (len(reader.shape) - len(axes)), *axes)
    if reader.op is RESHAPE and _long(reader.shape) == _long(shape):
        named = iter([a for a, size in zip(axes, shape, strict=True) if size != 1])
        return tuple([next(named) if size != 1 else None for size in reader.shape])
    return axes if reader.op in (FLIP, PAD, SHRINK, REDUCE) else None


def _long(shape: Shape) -> list[int]:
    """The axes that have more than one element."""
    return [size for size in shape if size != 1]
