"""A sum of 16-bit floats is a sum in float32, rounded once: only so may it be taken apart.

    REDUCE(x : float16, k…)   →   CAST(REDUCE(CAST(x, float32), k…), float16)

A tile's accumulators and what is left of a loop are then added in float32 too. A maximum is exact
in any dtype, and stays.
"""

from __future__ import annotations

from week01_uops.node import UOp, make
from week01_uops.ops import CAST, MAX
from week01_uops.pattern import Rule, any_of, var
from week01_uops.rewrite import Rules
from week03_loops.ops import REDUCE
from week03_loops.reduction import accumulator_dtype

x = var("x")


def _widened(node: UOp, x: UOp) -> UOp | None:
    wide = accumulator_dtype(node.dtype)
    if wide is node.dtype or node.arg.op is MAX:
        return None
    total = node.with_src((make(CAST, (x,), wide), *node.src[1:]))
    return make(CAST, (total,), node.dtype)


WIDE_SUMS = Rules(
    "sums of 16-bit floats",
    (Rule("wide_sum", any_of({REDUCE}, x).with_more(), _widened, proof="evaluator"),),
)
