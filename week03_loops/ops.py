"""The ops of week 3: movement of elements, and reduction.

A movement op invents no element but PAD's zeros; applied to a place it gives a place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from week01_uops import intervals
from week01_uops.args import SHAPE, Record, integer, integers, key, pairs, word
from week01_uops.dtypes import DType, bool_, void
from week01_uops.errors import ProgramError
from week01_uops.node import MANY, Interval, Op, Shape, Type, UOp
from week01_uops.ops import ADD, MAX, MUL
from week01_uops.signatures import expect_value
from week02_render import ops as week02
from week02_render.ops import expect_ranges

Pairs = tuple[tuple[int, int], ...]


def _movable(x: UOp) -> None:
    if x.dtype is void:
        raise ProgramError("E409", f"expected a value or a place, got the effect {x.op}", (x,))


def _moved(x: UOp, shape: Shape, *, writable: bool = True) -> Type:
    place = x.place
    if place is not None and not writable:
        place = place._replace(writable=False)
    return Type(x.dtype, shape, place)


def _reshape(src: tuple[UOp, ...], arg: Shape) -> Type:
    (x,) = src
    _movable(x)
    if math.prod(arg) != math.prod(x.shape):
        raise ProgramError(
            "E404",
            f"expected {math.prod(x.shape)} elements as in {list(x.shape)}, got {list(arg)}",
            src,
        )
    return _moved(x, arg)


def _expand(src: tuple[UOp, ...], arg: Shape) -> Type:
    (x,) = src
    _movable(x)
    kept = arg[len(arg) - len(x.shape) :] if len(arg) >= len(x.shape) else ()
    if len(arg) < len(x.shape) or any(s not in (1, n) for s, n in zip(x.shape, kept, strict=True)):
        raise ProgramError(
            "E412", f"expected a shape that {list(x.shape)} broadcasts to, got {list(arg)}", src
        )
    return _moved(x, arg, writable=arg == x.shape)


def _permute(src: tuple[UOp, ...], arg: tuple[int, ...]) -> Type:
    (x,) = src
    _movable(x)
    if len(arg) != len(x.shape):
        raise ProgramError("E406", f"expected {len(x.shape)} axes, got {len(arg)}", src)
    _expect_axes(x, arg)
    return _moved(x, tuple(x.shape[axis] for axis in arg))


def _expect_axes(x: UOp, axes: tuple[int, ...]) -> None:
    for axis in axes:
        if axis >= len(x.shape):
            raise ProgramError("E405", f"expected an axis below {len(x.shape)}, got {axis}", (x,))


def _flip(src: tuple[UOp, ...], arg: tuple[int, ...]) -> Type:
    (x,) = src
    _movable(x)
    _expect_axes(x, arg)
    return _moved(x, x.shape)


def _expect_pairs(x: UOp, arg: Pairs) -> None:
    if len(arg) != len(x.shape):
        raise ProgramError(
            "E406", f"expected {len(x.shape)} pairs, one for each axis, got {len(arg)}", (x,)
        )


def _pad(src: tuple[UOp, ...], arg: Pairs) -> Type:
    (x,) = src
    _movable(x)
    _expect_pairs(x, arg)
    shape = tuple(low + size + high for size, (low, high) in zip(x.shape, arg, strict=True))
    return _moved(x, shape, writable=shape == x.shape)


def _shrink(src: tuple[UOp, ...], arg: Pairs) -> Type:
    (x,) = src
    _movable(x)
    _expect_pairs(x, arg)
    for size, (_, end) in zip(x.shape, arg, strict=True):
        if end > size:
            raise ProgramError("E410", f"expected an end of at most {size}, got {end}", src)
    return _moved(x, tuple(end - start for start, end in arg))


REDUCERS = {"ADD": ADD, "MUL": MUL, "MAX": MAX}


@dataclass(frozen=True)
class ReduceArg:
    """What to combine with, and over how many of the first axes."""

    op: Op = key(word("a reduction", REDUCERS))
    axes: int = key(integer("a number of axes ≥ 0", 0))


def _reduce(src: tuple[UOp, ...], arg: ReduceArg) -> Type:
    x, ranges = src[0], src[1:]
    expect_value(x)
    if arg.op is ADD and x.dtype is bool_:
        raise ProgramError("E402", "expected an integer or a float to add, got bool; CAST it", (x,))
    if arg.axes > len(x.shape):
        raise ProgramError("E405", f"expected at most {len(x.shape)} axes, got {arg.axes}", (x,))
    if ranges and arg.axes:
        raise ProgramError("E406", "expected axes 0 where RANGEs are reduced", (x,))
    expect_ranges(ranges)
    return Type(x.dtype, x.shape[arg.axes :])


def identity(op: Op, dtype: DType) -> Any:  # noqa: ANN401
    """The value that changes nothing: of ADD 0, of MUL 1, of MAX the least."""
    if dtype is bool_:
        return op is MUL
    if op is MAX:
        return -math.inf if dtype.is_float else dtype.min
    value = int(op is MUL)
    return float(value) if dtype.is_float else value


def _reduce_interval(node: UOp) -> Interval:
    """Of MAX, its elements' and its identity; of a bool, anything."""
    if node.arg.op is MAX and node.dtype.is_int:
        return node.dtype.min, node.src[0].interval[1]
    return node.dtype.min, node.dtype.max


def _pad_interval(node: UOp) -> Interval:
    low, high = node.src[0].interval
    return min(low, 0), max(high, 0)


RESHAPE = Op("RESHAPE", 3, (1, 1), _reshape, SHAPE, intervals.same)
EXPAND = Op("EXPAND", 3, (1, 1), _expand, SHAPE, intervals.same)
PERMUTE = Op("PERMUTE", 3, (1, 1), _permute, integers("axes ≥ 0", 0, distinct=True), intervals.same)
FLIP = Op("FLIP", 3, (1, 1), _flip, integers("axes ≥ 0", 0, distinct=True), intervals.same)
PAD = Op("PAD", 3, (1, 1), _pad, pairs("pairs [before, after] ≥ 0", ordered=False), _pad_interval)
SHRINK = Op(
    "SHRINK", 3, (1, 1), _shrink, pairs("pairs 0 ≤ start ≤ end", ordered=True), intervals.same
)
REDUCE = Op("REDUCE", 3, (1, MANY), _reduce, Record(ReduceArg), _reduce_interval, closes=True)

MOVEMENT = frozenset({RESHAPE, EXPAND, PERMUTE, FLIP, PAD, SHRINK})
OPS = week02.OPS | {week02.RANGE, week02.END, REDUCE} | MOVEMENT
INTERNAL = week02.INTERNAL - {week02.RANGE, week02.END}


def reshape(x: UOp, shape: Sequence[int]) -> UOp:
    """The same elements in row-major order, in another shape."""
    return x if x.shape == tuple(shape) else UOp.apply_to(RESHAPE, (x,), tuple(shape))


def expand(x: UOp, shape: Sequence[int]) -> UOp:
    """X broadcast to a shape."""
    return x if x.shape == tuple(shape) else UOp.apply_to(EXPAND, (x,), tuple(shape))


def permute(x: UOp, axes: Sequence[int]) -> UOp:
    """result[i…] = x[…] with result's axis k being x's axis axes[k]."""
    return x if tuple(axes) == tuple(range(len(axes))) else UOp.apply_to(PERMUTE, (x,), tuple(axes))


def flip(x: UOp, axes: Sequence[int]) -> UOp:
    """Each of the axes reversed."""
    return UOp.apply_to(FLIP, (x,), tuple(axes)) if axes else x


def pad(x: UOp, margins: Sequence[tuple[int, int]]) -> UOp:
    """X with zeros before and after along each axis."""
    return UOp.apply_to(PAD, (x,), tuple(margins)) if any(map(any, margins)) else x


def shrink(x: UOp, bounds: Sequence[tuple[int, int]]) -> UOp:
    """The box [start, end) of x along each axis."""
    whole = all(b == (0, s) for b, s in zip(bounds, x.shape, strict=True))
    return x if whole else UOp.apply_to(SHRINK, (x,), tuple(bounds))


def reduce(op: Op, x: UOp, axes: int, *ranges: UOp) -> UOp:
    """X combined with op over its first axes, or over RANGEs."""
    return UOp.apply_to(REDUCE, (x, *ranges), ReduceArg(op, axes))
