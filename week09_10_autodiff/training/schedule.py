"""The learning rate over a run."""

from __future__ import annotations

from week09_10_autodiff.optim.schedules import cosine
from week09_10_autodiff.training.config import OptimizerConfig


def learning_rate(config: OptimizerConfig, step: int, steps: int | None) -> float:
    """The rate of step 1, 2, … of so many; None if that is not known yet, while it rises.

    lr·k/warmup up to the warm-up's end, then from lr to lr·final along half a cosine (Loshchilov
    and Hutter, 2017).
    """
    if step <= config.warmup:
        return config.lr * step / config.warmup
    if steps is None:
        raise ValueError(f"expected a number of steps after the warm-up, at step {step}")
    done = min(1.0, (step - config.warmup) / max(1, steps - config.warmup))
    return cosine(done, config.lr, config.lr * config.final)
