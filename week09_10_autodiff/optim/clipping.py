"""Gradients kept small."""

from __future__ import annotations

import math
from collections.abc import Iterable

from week01_uops.dtypes import float32, float64
from week09_10_autodiff.context import no_grad
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.tensor import Tensor

EPSILON = 1e-6
"""Added to the norm before dividing by it, as PyTorch does."""


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0
) -> Tensor:
    """Scale all gradients by max_norm / (norm + 1e-6) if that is below 1; returns the norm.

    The norm is (Σ |g|^p)^(1/p) over the elements of all gradients, the largest |g| for p = ∞,
    computed in float32 at least. As torch.nn.utils.clip_grad_norm_ (Pascanu et al., 2013).
    """
    owners = _with_gradients(parameters)
    if not norm_type > 0:
        raise TensorError(f"clip_grad_norm_: expected norm_type > 0, got {norm_type}")
    norm = _total(owners, norm_type)
    scale = (max_norm / (norm + EPSILON)).minimum(1.0)
    for parameter in owners:
        assert parameter.grad is not None
        parameter.grad = parameter.grad * scale.to(parameter.dtype)
    return norm


def _total(owners: list[Tensor], norm_type: float) -> Tensor:
    """The norm of all gradients together."""
    sizes = [_wide(parameter.grad).abs() for parameter in owners if parameter.grad is not None]
    if not sizes:
        return Tensor.zeros()
    if norm_type == math.inf:
        return _folded([size.max() for size in sizes], largest=True)
    if norm_type == 2:
        return _folded([size.square().sum() for size in sizes]).sqrt()
    return _folded([size.pow(norm_type).sum() for size in sizes]).pow(1 / norm_type)


def _folded(items: list[Tensor], *, largest: bool = False) -> Tensor:
    total = items[0]
    for item in items[1:]:
        total = total.maximum(item) if largest else total + item
    return total


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype is float64 else x.to(float32)


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Each element of each gradient brought into [−clip_value, clip_value]."""
    for parameter in _with_gradients(parameters):
        assert parameter.grad is not None
        parameter.grad = parameter.grad.clamp(-clip_value, clip_value)


def _with_gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter for parameter in given if parameter.grad is not None]
