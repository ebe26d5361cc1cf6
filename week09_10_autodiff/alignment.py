"""Which element of a moved array stands where: a view by offset and strides, as NumPy's.

Element [i₀, i₁, …] of a value goes with element offset + Σ iₐ·strideₐ of an array, counted in
row-major order. The stride is 0 along axes of size 1 and wherever the array was repeated, so two
values of one shape go with the same elements exactly when their views are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from week01_uops.node import Op, UOp
from week03_loops.ops import EXPAND, FLIP, PAD, PERMUTE, RESHAPE, SHRINK

Shape = Sequence[int]


class View(NamedTuple):
    """Offset and strides, one for each axis of the value that goes with the array."""

    offset: int
    strides: tuple[int, ...]


def whole(shape: Shape) -> View:
    """Each element goes with itself."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step if size != 1 else 0)
        step *= size
    return View(0, tuple(reversed(strides)))


def repeated(view: View, rank: int) -> View:
    """Broadcast to a shape of this rank: new axes come in front, sizes of 1 grow."""
    return View(view.offset, (*[0] * (rank - len(view.strides)), *view.strides))


def moved(view: View, node: UOp) -> View | None:
    """The view of a movement op's result, from that of its source; None if there is none."""
    return MOVES[node.op](view, node.src[0].shape, node.arg)


def _reshape(view: View, old: Shape, new: Shape) -> View | None:
    """Axes that continue one another are joined to runs, and the runs split."""
    if 0 in old:
        return None
    runs: list[tuple[int, int]] = []
    for size, step in zip(old, view.strides, strict=True):
        if size != 1:
            joins = runs and runs[-1][1] == size * step
            runs.append((runs.pop()[0] * size if joins else size, step))
    strides = []
    for size in reversed(new):
        count, step = runs.pop() if size != 1 else (1, 0)
        if count % size:
            return None
        strides.append(step)
        if count > size:
            runs.append((count // size, step * size))
    return View(view.offset, tuple(reversed(strides)))


def _expand(view: View, old: Shape, new: Shape) -> View:
    return repeated(view, len(new))


def _permute(view: View, old: Shape, axes: Sequence[int]) -> View:
    return View(view.offset, tuple(view.strides[axis] for axis in axes))


def _flip(view: View, old: Shape, axes: Sequence[int]) -> View:
    offset = view.offset + sum(view.strides[axis] * (old[axis] - 1) for axis in axes)
    strides = (-step if axis in axes else step for axis, step in enumerate(view.strides))
    return View(offset, tuple(strides))


def _pad(view: View, old: Shape, margins: Sequence[tuple[int, int]]) -> View | None:
    """Along axes on which nothing depends there may be more of the same."""
    moves = any(step and any(pair) for step, pair in zip(view.strides, margins, strict=True))
    return None if moves else view


def _shrink(view: View, old: Shape, bounds: Sequence[tuple[int, int]]) -> View:
    steps = list(zip(view.strides, bounds, strict=True))
    offset = view.offset + sum(step * start for step, (start, _) in steps)
    return View(offset, tuple(0 if end - start == 1 else step for step, (start, end) in steps))


MOVES: Mapping[Op, Callable[[View, Shape, Any], View | None]] = {
    RESHAPE: _reshape,
    EXPAND: _expand,
    PERMUTE: _permute,
    FLIP: _flip,
    PAD: _pad,
    SHRINK: _shrink,
}
