"""Arrays for tensors, from numbers, lists and the arrays of other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from week01_uops.dtypes import (
    BY_NAME,
    DType,
    Kind,
    Value,
    bool_,
    float32,
    from_numpy,
    int64,
)
from week02_render.buffers import Array, aligned_empty, as_array
from week09_10_autodiff.dlpack import imported
from week09_10_autodiff.errors import TensorError, TensorTypeError
from week09_10_autodiff.promotion import dtype_of


def copied(data: object, dtype: DType | None) -> Array:
    """A new array of numbers, lists of numbers and tensors, or an array of any library."""
    if isinstance(data, (bool, int, float, list, tuple)):
        return _of_numbers(data, dtype)
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


def _of_numbers(data: Value | Sequence[Any], dtype: DType | None) -> Array:
    """Floats are float32 and integers int64, unless a dtype is given, which must hold them."""
    try:
        array = np.asarray(data)
        kind = from_numpy(array.dtype).kind
    except ValueError as error:
        raise TensorError(f"expected lists of equal lengths: {error}") from None
    except TypeError:
        raise TensorTypeError(f"expected numbers, got {np.asarray(data).dtype}") from None
    wanted = _DEFAULT[kind] if dtype is None else dtype
    if wanted.is_int and kind in ("int", "uint") and array.size:
        for value in (int(array.min()), int(array.max())):
            if not wanted.min <= value <= wanted.max:
                bounds = f"{wanted.min} to {wanted.max}"
                raise TensorError(f"expected numbers of {wanted}, {bounds}, got {value}")
    return _filled(array, wanted)


_DEFAULT: Mapping[Kind, DType] = MappingProxyType(
    {"bool": bool_, "int": int64, "uint": int64, "float": float32}
)
"""The dtype of numbers by their kind."""


def _filled(array: Array, dtype: DType) -> Array:
    result = aligned_empty(array.shape, dtype)
    result[...] = array
    return result
