"""Storage and places: what LOAD reads and STORE writes when a program is interpreted.

A place is a table of element numbers of one flat piece of memory, in the place's shape:
movement and INDEX rearrange the table and touch no memory. Two kinds of numbers are no
elements: −1 stands for one of PAD's zeros, and −2, −3, … for an index out of range, which is a
fault only if it is read or written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from week01_uops.dtypes import DType
from week01_uops.node import Shape, UOp
from week01_uops.numerics import Array

ZERO = -1
POISON_BYTE = 0xA5


class OutOfBoundsError(Exception):
    """An index out of range at a LOAD or STORE that is carried out.

    Attributes:
        nodes: the access and the INDEX.
    """

    def __init__(self, message: str, nodes: tuple[UOp, ...]) -> None:
        super().__init__(message)
        self.nodes = nodes


class ReadBeforeWriteError(Exception):
    """An iteration's own copy of an ALLOC was read where the iteration had not written it."""

    def __init__(self, alloc: UOp) -> None:
        super().__init__("expected each iteration to write before it reads")
        self.alloc = alloc


@dataclass(frozen=True, eq=False)
class Watch:
    """Of a tentatively private copy of an ALLOC: which elements were written."""

    alloc: UOp
    written: Array


@dataclass(frozen=True, eq=False)
class Storage:
    """A flat piece of memory, watched or not."""

    memory: Array
    watch: Watch | None = None


@dataclass(frozen=True)
class Fault:
    """One index out of range: `value` on `axis` of `size` elements at an INDEX."""

    node: UOp
    axis: int
    value: int
    size: int


@dataclass(frozen=True, eq=False)
class Place:
    """Elements of a storage.

    Attributes:
        storage: where they lie.
        shape: the lanes' axes, then the node's.
        numbers: the element number at each position; None for 0, 1, 2, … in order.
        faults: the fault behind the numbers −2, −3, …
    """

    storage: Storage
    shape: Shape
    numbers: Array | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def table(self) -> Array:
        """The element number at each position."""
        if self.numbers is not None:
            return self.numbers
        return np.arange(math.prod(self.shape)).reshape(self.shape)

    def moved(self, move: Callable[[Array], Array]) -> Place:
        """The place rearranged as `move` rearranges an array; zeros that it adds read as 0."""
        table = move(self.table - ZERO) + ZERO
        return Place(self.storage, table.shape, table, self.faults)


def whole(memory: Array, shape: Shape) -> Place:
    """All of an array that is never written, as a place."""
    return Place(Storage(memory.reshape(-1)), shape)


def poison(dtype: DType, size: int) -> Array:
    """Undefined contents: NaN, or a bit pattern that stands out."""
    if dtype.is_float:
        return np.full(size, np.nan, dtype.numpy)
    if dtype.kind == "bool":
        return np.ones(size, dtype.numpy)
    return np.full(size * dtype.numpy.itemsize, POISON_BYTE, np.uint8).view(dtype.numpy)


def index(place: Place, node: UOp, lanes: int, indices: Sequence[Array]) -> Place:
    """INDEX: each index, of shape lanes + () or lanes + (n,), takes the place of one axis."""
    shape = place.shape[lanes:]
    rank = sum(item.ndim - lanes for item in indices)
    stride = math.prod(shape)
    position: Array = np.zeros((1,) * (lanes + rank), np.int64)
    bad: list[tuple[Array, Array, int, int]] = []
    own = 0
    for axis, (item, size) in enumerate(zip(indices, shape, strict=False)):
        stride //= max(size, 1)
        kept = item.ndim - lanes
        item = item.reshape((*item.shape, *(1,) * (rank - own - kept)))
        item = item.reshape((*item.shape[:lanes], *(1,) * own, *item.shape[lanes:]))
        own += kept
        outside = (item < 0) | (item >= size)
        position = position + np.where(outside, 0, item).astype(np.int64) * stride
        if outside.any():
            bad.append((outside, item, axis, size))
    rest = shape[len(indices) :]
    position = position.reshape((*position.shape, *(1,) * len(rest))) + np.arange(
        math.prod(rest)
    ).reshape(rest)
    return _with_faults(_at(place, lanes, position), node, len(rest), bad)


def _at(place: Place, lanes: int, position: Array) -> Place:
    """The elements at positions, counted row-major over the axes behind the lanes."""
    if place.numbers is None and math.prod(place.shape[:lanes]) == 1:
        return Place(place.storage, position.shape, position, place.faults)
    table = place.table.reshape((*place.shape[:lanes], -1))
    if table.size == 0:
        return Place(place.storage, position.shape, np.full(position.shape, ZERO), place.faults)
    around = np.broadcast_shapes(place.shape[:lanes], position.shape[:lanes])
    flat = position.reshape((*position.shape[:lanes], -1))
    numbers = np.take_along_axis(
        np.broadcast_to(table, (*around, table.shape[-1])),
        np.broadcast_to(flat, (*around, flat.shape[-1])),
        axis=-1,
    ).reshape((*around, *position.shape[lanes:]))
    return Place(place.storage, numbers.shape, numbers, place.faults)


def _with_faults(
    place: Place, node: UOp, rest: int, bad: list[tuple[Array, Array, int, int]]
) -> Place:
    faults = list(place.faults)
    table = place.table
    for outside, item, axis, size in bad:
        values, which = np.unique(item[outside], return_inverse=True)
        code = np.zeros(item.shape, np.int64)
        code[outside] = -2 - len(faults) - which.reshape(-1)
        faults += [Fault(node, axis, int(value), size) for value in values]
        outside, code = (x.reshape((*x.shape, *(1,) * rest)) for x in (outside, code))
        table = np.where(outside & (table >= ZERO), code, table)
    return Place(place.storage, table.shape, table, tuple(faults))


def read(place: Place, wanted: Array, access: UOp) -> Array:
    """The elements of a place; an unwanted one may be anything, and one of PAD's is 0.

    Raises:
        OutOfBoundsError: a wanted element does not exist.
    """
    table = place.table
    _check(place, table, wanted, access)
    memory = place.storage.memory
    if memory.size == 0:
        return np.zeros(table.shape, memory.dtype)
    real = table >= 0
    safe = table if real.all() else np.where(real, table, 0)
    if memory.dtype == np.bool_:
        memory = memory.view(np.uint8) != 0  # undefined bytes are true
    found = memory[safe]
    watch = place.storage.watch
    if watch is not None and (wanted & real & ~watch.written[safe]).any():
        raise ReadBeforeWriteError(watch.alloc)
    return found if safe is table else np.where(real, found, np.zeros((), memory.dtype))


def write(place: Place, value: Array, wanted: Array, access: UOp) -> None:
    """Write the wanted elements, in the order of lanes and axes: the last one stays.

    Raises:
        OutOfBoundsError: a wanted element does not exist.
    """
    _check(place, place.table, wanted, access)
    table, value, wanted = np.broadcast_arrays(place.table, value, wanted)
    where = table[wanted]
    place.storage.memory[where] = value[wanted]
    if place.storage.watch is not None:
        place.storage.watch.written[where] = True


def _check(place: Place, table: Array, wanted: Array, access: UOp) -> None:
    if not place.faults:
        return
    codes = np.where(wanted, table, 0)
    if codes.size and codes.min() < ZERO:
        fault = place.faults[-2 - int(codes[codes < ZERO][0])]
        raise OutOfBoundsError(
            f"expected an index of axis {fault.axis} in [0, {fault.size}), got {fault.value}, "
            f"at {fault.node!r} of {access!r}",
            (access, fault.node),
        )
