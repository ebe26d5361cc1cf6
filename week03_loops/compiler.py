"""Week 3's compiler: movement ops and reductions, as index arithmetic and loops.

Nothing is held in a temporary yet: a value is computed wherever it is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops.node import Op, UOp
from week01_uops.passes import Dialect, Pass, on_kernels, rules_pass
from week01_uops.reference import Reference
from week01_uops.rewrite import rewrite
from week01_uops.simplify import SIMPLIFY
from week02_render import compiler as week02
from week02_render.contract import KEEPING, keep_products
from week02_render.gates import GATES
from week02_render.lower import ROWS as WEEK02_ROWS
from week02_render.lower import Element, Lowering, Row, moved
from week02_render.ops import LINEAR
from week02_render.reads import await_reads, settle_reads
from week02_render.render import render_c
from week03_loops import reduction
from week03_loops.counting import COUNTING
from week03_loops.movement import INDEX_MAPS
from week03_loops.ops import INTERNAL, MOVEMENT, OPS, REDUCE
from week03_loops.rules import MOVEMENT_RULES

DIALECT = Dialect("week03", OPS)
TENSOR = Dialect("week03 tensor level", (OPS | INTERNAL) - {LINEAR})
LOOP = week02.LOOP | {REDUCE}

ROWS: Mapping[Op, Row] = {
    **WEEK02_ROWS,
    **{op: moved(index_map) for op, index_map in INDEX_MAPS.items()},
    REDUCE: reduction.element,
}

RULES = SIMPLIFY + KEEPING + MOVEMENT_RULES
RULES_OF_LOOPS = SIMPLIFY + GATES + COUNTING
SIMPLIFIED = rules_pass("simplify", "tensor", RULES, TENSOR, "fold, cancel, bound, merge moves")
CONTRACT = Pass(
    "contract", "tensor", keep_products(MOVEMENT), TENSOR, "keep shared products out of fma"
)
INDICES = week02.indices(RULES_OF_LOOPS, LOOP)
ORDER = Pass(
    "order", "tensor", await_reads(MOVEMENT), TENSOR, "make writes wait for what is read before"
)
READS = Pass(
    "reads", "tensor", settle_reads(MOVEMENT), TENSOR, "store what is read before it is written"
)
ACCUMULATE = Pass(
    "accumulate",
    "kernel",
    on_kernels(reduction.accumulate),
    week02.LOOP,
    "make each reduction a register and a loop",
)

COMPILER = (
    week02.COMPILER.extend("week03", DIALECT, {week02.TENSOR: TENSOR, week02.LOOP: LOOP})
    .replace_pass("simplify", SIMPLIFIED)
    .replace_pass("order", ORDER)
    .replace_pass("contract", CONTRACT)
    .replace_pass("reads", READS)
    .replace_pass("loops", week02.loops(ROWS, LOOP))
    .replace_pass("indices", INDICES)
    .insert(ACCUMULATE, after="indices")
)


def is_index_arithmetic(node: UOp) -> bool:
    """Whether an element of a closed value is found without any loop, once simplified."""
    lowering = Lowering(ROWS)
    element = lowering.element(Element(node, lowering.ranges(node.shape)))
    return all(n.op is not REDUCE for n in rewrite(element, RULES_OF_LOOPS).toposort())


REFERENCE = Reference(COMPILER, {"c": render_c})
