"""Moves of elements that the library lacks, as expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from week01_uops.dtypes import Value
from week01_uops.node import UOp
from week01_uops.ops import ADD
from week03_loops import library as lib
from week03_loops.library.check import axes_of, axis_of, expect, expect_rank
from week03_loops.library.movement import every, pad_axis
from week03_loops.ops import expand, flip, identity, permute, reshape


def reshaped(x: UOp, shape: Sequence[int]) -> UOp:
    """The elements in another shape, in which one −1 stands for what is left."""
    good = all(size >= -1 for size in shape) and list(shape).count(-1) <= 1
    expect(good, "E311", f"reshape: expected sizes ≥ 0 and at most one -1, got {list(shape)}", x)
    known = math.prod(size for size in shape if size != -1)
    if -1 in shape:
        good = known > 0 and x.size % known == 0
        expect(good, "E404", f"reshape: expected {x.size} elements in {list(shape)}", x)
    return reshape(x, [x.size // known if size == -1 else size for size in shape])


def expanded(x: UOp, shape: Sequence[int]) -> UOp:
    """X broadcast to a shape in which −1 stands for the size that the axis has."""
    new = len(shape) - len(x.shape)
    good = all(size >= 0 or (size == -1 and a >= new) for a, size in enumerate(shape))
    expect(good, "E311", f"expand: expected sizes ≥ 0, or -1 for an old axis, got {list(shape)}", x)
    return expand(x, [x.shape[a - new] if size == -1 else size for a, size in enumerate(shape)])


def permuted(x: UOp, axes: Sequence[int]) -> UOp:
    """The axes in another order; each must stand once."""
    found = [axis_of("permute", axis, len(x.shape)) for axis in axes]
    good = sorted(found) == list(range(len(x.shape)))
    expect(good, "E406", f"permute: expected each of {len(x.shape)} axes once, got {list(axes)}", x)
    return permute(x, found)


def squeeze(x: UOp, axes: int | Sequence[int] | None) -> UOp:
    """Without axes of size 1: all such, or those named that are."""
    named = axes_of("squeeze", axes, len(x.shape))
    return reshape(x, [s for a, s in enumerate(x.shape) if a not in named or s != 1])


def flatten(x: UOp, start: int, end: int) -> UOp:
    """The axes start … end, both included, as one."""
    if not x.shape:
        return reshape(x, (1,))
    first, last = (axis_of("flatten", axis, len(x.shape)) for axis in (start, end))
    expect(first <= last, "E311", f"flatten: expected start ≤ end, got {start} and {end}", x)
    inner = math.prod(x.shape[first : last + 1])
    return reshape(x, (*x.shape[:first], inner, *x.shape[last + 1 :]))


def unflatten(x: UOp, axis: int, sizes: Sequence[int]) -> UOp:
    """One axis as several; one −1 stands for what is left."""
    at = axis_of("unflatten", axis, len(x.shape))
    known = math.prod(size for size in sizes if size != -1)
    full = [x.shape[at] // max(known, 1) if size == -1 else size for size in sizes]
    good = math.prod(full) == x.shape[at]
    expect(good, "E404", f"unflatten: expected {x.shape[at]} elements, got {list(sizes)}", x)
    return reshape(x, (*x.shape[:at], *full, *x.shape[at + 1 :]))


def flipped(x: UOp, axes: int | Sequence[int] | None) -> UOp:
    """The axes reversed."""
    return flip(x, axes_of("flip", axes, len(x.shape)))


def every_nth(x: UOp, axis: int, step: int) -> UOp:
    """x[…, ::step, …] for a step ≥ 1."""
    length = x.shape[axis]
    count = -(-length // step)
    if step == 1:
        return x
    if count <= 1:
        return lib.narrow(x, axis, 0, count)
    margins = [(0, count * step - length if a == axis else 0) for a in range(len(x.shape))]
    return every(pad(x, margins), axis, step)


def spread_out(x: UOp, axis: int, step: int) -> UOp:
    """X with step − 1 zeros between its elements along an axis."""
    length = x.shape[axis]
    if step == 1 or length <= 1:
        return x
    rows = pad_axis(lib.unsqueeze(x, axis + 1), axis + 1, 0, step - 1)
    line = reshape(rows, (*x.shape[:axis], length * step, *x.shape[axis + 1 :]))
    return lib.narrow(line, axis, 0, (length - 1) * step + 1)


def pad(x: UOp, margins: Sequence[tuple[int, int]], value: Value = 0) -> UOp:
    """X with a value around it; a negative margin cuts off."""
    cut = [
        (max(-low, 0), s - max(-high, 0)) for (low, high), s in zip(margins, x.shape, strict=True)
    ]
    for axis, (start, end) in enumerate(cut):
        x = lib.narrow(x, axis, start, end)
    value = float(value) if x.dtype.is_float else value
    return lib.pad_with(x, [(max(low, 0), max(high, 0)) for low, high in margins], value)


def stack(parts: Sequence[UOp], axis: int) -> UOp:
    """The parts along a new axis."""
    return lib.concatenate([lib.unsqueeze(part, axis) for part in parts], axis)


def sections(x: UOp, axis: int, sizes: Sequence[int]) -> list[UOp]:
    """X cut along an axis into pieces of these sizes."""
    at = axis_of("split", axis, len(x.shape))
    good = sum(sizes) == x.shape[at] and all(size >= 0 for size in sizes)
    wanted = f"sizes that add up to {x.shape[at]}"
    expect(good, "E404", f"split: expected {wanted}, got {list(sizes)}", x)
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [lib.narrow(x, at, end - size, end) for end, size in zip(ends, sizes, strict=True)]


def tile(x: UOp, counts: Sequence[int]) -> UOp:
    """X repeated along each axis; more counts than axes add axes, fewer leave the first alone."""
    rank = max(len(counts), len(x.shape))
    counts = (*[1] * (rank - len(counts)), *counts)
    expect(min(counts, default=0) >= 0, "E311", f"tile: expected counts ≥ 0, got {counts}", x)
    shape = (*[1] * (rank - len(x.shape)), *x.shape)
    pairs = [size for c, s in zip(counts, shape, strict=True) for size in (c, s)]
    spread = reshape(x, [size for s in shape for size in (1, s)])
    total = [c * s for c, s in zip(counts, shape, strict=True)]
    return reshape(expand(spread, pairs), total)


def repeat_interleave(x: UOp, count: int, axis: int) -> UOp:
    """Each element `count` times in a row along an axis."""
    at = axis_of("repeat_interleave", axis, len(x.shape))
    wide = lib.unsqueeze(x, at + 1)
    shape = (*x.shape[: at + 1], count, *x.shape[at + 1 :])
    total = (*x.shape[:at], x.shape[at] * count, *x.shape[at + 1 :])
    return reshape(expand(wide, shape), total)


def roll(x: UOp, shift: int, axis: int) -> UOp:
    """The elements moved up by `shift`, those pushed out coming in again below."""
    at = axis_of("roll", axis, len(x.shape))
    length = x.shape[at]
    cut = length - shift % length if length else 0
    if cut in (0, length):
        return x
    return lib.concatenate([lib.narrow(x, at, cut, length), lib.narrow(x, at, 0, cut)], at)


def diagonal(x: UOp, offset: int, first: int, second: int) -> UOp:
    """The elements x[…, i, …, i + offset, …], as the last axis.

    Row i of an m × n matrix padded to m × (n + 1) lies one element further along when the rows are
    read in one line with pitch n, so that a diagonal is a column.
    """
    rank = len(x.shape)
    a, b = (axis_of("diagonal", axis, rank) for axis in (first, second))
    expect(a != b, "E311", f"diagonal: expected two axes, got {first} twice", x)
    x = permute(x, (*[axis for axis in range(rank) if axis not in (a, b)], a, b))
    x = lib.narrow(x, -2, min(max(-offset, 0), x.shape[-2]), x.shape[-2])
    x = lib.narrow(x, -1, min(max(offset, 0), x.shape[-1]), x.shape[-1])
    size = min(x.shape[-2:])
    square = lib.narrow(lib.narrow(x, -2, 0, size), -1, 0, size)
    line = reshape(square, (*x.shape[:-2], size * size))
    padded = pad(line, [*[(0, 0)] * (rank - 2), (0, size)])
    return reshape(
        lib.narrow(reshape(padded, (*x.shape[:-2], size, size + 1)), -1, 0, 1),
        (*x.shape[:-2], size),
    )


def triu(x: UOp, diagonal: int) -> UOp:
    """X where column ≥ row + diagonal, 0 elsewhere."""
    expect_rank("triu", "x", x, 2, "(…, m, n)")
    below = lib.lower_triangle(x.shape[-2], x.shape[-1], diagonal - 1)
    return lib.where(below, identity(ADD, x.dtype), x)
