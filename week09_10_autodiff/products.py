"""Contractions of tensors: products of matrices, Einstein sums, convolutions, pooling."""

from __future__ import annotations

from typing import Self

from week01_uops.dtypes import DType
from week01_uops.node import UOp
from week03_loops import library as lib
from week03_loops.library.check import Padding, PerAxis
from week09_10_autodiff.core import Core, Function
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.promotion import promote


def promoted(function: Function, dtypes: list[DType]) -> Function:
    """The function of nodes that are first cast to what their dtypes promote to."""
    dtype = promote(*dtypes)

    def cast_first(*nodes: UOp | None, **options: object) -> UOp:
        cast = [None if node is None else lib.cast(node, dtype) for node in nodes]
        result: UOp = function(*cast, **options)
        return result

    return cast_first


class Products(Core):
    """Sums of products of tensors; dtypes are promoted."""

    __slots__ = ()

    def __matmul__(self, other: object) -> Self:
        tensor = self._operand(other)
        return NotImplemented if tensor is None else self._product("matmul", tensor)

    def __rmatmul__(self, other: object) -> Self:
        tensor = self._operand(other)
        return NotImplemented if tensor is None else tensor._product("matmul", self)

    def _product(self, name: str, other: Self) -> Self:
        a, b = self.shape, other.shape
        if not a or not b or a[-1] != b[max(len(b) - 2, 0)]:
            raise TensorError(f"{name}: expected (…, m, k) @ (…, k, n), got {list(a)} @ {list(b)}")
        return self._sum_of_products(name, lib.matmul, other)

    def _sum_of_products(
        self, name: str, function: Function, *others: Core | None, **options: object
    ) -> Self:
        dtypes = [t.dtype for t in (self, *others) if t is not None]
        return self._apply(name, promoted(function, dtypes), *others, **options)

    def matmul(self, other: object) -> Self:
        """The product of matrices (…, m, k) and (…, k, n); leading axes broadcast."""
        return self._product("matmul", self._tensor("matmul", other))

    def dot(self, other: object) -> Self:
        """Σ x·y of two vectors."""
        tensor = self._tensor("dot", other)
        if self.ndim != 1 or tensor.ndim != 1:
            got = f"{list(self.shape)} and {list(tensor.shape)}"
            raise TensorError(f"dot: expected two vectors, got {got}")
        return self._product("dot", tensor)

    def linear(self, weight: Self, bias: Self | None = None) -> Self:
        """x·Wᵀ + bias: x (…, k), weight (n, k), bias (n)."""
        return self._sum_of_products("linear", lib.linear, weight, bias)

    def conv1d(
        self,
        weight: Self,
        bias: Self | None = None,
        *,
        stride: PerAxis = 1,
        padding: Padding = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
    ) -> Self:
        """Cross-correlation of (N, C, length) with (O, C / groups, size)."""
        return self._convolution(1, weight, bias, stride, padding, dilation, groups)

    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        *,
        stride: PerAxis = 1,
        padding: Padding = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
    ) -> Self:
        """Cross-correlation of (N, C, height, width) with (O, C / groups, rows, columns)."""
        return self._convolution(2, weight, bias, stride, padding, dilation, groups)

    def _convolution(
        self,
        rank: int,
        weight: Core,
        bias: Core | None,
        stride: PerAxis,
        padding: Padding,
        dilation: PerAxis,
        groups: int,
    ) -> Self:
        name = f"conv{rank}d"
        if self.ndim != rank + 2:
            axes = "(N, C, length)" if rank == 1 else "(N, C, height, width)"
            raise TensorError(f"{name}: expected x {axes}, got {list(self.shape)}")
        return self._sum_of_products(
            name,
            lib.conv,
            weight,
            bias,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
        )

    def max_pool2d(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: Padding = 0,
        dilation: PerAxis = 1,
    ) -> Self:
        """The largest in each window of the last two axes."""
        size = _window(kernel_size, 2)
        return self._apply(
            "max_pool2d", lib.max_pool, size=size, stride=stride, padding=padding, dilation=dilation
        )

    def max_pool1d(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: Padding = 0,
        dilation: PerAxis = 1,
    ) -> Self:
        """The largest in each window of the last axis."""
        size = _window(kernel_size, 1)
        return self._apply(
            "max_pool1d", lib.max_pool, size=size, stride=stride, padding=padding, dilation=dilation
        )

    def avg_pool2d(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: Padding = 0,
        *,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window of the last two axes."""
        return self._averages(2, kernel_size, stride, padding, count_include_pad)

    def avg_pool1d(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: Padding = 0,
        *,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window of the last axis."""
        return self._averages(1, kernel_size, stride, padding, count_include_pad)

    def _averages(
        self, rank: int, size: PerAxis, stride: PerAxis | None, padding: Padding, count: bool
    ) -> Self:
        options = {"stride": stride, "padding": padding, "count_padding": count}
        return self._apply(f"avg_pool{rank}d", lib.avg_pool, size=_window(size, rank), **options)


def _window(size: PerAxis, rank: int) -> tuple[int, ...]:
    return (size,) * rank if isinstance(size, int) else tuple(size)
