"""Comparing arrays element by element: exactly, or within an absolute bound for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grader.verdict import Difference

Array = np.ndarray[Any, Any]


def first_difference(
    expected: Sequence[Array], got: Sequence[Array], allowed: Sequence[Array | float] | None = None
) -> Difference | None:
    """Where `got` departs from `expected` by more than `allowed`, or None.

    NaN equals NaN, an infinity the same infinity, and −0 equals 0; integers must be equal. Where
    `allowed` is NaN, every value is right.
    """
    for output, (want, have) in enumerate(zip(expected, got, strict=True)):
        bound = 0.0 if allowed is None else allowed[output]
        wrong = _wrong(want, have, bound)
        if wrong.any():
            return _difference(output, want, have, bound, wrong)
    return None


def _wrong(want: Array, have: Array, bound: Array | float) -> Array:
    return np.asarray(_unequal(want, have, bound) & ~np.isnan(bound))


def _unequal(want: Array, have: Array, bound: Array | float) -> Array:
    if want.dtype.kind in "biu":
        return np.asarray(want != have)
    with np.errstate(invalid="ignore", over="ignore"):
        wide_want, wide_have = want.astype(np.float64), have.astype(np.float64)
        near = np.abs(wide_want - wide_have) <= bound
    finite = np.isfinite(wide_want) & np.isfinite(wide_have)
    same = (wide_want == wide_have) | (np.isnan(wide_want) & np.isnan(wide_have))
    return np.asarray(~(same | (finite & near)))


def _difference(
    output: int, want: Array, have: Array, bound: Array | float, wrong: Array
) -> Difference:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    allowed = float(np.broadcast_to(bound, want.shape)[index])
    note = f"allowed error {allowed:.3g}" if allowed else ""
    count = int(np.count_nonzero(wrong))
    return Difference(output, index, str(want[index]), str(have[index]), count, want.size, note)
