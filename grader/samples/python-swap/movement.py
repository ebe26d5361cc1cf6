"""A week-3 pass of one's own: which element of its source an element of a movement op is.

RESHAPE goes through the flat row-major offset of the whole array, and every index is left as it
falls: the course's pass `indices`, further down the chain, simplifies them.
"""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops.dtypes import int64
from week01_uops.node import Op, UOp, const
from week01_uops.ops import ADD, CMPLT, FLOORDIV, FLOORMOD, MUL
from week02_render.lower import IndexMap, Indices
from week03_loops.ops import EXPAND, FLIP, PAD, PERMUTE, RESHAPE, SHRINK

Mapped = tuple[Indices, UOp | None]


def number(value: int) -> UOp:
    """An index that is a constant."""
    return const(value, int64)


def reshape(node: UOp, at: Indices) -> Mapped:
    """Offset = Σ iₖ · (sizes behind k), taken apart by the source's sizes from the right."""
    offset = number(0)
    for i, size in zip(at, node.shape, strict=True):
        offset = ADD(MUL(offset, size), i)
    found: list[UOp] = []
    for size in reversed(node.src[0].shape):
        found.append(FLOORMOD(offset, size))
        offset = FLOORDIV(offset, size)
    return tuple(reversed(found)), None


def expand(node: UOp, at: Indices) -> Mapped:
    """Axes of size 1 stay at 0; axes that are new in front are dropped."""
    source = node.src[0].shape
    behind = zip(at[len(at) - len(source) :], source, strict=True)
    return tuple(i if size != 1 else number(0) for i, size in behind), None


def permute(node: UOp, at: Indices) -> Mapped:
    """Axis k of the result is axis arg[k] of the source."""
    return tuple(at[node.arg.index(axis)] for axis in range(len(at))), None


def flip(node: UOp, at: Indices) -> Mapped:
    """Counted from the other end."""
    turned = [
        ADD(MUL(i, -1), size - 1) if axis in node.arg else i
        for axis, (i, size) in enumerate(zip(at, node.shape, strict=True))
    ]
    return tuple(turned), None


def shrink(node: UOp, at: Indices) -> Mapped:
    """Shifted to the box's start."""
    return tuple(ADD(i, start) for i, (start, _) in zip(at, node.arg, strict=True)), None


def pad(node: UOp, at: Indices) -> Mapped:
    """Shifted back, and valid where before ≤ i < before + size on every axis."""
    valid: UOp | None = None
    for i, size, (before, after) in zip(at, node.src[0].shape, node.arg, strict=True):
        edges = [CMPLT(number(before - 1), i)] if before else []
        edges += [CMPLT(i, number(before + size))] if after else []
        for edge in edges:
            valid = edge if valid is None else MUL(valid, edge)
    return tuple(ADD(i, -before) for i, (before, _) in zip(at, node.arg, strict=True)), valid


INDEX_MAPS: Mapping[Op, IndexMap] = {
    RESHAPE: reshape,
    EXPAND: expand,
    PERMUTE: permute,
    FLIP: flip,
    SHRINK: shrink,
    PAD: pad,
}
