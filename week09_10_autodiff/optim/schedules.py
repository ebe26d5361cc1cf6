"""Learning rates that change, with the names and equations of torch.optim.lr_scheduler.

    schedule = WarmupCosineLR(optimizer, warmup=100, total_iters=1000)
    for …: …; optimizer.step(); schedule.step()

A rate is a function of the number t of steps alone (`rate(t, base)`), so a run is resumed by
setting t: state_dict holds nothing more. The optimizer's rate is a tensor: nothing is compiled
anew, and a captured step reads the new value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.optim.optimizer import Optimizer


class LRScheduler(ABC):
    """The base: after t steps each group's rate is rate(t, the rate it began with).

    Attributes:
        last_epoch: t, as PyTorch calls it.
        base_lrs: the rates that the groups began with.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"].item())
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = 0
        self._set()

    @abstractmethod
    def rate(self, t: int, base: float) -> float:
        """The rate after t steps."""

    def step(self) -> None:
        """Count a step and set the rates."""
        self.last_epoch += 1
        self._set()

    def _set(self) -> None:
        rates = [self.rate(self.last_epoch, base) for base in self.base_lrs]
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The rates of the groups."""
        return [self.rate(self.last_epoch, base) for base in self.base_lrs]

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.last_epoch, self.base_lrs = int(state["last_epoch"]), list(state["base_lrs"])
        self._set()


class LambdaLR(LRScheduler):
    """base·f(t)."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """base·f(t)."""
        return base * self.lr_lambda(t)


class ConstantLR(LRScheduler):
    """base·factor for t < total_iters, then base."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """base·factor, then base."""
        return base * self.factor if t < self.total_iters else base


class LinearLR(LRScheduler):
    """base times start_factor at first, end_factor from total_iters on, linear between."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """base·(start + (end − start)·t/total)."""
        part = min(t / self.total_iters, 1)
        return base * (self.start_factor + (self.end_factor - self.start_factor) * part)


def cosine(part: float, first: float, last: float) -> float:
    """From `first` at 0 to `last` at 1 along half a period of the cosine."""
    return last + (first - last) * (1 + math.cos(math.pi * part)) / 2


class CosineAnnealingLR(LRScheduler):
    """From base at 0 to eta_min at T_max and back, along a cosine (Loshchilov and Hutter, 2017)."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,  # noqa: N803 - PyTorch's name
        eta_min: float = 0.0,
    ) -> None:
        self.period, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """eta_min + (base − eta_min)·(1 + cos(π·t/T_max))/2."""
        return cosine(t / self.period, base, self.eta_min)


class WarmupCosineLR(LRScheduler):
    """Linear from base/warmup to base over `warmup` steps, then along a cosine to eta_min.

    It is eta_min from total_iters on. Language models are trained with it.
    """

    def __init__(
        self, optimizer: Optimizer, warmup: int, total_iters: int, eta_min: float = 0.0
    ) -> None:
        if not 0 <= warmup <= total_iters:
            raise TensorError(f"expected warmup of 0 to {total_iters} steps, got {warmup}")
        self.warmup, self.total_iters, self.eta_min = warmup, total_iters, eta_min
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """base·(t + 1)/warmup, then the cosine."""
        if t < self.warmup:
            return base * (t + 1) / self.warmup
        part = (t - self.warmup) / max(self.total_iters - self.warmup, 1)
        return cosine(min(part, 1), base, self.eta_min)


class StepLR(LRScheduler):
    """base·gamma^⌊t/step_size⌋."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """base·gamma^⌊t/step_size⌋."""
        return float(base * self.gamma ** (t // self.step_size))


class MultiStepLR(LRScheduler):
    """base·gamma^(the number of milestones reached)."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones, self.gamma = tuple(milestones), gamma
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """base·gamma^(milestones ≤ t)."""
        return float(base * self.gamma ** sum(m <= t for m in self.milestones))


class ExponentialLR(LRScheduler):
    """base·gamma^t."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """base·gamma^t."""
        return float(base * self.gamma**t)


class OneCycleLR(LRScheduler):
    """Up from first = max_lr/div_factor to max_lr, down to first/final_div_factor (Smith, 2018).

    The way up takes pct_start of the steps; both ways follow a cosine. The momentum stays.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        self.max_lr, self.total_steps, self.pct_start = max_lr, total_steps, pct_start
        self.first = max_lr / div_factor
        self.last = self.first / final_div_factor
        super().__init__(optimizer)

    def rate(self, t: int, base: float) -> float:
        """The rate after t steps; there are total_steps, the first with t = 0."""
        if t > self.total_steps:
            raise TensorError(f"OneCycleLR: expected {self.total_steps} steps, got {t}")
        top = self.pct_start * self.total_steps - 1
        end = self.total_steps - 1
        if t <= top:
            return cosine(t / top, self.first, self.max_lr)
        return cosine((t - top) / (end - top), self.max_lr, self.last)


class ReduceLROnPlateau:
    """Each rate times `factor` when a measure has not got better for more than `patience` steps.

    Better is below best·(1 − threshold) in mode "min", above best·(1 + threshold) in "max". After
    a change nothing is counted for `cooldown` steps. As PyTorch's with threshold_mode "rel".
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max"):
            raise TensorError(f'expected mode "min" or "max", got {mode!r}')
        if not 0 < factor < 1:
            raise TensorError(f"expected a factor between 0 and 1, got {factor}")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.cooldown, self.min_lr, self.eps = threshold, cooldown, min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: float) -> None:
        """Count a measurement."""
        if self._is_better(float(metrics)):
            self.best, self.num_bad_epochs = float(metrics), 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        if self.mode == "min":
            return value < self.best * (1 - self.threshold)
        return value > self.best * (1 + self.threshold)

    def _reduce(self) -> None:
        for group in self.optimizer.param_groups:
            old = group["lr"].item()
            new = max(old * self.factor, self.min_lr)
            if old - new > self.eps:
                group["lr"] = new

    def get_last_lr(self) -> list[float]:
        """The rates of the groups."""
        return [group["lr"].item() for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        names = ("best", "num_bad_epochs", "cooldown_counter")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name in self.state_dict():
            setattr(self, name, state[name])
