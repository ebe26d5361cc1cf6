"""The C renderer with vectors: GCC's vector extensions, which clang has too.

A RANGE of kind vector opens no loop. What depends on it is a vector, of which the range's size
is the number of lanes; an access is wide where its offset grows by one from lane to lane.
"""

from __future__ import annotations

from week01_uops.node import UOp
from week02_render.c_kernel import Tables
from week02_render.c_prelude import PRELUDE
from week02_render.c_text import C_TEXT
from week02_render.render import render_c
from week05_06_memory.c_vector_access import VECTOR_STATEMENTS
from week05_06_memory.c_vector_kernel import VectorKernel
from week05_06_memory.c_vector_prelude import VECTOR_PRELUDE

C = Tables(C_TEXT, VECTOR_STATEMENTS, {**PRELUDE, **VECTOR_PRELUDE}, VectorKernel)
"""The renderer of weeks 5 and 6."""


def render_vector_c(program: UOp, *, checked: bool = False) -> str:
    """The translation unit of a program of kernels in which ranges may be vectors."""
    return render_c(program, checked=checked, tables=C)
