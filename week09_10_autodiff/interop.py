"""Tensors among the arrays of other libraries, among Python numbers, and as text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self, overload

import numpy as np

from week01_uops.dtypes import Value, bfloat16, bool_, float32, int64
from week01_uops.node import Shape
from week02_render.buffers import Array
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.core import Core
from week09_10_autodiff.dlpack import Capsule, exported
from week09_10_autodiff.errors import TensorError

CPU = (1, 0)
"""DLPack's name of this device."""

_UFUNCS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": operator.add,
        "subtract": operator.sub,
        "multiply": operator.mul,
        "divide": operator.truediv,
        "floor_divide": operator.floordiv,
        "remainder": operator.mod,
        "power": operator.pow,
        "matmul": operator.matmul,
        "less": operator.lt,
        "less_equal": operator.le,
        "greater": operator.gt,
        "greater_equal": operator.ge,
        "equal": operator.eq,
        "not_equal": operator.ne,
        "bitwise_and": operator.and_,
        "bitwise_or": operator.or_,
        "bitwise_xor": operator.xor,
        "invert": operator.invert,
        "negative": operator.neg,
        **{
            name: operator.methodcaller(name)
            for name in ("exp", "exp2", "log", "log2", "sqrt", "square", "reciprocal", "sign")
        },
        **{
            name: operator.methodcaller(name)
            for name in ("tanh", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite")
        },
        "absolute": abs,
    }
)
"""What a NumPy function is to tensors."""


class Interop(Core):
    """What Python and NumPy ask of an array."""

    __slots__ = ()

    # Arrays

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> Array:
        """The elements, without a copy unless one is asked for or the dtype is another one."""
        array = self.numpy()
        if dtype is not None and dtype != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> object:
        """A NumPy function of tensors: the tensor's own where there is one, else of the arrays."""
        known = _UFUNCS.get(ufunc.__name__)
        if known is None or method != "__call__" or options:
            return getattr(ufunc, method)(*_arrays(inputs), **_arrays(options))
        return known(*[self._operand_of(x) for x in inputs])

    def _operand_of(self, x: object) -> object:
        """A tensor or a Python number: nothing whose own operators would ask NumPy again."""
        if isinstance(x, np.generic):
            return x.item()
        return x if isinstance(x, (bool, int, float, Core)) else type(self)(x)

    def __array_function__(
        self, function: Callable[..., object], types: object, args: object, kwargs: object
    ) -> object:
        """Any other NumPy function gets the arrays."""
        return function(*_arrays(args), **_arrays(kwargs))

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: object = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Capsule:
        """The elements for another library, without a copy unless one is asked for."""
        if dl_device not in (None, CPU):
            raise BufferError(f"expected the device {CPU}, the CPU, got {dl_device}")
        storage = self.storage()
        storage.shared = True
        return exported(storage.array.copy() if copy else storage.array)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    # Numbers

    def _number(self, name: str) -> Value:
        if self._node.size != 1:
            raise TensorError(f"{name}: expected one element, got the shape {list(self.shape)}")
        return self.item()

    def __bool__(self) -> bool:
        return bool(self._number("bool"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __index__(self) -> int:
        if self.dtype.is_float:
            raise TensorError(f"index: expected an integer tensor, got {self.dtype}")
        return int(self._number("index"))

    def __contains__(self, value: object) -> bool:
        return bool((np.asarray(self.numpy()) == value).any())

    # Sizes

    @overload
    def size(self) -> Shape: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Shape | int:
        """The shape, or the size of one axis."""
        if dim is None:
            return self.shape
        if not -self.ndim <= dim < self.ndim:
            raise TensorError(f"size: expected an axis of {self.ndim}, got {dim}")
        return self.shape[dim]

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._node.size

    @property
    def nbytes(self) -> int:
        """How much memory the elements take."""
        return self._node.size * self.dtype.bits // 8

    def clone(self) -> Self:
        """The same value, through which derivatives pass."""
        if CONTEXT.tracer is not None:
            CONTEXT.tracer.used((self,))
        return self._of(self._node, requires_grad=self._requires_grad)

    def contiguous(self) -> Self:
        """Itself: all tensors are."""
        return self

    # Text and copies

    def __repr__(self) -> str:
        notes = "" if self.dtype in (float32, int64, bool_) else f", dtype={self.dtype}"
        notes += ", requires_grad=True" if self._requires_grad else ""
        if CONTEXT.tracer is not None and not self.is_realized:
            return f"Tensor(<{list(self.shape)}, not computed>{notes})"
        return f"Tensor({_text(self.numpy())}{notes})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self._node.size == 1 and spec else str(self)

    def __deepcopy__(self, memo: object) -> Self:
        """A tensor with the same value, a variable of its own if this one is."""
        return self.detach().requires_grad_(self._requires_grad)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), np.array(self.numpy()), self._requires_grad)


def _rebuilt(kind: type[Core], array: Array, requires_grad: bool) -> Core:
    return kind(array, requires_grad=requires_grad)


def _arrays(x: Any) -> Any:  # noqa: ANN401 - whatever NumPy was given
    """The same with arrays in place of tensors, also in lists, tuples and dicts."""
    if isinstance(x, Core):
        return x.numpy()
    if isinstance(x, (list, tuple)):
        return type(x)([_arrays(item) for item in x])
    return {name: _arrays(item) for name, item in x.items()} if isinstance(x, dict) else x


def _text(array: Array) -> str:
    """As PyTorch prints it: four digits, long ones with the middle left out."""
    shown = array.astype(np.float32) if array.dtype == bfloat16.numpy else array
    return np.array2string(
        shown, precision=4, separator=", ", threshold=1000, prefix="Tensor(", max_line_width=100
    )
