"""Squares, a counter-based generator of random numbers, made of products and sums.

The number at a place of a stream is a function of the stream's key and of the place alone:

    x = y = place·key,   z = y + key                                    all modulo 2⁶⁴
    x ← swap(x² + y);   x ← swap(x² + z);   x ← swap(x² + y);   result = ⌊(x² + z) / 2³²⌋

where swap exchanges the upper and the lower half. Widynski, "Squares: A Fast Counter-Based RNG",
2020 (arXiv 2004.06278), the version of four rounds. It is written twice, as an expression and for
NumPy, which draws what has to be known at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from week01_uops.dtypes import uint64
from week01_uops.node import UOp, const, make
from week01_uops.ops import FLOORDIV
from week03_loops.library import add, mul, square

HALF = 1 << 32
WORD = 1 << 64
DIGITS = tuple(range(1, 16))


def key_of(seed: int) -> int:
    """The key of a seed: an odd number of 16 hexadecimal digits, none 0, different in each half.

    Places are multiplied by the key, so it should be irregular; the paper builds its keys of
    different digits too. They are drawn by SplitMix64 begun at the seed (Steele, Lea and Flood,
    "Fast Splittable Pseudorandom Number Generators", 2014): keys of neighbouring seeds have
    nothing in common. There are 3·10¹⁶ keys.
    """
    words = _split_mix(seed % WORD)
    last = [d for d in DIGITS if d % 2]
    low = [last[next(words) % len(last)]]
    low += _chosen([d for d in DIGITS if d != low[0]], 7, words)
    digits = [*low, *_chosen(list(DIGITS), 8, words)]
    return sum(digit << 4 * k for k, digit in enumerate(digits))


def _chosen(digits: list[int], count: int, words: Iterator[int]) -> list[int]:
    """So many of the digits, in random order."""
    return [digits.pop(next(words) % len(digits)) for _ in range(count)]


def _split_mix(state: int) -> Iterator[int]:
    while True:
        state = (state + 0x9E3779B97F4A7C15) % WORD
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % WORD
        yield mixed ^ mixed >> 31


def draws(key: UOp, places: UOp) -> UOp:
    """The numbers below 2³² at places of a stream, all uint64."""
    y = mul(places, key)
    z = add(y, key)
    x = _swapped(add(square(y), y))
    x = _swapped(add(square(x), z))
    x = _swapped(add(square(x), y))
    return _upper(add(square(x), z))


def _swapped(x: UOp) -> UOp:
    return add(mul(x, HALF), _upper(x))


def _upper(x: UOp) -> UOp:
    return make(FLOORDIV, (x, const(HALF, uint64)))


def draws_now(key: int, places: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The same for NumPy."""
    k, half = np.uint64(key), np.uint64(32)
    y = places * k
    z = y + k
    x = y
    for term in (y, z, y):
        x = x * x + term
        x = x << half | x >> half
    return np.asarray((x * x + z) >> half)
