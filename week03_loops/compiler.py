"""Week 3's compiler: movement ops and reductions, as index arithmetic and loops.

Nothing is held in a temporary yet: a value is computed wherever it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from week01_uops import compiler as week01
from week01_uops.node import Op
from week01_uops.passes import Dialect, Pass, on_kernels, rules_pass
from week01_uops.simplify import SIMPLIFY
from week02_render import compiler as week02
from week02_render.contract import keep_products
from week02_render.lower import ROWS as WEEK02_ROWS
from week02_render.lower import Row, moved
from week02_render.ops import LINEAR
from week02_render.render import render_c
from week03_loops import reduction
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

RULES = SIMPLIFY + MOVEMENT_RULES
SIMPLIFIED = rules_pass("simplify", "tensor", RULES, TENSOR, "fold, cancel, bound, merge moves")
CONTRACT = Pass(
    "contract", "tensor", keep_products(MOVEMENT), TENSOR, "keep shared products out of fma"
)
ACCUMULATE = Pass(
    "accumulate",
    "kernel",
    on_kernels(reduction.accumulate),
    week02.LOOP,
    "make each reduction a register and a loop",
)

COMPILER = (
    week02.COMPILER.named("week03", DIALECT)
    .replace_pass("inline", replace(week01.INLINE, leaves=TENSOR))
    .replace_pass("simplify", SIMPLIFIED)
    .replace_pass("contract", CONTRACT)
    .replace_pass("loops", week02.loops(ROWS, LOOP))
    .insert(ACCUMULATE, after="indices")
)

REFERENCE = week02.Reference(COMPILER, {"c": render_c})
