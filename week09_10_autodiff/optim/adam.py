"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from week01_uops.dtypes import float64
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.optim.optimizer import Optimizer, Parameters, State
from week09_10_autodiff.tensor import Tensor


class Adam(Optimizer):
    """As torch.optim.Adam; w the weights, g their gradient, t the number of the step, from 1.

        g ← g + weight_decay·w
        m ← β₁·m + (1 − β₁)·g
        v ← β₂·v + (1 − β₂)·g²
        w ← w − lr/(1 − β₁ᵗ)·m / (√v/√(1 − β₂ᵗ) + ε)

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1. t counts all
    steps of the optimizer, also those in which a parameter had no gradient.
    """

    decoupled = False
    """Whether the weights decay by themselves rather than through the gradient."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        master_weights: bool = False,
        grad_scale: float = 1.0,
    ) -> None:
        defaults = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults, master_weights=master_weights, grad_scale=grad_scale)

    def _check(self, options: Mapping[str, Any]) -> None:
        super()._check(options)
        if not all(0 <= beta < 1 for beta in options["betas"]):
            raise TensorError(f"expected betas in [0, 1), got {options['betas']}")

    def state_names(self, group: Mapping[str, Any]) -> Sequence[str]:
        """The averages of the gradient and of its square."""
        return ("exp_avg", "exp_avg_sq")

    def update(
        self, weights: Tensor, gradient: Tensor, state: State, group: Mapping[str, Any]
    ) -> tuple[Tensor, State]:
        """The equations above."""
        dtype, rate, decay = weights.dtype, group["lr"], group["weight_decay"]
        first, second = group["betas"]
        if decay and self.decoupled:
            weights = weights * (1 - rate * decay).to(dtype)
        elif decay:
            gradient = gradient + weights * decay
        mean = state["exp_avg"] + (gradient - state["exp_avg"]) * (1 - first)
        square = state["exp_avg_sq"] * second + gradient.square() * (1 - second)
        size = (rate / self._correction(first)).to(dtype)
        root = self._correction(second).rsqrt().to(dtype)
        step = mean / (square.sqrt() * root + group["eps"])
        return weights - step * size, {"exp_avg": mean, "exp_avg_sq": square}

    def _correction(self, beta: float) -> Tensor:
        """1 − βᵗ, in float64."""
        if beta == 0:
            return Tensor.ones(dtype=float64)
        return 1 - (self.steps.to(float64) * math.log2(beta)).exp2()


class AdamW(Adam):
    """As torch.optim.AdamW: Adam, but w ← (1 − lr·weight_decay)·w instead of decay in g.

    Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2.
    """

    decoupled = True

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        master_weights: bool = False,
        grad_scale: float = 1.0,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            master_weights=master_weights,
            grad_scale=grad_scale,
        )
