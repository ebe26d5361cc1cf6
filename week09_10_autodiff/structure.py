"""Values with tensors in them: which tensors, what else, and the same with other tensors.

    [x, {"scale": 2.0}]   →   the tensor x at "[0]", and 2.0 at "[1]['scale']"

Lists, tuples, dicts and dataclasses are looked into. All else is a value as it is: numbers and
strings are equal or not, other objects are the same or not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from week01_uops.dtypes import DType
from week01_uops.node import Shape
from week09_10_autodiff.tensor import Tensor

BY_VALUE = (bool, int, float, complex, str, bytes, type(None), DType, range, slice)
LONGEST = 40


class Kind(NamedTuple):
    """What a captured function depends on of a tensor that it is given."""

    dtype: DType
    shape: Shape
    requires_grad: bool = False

    def __str__(self) -> str:
        """As in "float32[2, 3]"."""
        wanted = " that requires grad" if self.requires_grad else ""
        return f"{self.dtype}{list(self.shape)}{wanted}"


def is_tensor(value: object) -> bool:
    """Whether a value is given as a tensor: NumPy's arrays are."""
    return isinstance(value, (Tensor, np.ndarray))


def parts(value: object) -> tuple[tuple[str, Any], ...] | None:
    """What a value is made of, each with how it is reached; None if it is not looked into."""
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None) or [f"[{k}]" for k in range(len(value))]
        dotted = (f".{n}" if n.isidentifier() else n for n in names)
        return tuple(zip(dotted, value, strict=True))
    if isinstance(value, dict):
        return tuple((f"[{key!r}]", item) for key, item in value.items())
    if _is_record(value):
        return tuple((f".{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value))  # type: ignore[arg-type]
    return None


def _is_record(value: object) -> bool:
    """A frozen dataclass is a value; any other is an object that may change."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return False
    return bool(getattr(value, "__dataclass_params__").frozen)  # noqa: B009 - not known to mypy


def leaves(value: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """What is not looked into, each with its path."""
    inner = parts(value)
    if inner is None:
        yield path, value
    else:
        for step, item in inner:
            yield from leaves(item, path + step)


def signature(value: Any, tensors: list[Tensor], pinned: list[object]) -> Hashable:  # noqa: ANN401
    """A key that two values share if a captured function need not tell them apart.

    Args:
        value: the value.
        tensors: its tensors are appended, NumPy's arrays as tensors over their memory.
        pinned: objects that are compared by identity are appended; the key holds while they live.
    """
    if isinstance(value, Tensor):
        tensors.append(value)
        return kind_of(value)
    if isinstance(value, BY_VALUE):
        return type(value), repr(value) if isinstance(value, (float, complex, slice)) else value
    if isinstance(value, np.ndarray):
        return signature(Tensor.from_numpy(value), tensors, pinned)
    if isinstance(value, (list, tuple)):
        return type(value), tuple([signature(item, tensors, pinned) for item in value])
    inner = parts(value)
    if inner is not None:
        return type(value), tuple([(s, signature(x, tensors, pinned)) for s, x in inner])
    pinned.append(value)
    return type(value), id(value)


def kind_of(tensor: Tensor) -> Kind:
    """Of a tensor."""
    return Kind(tensor.dtype, tensor.shape, tensor.requires_grad)


def describe(value: object) -> str:
    """A value in an error or a reason."""
    if isinstance(value, Tensor):
        return str(kind_of(value))
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, BY_VALUE):
        text = repr(value)
        return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return f"an object of type {type(value).__name__}"


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """The same structure with what is not looked into exchanged."""
    inner = parts(value)
    if inner is None:
        return change(value)
    items = [rebuilt(item, change) for _, item in inner]
    if isinstance(value, dict):
        return type(value)(zip(value, items, strict=True))
    if isinstance(value, (list, tuple)):
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return type(value)(**dict(zip(_names(value), items, strict=True)))


def _names(record: Any) -> Sequence[str]:  # noqa: ANN401
    return [field.name for field in dataclasses.fields(record)]
