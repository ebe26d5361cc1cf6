"""DLPack capsules of arrays, with the element type that NumPy's lack: bfloat16.

A capsule holds a pointer to a struct that begins with a DLTensor: data, device (two int32), ndim
(int32), dtype (code and bits of one byte, lanes of two), …; see dlpack.h, version 0.8. NumPy makes
and reads capsules of bfloat16 as ones of uint16 whose code is changed.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from week01_uops.dtypes import bfloat16
from week02_render.buffers import Array

Capsule = Any
"""A PyCapsule."""

_CODE = ctypes.sizeof(ctypes.c_void_p) + 12
"""Where the code of the element type stands: behind the pointer and three int32."""

_UINT, _BFLOAT = 1, 4

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def exported(array: Array) -> Capsule:
    """A capsule over the memory of an array."""
    if array.dtype != bfloat16.numpy:
        return array.__dlpack__()
    capsule = array.view(np.uint16).__dlpack__()
    _code(capsule).value = _BFLOAT
    return capsule


def imported(other: Any) -> Array:  # noqa: ANN401 - anything with __dlpack__
    """An array over the memory of what has `__dlpack__`.

    Raises:
        BufferError, RuntimeError: it is not in this process's memory, or of another element type.
    """
    if other.__dlpack_device__()[0] != 1:
        raise BufferError(f"expected an array on the CPU, got device {other.__dlpack_device__()}")
    capsule = other.__dlpack__()
    is_bfloat16 = _code(capsule).value == _BFLOAT
    if is_bfloat16:
        _code(capsule).value = _UINT
    array = np.from_dlpack(_Given(capsule))
    return array.view(bfloat16.numpy) if is_bfloat16 else array


class _Given:
    """A capsule that was asked for already."""

    def __init__(self, capsule: Capsule) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: object) -> Capsule:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _code(capsule: Capsule) -> ctypes.c_uint8:
    return ctypes.c_uint8.from_address(_pointer(capsule, b"dltensor") + _CODE)
