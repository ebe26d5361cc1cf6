"""The element types of a program and the exact rounding of constants into them.

A dtype is a value: new ones (a four-bit integer for an exhaustive proof, say) are made by
constructing a `DType`, and nothing has to be registered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import ml_dtypes
import numpy as np

Kind = Literal["void", "bool", "int", "uint", "float"]
Value = bool | int | float


@dataclass(frozen=True, eq=False)
class DType:
    """An element type; compared by identity.

    Attributes:
        name: the name used in the interchange format.
        kind: "void" marks an effect, which has no value.
        bits: size in memory.
        numpy: the NumPy type that holds one element.
        precision: of a float, significand bits with the implicit one.
        max_exponent: of a float, the largest e with 2^e finite.
    """

    name: str
    kind: Kind
    bits: int
    numpy: np.dtype
    precision: int = 0
    max_exponent: int = 0

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def is_int(self) -> bool:
        """Signed or unsigned integer (bool is neither)."""
        return self.kind in ("int", "uint")

    @cached_property
    def is_float(self) -> bool:
        """Any floating-point type."""
        return self.kind == "float"

    @cached_property
    def min(self) -> int:
        """The smallest integer (False as 0 for bool)."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @cached_property
    def max(self) -> int:
        """The largest integer (True as 1 for bool)."""
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - (self.kind == "int"))) - 1

    def wrap(self, value: int) -> int:
        """value modulo 2^bits, read back in this integer type; for bool, value ≠ 0."""
        if self.kind == "bool":
            return int(value != 0)
        low = self.min
        return ((value - low) & ((1 << self.bits) - 1)) + low

    def round(self, value: float) -> float:
        """The nearest value of this float type, ties to even; overflow gives an infinity."""
        if self.precision >= 53 or value == 0 or not math.isfinite(value):
            return value
        limit = math.ldexp(1.0, self.max_exponent + 1)
        if abs(value) >= limit:
            return math.copysign(math.inf, value)
        lowest = 2 - self.max_exponent - self.precision  # exponent of the least subnormal
        quantum = max(math.frexp(value)[1] - self.precision, lowest)
        rounded = math.ldexp(round(math.ldexp(value, -quantum)), quantum)
        return math.copysign(math.inf, value) if abs(rounded) >= limit else rounded


def _float(name: str, bits: int, numpy: object, precision: int, max_exponent: int) -> DType:
    return DType(name, "float", bits, np.dtype(numpy), precision, max_exponent)  # type: ignore[call-overload]


void = DType("void", "void", 0, np.dtype("V"))
bool_ = DType("bool", "bool", 8, np.dtype(np.bool_))
int8 = DType("int8", "int", 8, np.dtype(np.int8))
int16 = DType("int16", "int", 16, np.dtype(np.int16))
int32 = DType("int32", "int", 32, np.dtype(np.int32))
int64 = DType("int64", "int", 64, np.dtype(np.int64))
uint8 = DType("uint8", "uint", 8, np.dtype(np.uint8))
uint16 = DType("uint16", "uint", 16, np.dtype(np.uint16))
uint32 = DType("uint32", "uint", 32, np.dtype(np.uint32))
uint64 = DType("uint64", "uint", 64, np.dtype(np.uint64))
float16 = _float("float16", 16, np.float16, 11, 15)
bfloat16 = _float("bfloat16", 16, ml_dtypes.bfloat16, 8, 127)
float32 = _float("float32", 32, np.float32, 24, 127)
float64 = _float("float64", 64, np.float64, 53, 1023)

INTEGERS = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
FLOATS = (float16, bfloat16, float32, float64)
ALL = (bool_, *INTEGERS, *FLOATS)
BY_NAME: Mapping[str, DType] = MappingProxyType({dtype.name: dtype for dtype in ALL})


def from_numpy(dtype: np.dtype) -> DType:
    """The dtype whose elements NumPy holds in `dtype`; a TypeError names those that exist."""
    for candidate in ALL:
        if candidate.numpy == dtype:
            return candidate
    raise TypeError(f"expected one of {', '.join(BY_NAME)}, got the NumPy type {dtype}")
