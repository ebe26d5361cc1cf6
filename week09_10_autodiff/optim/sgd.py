"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from week01_uops.dtypes import float64
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.optim.optimizer import Optimizer, Parameters, State
from week09_10_autodiff.tensor import Tensor


class SGD(Optimizer):
    """As torch.optim.SGD; w the weights, g their gradient.

        g ← g + weight_decay·w
        b ← g in the first step, then momentum·b + (1 − dampening)·g
        w ← w − lr·d,   d = b, with nesterov g + momentum·b, without momentum g

    Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        master_weights: bool = False,
        grad_scale: float = 1.0,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(params, defaults, master_weights=master_weights, grad_scale=grad_scale)

    def _check(self, options: Mapping[str, Any]) -> None:
        super()._check(options)
        momentum, dampening = options["momentum"], options["dampening"]
        if momentum < 0:
            raise TensorError(f"expected momentum ≥ 0, got {momentum}")
        if options["nesterov"] and (momentum == 0 or dampening != 0):
            got = f"{momentum} and {dampening}"
            raise TensorError(f"nesterov: expected momentum > 0 and dampening 0, got {got}")

    def state_names(self, group: Mapping[str, Any]) -> Sequence[str]:
        """The momentum, if there is any."""
        return ("momentum_buffer",) if group["momentum"] else ()

    def update(
        self, weights: Tensor, gradient: Tensor, state: State, group: Mapping[str, Any]
    ) -> tuple[Tensor, State]:
        """The equations above."""
        if group["weight_decay"]:
            gradient = gradient + weights * group["weight_decay"]
        step, changed = gradient, {}
        if group["momentum"]:
            buffer = self._momentum(gradient, state["momentum_buffer"], group)
            changed = {"momentum_buffer": buffer}
            step = gradient + buffer * group["momentum"] if group["nesterov"] else buffer
        return weights - step * group["lr"].to(weights.dtype), changed

    def _momentum(self, gradient: Tensor, buffer: Tensor, group: Mapping[str, Any]) -> Tensor:
        momentum: float = group["momentum"]
        share: float = 1 - group["dampening"]
        if share == 1:  # the buffer is 0 at first
            return buffer * momentum + gradient
        first = (self.steps == 1).to(float64)
        factor = (first * (1 - share) + share).to(gradient.dtype)
        return buffer * momentum + gradient * factor
