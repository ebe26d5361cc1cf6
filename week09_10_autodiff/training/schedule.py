"""The learning rate over a run."""

from __future__ import annotations

import math

from week09_10_autodiff.training.config import OptimizerConfig


def learning_rate(config: OptimizerConfig, step: int, steps: int | None) -> float:
    """The rate of step 1, 2, … of so many; None if that is not known yet, while it rises.

    lr·k/warmup up to the warm-up's end, then lr·(f + (1 − f)·(1 + cos π·t)/2), t from 0 to 1
    (Loshchilov and Hutter, 2017).
    """
    if step <= config.warmup:
        return config.lr * step / config.warmup
    if steps is None:
        raise ValueError(f"expected a number of steps after the warm-up, at step {step}")
    done = min(1.0, (step - config.warmup) / max(1, steps - config.warmup))
    cosine = (1 + math.cos(math.pi * done)) / 2
    return config.lr * (config.final + (1 - config.final) * cosine)
