"""Tensors of other dtypes."""

from __future__ import annotations

from typing import Self

from week01_uops import dtypes
from week03_loops.library import cast
from week09_10_autodiff.core import Core
from week09_10_autodiff.promotion import DTypeLike, dtype_of


class Casts(Core):
    """Conversions; those to the dtype that a tensor has return the tensor itself."""

    __slots__ = ()

    def to(self, dtype: DTypeLike) -> Self:
        """The values in a dtype: floats are rounded to nearest, to integers towards 0."""
        wanted = dtype_of(dtype)
        return self if wanted is self.dtype else self._apply("to", cast, dtype=wanted)

    type = astype = to

    def float(self) -> Self:
        """As float32."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """As float64."""
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """As float16."""
        return self.to(dtypes.float16)

    def bfloat16(self) -> Self:
        """As bfloat16."""
        return self.to(dtypes.bfloat16)

    def int(self) -> Self:
        """As int32."""
        return self.to(dtypes.int32)

    def long(self) -> Self:
        """As int64."""
        return self.to(dtypes.int64)
