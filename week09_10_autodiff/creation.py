"""Tensors from nothing: constants, ranges, identity matrices, and arrays of other libraries."""

from __future__ import annotations

import math
from typing import Self

from week01_uops.dtypes import DType, Value, bool_, float32, float64, int64
from week01_uops.errors import ProgramError
from week01_uops.node import UOp, const
from week03_loops import library as lib
from week03_loops.ops import expand
from week09_10_autodiff.arrays import viewed
from week09_10_autodiff.core import Core
from week09_10_autodiff.errors import TensorError, converted
from week09_10_autodiff.promotion import DTypeLike, default_dtype, dtype_of
from week09_10_autodiff.shaping import Sizes, sizes_of
from week09_10_autodiff.storage import leaf_of


class Creation(Core):
    """Constructors; shapes may be given one by one or as one sequence."""

    __slots__ = ()

    @classmethod
    def _new(cls, node: UOp, requires_grad: bool) -> Self:
        result = cls._of(node)
        return result.requires_grad_() if requires_grad else result

    @classmethod
    def full(
        cls,
        shape: Sizes,
        fill_value: Value,
        dtype: DTypeLike | None = None,
        *,
        requires_grad: bool = False,
    ) -> Self:
        """All elements one number; the dtype is the number's unless given."""
        wanted = default_dtype(fill_value) if dtype is None else dtype_of(dtype)
        return cls._new(_full(sizes_of((shape,)), fill_value, wanted), requires_grad)

    @classmethod
    def zeros(cls, *shape: Sizes, dtype: DTypeLike = float32, requires_grad: bool = False) -> Self:
        """All elements 0."""
        return cls._new(_full(sizes_of(shape), 0, dtype_of(dtype)), requires_grad)

    @classmethod
    def ones(cls, *shape: Sizes, dtype: DTypeLike = float32, requires_grad: bool = False) -> Self:
        """All elements 1."""
        return cls._new(_full(sizes_of(shape), 1, dtype_of(dtype)), requires_grad)

    def zeros_like(self, dtype: DTypeLike | None = None) -> Self:
        """Zeros of this shape, and of this dtype unless one is given."""
        return self.full_like(0, dtype)

    def ones_like(self, dtype: DTypeLike | None = None) -> Self:
        """Ones of this shape, and of this dtype unless one is given."""
        return self.full_like(1, dtype)

    def full_like(self, fill_value: Value, dtype: DTypeLike | None = None) -> Self:
        """One number everywhere, of this shape, and of this dtype unless one is given."""
        wanted = self.dtype if dtype is None else dtype_of(dtype)
        return self._of(_full(self.shape, fill_value, wanted))

    @classmethod
    def arange(
        cls,
        start: Value,
        stop: Value | None = None,
        step: Value = 1,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
    ) -> Self:
        """The numbers start, start + step, … below stop; of one argument n, 0 … n − 1.

        int64 if all three are integers, else float32, unless a dtype is given.
        """
        start, stop = (0, start) if stop is None else (start, stop)
        if step == 0:
            raise TensorError("arange: expected a step other than 0")
        count = max(math.ceil((stop - start) / step), 0)
        whole = all(isinstance(value, int) for value in (start, stop, step))
        wanted = (int64 if whole else float32) if dtype is None else dtype_of(dtype)
        return cls._new(_steps(count, start, step, wanted), requires_grad)

    @classmethod
    def linspace(
        cls,
        start: float,
        end: float,
        steps: int,
        *,
        dtype: DTypeLike = float32,
        requires_grad: bool = False,
    ) -> Self:
        """`steps` numbers from start to end, both included, at equal distances."""
        if steps < 0:
            raise TensorError(f"linspace: expected steps ≥ 0, got {steps}")
        node = lib.cast(_line(start, end, steps), dtype_of(dtype))
        return cls._new(node, requires_grad)

    @classmethod
    def eye(
        cls,
        n: int,
        m: int | None = None,
        *,
        dtype: DTypeLike = float32,
        requires_grad: bool = False,
    ) -> Self:
        """Ones on the diagonal of an n × m matrix, zeros elsewhere."""
        if min(n, n if m is None else m) < 0:
            raise TensorError(f"eye: expected sizes ≥ 0, got {n} and {m}")
        rows, columns = lib.arange(n), lib.arange(n if m is None else m)
        same = lib.eq(lib.unsqueeze(rows, 1), columns)
        return cls._new(lib.cast(same, dtype_of(dtype)), requires_grad)

    @classmethod
    def from_numpy(cls, array: object) -> Self:
        """A tensor over the memory of an array, which is copied only if it is not dense.

        Dense is row-major at a multiple of 64 bytes. Whoever changes the array changes the tensor,
        but not what was computed of it before, nor an expression that is equal to one of these.
        """
        return cls._of(leaf_of(viewed(array), shared=True))

    @classmethod
    def from_dlpack(cls, other: object) -> Self:
        """A tensor over the memory of another library's, which is copied only if not dense."""
        return cls.from_numpy(other)


def _full(shape: tuple[int, ...], value: Value, dtype: DType) -> UOp:
    """A constant of a shape, read as NumPy would: 1 is true, 1.5 is no integer."""
    if any(size < 0 for size in shape):
        raise TensorError(f"expected sizes ≥ 0, got {list(shape)}")
    if dtype.is_int and value != int(value):
        raise TensorError(f"expected an integer for {dtype}, got {value}")
    exact = value != 0 if dtype is bool_ else int(value) if dtype.is_int else float(value)
    try:
        return expand(const(exact, dtype), shape)
    except ProgramError as error:
        raise converted(error, "full") from None


def _steps(count: int, start: Value, step: Value, dtype: DType) -> UOp:
    """start + i·step, computed in float64 for floats and rounded once."""
    if dtype.is_int and isinstance(start, int) and isinstance(step, int):
        numbers = lib.arange(count, int64)
        return lib.cast(lib.add(lib.mul(numbers, int(step)), int(start)), dtype)
    numbers = lib.arange(count, float64)
    return lib.cast(lib.add(lib.mul(numbers, float(step)), float(start)), dtype)


def _line(start: float, end: float, steps: int) -> UOp:
    """From the nearer end, so that both ends are exact."""
    number = lib.arange(steps, float64)
    step = (end - start) / max(steps - 1, 1)
    up = lib.add(lib.mul(number, step), float(start))
    down = lib.add(lib.mul(lib.sub(number, float(steps - 1)), step), float(end))
    return lib.where(lib.lt(number, steps / 2), up, down)
