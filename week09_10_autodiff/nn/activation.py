"""Activations as modules."""

from __future__ import annotations

from week09_10_autodiff.nn import functional
from week09_10_autodiff.nn.module import Module
from week09_10_autodiff.tensor import Tensor


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        """max(x, 0)."""
        return functional.relu(x)


class LeakyReLU(Module):
    """x where x > 0, negative_slope·x elsewhere."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """x where x > 0, negative_slope·x elsewhere."""
        return functional.leaky_relu(x, self.negative_slope)


class ELU(Module):
    """x where x > 0, α·(e^x − 1) elsewhere."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """x where x > 0, α·(e^x − 1) elsewhere."""
        return functional.elu(x, self.alpha)


class GELU(Module):
    """x·Φ(x)."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """x·Φ(x)."""
        return functional.gelu(x, self.approximate)


class SiLU(Module):
    """x·sigmoid(x)."""

    def forward(self, x: Tensor) -> Tensor:
        """x·sigmoid(x)."""
        return functional.silu(x)


class Sigmoid(Module):
    """1 / (1 + e^−x)."""

    def forward(self, x: Tensor) -> Tensor:
        """1 / (1 + e^−x)."""
        return functional.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        """The hyperbolic tangent."""
        return functional.tanh(x)


class Softplus(Module):
    """ln(1 + e^x)."""

    def forward(self, x: Tensor) -> Tensor:
        """ln(1 + e^x)."""
        return functional.softplus(x)


class Softmax(Module):
    """e^x / Σ e^x along an axis."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """e^x / Σ e^x along the axis."""
        return functional.softmax(x, self.dim)


class LogSoftmax(Module):
    """x − ln Σ e^x along an axis."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """x − ln Σ e^x along the axis."""
        return functional.log_softmax(x, self.dim)
