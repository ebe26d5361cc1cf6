"""Tensors in order: sort, topk, argmax and argmin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, Self, TypeVar

from week01_uops.errors import ProgramError
from week01_uops.node import UOp
from week09_10_autodiff import sorting
from week09_10_autodiff.core import Core
from week09_10_autodiff.errors import converted

T = TypeVar("T", bound=Core)


class Sorted(NamedTuple, Generic[T]):
    """What `sort` and `topk` give: elements in order, and the positions that they come from."""

    values: T
    indices: T


class Ordering(Core):
    """Order of elements; NaN is the largest, equal elements keep their order."""

    __slots__ = ()

    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Self:
        """The first position of the largest element along an axis, or of all in a row. int64."""
        return self._apply("argmax", sorting.argmax, axis=dim, keepdim=keepdim)

    def argmin(self, dim: int | None = None, keepdim: bool = False) -> Self:
        """The first position of the least element along an axis, or of all in a row. int64."""
        return self._apply("argmin", sorting.argmax, axis=dim, keepdim=keepdim, least=True)

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The positions that put an axis in order."""
        return self._apply("argsort", sorting.argsort, axis=dim, descending=descending)

    def sort(self, dim: int = -1, descending: bool = False) -> Sorted[Self]:
        """An axis in order, as (values, indices)."""
        return self._ordered("sort", lambda x: sorting.sort(x, dim, descending))

    def topk(self, k: int, dim: int = -1, largest: bool = True) -> Sorted[Self]:
        """The k largest or least of an axis in order, as (values, indices)."""
        return self._ordered("topk", lambda x: sorting.topk(x, k, dim, largest))

    def _ordered(self, name: str, function: Callable[[UOp], tuple[UOp, UOp]]) -> Sorted[Self]:
        try:
            values, indices = function(self._node)
        except ProgramError as error:
            raise converted(error, name) from None
        return Sorted(self._result(name, values), self._result(name, indices))
