"""Layers, losses and first values, with PyTorch's names and meanings."""

from week09_10_autodiff.nn import functional, init
from week09_10_autodiff.nn.activation import (
    ELU,
    GELU,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from week09_10_autodiff.nn.attention import MultiHeadAttention
from week09_10_autodiff.nn.containers import ModuleList, Sequential
from week09_10_autodiff.nn.layers import (
    AvgPool2d,
    Conv1d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    Identity,
    Linear,
    MaxPool2d,
)
from week09_10_autodiff.nn.loss import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
)
from week09_10_autodiff.nn.module import Module, Parameter
from week09_10_autodiff.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    GroupNorm,
    LayerNorm,
    RMSNorm,
)

__all__ = [
    "ELU",
    "GELU",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiHeadAttention",
    "NLLLoss",
    "Parameter",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "functional",
    "init",
]
