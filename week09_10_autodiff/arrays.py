"""Arrays for tensors, from numbers, lists and the arrays of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from week01_uops.dtypes import BY_NAME, DType, from_numpy
from week02_render.buffers import Array, aligned_empty, as_array
from week09_10_autodiff.dlpack import imported
from week09_10_autodiff.errors import TensorError, TensorTypeError
from week09_10_autodiff.promotion import default_dtype, dtype_of


def copied(data: object, dtype: DType | None) -> Array:
    """A new array of numbers, lists of numbers and tensors, or an array of any library."""
    if isinstance(data, (bool, int, float)):
        return _filled(np.asarray(data), dtype or default_dtype(data))
    if isinstance(data, (list, tuple)):
        return _of_list(data, dtype)
    array = viewed(data)
    return _filled(array, dtype or dtype_of(array.dtype))


def viewed(data: object) -> Array:
    """The elements of an array of any library, without a copy where they are in this process.

    Raises:
        TensorTypeError: it is no array, or one of another machine's memory or element type.
    """
    name = str(getattr(data, "dtype", "")).removeprefix("torch.")
    try:
        if name in BY_NAME:
            return as_array(data, BY_NAME[name])
        array = imported(data) if hasattr(data, "__dlpack__") else np.asarray(data)
        return as_array(array, from_numpy(array.dtype))
    except (TypeError, ValueError, OverflowError, BufferError, RuntimeError) as error:
        raise TensorTypeError(f"expected numbers or an array of them: {error}") from None


def _of_list(data: Sequence[Any], dtype: DType | None) -> Array:
    """Floats are float32 and integers int64, unless a dtype is given."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise TensorError(f"expected lists of equal lengths: {error}") from None
    if array.dtype.kind not in "biuf":
        raise TensorTypeError(f"expected numbers, got {array.dtype}")
    if dtype is None:
        dtype = dtype_of({"b": bool, "i": int, "u": int, "f": float}[array.dtype.kind])
    return _filled(array, dtype)


def _filled(array: Array, dtype: DType) -> Array:
    result = aligned_empty(array.shape, dtype)
    result[...] = array
    return result
