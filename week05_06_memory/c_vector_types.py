"""How vectors are written in C: types, and values brought to one of them.

A vector is a term with several lanes. Its elements have the type that `held` names; `f32x16` are
16 of float32. A scalar becomes a vector where an op needs one: `all_f32x16(x)`.
"""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops import dtypes
from week01_uops.dtypes import DType
from week01_uops.errors import CompilerError
from week01_uops.node import CONST, UOp
from week02_render.c_text import call
from week02_render.c_types import ATOM, HALVES, SHORT, UNARY, Term, at, literal
from week02_render.ops import RANGE

ELEMENTS = (*dtypes.INTEGERS, dtypes.float32, dtypes.float64)
"""What vectors consist of."""

LANES = (2, 4, 8, 16, 32, 64)

SQUARES = (4, 8, 16)
"""Lanes of the vectors that are transposed in registers."""


def is_vector(node: UOp) -> bool:
    """Whether a node is a RANGE whose iterations are lanes."""
    return node.op is RANGE and node.arg.kind == "vector"


def lanes_of(item: UOp) -> int:
    """The lanes of a vector RANGE; CompilerError if there is no such vector."""
    size: int = item.arg.size
    if size not in LANES or item.src:
        sizes = ", ".join(map(str, LANES))
        raise CompilerError(
            f"expected a vector range of {sizes} iterations and without a bound, got {item!r}"
        )
    return size


def held(node: UOp) -> DType:
    """The element type of the vector that holds a value.

    A bool is a mask of 32 bits, 0 or −1; a half is a float32; an int64 that fits 32 bits has 32.
    """
    dtype = node.dtype
    if dtype is dtypes.bool_:
        return dtypes.int32
    if dtype in HALVES:
        return dtypes.float32
    if dtype is dtypes.int64:
        low, high = node.interval
        if dtypes.int32.min <= low and high <= dtypes.int32.max:
            return dtypes.int32
    return dtype


def in_memory(dtype: DType, is_value: bool) -> DType:
    """The element type of vectors in memory: bits for a half, unless values are stored."""
    if dtype is dtypes.bool_:
        return dtypes.uint8
    if dtype in HALVES:
        return dtypes.float32 if is_value else dtypes.uint16
    return dtype


def vector_type(dtype: DType, lanes: int) -> str:
    """f32x16."""
    return f"{SHORT[dtype]}x{lanes}"


def converted(x: Term, dtype: DType, to: DType) -> Term:
    """A vector's values in another element type, as C converts them."""
    if dtype is to:
        return x
    return Term(f"__builtin_convertvector({x.text}, {vector_type(to, x.lanes)})", ATOM, x.lanes)


def reinterpreted(x: Term, dtype: DType) -> Term:
    """A vector's bits read as another element type of the same size."""
    return Term(f"({vector_type(dtype, x.lanes)}){at(UNARY, x)}", UNARY, x.lanes)


def spread(node: UOp, x: Term, lanes: int, to: DType | None = None) -> Term:
    """A value as a vector: a scalar in every lane, a vector in another element type."""
    to = to or held(node)
    if x.lanes > 1:
        return converted(x, held(node), to)
    if node.dtype is dtypes.bool_:
        x = Term(f"-{at(ATOM, x)}", UNARY)
    elif node.op is CONST and node.dtype.is_int:
        x = literal(node.arg.value, to)
    return call(f"all_{vector_type(to, lanes)}", x)._replace(lanes=lanes)


UNSIGNED: Mapping[DType, DType] = {
    dtype: next(u for u in dtypes.INTEGERS if u.kind == "uint" and u.bits == dtype.bits)
    for dtype in dtypes.INTEGERS
}
"""The unsigned type of the same size."""
