"""Movement ops as index arithmetic: which element of the source a result's element is.

Each map takes the indices of the result and gives those of the source, with a condition where
the element may be a zero that PAD put there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from week01_uops.dtypes import int64
from week01_uops.node import Op, Shape, UOp, const
from week01_uops.ops import ADD, CMPLT, FLOORDIV, FLOORMOD, MUL
from week01_uops.rewrite import rewrite
from week01_uops.simplify import SIMPLIFY
from week02_render.lower import IndexMap, Indices, both, broadcast_indices
from week03_loops.ops import EXPAND, FLIP, PAD, PERMUTE, RESHAPE, SHRINK

ZERO = const(0, int64)


def _offset(i: UOp, amount: int) -> UOp:
    return ADD(i, amount) if amount else i


def axis_groups(a: Shape, b: Shape) -> Iterator[tuple[range, range]]:
    """Matching runs of axes of two shapes with equal numbers of elements, as short as can be."""
    i = j = 0
    while i < len(a) or j < len(b):
        start, other = i, j
        left = right = 1
        while (i == start and j == other) or left != right:
            if i < len(a) and (left <= right or j == len(b)):
                left *= a[i]
                i += 1
            else:
                right *= b[j]
                j += 1
        yield range(start, i), range(other, j)


def _reshape(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    """Row-major: the flat offset within each run of axes, taken apart again."""
    source = node.src[0].shape
    if 0 in source:
        return (ZERO,) * len(source), None
    indices: list[UOp] = []
    for ours, theirs in axis_groups(source, node.shape):
        if len(ours) == len(theirs) == 1:
            indices.append(at[theirs[0]])
        else:
            flat = flatten([at[axis] for axis in theirs], [node.shape[axis] for axis in theirs])
            indices += unflatten(flat, [source[axis] for axis in ours])
    return tuple(indices), None


def flatten(at: list[UOp], sizes: list[int]) -> UOp:
    """Σ iₖ · (product of the sizes behind k)."""
    flat = ZERO
    for i, size in zip(at, sizes, strict=True):
        flat = i if flat is ZERO else ADD(MUL(flat, size), i) if size != 1 else flat
    return flat


def unflatten(flat: UOp, sizes: list[int]) -> list[UOp]:
    """The indices of a flat row-major offset; axes of size 1 have index 0."""
    indices: list[UOp] = []
    stride = 1
    left = [k for k, size in enumerate(sizes) if size != 1]
    for axis in reversed(range(len(sizes))):
        size = sizes[axis]
        if size == 1:
            indices.append(ZERO)
            continue
        i = FLOORDIV(flat, stride) if stride != 1 else flat
        i = FLOORMOD(i, size) if axis != left[0] else i
        indices.append(simplify_index(i))
        stride *= size
    return indices[::-1]


def simplify_index(i: UOp) -> UOp:
    """The index in the simplest form that the rules of week 1 find."""
    return rewrite(i, SIMPLIFY)


def _expand(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    return broadcast_indices(at, node.src[0].shape, node.shape), None


def _permute(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    by_source = dict(zip(node.arg, at, strict=True))
    return tuple([by_source[axis] for axis in range(len(at))]), None


def _flip(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    mirrored = [
        simplify_index(ADD(MUL(i, -1), size - 1)) if axis in node.arg else i
        for axis, (i, size) in enumerate(zip(at, node.shape, strict=True))
    ]
    return tuple(mirrored), None


def _shrink(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    shifted = [_offset(i, start) for i, (start, _) in zip(at, node.arg, strict=True)]
    return tuple(map(simplify_index, shifted)), None


def _pad(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    """Inside where before ≤ i < before + size, unless the interval of i says so already."""
    valid: UOp | None = None
    indices: list[UOp] = []
    for i, size, (before, _) in zip(at, node.src[0].shape, node.arg, strict=True):
        low, high = i.interval
        if low < before:
            valid = both(valid, CMPLT(before - 1, i))
        if high >= before + size:
            valid = both(valid, CMPLT(i, before + size))
        indices.append(simplify_index(_offset(i, -before)))
    return tuple(indices), valid if valid is None else simplify_index(valid)


INDEX_MAPS: Mapping[Op, IndexMap] = {
    RESHAPE: _reshape,
    EXPAND: _expand,
    PERMUTE: _permute,
    FLIP: _flip,
    SHRINK: _shrink,
    PAD: _pad,
}
