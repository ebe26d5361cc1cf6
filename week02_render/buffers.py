"""Arrays that compiled programs read and write: dense, row-major, 64-byte aligned."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from week01_uops import dtypes
from week01_uops.dtypes import DType
from week01_uops.node import Shape

ALIGNMENT = 64
"""Bytes; the interchange format promises it of every array."""

Array = NDArray[Any]


def address(array: Array) -> int:
    """Where the first element lies."""
    return int(array.__array_interface__["data"][0])


def aligned_empty(shape: Shape, dtype: DType) -> Array:
    """A new array whose first element lies at a multiple of 64 bytes."""
    size = math.prod(shape) * dtype.numpy.itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -address(raw) % ALIGNMENT
    return raw[start : start + size].view(dtype.numpy).reshape(shape)


def is_dense(array: Array) -> bool:
    """Whether compiled code can use the array in place."""
    flags = array.flags
    return array.size == 0 or (
        flags.c_contiguous and flags.aligned and address(array) % ALIGNMENT == 0
    )


def dense(array: Array, dtype: DType) -> Array:
    """The array itself if compiled code can use it in place, else a copy that it can."""
    if is_dense(array):
        return array
    copy = aligned_empty(array.shape, dtype)
    copy[...] = array
    return copy


def as_array(value: object, dtype: DType) -> Array:
    """A NumPy view, without a copy, of an array of any library; numbers and lists are converted.

    Raises:
        TypeError: its element type is another one, or it is not in this process's memory.
    """
    if isinstance(value, np.ndarray):
        array = value
    elif type(value).__module__.partition(".")[0] == "torch":
        array = _from_torch(value)
    elif isinstance(value, (bool, int, float, list, tuple)):
        array = _from_numbers(value, dtype)
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        array = np.from_dlpack(value)
    else:
        array = np.asarray(value)
    if array.dtype != dtype.numpy:
        raise TypeError(f"expected {dtype}, got {array.dtype}")
    return array


def _from_numbers(value: object, dtype: DType) -> Array:
    """An array of Python numbers; a float is not taken for an integer."""
    if not dtype.is_float and np.asarray(value).dtype.kind == "f":
        raise TypeError(f"expected {dtype}, got a float")
    return np.asarray(value, dtype.numpy)


def _from_torch(tensor: Any) -> Array:  # noqa: ANN401 - torch is not imported here
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu":
        raise TypeError(f"expected a tensor on the CPU, got one on {tensor.device}; use .cpu()")
    tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:  # NumPy has no such type: its bits are read as integers
        tensor = tensor.view(torch.int16)
        return np.asarray(tensor.numpy()).view(dtypes.bfloat16.numpy)
    return np.asarray(tensor.resolve_conj().resolve_neg().numpy())
