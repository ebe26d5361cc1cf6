"""Rotary positions: the angles by which queries and keys are turned, as tables.

    angle(position, i) = position·f(i),   f(i) = theta^(−2i/width),   0 ≤ i < width/2

Su et al., "RoFormer", 2021. Models that were trained for short texts and went on with long ones
scale the frequencies f:

    linear   f / factor                               (Chen et al., "Position Interpolation", 2023)
    llama3   f where a turn is short, f / factor where it is long, and in between a mean of both
             by how many turns the texts of the first training had (Llama 3.1's reference code)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from week03_loops import library as lib
from week09_10_autodiff.hub import Config
from week09_10_autodiff.tensor import Tensor

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Rotary:
    """How angles follow from positions.

    Attributes:
        theta: the base.
        kind: `default`, `linear` or `llama3`.
        factor: what scaled frequencies are divided by.
        low, high: `llama3`: turns in a text of the first training, below which frequencies are
            scaled, and above which they are not.
        trained: `llama3`: tokens of a text of the first training.
    """

    theta: float = 10000.0
    kind: str = "default"
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    trained: int = 8192

    @classmethod
    def of(cls, config: Config) -> Rotary:
        """What a config.json says in `rope_parameters`, or in `rope_theta` and `rope_scaling`.

        Raises:
            HubError: of a kind of scaling that is not known.
        """
        theta = config.real("rope_theta", 10000.0)
        section = config.section("rope_parameters") or config.section("rope_scaling")
        if section is None:
            return cls(theta)
        key = "rope_type" if section.get("rope_type") is not None else "type"
        kind = section.choice(key, tuple(_FREQUENCIES), "default")
        theta = section.real("rope_theta", theta)
        if kind == "default":
            return cls(theta)
        if kind == "linear":
            return cls(theta, kind, section.real("factor"))
        return cls(
            theta,
            kind,
            section.real("factor"),
            section.real("low_freq_factor"),
            section.real("high_freq_factor"),
            section.integer("original_max_position_embeddings"),
        )

    def frequencies(self, width: int) -> Floats:
        """The frequencies f (width/2) of heads of this width."""
        exponents = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        powers = np.power(self.theta, exponents, dtype=np.float64).astype(np.float32)
        plain = np.float32(1) / powers
        return _FREQUENCIES[self.kind](self, plain).astype(np.float32)

    def tables(self, positions: int, width: int) -> tuple[Floats, Floats]:
        """The cosines and sines of all angles (positions, width/2).

        Angles are rounded to float32 before, as wherever these models were trained.
        """
        places = np.arange(positions, dtype=np.float32)
        angles = np.multiply.outer(places, self.frequencies(width)).astype(np.float64)
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Each pair (x[i], x[i + width/2]) of x (…, t, width) by its angle; tables (t, width/2)."""
    return x._apply("rotary", lib.rotary, cosine, sine)


def _llama3(how: Rotary, plain: Floats) -> Floats:
    turns = how.trained * plain / np.float32(2 * np.pi)
    share = np.clip((turns - how.low) / (how.high - how.low), 0, 1)
    scaled: Floats = (1 - share) * plain / how.factor + share * plain
    return scaled


_FREQUENCIES: Mapping[str, Callable[[Rotary, Floats], Floats]] = MappingProxyType(
    {
        "default": lambda how, plain: plain,
        "linear": lambda how, plain: plain / np.float32(how.factor),
        "llama3": _llama3,
    }
)
