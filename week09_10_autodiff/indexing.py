"""What `x[key]` means, as in NumPy: keys are read into boxes and index arrays.

A box is what slices and integers select: of each axis `count` elements from `start`, `step` apart.
It is read by movement ops, and written by moving the value back to where it came from. Index
arrays broadcast against each other and select along one axis, into which theirs are joined.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from week01_uops.dtypes import bool_, int64
from week01_uops.errors import ProgramError
from week01_uops.node import Shape, UOp
from week01_uops.signatures import broadcast
from week02_render.buffers import Array
from week03_loops import library as lib
from week03_loops.library.check import axis_of, expect_integer, expect_shape
from week03_loops.library.movement import pad_axis
from week03_loops.ops import expand, flip, pad, permute, reshape
from week09_10_autodiff import elementwise, movement
from week09_10_autodiff.errors import TensorError, TensorIndexError
from week09_10_autodiff.storage import leaf_of


@dataclass(frozen=True)
class Piece:
    """Of one axis: the elements start, start + step, …, `count` of them."""

    start: int
    step: int
    count: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The half-open interval from the lowest to the highest of them."""
        if not self.count:
            return 0, 0
        last = self.start + (self.count - 1) * self.step
        return min(self.start, last), max(self.start, last) + 1


@dataclass
class Key:
    """What a key selects of a tensor.

    Attributes:
        box: of each axis of the tensor.
        shape: of what the box selects, without the axes that integers chose, with new ones.
        arrays: index arrays by the axis of `shape` along which they select.
        split: the index arrays were apart in the key, so that their axes come first.
    """

    box: list[Piece] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    arrays: dict[int, UOp] = field(default_factory=dict)
    split: bool = False


@dataclass(frozen=True, eq=False)
class _TrueAt:
    """Where a mask is true, along one of its axes of a size."""

    positions: Array
    size: int


def read_key(items: Sequence[object], shape: Shape) -> Key:
    """The key of a tensor of this shape; arrays among the items are nodes or NumPy's.

    Raises:
        TensorError: there are more items than axes, or one is of no use as an index.
        TensorIndexError: an integer lies outside its axis.
    """
    items = _spread(_without_masks(items), len(shape))
    key, kinds = Key(), []
    for item in items:
        axis = len(key.box)
        if item is None:
            key.shape.append(1)
        elif isinstance(item, slice):
            key.box.append(_slice(item, shape[axis]))
            key.shape.append(key.box[-1].count)
        elif isinstance(item, (UOp, np.ndarray, _TrueAt)):
            key.box.append(Piece(0, 1, shape[axis]))
            key.arrays[len(key.shape)] = _positions(item, shape[axis], axis)
            key.shape.append(shape[axis])
        else:
            key.box.append(Piece(_integer(item, shape[axis], axis), 1, 1))
        kinds.append("slice" if item is None or isinstance(item, slice) else "index")
    key.split = _apart(kinds)
    return key


def _apart(kinds: Sequence[str]) -> bool:
    """Whether a slice stands between two indices."""
    at = [i for i, kind in enumerate(kinds) if kind == "index"]
    return bool(at) and "slice" in kinds[at[0] : at[-1]]


def _without_masks(items: Sequence[object]) -> list[object]:
    """A NumPy mask of n axes → n index arrays: where it is true. Of a tensor it is not known."""
    found: list[object] = []
    for item in items:
        if isinstance(item, UOp) and item.dtype is bool_:
            said = "expected an index whose shape is known, got a bool tensor"
            raise TensorError(f"{said}; use where, or x[mask.numpy()], which computes the mask")
        if isinstance(item, np.ndarray) and item.dtype == np.bool_:
            found += map(_TrueAt, np.nonzero(item), item.shape)
        else:
            found.append(item)
    return found


def _spread(items: Sequence[object], rank: int) -> list[object]:
    """The items with slices in place of `…`, and after them, one item for each axis."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > rank:
        raise TensorIndexError(f"expected at most {rank} indices, one for each axis, got {used}")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise TensorIndexError("expected at most one ... in an index")
    at = dots[0] if dots else len(items)
    return [*items[:at], *[slice(None)] * (rank - used), *items[at + 1 :]]


def _slice(item: slice, size: int) -> Piece:
    try:
        start, stop, step = item.indices(size)
    except (TypeError, ValueError) as error:
        raise TensorIndexError(f"expected integers in a slice: {error}") from None
    return Piece(start, step, len(range(start, stop, step)))


def _integer(item: object, size: int, axis: int) -> int:
    try:
        position = operator.index(item)  # type: ignore[arg-type]
    except TypeError:
        got = type(item).__name__
        wanted = "integers, slices, None, ... and integer arrays as indices"
        raise TensorError(f"expected {wanted}, got {got}") from None
    return _within(position, size, axis)


def _within(position: int, size: int, axis: int) -> int:
    if not -size <= position < size:
        wanted = f"an index in [{-size}, {size}) for axis {axis}"
        raise TensorIndexError(f"expected {wanted}, got {position}")
    return position % size


def _positions(item: UOp | Array | _TrueAt, size: int, axis: int) -> UOp:
    """Index arrays as int64 nodes; negative indices count from the end.

    Those of NumPy are checked; those of tensors that lie outside read 0 and write nothing.
    """
    if isinstance(item, _TrueAt):
        if item.size != size:
            wanted = f"a mask with {size} elements along axis {axis}"
            raise TensorIndexError(f"expected {wanted}, got {item.size}")
        return leaf_of(item.positions)
    if isinstance(item, UOp):
        if not item.dtype.is_int:
            raise TensorError(f"expected integers as indices, got {item.dtype}")
        index = lib.cast(item, int64)
        return index if item.interval[0] >= 0 else _from_the_end(index, size)
    if item.size and item.dtype.kind not in "iu":
        raise TensorError(f"expected integers as indices, got {item.dtype}")
    for position in (item.min(), item.max()) if item.size else ():
        _within(int(position), size, axis)
    return leaf_of(item.astype(np.int64) % max(size, 1))


def _from_the_end(index: UOp, size: int) -> UOp:
    return lib.where(lib.lt(index, 0), lib.add(index, size), index)


def read_box(x: UOp, key: Key) -> UOp:
    """The elements that the box selects, in the key's shape."""
    for axis, piece in enumerate(key.box):
        x = lib.narrow(x, axis, *piece.bounds)
        x = flip(x, [axis]) if piece.step < 0 and piece.count else x
        x = movement.every_nth(x, axis, abs(piece.step))
    return reshape(x, key.shape)


def place_box(value: UOp, key: Key, shape: Shape) -> UOp:
    """The value of the key's shape where the box selects, 0 elsewhere."""
    x = reshape(value, [piece.count for piece in key.box])
    for axis, (piece, size) in enumerate(zip(key.box, shape, strict=True)):
        x = movement.spread_out(x, axis, abs(piece.step))
        x = flip(x, [axis]) if piece.step < 0 and piece.count else x
        low, high = piece.bounds
        x = pad_axis(x, axis, low, size - high)
    return x


def write_box(x: UOp, key: Key, value: UOp) -> UOp:
    """X with the value where the box selects."""
    if all(p.count == s and p.step == 1 for p, s in zip(key.box, x.shape, strict=True)):
        return reshape(value, x.shape)
    inside = place_box(lib.full(True, bool_, value.shape), key, x.shape)
    return lib.where(inside, place_box(value, key, x.shape), x)


@dataclass(frozen=True)
class Selection:
    """Index arrays as one index along one axis, into which the axes that they index are joined.

    Attributes:
        order: the axes of the tensor, with those that are indexed in a row.
        at: where that row begins.
        sizes: of the axes in it.
        index: int64, of the shape that the arrays broadcast to; outside what there is, or below 0,
            where one of them lies outside its axis.
    """

    order: tuple[int, ...]
    at: int
    sizes: tuple[int, ...]
    index: UOp

    @classmethod
    def of(cls, key: Key) -> Selection:
        """The selection of a key that has index arrays."""
        axes = sorted(key.arrays)
        at = 0 if key.split else axes[0]
        rest = [axis for axis in range(len(key.shape)) if axis not in axes]
        sizes = tuple(key.shape[axis] for axis in axes)
        try:
            shape = broadcast(tuple(key.arrays[axis].shape for axis in axes))
        except ProgramError as error:
            raise TensorIndexError(f"index arrays: {error.args[0]}") from None
        joined = _joined([key.arrays[axis] for axis in axes], sizes)
        return cls((*rest[:at], *axes, *rest[at:]), at, sizes, expand(joined, shape))

    @property
    def count(self) -> int:
        """How many positions the index chooses among."""
        return math.prod(self.sizes)

    def joined(self, x: UOp) -> UOp:
        """X with the axes that are indexed as one."""
        x = permute(x, self.order)
        end = self.at + len(self.sizes)
        return reshape(x, (*x.shape[: self.at], self.count, *x.shape[end:]))

    def parted(self, x: UOp) -> UOp:
        """The inverse of `joined`."""
        x = reshape(x, (*x.shape[: self.at], *self.sizes, *x.shape[self.at + 1 :]))
        return permute(x, [self.order.index(axis) for axis in range(len(self.order))])

    def read(self, x: UOp) -> UOp:
        """The elements at the index."""
        return lib.take(self.joined(x), self.index, self.at)

    def write(self, x: UOp, value: UOp) -> UOp:
        """X with the value at the index; the last one where a position stands several times."""
        table = self.joined(x)
        index, end = self.index, self.at + len(self.index.shape)
        row = reshape(value, (*value.shape[: self.at], index.size, *value.shape[end:]))
        here = lib.eq(lib.unsqueeze(lib.arange(self.count), 1), reshape(index, (index.size,)))
        writer = lib.reduce_max(lib.where(here, lib.arange(index.size), -1), 1)
        hit = reshape(lib.ge(writer, 0), (self.count, *[1] * (len(table.shape) - self.at - 1)))
        return self.parted(lib.where(hit, lib.take(row, writer, self.at), table))


def _joined(arrays: Sequence[UOp], sizes: Sequence[int]) -> UOp:
    """Row-major positions; −1 where one of several indices lies outside its axis."""
    if len(arrays) == 1:
        return arrays[0]
    result, inside = lib.full(0, int64, ()), lib.full(True, bool_, ())
    for array, size in zip(arrays, sizes, strict=True):
        result = lib.add(lib.mul(result, size), array)
        inside = lib.mul(inside, lib.mul(lib.ge(array, 0), lib.lt(array, size)))
    return lib.where(inside, result, -1)


def read(x: UOp, items: Sequence[object]) -> UOp:
    """x[items]."""
    key = read_key(items, x.shape)
    box = read_box(x, key)
    return Selection.of(key).read(box) if key.arrays else box


def write(x: UOp, value: UOp, items: Sequence[object]) -> UOp:
    """X with x[items] replaced by a value, which is broadcast and cast."""
    key = read_key(items, x.shape)
    box = read_box(x, key)
    value = lib.cast(value, x.dtype)
    if not key.arrays:
        return write_box(x, key, expand(_fitting(value, box.shape), box.shape))
    selection = Selection.of(key)
    shape = selection.read(box).shape
    value = expand(_fitting(value, shape), shape)
    return write_box(x, key, selection.write(box, value))


def _fitting(value: UOp, shape: Shape) -> UOp:
    """A value without the axes of size 1 that it has too many, as NumPy takes it."""
    extra = max(len(value.shape) - len(shape), 0)
    return reshape(value, value.shape[extra:]) if math.prod(value.shape[:extra]) == 1 else value


def write_mask(x: UOp, mask: UOp, value: UOp) -> UOp:
    """X with the value, which broadcasts to the axes behind those of the mask, where it is true."""
    rank = len(mask.shape)
    if mask.shape != x.shape[:rank]:
        wanted = f"a mask of the first axes of {list(x.shape)}"
        raise TensorIndexError(f"expected {wanted}, got {list(mask.shape)}")
    value = expand(lib.cast(value, x.dtype), x.shape)
    return lib.where(reshape(mask, (*mask.shape, *[1] * (len(x.shape) - rank))), value, x)


def scatter_add(x: UOp, index: UOp, values: UOp, axis: int) -> UOp:
    """Y[…, v, …] = x[…, v, …] + Σ_i [index[…, i, …] = v]·values[…, i, …].

    Index and values have one shape, which may be smaller than x's along the other axes.
    """
    at = axis_of("scatter_add", axis, len(x.shape))
    expect_integer("scatter_add", index=index)
    expect_shape("scatter_add", "values", values, index.shape)
    wide = lib.unsqueeze(lib.move_axis(index, at, 0), at + 1)
    terms = lib.unsqueeze(lib.move_axis(lib.cast(values, x.dtype), at, 0), at + 1)
    count = x.shape[at]
    positions = reshape(lib.arange(count), (count, *[1] * (len(x.shape) - at - 1)))
    here = lib.eq(lib.cast(wide, int64), positions)
    zero, add = (False, lib.reduce_max) if x.dtype is bool_ else (0, lib.reduce_sum)
    sums = add(lib.where(here, terms, zero), 0)
    margins = [(0, size - got) for size, got in zip(x.shape, sums.shape, strict=True)]
    return elementwise.add(x, pad(sums, margins))
