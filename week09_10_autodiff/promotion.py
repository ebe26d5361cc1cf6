"""What dtype the result of two dtypes has.

bool < integers < floats. Of two dtypes of different kinds the later kind's wins. Within a kind:

- integers of one sign: the wider one; of two signs: the narrowest signed one that holds both;
  uint64 and a signed one: none does, and one must be cast;
- floats: the wider one; float16 and bfloat16: float32.

Python numbers are weak: they take the dtype of what they stand beside, unless they are of a later
kind; then an int counts as int64 and a float as float32, the dtypes of `Tensor(1)`, `Tensor(1.0)`.

As numpy.promote_types, but for an integer beside a float, which is the float's as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from week01_uops.dtypes import (
    BY_NAME,
    INTEGERS,
    DType,
    Value,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    from_numpy,
    int64,
)
from week09_10_autodiff.errors import TensorError

DTypeLike = DType | str | type | np.dtype
KINDS: Mapping[str, int] = MappingProxyType({"bool": 0, "uint": 1, "int": 1, "float": 2})
_PYTHON: Mapping[object, DType] = MappingProxyType({bool: bool_, int: int64, float: float32})


def dtype_of(value: DTypeLike) -> DType:
    """A dtype from a dtype, its name, a NumPy type, or Python's bool, int (int64), float (float32).

    Raises:
        TensorError: there is no such dtype.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _PYTHON:
        return _PYTHON[value]
    if isinstance(value, str) and value in BY_NAME:
        return BY_NAME[value]
    try:
        return from_numpy(np.dtype(value))
    except TypeError:
        raise TensorError(f"expected one of {', '.join(BY_NAME)}, got {value!r}") from None


def default_dtype(value: Value) -> DType:
    """The dtype of a Python number by itself."""
    return bool_ if isinstance(value, bool) else int64 if isinstance(value, int) else float32


def promote(*dtypes: DType) -> DType:
    """The dtype that results of these; the order does not matter.

    Raises:
        TensorError: for uint64 beside a signed integer.
    """
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = _promoted(result, dtype)
    return result


def promote_weak(dtype: DType, numbers: Iterable[Value]) -> DType:
    """The dtype that results of a dtype beside Python numbers."""
    for value in numbers:
        weak = default_dtype(value)
        if KINDS[weak.kind] > KINDS[dtype.kind]:
            dtype = weak
    return dtype


def _promoted(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if KINDS[a.kind] != KINDS[b.kind]:
        return max(a, b, key=lambda dtype: KINDS[dtype.kind])
    return _of_floats(a, b) if a.is_float else _of_integers(a, b)


def _of_floats(a: DType, b: DType) -> DType:
    if {a, b} == {float16, bfloat16}:
        return float32
    return float64 if float64 in (a, b) else max(a, b, key=lambda dtype: dtype.bits)


def _of_integers(a: DType, b: DType) -> DType:
    """The narrowest integer that holds both; signed if one is."""
    for dtype in sorted(INTEGERS, key=lambda dtype: dtype.bits):
        if dtype.min <= min(a.min, b.min) and dtype.max >= max(a.max, b.max):
            return dtype
    raise TensorError(f"expected dtypes that one integer type holds, got {a} and {b}; cast one")
