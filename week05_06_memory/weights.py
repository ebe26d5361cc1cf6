"""Rows of weights that a body stores: p[i, j] = EXP2(a·x(j) − a·m)·f(j), as a softmax does.

m = max x, and some Σ EXP2(a·x − a·m)·v is taken as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.node import UOp
from week05_06_memory.inplace import Row, row_of
from week05_06_memory.running import Running


@dataclass(frozen=True)
class Weights:
    """The weights that are stored.

    Attributes:
        row: what the body stores.
        item: the loop over a row.
        over: the weight, over the counter, as a sum has it.
        node: the weight, over the loop.
    """

    row: Row
    item: UOp
    over: UOp
    node: UOp

    @classmethod
    def of(cls, body: UOp, running: Running) -> Weights | None:
        """Those of a body that stores one row for each maximum, as long as its own."""
        row = row_of(body)
        if row is None or any(True for _ in running.edges()):
            return None
        free = [r for r in body.src[1:] if r not in running.loops]
        if len(free) != 1 or free[0].arg.size != running.counter.arg.size:
            return None
        inside = set(row.value.toposort())
        for total in running.totals:
            node = substitute(total.weight, {running.counter: free[0]})
            if node in inside and node.dtype is row.value.dtype:
                return cls(row, free[0], total.weight, node)
        return None
