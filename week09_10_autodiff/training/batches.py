"""Batches of token sequences, each decided by the seed and its number alone.

A run that is resumed at step k needs no state of a generator: batch k is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from week09_10_autodiff.data import windows
from week09_10_autodiff.training.settings import ConfigError
from week09_10_autodiff.training.tokens import Tokens

Pair = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Tokens (batch, context), and at each place the token that follows."""


@dataclass(frozen=True)
class Batches:
    """Windows of context + 1 tokens.

    Attributes:
        tokens: all of them in a row.
        name: what they are, for errors.
    """

    tokens: Tokens
    batch: int
    context: int
    name: str = "training"

    def __post_init__(self) -> None:
        if len(self.tokens) <= self.context:
            wanted = f"more than {self.context} tokens for {self.name} (the context)"
            raise ConfigError(f"[data] corpus: expected {wanted}, got {len(self.tokens)}")

    def drawn(self, seed: int, number: int) -> Pair:
        """Windows at random places, those of this seed and number (Philox, counter-based)."""
        bits = np.random.Philox(key=seed, counter=[0, 0, 0, number])
        places = bits.random_raw(self.batch) % np.uint64(len(self.tokens) - self.context)
        return windows(self.tokens, places.astype(np.int64), self.context)

    def spread(self, count: int) -> Iterator[Pair]:
        """So many batches of windows at equal distances over all tokens, for validation."""
        last = len(self.tokens) - self.context - 1
        places = np.linspace(0, last, count * self.batch).round().astype(np.int64)
        for start in range(0, len(places), self.batch):
            yield windows(self.tokens, places[start : start + self.batch], self.context)
