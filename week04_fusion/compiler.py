"""Week 4's compiler: few kernels, each fused, over shared scratch memory."""

from __future__ import annotations

from week01_uops.passes import Dialect, Pass
from week01_uops.reference import Reference
from week02_render.ops import LINEAR
from week02_render.render import render_c
from week03_loops import compiler as week03
from week04_fusion.fuse import fuse
from week04_fusion.merge import merge_kernels
from week04_fusion.ops import INTERNAL, OPS
from week04_fusion.plan import plan_buffers
from week04_fusion.stage import stage_all, store_stages

DIALECT = Dialect("week04", OPS)
TENSOR = Dialect("week04 tensor level", (OPS | INTERNAL) - {LINEAR})

STAGE_ALL = Pass("stage", "tensor", stage_all, TENSOR, "hold every value in a temporary")
FUSE = Pass("fuse", "tensor", fuse, TENSOR, "take off the STAGEs that are not worth their price")
STORE_STAGES = Pass(
    "storage", "loop", store_stages, week03.TENSOR, "make each STAGE storage that is filled"
)
MERGE = Pass(
    "merge", "loop", merge_kernels, week03.LOOP, "join kernels that read the same over one nest"
)
PLAN = Pass("plan", "loop", plan_buffers, week03.LOOP, "share memory among temporaries by lifetime")

COMPILER = (
    week03.COMPILER.extend("week04", DIALECT, {week03.TENSOR: TENSOR})
    .replace_pass("reads", STAGE_ALL, FUSE, STORE_STAGES, week03.READS)
    .replace_pass("temporaries", MERGE, PLAN)
)

REFERENCE = Reference(COMPILER, {"c": render_c})
