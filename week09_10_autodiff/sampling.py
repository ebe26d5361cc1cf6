"""The choice of the next token from a model's scores.

    p = softmax(scores / temperature), of which only the k largest, and of these only the fewest
    that together reach top_p, are kept

in this order, as the transformers library does; at temperature 0 it is the token of the largest
score. Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        temperature: what scores are divided by; 0: always the likeliest token.
        top_k: only so many of the likeliest tokens are drawn; None: all.
        top_p: only the fewest likeliest tokens that together have this probability.
        seed: of the random numbers; None: another one each time.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not (self.temperature >= 0 and math.isfinite(self.temperature)):
            raise ValueError(f"expected a temperature ≥ 0, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"expected a top_k ≥ 1, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"expected a top_p in (0, 1], got {self.top_p}")
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"expected a seed ≥ 0, got {self.seed}")


class Sampler:
    """Draws tokens one after the other; the same seed draws the same."""

    def __init__(self, how: Sampling) -> None:
        self._how = how
        self._random = np.random.Generator(np.random.PCG64(how.seed))

    def __call__(self, scores: Scores) -> int:
        """A token, by the scores of all tokens (vocabulary).

        Raises:
            ValueError: a score is NaN, or all are −inf.
        """
        best = int(np.argmax(scores))  # of a NaN, if there is one
        if not scores[best] > -math.inf:
            raise ValueError(f"expected scores to choose from, got {scores[best]} for token {best}")
        if self._how.temperature == 0:
            return best
        tokens, chances = candidates(scores, self._how)
        reached = np.cumsum(chances)
        drawn = self._random.random() * reached[-1]
        return int(tokens[np.searchsorted(reached, drawn, side="right")])


def candidates(scores: Scores, how: Sampling) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The tokens that may be drawn, likeliest first, and their probabilities, which sum to 1."""
    count = min(how.top_k or scores.size, scores.size)
    tokens = np.argpartition(-scores, count - 1)[:count] if count < scores.size else None
    tokens = np.arange(scores.size) if tokens is None else np.sort(tokens)
    tokens = tokens[np.argsort(-scores[tokens], kind="stable")]
    chosen = scores[tokens].astype(np.float64)
    powers = np.exp((chosen - chosen[0]) / how.temperature)
    chances = powers / powers.sum()
    kept = _nucleus(chances, how.top_p)
    return tokens[:kept], chances[:kept] / chances[:kept].sum()


def _nucleus(chances: NDArray[np.float64], top_p: float) -> int:
    """The least number of leading chances that reach `top_p`; at least 1."""
    if top_p >= 1:
        return chances.size
    return min(int(np.searchsorted(np.cumsum(chances), top_p)) + 1, chances.size)
