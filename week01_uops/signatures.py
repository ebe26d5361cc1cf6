"""Typing rules of elementwise ops, shared by every week that adds one.

Sources broadcast as in NumPy: shapes are aligned at the right, and an axis of size 1 grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from week01_uops.dtypes import DType, bool_, void
from week01_uops.errors import ProgramError
from week01_uops.node import Shape, Signature, Type, UOp

Allowed = Callable[[DType], bool]


def any_dtype(dtype: DType) -> bool:
    """Every dtype that has values."""
    return dtype is not void


def number(dtype: DType) -> bool:
    """Integers and floats, not bool."""
    return dtype.is_int or dtype.is_float


def integer(dtype: DType) -> bool:
    """Integers, not bool."""
    return dtype.is_int


def floating(dtype: DType) -> bool:
    """Floats."""
    return dtype.is_float


_NAMES: Mapping[Allowed, str] = {
    any_dtype: "a value",
    number: "an integer or a float",
    integer: "an integer",
    floating: "a float",
}


def expect_value(node: UOp) -> None:
    """E409 unless the node is a value, or storage that may be read whole as one."""
    if node.dtype is void:
        raise ProgramError("E409", f"expected a value, got the effect {node.op}", (node,))
    if node.place is not None and node.place.indexed:
        raise ProgramError("E409", "expected a value, got a place; LOAD reads it", (node,))


def expect_dtype(node: UOp, allowed: Allowed) -> None:
    """E402 unless the node's dtype is allowed."""
    if not allowed(node.dtype):
        raise ProgramError("E402", f"expected {_NAMES[allowed]}, got {node.dtype}", (node,))


def broadcast(shapes: tuple[Shape, ...]) -> Shape:
    """The shape that all broadcast to; E403 if there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = tuple(
        next((size for size in column if size != 1), 1) for column in zip(*padded, strict=True)
    )
    for shape in padded:
        if any(size not in (1, wanted) for size, wanted in zip(shape, result, strict=True)):
            listed = " and ".join(str(list(s)) for s in shapes)
            raise ProgramError("E403", f"expected shapes that broadcast, got {listed}")
    return result


def _same_dtype(a: UOp, b: UOp) -> None:
    if a.dtype is not b.dtype:
        raise ProgramError(
            "E401", f"expected sources of one dtype, got {a.dtype} and {b.dtype}; CAST one", (a, b)
        )


def unary(allowed: Allowed) -> Signature:
    """x → the same dtype and shape."""

    def signature(src: tuple[UOp, ...], arg: Any) -> Type:  # noqa: ANN401
        (x,) = src
        expect_value(x)
        expect_dtype(x, allowed)
        return Type(x.dtype, x.shape)

    return signature


def binary(allowed: Allowed, result: DType | None = None) -> Signature:
    """a, b of one dtype → that dtype, or `result`; shapes broadcast."""

    def signature(src: tuple[UOp, ...], arg: Any) -> Type:  # noqa: ANN401
        a, b = src
        if a.place is not None or b.place is not None or a.dtype is void or b.dtype is void:
            expect_value(a)
            expect_value(b)
        if a.dtype is not b.dtype:
            _same_dtype(a, b)
        if not allowed(a.dtype):
            expect_dtype(a, allowed)
        shape = a.shape if a.shape == b.shape else broadcast((a.shape, b.shape))
        return Type(result or a.dtype, shape)

    return signature


def select(src: tuple[UOp, ...], arg: Any) -> Type:  # noqa: ANN401
    """cond (bool), a, b of one dtype → that dtype; shapes broadcast."""
    condition, a, b = src
    for item in src:
        expect_value(item)
    if condition.dtype is not bool_:
        raise ProgramError("E402", f"expected a bool condition, got {condition.dtype}", src)
    _same_dtype(a, b)
    return Type(a.dtype, broadcast((condition.shape, a.shape, b.shape)))


def cast(src: tuple[UOp, ...], arg: DType) -> Type:
    """x → arg, same shape."""
    expect_value(src[0])
    return Type(arg, src[0].shape)
