"""Layers with weights: linear maps, embeddings, convolutions; and those that only move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from week01_uops.dtypes import float32
from week03_loops.library.check import PerAxis
from week09_10_autodiff.nn import functional, init
from week09_10_autodiff.nn.module import Module
from week09_10_autodiff.promotion import DTypeLike
from week09_10_autodiff.tensor import Tensor


def empty(*shape: int, dtype: DTypeLike = float32) -> Tensor:
    """A parameter that is about to get its first values."""
    return Tensor.zeros(*shape, dtype=dtype, requires_grad=True)


class Identity(Module):
    """x → x."""

    def forward(self, x: Tensor) -> Tensor:
        """X itself."""
        return x


class Flatten(Module):
    """x (N, …) → (N, the product of the others)."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Axes start_dim to end_dim joined."""
        return x.flatten(self.start_dim, self.end_dim)


class Linear(Module):
    """x (…, in_features) → x·weightᵀ + bias (…, out_features)."""

    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: DTypeLike = float32,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = empty(out_features, in_features, dtype=dtype)
        self.bias = empty(out_features, dtype=dtype) if bias else None
        _reset(self.weight, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x·weightᵀ + bias."""
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


def _reset(weight: Tensor, bias: Tensor | None) -> None:
    """Both uniform in ±1/√fan in, as torch.nn.Linear and its convolutions."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    fan_in, _ = init.fans(weight)
    if bias is not None and fan_in:
        init.uniform_(bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))


class Embedding(Module):
    """x (…) of row numbers → rows (…, embedding_dim) of the weight."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        self.weight = init.normal_(empty(num_embeddings, embedding_dim, dtype=dtype))
        if padding_idx is not None:
            here = Tensor.arange(num_embeddings) == padding_idx % num_embeddings
            self.weight.assign(self.weight.zeros_like().where(here.unsqueeze(1), self.weight))

    def forward(self, x: Tensor) -> Tensor:
        """The rows that x numbers."""
        return functional.embedding(x, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """The sizes."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Dropout(Module):
    """In training each element 0 with probability p, else divided by 1 − p."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """X with some elements dropped."""
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class _Conv(Module):
    """Cross-correlation over the last axes; see functional.conv2d."""

    rank: int
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: PerAxis = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DTypeLike = float32,
    ) -> None:
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = per_axis(kernel_size, self.rank)
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.weight = empty(out_channels, in_channels // groups, *self.kernel_size, dtype=dtype)
        self.bias = empty(out_channels, dtype=dtype) if bias else None
        _reset(self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        sizes = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        return f"{sizes}, stride={self.stride}, padding={self.padding}"


def per_axis(value: PerAxis, rank: int) -> tuple[int, ...]:
    """One number for each axis."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * rank


class Conv1d(_Conv):
    """x (N, in_channels, l) → (N, out_channels, m); see functional.conv1d."""

    rank = 1

    def forward(self, x: Tensor) -> Tensor:
        """The cross-correlation with the weight."""
        options = (self.stride, self.padding, self.dilation, self.groups)
        return functional.conv1d(x, self.weight, self.bias, *options)


class Conv2d(_Conv):
    """x (N, in_channels, h, w) → (N, out_channels, …); see functional.conv2d."""

    rank = 2

    def forward(self, x: Tensor) -> Tensor:
        """The cross-correlation with the weight."""
        options = (self.stride, self.padding, self.dilation, self.groups)
        return functional.conv2d(x, self.weight, self.bias, *options)


class MaxPool2d(Module):
    """The largest of each window; see functional.max_pool2d."""

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
        dilation: PerAxis = 1,
    ) -> None:
        self.options = (kernel_size, stride, padding, dilation)

    def forward(self, x: Tensor) -> Tensor:
        """The largest of each window."""
        return functional.max_pool2d(x, *self.options)


class AvgPool2d(Module):
    """The mean of each window; see functional.avg_pool2d."""

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
        count_include_pad: bool = True,
    ) -> None:
        self.options = (kernel_size, stride, padding)
        self.count_include_pad = count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        """The mean of each window."""
        return functional.avg_pool2d(x, *self.options, self.count_include_pad)
