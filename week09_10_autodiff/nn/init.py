"""First values of parameters, distributed as PyTorch's, lazily: what is overwritten costs nothing.

Each function changes the tensor that it is given and returns it. The random ones draw from the
generator given, or from that of `random.manual_seed`.
"""

from __future__ import annotations

import math

from week09_10_autodiff import random
from week09_10_autodiff.context import no_grad
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.random import Generator
from week09_10_autodiff.tensor import Tensor

MOST_DRAWS = 1000
"""So often a number outside of the bounds is drawn anew."""


def constant_(tensor: Tensor, val: float) -> Tensor:
    """All elements one number."""
    return tensor.assign(val)


def zeros_(tensor: Tensor) -> Tensor:
    """All elements 0."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """All elements 1."""
    return constant_(tensor, 1.0)


@no_grad()
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform in [a, b)."""
    return tensor.assign(random.rand(*tensor.shape, generator=generator) * (b - a) + a)


@no_grad()
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Normal with this mean and standard deviation."""
    return tensor.assign(random.randn(*tensor.shape, generator=generator) * std + mean)


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal, with what falls outside of [a, b] drawn again; computed at once.

    Raises:
        TensorError: next to nothing falls inside.
    """
    low, high = (a - mean) / std, (b - mean) / std
    values = random.randn(*tensor.shape, generator=generator).realize()
    for _ in range(MOST_DRAWS):
        outside = (values < low) | (values > high)
        if not outside.any().item():
            return tensor.assign(values * std + mean)
        values = random.randn(*tensor.shape, generator=generator).where(outside, values).realize()
    raise TensorError(f"trunc_normal_: expected bounds that hold more, got [{a}, {b}]")


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output sums, and how many outputs an input goes into.

    Of a weight (out, in, *kernel): in·Π kernel and out·Π kernel.
    """
    if tensor.ndim < 2:
        raise TensorError(f"expected a weight with 2 axes or more, got {list(tensor.shape)}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By what weights are scaled before a nonlinearity, so that the variance stays.

    `param` is the negative slope of "leaky_relu", 0.01 unless given.
    """
    slope = 0.01 if param is None else param
    gains = {
        **dict.fromkeys(("linear", "conv1d", "conv2d", "sigmoid"), 1.0),
        "tanh": 5 / 3,
        "relu": math.sqrt(2),
        "leaky_relu": math.sqrt(2 / (1 + slope**2)),
        "selu": 0.75,
    }
    if nonlinearity not in gains:
        raise TensorError(f"calculate_gain: expected one of {', '.join(gains)}, got {nonlinearity}")
    return gains[nonlinearity]


def _fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise TensorError(f"expected mode fan_in or fan_out, got {mode!r}")
    return fans(tensor)[mode == "fan_out"]


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform in ±gain·√(3/fan) (He et al., 2015); `a` is the slope of a leaky ReLU."""
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3 / max(_fan(tensor, mode), 1))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with the standard deviation gain/√fan (He et al., 2015)."""
    std = calculate_gain(nonlinearity, a) / math.sqrt(max(_fan(tensor, mode), 1))
    return normal_(tensor, 0.0, std, generator)


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform in ±gain·√(6/(fan in + fan out)) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with the standard deviation gain·√(2/(fan in + fan out)) (Glorot and Bengio)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)
