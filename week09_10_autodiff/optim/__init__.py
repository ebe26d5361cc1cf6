"""Optimizers, learning rates that change, and what is done to gradients before a step."""

from week09_10_autodiff.optim.accumulation import Accumulator
from week09_10_autodiff.optim.adam import Adam, AdamW
from week09_10_autodiff.optim.clipping import clip_grad_norm_, clip_grad_value_
from week09_10_autodiff.optim.optimizer import Optimizer
from week09_10_autodiff.optim.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    ReduceLROnPlateau,
    StepLR,
    WarmupCosineLR,
)
from week09_10_autodiff.optim.sgd import SGD

__all__ = [
    "SGD",
    "Accumulator",
    "Adam",
    "AdamW",
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "Optimizer",
    "ReduceLROnPlateau",
    "StepLR",
    "WarmupCosineLR",
    "clip_grad_norm_",
    "clip_grad_value_",
]
