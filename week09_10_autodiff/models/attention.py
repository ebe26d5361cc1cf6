"""What the tokens of a text look at: each other, or keys and values kept from before.

A model computes queries, keys and values, and leaves the rest to an `Attending`:

    ALONE            tokens of whole texts look at those before them (training, scoring)
    Prompt(cache)    the same, and their keys and values are kept
    Next(cache, n)   one token, the n-th of its text, looks at all that is kept, and is kept too

With `Next`, a step costs one token's work, whatever stands before it (Pope et al., "Efficiently
Scaling Transformer Inference", 2022, section 3).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from week01_uops.dtypes import DType, float32
from week09_10_autodiff.nn import functional as F  # noqa: N812 - as everybody calls it
from week09_10_autodiff.tensor import Tensor


class Attending(Protocol):
    """Attention, and the positions of the tokens."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """What queries (batch, heads, t, width) find, in their shape; k and v have groups.

        In training weights are dropped with the probability `dropout`.
        """

    def reach(self, length: int) -> int:
        """One more than the last position that so many tokens may have."""

    def rows(self, table: Tensor, length: int) -> Tensor:
        """The rows (t, …) of a table (positions, …) for so many tokens."""


class Alone:
    """Tokens at positions 0, 1, …, each of which looks at itself and those before it."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Causal attention among these tokens."""
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)

    def reach(self, length: int) -> int:
        """As many as there are tokens."""
        return length

    def rows(self, table: Tensor, length: int) -> Tensor:
        """The first rows."""
        return table[:length]


ALONE = Alone()


class Cache:
    """Keys and values (batch, groups, capacity, width) of each layer, to be filled in place.

    Attributes:
        capacity: how many tokens have room.
        keys, values: a tensor for each layer.
    """

    def __init__(
        self,
        layers: int,
        groups: int,
        width: int,
        capacity: int,
        *,
        batch: int = 1,
        dtype: DType = float32,
    ) -> None:
        self.capacity = capacity
        empty = np.zeros((batch, groups, capacity, width), dtype.numpy)
        self.keys = [Tensor(empty) for _ in range(layers)]
        self.values = [Tensor(empty) for _ in range(layers)]


class Prompt(Alone):
    """The first tokens of a text, whose keys and values go to a cache.

    There may be fewer tokens of the text than are given: what stands behind them is looked at by
    none of them, and overwritten in the cache before anybody else looks.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Causal attention among these tokens."""
        for kept, new in ((self._cache.keys[layer], k), (self._cache.values[layer], v)):
            rest = self._cache.capacity - new.shape[2]
            kept.assign(new.pad((0, 0, 0, rest)) if rest else new)
        return super().__call__(layer, q, k, v, dropout)


class Next:
    """One token, which looks at itself and at what a cache holds of the tokens before it.

    Args:
        position: how many tokens are before it, an integer scalar less than the capacity.
    """

    def __init__(self, cache: Cache, position: Tensor) -> None:
        self._cache, self._position = cache, position
        places = Tensor.arange(cache.capacity)
        self._here = (places == position).reshape(-1, 1)
        self._seen = places <= position

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Attention to all that is kept, now with this token's key and value."""
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        keys.assign(k.where(self._here, keys))
        values.assign(v.where(self._here, values))
        return F.scaled_dot_product_attention(q, keys, values, self._seen, dropout)

    def reach(self, length: int) -> int:
        """All positions that the cache has room for."""
        return self._cache.capacity

    def rows(self, table: Tensor, length: int) -> Tensor:
        """The row of the position."""
        return table.index_select(0, self._position.reshape(1))
