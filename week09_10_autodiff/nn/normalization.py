"""Layers that normalize."""

from __future__ import annotations

from collections.abc import Sequence

from week01_uops.dtypes import float32, int64
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.nn import functional
from week09_10_autodiff.nn.layers import per_axis
from week09_10_autodiff.nn.module import Module
from week09_10_autodiff.pending import realize_later
from week09_10_autodiff.promotion import DTypeLike
from week09_10_autodiff.tensor import Tensor

Shape = int | Sequence[int]


def _ones(*shape: int, dtype: DTypeLike) -> Tensor:
    return Tensor.ones(*shape, dtype=dtype, requires_grad=True)


def _zeros(*shape: int, dtype: DTypeLike) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype, requires_grad=True)


class LayerNorm(Module):
    """(x − μ)/√(σ² + ε)·weight + bias over the last axes (Ba et al., 2016)."""

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DTypeLike = float32,
    ) -> None:
        self.normalized_shape, self.eps = per_axis(normalized_shape, 1), eps
        shape = self.normalized_shape
        self.weight = _ones(*shape, dtype=dtype) if elementwise_affine else None
        self.bias = _zeros(*shape, dtype=dtype) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """X normalized."""
        shape = self.normalized_shape
        return functional.layer_norm(x, shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """x/√(mean x² + ε)·weight over the last axes (Zhang and Sennrich, 2019)."""

    weight: Tensor | None

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: DTypeLike = float32,
    ) -> None:
        self.normalized_shape, self.eps = per_axis(normalized_shape, 1), eps
        shape = self.normalized_shape
        self.weight = _ones(*shape, dtype=dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        """X normalized."""
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(Module):
    """Each sample's groups of channels normalized (Wu and He, 2018)."""

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DTypeLike = float32,
    ) -> None:
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = _ones(num_channels, dtype=dtype) if affine else None
        self.bias = _zeros(num_channels, dtype=dtype) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        """X normalized."""
        return functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class _BatchNorm(Module):
    """Each channel normalized (Ioffe and Szegedy, 2015), by the batch in training.

    Attributes:
        running_mean, running_var: (1 − momentum)·old + momentum·the batch's, which stand for the
            batch's in eval; with momentum None, the means over all batches.
        num_batches_tracked: how many there were.
    """

    ranks: tuple[int, ...]
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DTypeLike = float32,
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = _ones(num_features, dtype=dtype) if affine else None
        self.bias = _zeros(num_features, dtype=dtype) if affine else None
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if track_running_stats:
            self.register_buffer("running_mean", Tensor.zeros(num_features, dtype=dtype))
            self.register_buffer("running_var", Tensor.ones(num_features, dtype=dtype))
            self.register_buffer("num_batches_tracked", Tensor.zeros(dtype=int64))

    def forward(self, x: Tensor) -> Tensor:
        """X normalized; in training the running values are assigned."""
        if x.ndim not in self.ranks:
            wanted = " or ".join(map(str, self.ranks))
            raise TensorError(f"{type(self).__name__}: expected {wanted} axes, got {list(x.shape)}")
        running = (self.running_mean, self.running_var)
        training = self.training or self.running_mean is None
        momentum = self._count() if self.training else 0.0
        parameters = (self.weight, self.bias)
        y = functional.batch_norm(x, *running, *parameters, training, momentum, self.eps)
        if self.training:
            realize_later(self.running_mean, self.running_var, self.num_batches_tracked)
        return y

    def _count(self) -> float | Tensor:
        """Count a batch; the momentum for it."""
        if self.num_batches_tracked is None:
            return 0.0
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        return 1 / self.num_batches_tracked if self.momentum is None else self.momentum

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(_BatchNorm):
    """Each channel of x (N, C) or (N, C, l) normalized."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Each channel of x (N, C, h, w) normalized."""

    ranks = (4,)
