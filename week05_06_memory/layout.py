"""The order of a temporary's axes in memory: that in which it is read.

    PERMUTE(STAGE(x)), and nothing else reads the STAGE   →   STAGE(PERMUTE(x))

The derivative of a product leaves the axes of its factors in another order, and whoever wants
the result permutes it. Where all readers see it through one permutation, the kernel that writes
it does so in the readers' order, and their rows are contiguous. Axes of size 1 may come and go on
the way. A permutation that only puts axes in front that are summed over says nothing of order.
"""

from __future__ import annotations

from collections import defaultdict

from week01_uops.node import UOp, make
from week01_uops.rewrite import Trace
from week02_render.ops import STORE
from week03_loops.ops import PERMUTE, REDUCE, RESHAPE
from week04_fusion.ops import STAGE


def lay_out(program: UOp, trace: Trace) -> UOp:
    """The program with permutations of temporaries taken into them."""
    order = program.toposort()
    readers: dict[UOp, list[UOp]] = defaultdict(list)
    for node in order:
        for source in set(node.src):
            readers[source].append(node)
    inside, outside = _moves(order, readers)
    done: dict[UOp, UOp] = {}
    for node in order:
        new = node.with_src(tuple([done[s] for s in node.src]))
        if node in inside:
            new = new.src[0]
        elif node in outside:
            new = make(STAGE, (new,), outside[node].arg)
            trace.fired["layout"] += 1
        done[node] = new
    return done[program]


def _moves(
    order: list[UOp], readers: dict[UOp, list[UOp]]
) -> tuple[frozenset[UOp], dict[UOp, UOp]]:
    """STAGEs that are taken off, and the permutations that they are put around instead."""
    outside: dict[UOp, UOp] = {}
    for node in order:
        if node.op is STAGE and len(node.src) == 1:
            last = _last_permutation(node, readers)
            if last is not None and not _is_reduced(last, readers):
                outside[last] = node
    return frozenset(outside.values()), outside


def _last_permutation(node: UOp, readers: dict[UOp, list[UOp]]) -> UOp | None:
    """The end of the permutations through which alone a node is read."""
    found = None
    while len(readers[node]) == 1:
        (node,) = readers[node]
        if node.op is PERMUTE:
            found = node
        elif node.op is not RESHAPE or _long(node.shape) != _long(node.src[0].shape):
            break
    return found


def _is_reduced(node: UOp, readers: dict[UOp, list[UOp]]) -> bool:
    """Whether nothing but sums is made of a node in the order of its axes."""
    waiting, seen = [node], {node}
    while waiting:
        for reader in readers[waiting.pop()]:
            if reader.op in (STAGE, STORE):
                return False
            if reader.op not in (PERMUTE, REDUCE) and reader not in seen:
                seen.add(reader)
                waiting.append(reader)
    return True


def _long(shape: tuple[int, ...]) -> list[int]:
    """The axes that have more than one element."""
    return [size for size in shape if size != 1]
