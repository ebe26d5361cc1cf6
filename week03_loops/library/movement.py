"""Helpers of shape: axes put in and taken out, joins, fills, and the view of sliding windows."""

from __future__ import annotations

from collections.abc import Sequence

from week01_uops.dtypes import DType, Value, bool_
from week01_uops.node import UOp
from week03_loops.library.arithmetic import add, maximum, number, where
from week03_loops.library.check import axis_of, expect
from week03_loops.ops import expand, pad, permute, reshape, shrink


def full(value: Value, dtype: DType, shape: Sequence[int]) -> UOp:
    """A constant expanded to a shape."""
    return expand(number(value, dtype), shape)


def unsqueeze(x: UOp, axis: int) -> UOp:
    """A new axis of size 1 that becomes axis `axis` of the result."""
    at = axis_of("unsqueeze", axis, len(x.shape) + 1)
    return reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


def transpose(x: UOp, first: int = -2, second: int = -1) -> UOp:
    """Two axes exchanged."""
    axes = list(range(len(x.shape)))
    a, b = (axis_of("transpose", axis, len(axes)) for axis in (first, second))
    axes[a], axes[b] = axes[b], axes[a]
    return permute(x, axes)


def move_axis(x: UOp, source: int, destination: int) -> UOp:
    """Axis `source` put where it becomes axis `destination`, the others in order."""
    rank = len(x.shape)
    source, destination = (axis_of("move_axis", a, rank) for a in (source, destination))
    axes = [axis for axis in range(rank) if axis != source]
    return permute(x, (*axes[:destination], source, *axes[destination:]))


def narrow(x: UOp, axis: int, start: int, end: int) -> UOp:
    """x[…, start:end, …] along one axis, 0 ≤ start ≤ end ≤ its size."""
    at = axis_of("narrow", axis, len(x.shape))
    good = 0 <= start <= end <= x.shape[at]
    expect(good, "E410", f"narrow: expected bounds in [0, {x.shape[at]}], got [{start}, {end})", x)
    return shrink(x, [(start, end) if a == at else (0, size) for a, size in enumerate(x.shape)])


def split(x: UOp, axis: int, count: int) -> tuple[UOp, ...]:
    """Cut x along an axis into `count` equal parts."""
    at = axis_of("split", axis, len(x.shape))
    good = count > 0 and x.shape[at] % count == 0
    expect(good, "E404", f"split: expected axis {at} a multiple of {count}, got {x.shape[at]}", x)
    size = x.shape[at] // count
    return tuple(narrow(x, at, i * size, (i + 1) * size) for i in range(count))


def pad_axis(x: UOp, axis: int, before: int, after: int) -> UOp:
    """Put zeros before and after along one axis."""
    return pad(x, [(before, after) if a == axis else (0, 0) for a in range(len(x.shape))])


def concatenate(parts: Sequence[UOp], axis: int = 0) -> UOp:
    """The parts one after the other along an axis: each PADded to the whole, then added.

    Bools are combined with or. All other axes must agree (E403).
    """
    expect(bool(parts), "E406", "concatenate: expected at least one part, got none")
    at = axis_of("concatenate", axis, len(parts[0].shape))
    for part in parts:
        same = (
            part.shape[:at] + part.shape[at + 1 :] == parts[0].shape[:at] + parts[0].shape[at + 1 :]
        )
        wanted = f"shapes equal but for axis {at}"
        shapes = f"{list(parts[0].shape)} and {list(part.shape)}"
        expect(same, "E403", f"concatenate: expected {wanted}, got {shapes}", part)
    total = sum(part.shape[at] for part in parts)
    result, start = None, 0
    for part in parts:
        placed = pad_axis(part, at, start, total - start - part.shape[at])
        combine = maximum if part.dtype is bool_ else add
        result = placed if result is None else combine(result, placed)
        start += part.shape[at]
    assert result is not None
    return result


def pad_with(x: UOp, margins: Sequence[tuple[int, int]], value: Value) -> UOp:
    """Put `value` before and after along each axis: WHERE(PAD(true), PAD(x), value)."""
    zeros = pad(x, margins)
    if zeros is x or value == 0:
        return zeros
    return where(pad(full(True, bool_, x.shape), margins), zeros, value)


def windows(
    x: UOp,
    axes: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> UOp:
    """Every position of a sliding window: the axes become positions, window axes come last.

    result[…, o, …, j, …] = x[…, o·stride + j·dilation, …] along each of the axes, with
    (length − (size − 1)·dilation − 1) // stride + 1 positions, which must be ≥ 1.
    """
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        x = _windows_of_axis(x, axis, size, stride, dilation)
    return x


def _windows_of_axis(x: UOp, axis: int, size: int, stride: int, dilation: int) -> UOp:
    """Windows along one axis.

    If they do not overlap, a RESHAPE. Otherwise the axis is repeated and cut into rows that
    are `dilation` longer than a multiple of it, so that each row starts `dilation` further on:
    row j, column t of pitch p = m·length + dilation is x[(j·p + t) mod length] = x[j·dilation + t].
    """
    before, length, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    count = (length - (size - 1) * dilation - 1) // stride + 1
    if (dilation == 1 or size == 1) and size <= stride and count * stride <= length:
        x = narrow(x, axis, 0, count * stride)
        x = narrow(reshape(x, (*before, count, stride, *after)), axis + 1, 0, size)
        return move_axis(x, axis + 1, -1)
    pitch = length * max(1, -((dilation - count * stride) // length)) + dilation
    copies = -(-size * pitch // length)
    x = expand(reshape(x, (*before, 1, length, *after)), (*before, copies, length, *after))
    x = narrow(reshape(x, (*before, copies * length, *after)), axis, 0, size * pitch)
    x = narrow(reshape(x, (*before, size, pitch, *after)), axis + 1, 0, count * stride)
    return move_axis(every(x, axis + 1, stride), axis, -1)


def every(x: UOp, axis: int, stride: int) -> UOp:
    """x[…, ::stride, …] along an axis whose size is a multiple of the stride."""
    if stride == 1:
        return x
    before, length, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    rows = reshape(x, (*before, length // stride, stride, *after))
    return reshape(narrow(rows, axis + 1, 0, 1), (*before, length // stride, *after))
