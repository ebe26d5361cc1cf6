"""Losses as modules; each takes what a model gives and what it should give."""

from __future__ import annotations

from week09_10_autodiff.nn import functional
from week09_10_autodiff.nn.module import Module
from week09_10_autodiff.tensor import Tensor


class MSELoss(Module):
    """(x − target)²."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See functional.mse_loss."""
        return functional.mse_loss(x, target, self.reduction)


class L1Loss(Module):
    """|x − target|."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See functional.l1_loss."""
        return functional.l1_loss(x, target, self.reduction)


class BCEWithLogitsLoss(Module):
    """Binary cross-entropy of scores."""

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        self.reduction = reduction
        self.weight, self.pos_weight = weight, pos_weight

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See functional.binary_cross_entropy_with_logits."""
        return functional.binary_cross_entropy_with_logits(
            x, target, self.weight, self.reduction, self.pos_weight
        )


class NLLLoss(Module):
    """−x at the target's class."""

    weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        self.weight, self.ignore_index, self.reduction = weight, ignore_index, reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See functional.nll_loss."""
        return functional.nll_loss(x, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(Module):
    """−log_softmax(x) at the target's class."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        self.weight, self.ignore_index, self.reduction = weight, ignore_index, reduction
        self.label_smoothing = label_smoothing

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See functional.cross_entropy."""
        options = (self.weight, self.ignore_index, self.reduction, self.label_smoothing)
        return functional.cross_entropy(x, target, *options)


class KLDivLoss(Module):
    """target·(ln target − x)."""

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        self.reduction, self.log_target = reduction, log_target

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See functional.kl_div."""
        return functional.kl_div(x, target, self.reduction, self.log_target)
