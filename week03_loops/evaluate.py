"""The interpreter of week 3: movement of elements, and reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from week01_uops import numerics
from week01_uops import ops as ops01
from week01_uops.dtypes import DType
from week01_uops.evaluate import Inputs, Meaning, State
from week01_uops.node import Op, UOp
from week01_uops.numerics import Array
from week02_render import evaluate as week02
from week02_render.evaluate import repeated
from week02_render.places import Place
from week02_render.scopes import LoopScope
from week03_loops import ops

Move = Callable[[Array, Any, int], Array]
"""From an array, the op's argument and the number of lanes in front to the moved array."""


def reshape(x: Array, shape: tuple[int, ...], lanes: int) -> Array:
    """The same elements in row-major order, in another shape."""
    return x.reshape(x.shape[:lanes] + shape)


def expand(x: Array, shape: tuple[int, ...], lanes: int) -> Array:
    """Axes of size 1 grow, and new ones come in front."""
    new = len(shape) - (x.ndim - lanes)
    aligned = x.reshape((*x.shape[:lanes], *(1,) * new, *x.shape[lanes:]))
    return np.broadcast_to(aligned, x.shape[:lanes] + shape)


def permute(x: Array, axes: tuple[int, ...], lanes: int) -> Array:
    """Axis k of the result is axis axes[k] of x."""
    return x.transpose(*range(lanes), *(lanes + axis for axis in axes))


def flip(x: Array, axes: tuple[int, ...], lanes: int) -> Array:
    """Each of the axes in reverse order."""
    return np.flip(x, tuple(lanes + axis for axis in axes))


def pad(x: Array, margins: tuple[tuple[int, int], ...], lanes: int) -> Array:
    """Zeros before and after along each axis."""
    new: list[int] = []
    inner: list[slice] = [slice(None)] * lanes
    for size, (low, high) in zip(x.shape[lanes:], margins, strict=True):
        new.append(low + size + high)
        inner.append(slice(low, low + size))
    result = np.zeros((*x.shape[:lanes], *new), x.dtype)
    result[tuple(inner)] = x
    return result


def shrink(x: Array, bounds: tuple[tuple[int, int], ...], lanes: int) -> Array:
    """The box [start, end) along each axis."""
    return x[(slice(None),) * lanes + tuple(slice(start, end) for start, end in bounds)]


def _movement(move: Move) -> Meaning:
    """A place is moved with its element numbers in place of its elements."""

    def meaning(scope: LoopScope, node: UOp) -> Any:  # noqa: ANN401
        found = scope.raw(node.src[0])
        if isinstance(found, Place):
            return found.moved(lambda table: move(table, node.arg, scope.lanes))
        return move(found, node.arg, scope.lanes)

    return meaning


UFUNCS: Mapping[Op, np.ufunc] = {ops01.ADD: np.add, ops01.MUL: np.multiply, ops01.MAX: np.maximum}


def accumulator(dtype: DType) -> np.dtype[Any]:
    """What a reduction is computed in: for floats more bits than the dtype has.

    That is closer to the exact value than any order in the dtype itself and, rounded once in the
    end, as right as each of them. Where the last sum is finite, so is some order's every sum.
    """
    if dtype.is_float:
        return np.dtype(np.longdouble if dtype.precision >= 53 else np.float64)
    return dtype.numpy


def combine(op: Op, dtype: DType, x: Array, axes: tuple[int, ...]) -> Array:
    """x combined over some axes, as it is accumulated. Integers wrap; of bools, and or or."""
    start = numerics.wide(numerics.constant(ops.identity(op, dtype), dtype))[()]
    held = x if np.can_cast(x.dtype, np.longdouble) else numerics.wide(x)
    return np.asarray(UFUNCS[op].reduce(held, axis=axes, dtype=accumulator(dtype), initial=start))


def narrow(dtype: DType, x: Array) -> Array:
    """What was accumulated, rounded or wrapped to the dtype."""
    if dtype.is_float:
        return numerics.round_to(x.astype(np.float64), dtype)
    return numerics.wrap(x, dtype) if dtype.is_int else x


def _reduce(scope: LoopScope, node: UOp) -> Array:
    if len(node.src) > 1:
        return repeated(scope, node, lambda scopes: _reduce_loops(scope, node, scopes))
    axes = tuple(range(scope.lanes, scope.lanes + node.arg.axes))
    x = scope.value(node.src[0])
    return narrow(node.dtype, combine(node.arg.op, node.dtype, x, axes))


def _reduce_loops(scope: LoopScope, node: UOp, scopes: Iterator[LoopScope]) -> Array:
    """The value in each iteration, combined; iterations not carried out count as the identity."""
    op, dtype = node.arg.op, node.dtype
    start = numerics.constant(ops.identity(op, dtype), dtype)
    parts = [np.full((*scope.active.shape, *node.shape), start, accumulator(dtype))]
    for inner in scopes:
        active = inner.active.reshape((*inner.active.shape, *(1,) * len(node.shape)))
        x = np.where(active, inner.value(node.src[0]), start)
        parts.append(combine(op, dtype, x, tuple(range(scope.lanes, inner.lanes))))
    return narrow(dtype, combine(op, dtype, np.stack(parts), (0,)))


MEANING: Mapping[Op, Meaning] = {
    **week02.MEANING,
    ops.RESHAPE: _movement(reshape),
    ops.EXPAND: _movement(expand),
    ops.PERMUTE: _movement(permute),
    ops.FLIP: _movement(flip),
    ops.PAD: _movement(pad),
    ops.SHRINK: _movement(shrink),
    ops.REDUCE: _reduce,
}


def evaluate(
    program: UOp,
    inputs: Inputs,
    table: Mapping[Op, Meaning] | None = None,
    state: State | None = None,
) -> list[Array]:
    """The outputs of a program for inputs by PARAM slot: `week02_render.evaluate.evaluate`."""
    return week02.evaluate(program, inputs, MEANING if table is None else table, state)
