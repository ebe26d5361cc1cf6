"""Batches for training, each a function of a seed and its number alone.

A run that is resumed at step k takes batch k: there is no state of a loader to keep.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from week02_render.buffers import Array
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.tensor import Tensor

Indices = NDArray[np.int64]


class Dataset(Protocol):
    """Samples that are asked for by their numbers, many at once."""

    def __len__(self) -> int:
        """How many samples there are."""

    def take(self, indices: Indices) -> tuple[Array, ...]:
        """The samples with these numbers, one array for each of their parts."""


class ArrayDataset:
    """Samples that lie along the first axis of arrays, as torch.utils.data.TensorDataset."""

    def __init__(self, *arrays: Array) -> None:
        lengths = {len(array) for array in arrays}
        if len(lengths) != 1:
            raise TensorError(f"expected arrays of one length, got {sorted(lengths)}")
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def take(self, indices: Indices) -> tuple[Array, ...]:
        """The rows with these numbers."""
        return tuple(array[indices] for array in self.arrays)


class TokenDataset:
    """Windows of a text: sample i is the tokens [i·n, i·n + n), and those one further on.

    Args:
        tokens: all tokens in a row, of any integer type: an array, mapped or not, or the path of
            an .npy file, which is mapped.
        context: n.
    """

    def __init__(self, tokens: Array | str | os.PathLike[str], context: int) -> None:
        self.tokens, self.context = _tokens(tokens), context
        if not 0 < context < len(self.tokens):
            wanted = f"a context of 1 to {len(self.tokens) - 1}, for {len(self.tokens)} tokens"
            raise TensorError(f"expected {wanted}, got {context}")

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.context

    def take(self, indices: Indices) -> tuple[Array, ...]:
        """Tokens (…, n) and what follows each of them (…, n), as int64."""
        return windows(self.tokens, indices * self.context, self.context)


def windows(tokens: Array, starts: Indices, length: int) -> tuple[Indices, Indices]:
    """So many tokens from each start on (…, length), and what follows each of them, as int64."""
    found = tokens[starts[..., None] + np.arange(length + 1)].astype(np.int64)
    return np.ascontiguousarray(found[..., :-1]), np.ascontiguousarray(found[..., 1:])


def _tokens(given: Array | str | os.PathLike[str]) -> Array:
    tokens = given if isinstance(given, np.ndarray) else np.load(Path(given), mmap_mode="r")
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
        got = f"{tokens.dtype}{list(tokens.shape)}"
        raise TensorError(f"expected tokens as integers along one axis, got {got}")
    return tokens


class DataLoader:
    """Batches of a dataset.

    An epoch is all samples once, in an order of its own if they are shuffled: the order in which
    Philox, a counter-based generator (Salmon et al., 2011), sorts them by 64 random bits each.

    Args:
        dataset: arrays of one length, or something with `take`.
        batch_size: samples in a batch.
        shuffle: whether the order is a random one.
        drop_last: leave out the last batch of an epoch if it is smaller.
        seed: of the order.

    Attributes:
        epoch: the epoch that `for … in loader` takes next.
    """

    def __init__(
        self,
        dataset: Dataset | Sequence[Array],
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        if batch_size < 1:
            raise TensorError(f"expected a batch_size of 1 or more, got {batch_size}")
        self.dataset = ArrayDataset(*dataset) if isinstance(dataset, Sequence) else dataset
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        self.seed, self.epoch = seed, 0
        if not len(self):
            raise TensorError(f"expected a batch of samples, got {len(self.dataset)} samples")

    def __len__(self) -> int:
        """Batches in an epoch."""
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def batch(self, step: int) -> tuple[Tensor, ...]:
        """Batch number `step`, counted through the epochs."""
        epoch, number = divmod(step, len(self))
        start = number * self.batch_size
        order = self._order(epoch)[start : start + self.batch_size]
        return tuple(Tensor(part) for part in self.dataset.take(order))

    def _order(self, epoch: int) -> Indices:
        count = len(self.dataset)
        return _shuffled(count, self.seed, epoch) if self.shuffle else np.arange(count)

    def batches(self, start: int = 0) -> Iterator[tuple[Tensor, ...]]:
        """Batch `start`, the next one, and so on without an end."""
        while True:
            yield self.batch(start)
            start += 1

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """The batches of one epoch: of the first, the next time of the second, and so on."""
        first = self.epoch * len(self)
        self.epoch += 1
        return (self.batch(first + number) for number in range(len(self)))


@lru_cache(maxsize=2)
def _shuffled(count: int, seed: int, epoch: int) -> Indices:
    """The numbers 0 … count − 1 in the order of this seed and epoch."""
    keys = np.random.Philox(key=seed, counter=[0, 0, 0, epoch]).random_raw(count)
    return np.argsort(keys, kind="stable")
