"""Elements of tensors by their positions: `x[key]`, gather, take, scatter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import numpy as np

from week01_uops.dtypes import bool_, int64
from week01_uops.node import UOp
from week03_loops import library as lib
from week03_loops.library.check import axis_of, expect
from week03_loops.ops import reshape
from week09_10_autodiff import indexing
from week09_10_autodiff.core import Core
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.promotion import DTypeLike, dtype_of


class Access(Core):
    """Indexing, as in NumPy, and its relatives of PyTorch."""

    __slots__ = ()

    def __len__(self) -> int:
        if not self.shape:
            raise TensorError("len: expected a tensor with axes, got a scalar")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: object) -> Self:
        items = _items(key)
        tensors = [item for item in items if isinstance(item, Core)]

        def read(x: UOp, *nodes: UOp) -> UOp:
            return indexing.read(x, _with_nodes(items, nodes))

        return self._apply("index", read, *tensors)

    def __setitem__(self, key: object, value: object) -> None:
        """Change elements. What `x[i]` gave before is no view, and keeps its value.

        So `x[i, j] = v` changes x, as does `x[i] += v`, but `x[i][j] = v` does not.
        """
        items, given = _items(key), self._value(value)
        if len(items) == 1 and isinstance(items[0], Core) and items[0].dtype is bool_:
            changed = self._apply("set", indexing.write_mask, items[0], given)
        else:
            tensors = [item for item in items if isinstance(item, Core)]

            def write(x: UOp, new: UOp, *nodes: UOp) -> UOp:
                return indexing.write(x, new, _with_nodes(items, nodes))

            changed = self._apply("set", write, given, *tensors)
        self._changed("set", changed)

    def _value(self, value: object) -> Self:
        """What is to be stored; a number in this dtype."""
        is_number = isinstance(value, (bool, int, float, np.generic))
        return type(self)(value, self.dtype) if is_number else self._tensor("set", value)

    def masked_fill(self, mask: Core, value: object) -> Self:
        """The value where the mask, which broadcasts, is true, else the elements."""
        given = self._value(value)

        def filled(x: UOp, condition: UOp, new: UOp) -> UOp:
            return lib.where(condition, lib.cast(new, x.dtype), x)

        return self._apply("masked_fill", filled, mask, given)

    def take(self, index: object, dim: int | None = None) -> Self:
        """x[…, index, …] along an axis, or of the elements in a row; as numpy.take.

        Positions of a tensor that lie outside read 0; negative ones do, too.
        """
        x = self if dim is not None else self._apply("take", _line)
        return x._apply("take", lib.take, self._tensor("take", index), axis=dim or 0)

    def index_select(self, dim: int, index: object) -> Self:
        """x[…, index, …] for an index of one axis."""
        return self.take(index, dim)

    def gather(self, dim: int, index: object) -> Self:
        """y[i…] = x[i… with index[i…] at the axis]; the other axes may be shorter in the index."""
        given = self._tensor("gather", index)

        def gathered(x: UOp, at: UOp) -> UOp:
            return lib.gather(_cropped(x, at, dim), at, dim)

        return self._apply("gather", gathered, given)

    def take_along_dim(self, indices: object, dim: int) -> Self:
        """`gather` with NumPy's order of arguments."""
        return self.gather(dim, indices)

    def index_add(self, dim: int, index: object, source: object) -> Self:
        """source[…, i, …] added at index[i]; positions that stand several times add up."""
        given, values = self._tensor("index_add", index), self._tensor("index_add", source)

        def added(x: UOp, at: UOp, new: UOp) -> UOp:
            return lib.scatter_add(x, at, lib.cast(new, x.dtype), dim)

        return self._apply("index_add", added, given, values)

    def scatter_add(self, dim: int, index: object, source: object) -> Self:
        """y = x, and y[i… with index[i…] at the axis] += source[i…]."""
        given, values = self._tensor("scatter_add", index), self._tensor("scatter_add", source)
        return self._apply("scatter_add", indexing.scatter_add, given, values, axis=dim)

    def one_hot(self, num_classes: int, dtype: DTypeLike = int64) -> Self:
        """1 at the position that an element says, 0 elsewhere, along a new last axis."""
        return self._apply("one_hot", lib.one_hot, count=num_classes, dtype=dtype_of(dtype))


def _items(key: object) -> list[object]:
    """The items of a key, lists of them as arrays."""
    items = list(key) if isinstance(key, tuple) else [key]
    return [_item(item) for item in items]


def _item(item: object) -> object:
    if isinstance(item, (list, tuple)):
        return np.asarray(item, np.int64 if len(item) == 0 else None)
    if isinstance(item, (bool, np.bool_)):
        raise TensorError(f"expected integers, slices, None, ... and arrays as indices, got {item}")
    return item


def _with_nodes(items: Sequence[object], nodes: Iterable[UOp]) -> list[object]:
    """The items with nodes in place of the tensors."""
    rest = iter(nodes)
    return [next(rest) if isinstance(item, Core) else item for item in items]


def _line(x: UOp) -> UOp:
    return reshape(x, (x.size,))


def _cropped(x: UOp, index: UOp, axis: int) -> UOp:
    """X without what an index that is shorter along the other axes does not reach."""
    at = axis_of("gather", axis, len(x.shape))
    same = len(index.shape) == len(x.shape)
    got = f"got {list(index.shape)}"
    expect(same, "E406", f"gather: expected an index of rank {len(x.shape)}, {got}", index)
    for other, size in enumerate(index.shape):
        x = x if other == at else lib.narrow(x, other, 0, min(size, x.shape[other]))
    return x
