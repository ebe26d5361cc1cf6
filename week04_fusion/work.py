"""Work: how many operations a value costs, down to the STAGEs that are kept.

    total(x) = size(x)·own(x) + Σ total(source)

counts every element once: a row's maximum that a whole row uses is not the row's work again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from week01_uops.node import UOp
from week01_uops.ops import CAST, EXP2, FLOORDIV, FLOORMOD, LOG2, PARAM, RECIP
from week02_render.ops import KEEP, RANGE, STORAGE
from week03_loops.compiler import is_index_arithmetic
from week03_loops.ops import REDUCE
from week04_fusion.ops import STAGE
from week04_fusion.stage import COMPUTED

INDEX_WORK = 4.0
"""Operations for one element of a value that is index arithmetic."""

WEIGHTS = {**dict.fromkeys((EXP2, LOG2, RECIP, FLOORDIV, FLOORMOD), 8.0), CAST: 0.0, KEEP: 0.0}
"""Operations that do not cost as much as an addition; a CAST is part of the access."""


def constants(order: list[UOp]) -> frozenset[UOp]:
    """Nodes that need no loop and depend on no storage but a position: index arithmetic at most."""
    varying: set[UOp] = set()
    for node in order:
        own = node.op is RANGE or (node.op in STORAGE and not _is_position(node))
        below = own or any(s in varying for s in node.src)
        if below or (node.op is REDUCE and _needs_loop(node)):
            varying.add(node)
    return frozenset(node for node in order if node not in varying)


def _is_position(node: UOp) -> bool:
    """Whether it is a signed integer that the program is given."""
    return node.op is PARAM and not node.shape and node.dtype.kind == "int"


def _needs_loop(node: UOp) -> bool:
    return not is_index_arithmetic(without(node, lambda _: True))


def reducing(order: list[UOp], kept: Iterable[UOp]) -> frozenset[UOp]:
    """Nodes whose work, down to the STAGEs that are kept, holds a reduction."""
    staged = set(kept)
    found: set[UOp] = set()
    for node in order:
        below = any(s in found and s not in staged for s in node.src)
        if node.op is REDUCE or below:
            found.add(node)
    return frozenset(found)


def own_work(node: UOp) -> float:
    """Operations of the node itself for one of its elements."""
    if node.op is REDUCE:
        axes = math.prod(node.src[0].shape[: node.arg.axes])
        return float(axes * math.prod(r.arg.size for r in node.src[1:]))
    return WEIGHTS.get(node.op, 1.0) if node.op in COMPUTED else 0.0


def work_of(order: list[UOp], kept: Iterable[UOp], constant: frozenset[UOp]) -> Mapping[UOp, float]:
    """Operations for all elements of each node, down to the STAGEs that are kept."""
    staged = set(kept)
    work: dict[UOp, float] = {}
    for node in order:
        below = sum(work[s] for s in node.src)
        if node in staged or node.op in STORAGE:
            work[node] = 0.0
        elif node in constant:
            work[node] = INDEX_WORK * node.size
        else:
            work[node] = own_work(node) * node.size + below
    for node in order:
        if node.op is STAGE:
            work[node] = work[node.src[0]]
    return work


def without(program: UOp, drop: Callable[[UOp], bool]) -> UOp:
    """The program without those of its rangeless STAGEs that are dropped."""
    done: dict[UOp, UOp] = {}
    for node in program.toposort():
        src = tuple([done[s] for s in node.src])
        gone = node.op is STAGE and len(src) == 1 and drop(node)
        done[node] = src[0] if gone else node.with_src(src)
    return done[program]
