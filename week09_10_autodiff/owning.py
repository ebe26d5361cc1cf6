"""Tensors whose arrays may be changed in place, because nobody else looks at them.

A tensor that a captured function changes is *owned*: its leaf and its storage are referred to by
the tensor, by what is known of leaves (`storage`), and by one `Cell`. Where Python counts more
references, an expression, another tensor or a view by `numpy()` still wants the value; then the
tensor moves to a copy, and the old array stays with those who look at it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from weakref import ref

import numpy as np

from week02_render.buffers import Array, aligned_empty
from week09_10_autodiff.storage import Storage
from week09_10_autodiff.tensor import Tensor


class Cell:
    """Where an owned tensor lies: its leaf, the storage and the array, as it was last seen."""

    __slots__ = ("array", "node", "storage", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        key = id(tensor)
        self.tensor = ref(tensor, lambda _: _cells.pop(key, None))
        self.look(tensor)

    def look(self, tensor: Tensor) -> None:
        """See where the tensor lies now; computes it."""
        self.storage: Storage = tensor.storage()
        self.node = tensor.node
        self.array: Array = self.storage.array


_cells: dict[int, Cell] = {}


def cell_of(tensor: Tensor) -> Cell:
    """The one cell of a tensor."""
    found = _cells.get(id(tensor))
    if found is None or found.tensor() is not tensor:
        found = _cells[id(tensor)] = Cell(tensor)
    return found


def move(tensor: Tensor) -> None:
    """Let a tensor have a copy of its elements, at which nobody else looks."""
    old = tensor.storage().array
    new = aligned_empty(old.shape, tensor.dtype)
    new[...] = old
    tensor._lie_in(Storage(new))


def unowned(tensors: Sequence[Tensor], cells: Sequence[Cell], arrays: Sequence[Array]) -> list[int]:
    """The numbers of those tensors that lie elsewhere than in `arrays`, or at which others look."""
    count, nodes, storages = sys.getrefcount, _COUNTS[0], _COUNTS[1]
    found = []
    for k, (tensor, cell, array) in enumerate(zip(tensors, cells, arrays, strict=True)):
        node, storage = cell.node, cell.storage
        if (
            tensor._node is not node
            or cell.array is not array
            or storage.shared
            or count(node) > nodes
            or count(storage) > storages
        ):
            found.append(k)
    return found


def take(tensor: Tensor, cell: Cell) -> Array:
    """Make a tensor owned, at a copy if it has to be; the array that it lies in."""
    cell.look(tensor)
    if cell.node.src or not cell.array.flags.writeable or unowned([tensor], [cell], [cell.array]):
        cell.node, cell.storage, cell.array = _nothing, _nowhere, _nowhere.array
        move(tensor)
        cell.look(tensor)
    return cell.array


def _counted() -> tuple[int, int]:
    """How many references `unowned` counts to the leaf and to the storage of an owned tensor."""
    tensor = Tensor(np.zeros(1))
    cell = Cell(tensor)
    lowest = 2
    while True:  # the lowest numbers that it does not object to
        _COUNTS[:] = [lowest, 1 << 20]
        if not unowned([tensor], [cell], [cell.array]):
            break
        lowest += 1
    nodes, lowest = lowest, 2
    while True:
        _COUNTS[:] = [nodes, lowest]
        if not unowned([tensor], [cell], [cell.array]):
            return nodes, lowest
        lowest += 1


_COUNTS = [0, 0]
_nowhere = Storage(aligned_empty((0,), Tensor(0.0).dtype))
_nothing = Tensor(0.0).node
_COUNTS[:] = _counted()
