"""Scans by movement ops alone, and what they count: positions, triangles."""

from __future__ import annotations

from week01_uops.dtypes import DType, int64
from week01_uops.node import Op, UOp
from week01_uops.ops import ADD, MAX, MUL
from week03_loops.library.arithmetic import add, le, mul, sub, where
from week03_loops.library.check import axis_of, expect, expect_rank
from week03_loops.library.movement import full, narrow, pad_with, unsqueeze, windows
from week03_loops.library.reduction import reduce_axes
from week03_loops.ops import identity, reshape

BLOCK = 256
"""Up to this length `arange` is one scan; a longer one is a sum of two short ones."""


def _scan(name: str, op: Op, x: UOp, axis: int) -> UOp:
    """y[i] = op over x[0 … i] along the axis: windows of the whole length, ending at i.

    The identity of `op` stands before the first element, so that every window is full. The
    terms count as length² until a compiler finds the running value in them.
    """
    at = axis_of(name, axis, len(x.shape))
    length = x.shape[at]
    if length == 0:
        return x
    before = [(length - 1, 0) if a == at else (0, 0) for a in range(len(x.shape))]
    filled = pad_with(x, before, identity(op, x.dtype))
    view = windows(filled, [at], [length], [1], [1])
    return reduce_axes(name, op, view, -1, keepdim=False)


def cumsum(x: UOp, axis: int = 0) -> UOp:
    """Running sum y[i] = x[0] + … + x[i] along the axis; integers wrap, bool is E402."""
    return _scan("cumsum", ADD, x, axis)


def cumprod(x: UOp, axis: int = 0) -> UOp:
    """Running product y[i] = x[0]·…·x[i] along the axis; of bools: all so far."""
    return _scan("cumprod", MUL, x, axis)


def cummax(x: UOp, axis: int = 0) -> UOp:
    """Running maximum y[i] = max(x[0], …, x[i]) along the axis; of bools: any so far."""
    return _scan("cummax", MAX, x, axis)


def arange(count: int, dtype: DType = int64) -> UOp:
    """Positions [0, 1, …, count − 1]: the running sum of ones, less one.

    Past `BLOCK` elements b·[0, 1, …] + [0 … b − 1], so that no scan is long.
    """
    expect(count >= 0, "E311", f"arange: expected a count ≥ 0, got {count}")
    if count <= BLOCK:
        return sub(cumsum(full(1, dtype, (count,))), 1)
    rows = -(-count // BLOCK)
    starts = unsqueeze(mul(arange(rows, dtype), BLOCK), 1)
    blocks = add(starts, arange(BLOCK, dtype))
    return narrow(reshape(blocks, (rows * BLOCK,)), 0, 0, count)


def lower_triangle(rows: int, columns: int, diagonal: int = 0) -> UOp:
    """A bool mask (rows, columns), true where column ≤ row + diagonal."""
    row = unsqueeze(add(arange(rows), diagonal), 1)
    return le(arange(columns), row)


def tril(x: UOp, diagonal: int = 0) -> UOp:
    """Keep x (…, m, n) where column ≤ row + diagonal, 0 elsewhere; as numpy.tril."""
    expect_rank("tril", "x", x, 2, "(…, m, n)")
    mask = lower_triangle(x.shape[-2], x.shape[-1], diagonal)
    return where(mask, x, identity(ADD, x.dtype))
