"""The C renderer with vectors: GCC's vector extensions, which clang has too.

A RANGE of kind vector opens no loop. What depends on it is a vector, of which the range's size
is the number of lanes; an access is wide where its offset grows by one from lane to lane.
"""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops.dtypes import float64
from week01_uops.node import Op, UOp
from week01_uops.ops import EXP2, LOG2
from week02_render.c_kernel import Tables
from week02_render.c_prelude import PRELUDE
from week02_render.c_text import C_TEXT, Terms, TextRule, call, rounded, wide
from week02_render.c_types import SHORT, SUM, Term, at
from week02_render.render import render_c
from week05_06_memory.c_vector_access import VECTOR_STATEMENTS
from week05_06_memory.c_vector_kernel import VectorKernel
from week05_06_memory.c_vector_prelude import VECTOR_PRELUDE
from week05_06_memory.ops import LARGER, SQRT


def of_float32(name: str) -> TextRule:
    """A polynomial in float32; of a float64, the function of the C library."""

    def row(node: UOp, terms: Terms) -> Term:
        if node.dtype is float64:
            return C_TEXT[node.op](node, terms)
        return rounded(node.dtype, call(f"{name}_f32", *terms))

    return row


def square_root(node: UOp, terms: Terms) -> Term:
    """The machine's square root, of −0 too 0; of a half in float."""
    suffix = "" if node.dtype is float64 else "f"
    x = Term(f"{at(SUM, terms[0])} + 0.0{suffix}", SUM)
    return rounded(node.dtype, call(f"__builtin_sqrt{suffix}", x))


def larger(node: UOp, terms: Terms) -> Term:
    """One comparison; halves are floats."""
    return call(f"larger_{SHORT[wide(node.dtype)]}", *terms)


SCALAR_TEXT: Mapping[Op, TextRule] = {
    **C_TEXT,
    EXP2: of_float32("exp2"),
    LOG2: of_float32("log2"),
    SQRT: square_root,
    LARGER: larger,
}
"""The text of scalars, with the functions that vectors have."""

C = Tables(SCALAR_TEXT, VECTOR_STATEMENTS, {**PRELUDE, **VECTOR_PRELUDE}, VectorKernel)
"""The renderer of weeks 5 and 6."""


def render_vector_c(program: UOp, *, checked: bool = False) -> str:
    """The translation unit of a program of kernels in which ranges may be vectors."""
    return render_c(program, checked=checked, tables=C)
