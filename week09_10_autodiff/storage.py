"""Values that are known: which node's elements lie in which array.

A leaf is a PARAM whose slot is a number that no other leaf has. A value that was computed once is
known by its node as well, so that every expression over it reads the array. The memory of a value
is freed when its last node dies, which is when no tensor and no expression can reach it.
"""

from __future__ import annotations

import itertools
import threading
from weakref import WeakKeyDictionary

from week01_uops.dtypes import DType, from_numpy
from week01_uops.node import Shape, UOp, make
from week01_uops.ops import PARAM, ParamArg
from week02_render.buffers import Array, dense


class Storage:
    """A dense, row-major, 64-byte aligned array.

    Attributes:
        array: the elements; to be changed by nobody but who knows every reader.
        shared: it was handed out (`numpy()`, DLPack) or came from outside (`from_numpy`), so
            that someone else may look at the memory or change it.
    """

    __slots__ = ("__weakref__", "array", "shared")

    def __init__(self, array: Array, *, shared: bool = False) -> None:
        self.array = array
        self.shared = shared


_storages: WeakKeyDictionary[UOp, Storage] = WeakKeyDictionary()
_slots = itertools.count()
LOCK = threading.RLock()
"""Held while what is known changes, and while programs are made of it."""


def storage_of(node: UOp) -> Storage | None:
    """Where the elements of a node lie, if they are known."""
    return _storages.get(node)


def remember(node: UOp, storage: Storage) -> None:
    """The elements of a node lie here, from now on."""
    with LOCK:
        _storages[node] = storage


def placeholder(dtype: DType, shape: Shape) -> UOp:
    """A new leaf whose elements are not known: they come later."""
    return make(PARAM, (), ParamArg(next(_slots), dtype, shape))


def leaf(storage: Storage) -> UOp:
    """A new leaf whose elements lie here."""
    array = storage.array
    node = placeholder(from_numpy(array.dtype), array.shape)
    remember(node, storage)
    return node


def leaf_of(array: Array, *, shared: bool = False) -> UOp:
    """A new leaf over an array; over a copy if compiled code cannot use it in place."""
    usable = dense(array, from_numpy(array.dtype))
    return leaf(Storage(usable, shared=shared and usable is array))
