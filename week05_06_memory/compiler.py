"""The compiler of weeks 5 and 6: week 4's, with loops arranged for the memory hierarchy."""

from __future__ import annotations

from week01_uops.passes import Dialect
from week01_uops.reference import Reference
from week02_render.ops import LINEAR
from week02_render.render import render_c
from week04_fusion import compiler as week04
from week05_06_memory.ops import INTERNAL, OPS

DIALECT = Dialect("week05_06", OPS)
TENSOR = Dialect("week05_06 tensor level", (OPS | INTERNAL) - {LINEAR})

COMPILER = week04.COMPILER.extend("week05_06", DIALECT, {week04.TENSOR: TENSOR})

REFERENCE = Reference(COMPILER, {"c": render_c})
