"""Weeks 9 and 10: derivatives, tensors, and a language model trained with them.

    from week09_10_autodiff import Tensor, jit, nn, optim

A name is imported when it is first asked for, so that a compiler does not wait for tensors. Type
checkers read the same names in `__init__.pyi`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType

_PLACES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "week01_uops.dtypes": (
            *("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "bfloat16", "float32", "float64"),
        ),
        "week09_10_autodiff.context": ("enable_grad", "is_grad_enabled", "no_grad"),
        "week09_10_autodiff.derivatives": ("grad",),
        "week09_10_autodiff.errors": ("TensorError",),
        "week09_10_autodiff.nans": ("check_nan",),
        "week09_10_autodiff.random": (
            *("Generator", "bernoulli", "manual_seed", "rand", "randint", "randn", "randperm"),
        ),
        "week09_10_autodiff.tensor": (
            *("Tensor", "arange", "cat", "einsum", "eye", "from_dlpack", "from_numpy", "full"),
            *("linspace", "maximum", "minimum", "ones", "stack", "where", "zeros"),
        ),
    }
)
_MODULES = ("nn", "optim", "random")

_WHERE = {name: place for place, names in _PLACES.items() for name in names}
__all__ = ["jit", *_MODULES, *_WHERE]


def __getattr__(name: str) -> object:
    """A public name, from the module that it is in."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """This package, in which `jit` is the function and not the module that it is in."""

    @property
    def jit(self) -> object:
        """The function `week09_10_autodiff.jit.jit`."""
        return getattr(import_module(f"{__name__}.jit"), "jit")  # noqa: B009 - not known to mypy

    @jit.setter
    def jit(self, module: ModuleType) -> None:
        """What an import of the module binds here is left out."""


sys.modules[__name__].__class__ = _Package
