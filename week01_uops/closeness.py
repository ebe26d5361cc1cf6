"""Comparison of an array with the expected one: exact, or within bounds that depend on scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from week01_uops.dtypes import DType
from week01_uops.error_model import Bounded
from week01_uops.numerics import Array, wide


@dataclass(frozen=True)
class Difference:
    """The first element that is wrong.

    Attributes:
        index: where it stands.
        expected: what was right.
        got: what came.
        count: how many elements are wrong.
    """

    index: tuple[int, ...]
    expected: float | int | bool
    got: float | int | bool
    count: int


def close(
    expected: Array,
    got: Array,
    dtype: DType,
    *,
    ulps: float = 0.0,
    error: Array | float = 0.0,
    scale: Array | float = 0.0,
) -> Difference | None:
    """None if every element is right: |got − expected| ≤ error + ulps·2^(1−p)·max(|expected|, s).

    p is the dtype's precision and s the scale, the size of the terms that a value was summed up
    from: `ulps` counts units in the last place of the larger of the two. NaN and infinities must
    match, unless `error` is infinite; −0 equals 0; integers and bools must be equal.

    Raises:
        ValueError: the arrays differ in shape, or `got` is not of the dtype.
    """
    if got.dtype != dtype.numpy or got.shape != expected.shape:
        raise ValueError(
            f"expected {dtype}{list(expected.shape)}, got {got.dtype}{list(got.shape)}"
        )
    want, have = wide(expected), wide(got)
    wrong = np.asarray(want != have)
    if dtype.is_float:
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.maximum(np.where(np.isfinite(want), np.abs(want), 0.0), scale)
            allowed = error + ulps * 2.0 ** (1 - dtype.precision) * size
            near = np.isfinite(want) & np.isfinite(have) & (np.abs(have - want) <= allowed)
        wrong &= ~near & ~(np.isnan(want) & np.isnan(have))
    return _first(want, have, wrong & ~np.isinf(error))


def within(bounded: Bounded, got: Array, dtype: DType, factor: float = 1.0) -> Difference | None:
    """None if `got` is a right answer: off by at most `factor` times the bound everywhere."""
    return close(bounded.value, got, dtype, error=factor * bounded.error)


def _first(want: Array, have: Array, wrong: Array) -> Difference | None:
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(at, want[at].item(), have[at].item(), int(np.count_nonzero(wrong)))
