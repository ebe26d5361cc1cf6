"""A model's parameters: from the tensors of a folder, by name, or drawn at random."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from week02_render.buffers import Array
from week09_10_autodiff import nn
from week09_10_autodiff.hub import HubError
from week09_10_autodiff.random import Generator
from week09_10_autodiff.safetensors_io import load_folder
from week09_10_autodiff.tensor import Tensor

M = TypeVar("M", bound=nn.Module)

DEVIATION = 0.02
"""The standard deviation of weights before training, in GPT-2 and in the Llama family."""


def load(model: M, folder: str | os.PathLike[str]) -> M:
    """The model with the weights in a folder in place of its own; they are mapped, not copied.

    The class says in `PREFIX` what names may begin with, there or here, and in `IGNORED` what
    other names, without it, may be there.

    Raises:
        HubError: a tensor is missing, unknown, or has another shape.
        SafetensorsError, FileNotFoundError: a file is damaged or missing.
    """
    tensors = load_folder(folder)
    prefix = getattr(model, "PREFIX", "")
    names = {name.removeprefix(prefix): name for name in tensors}
    parameters = dict(model.named_parameters())
    found = {}
    for name, parameter in parameters.items():
        key = name.removeprefix(prefix)
        wanted = f"a tensor {name!r} of floats {list(parameter.shape)}"
        if key not in names:
            raise HubError(f"{folder}: expected {wanted}, found none")
        entry = tensors.entry(names[key])
        if entry.shape != parameter.shape or not entry.dtype.is_float:
            raise HubError(f"{folder}: expected {wanted}, got {entry.dtype}{list(entry.shape)}")
        found[name] = names[key]
    known = {name.removeprefix(prefix) for name in model.state_dict()}
    _expect_known(model, folder, names.keys() - known)
    adopt(model, {name: tensors[source] for name, source in found.items()})
    return model


def adopt(model: nn.Module, arrays: Mapping[str, Array]) -> None:
    """Let parameters, by name, be the elements of arrays, which are not copied."""
    tied: dict[int, Tensor] = {}
    known = dict(model.named_parameters())
    for name in model.state_dict():
        module, attribute = _owner(model, name)
        old = getattr(module, attribute)
        if name in known:
            tied[id(old)] = _parameter(arrays[name])
        if id(old) in tied:
            setattr(module, attribute, tied[id(old)])


def _parameter(array: Array) -> Tensor:
    """The array in place; vectors (norms and biases) in float32 at least, in which they work."""
    narrow = array.ndim < 2 and array.dtype.itemsize < np.dtype(np.float32).itemsize
    return Tensor.from_numpy(array.astype(np.float32) if narrow else array).requires_grad_()


def _owner(model: nn.Module, name: str) -> tuple[nn.Module, str]:
    """The module that has the tensor of this name, and what it calls it."""
    path, _, attribute = name.rpartition(".")
    module = model
    for part in path.split(".") if path else ():
        module = getattr(module, part)
    return module, attribute


def _expect_known(model: nn.Module, folder: object, rest: Iterable[str]) -> None:
    """HubError if a tensor is of no parameter, unless it is ignored."""
    ignored = getattr(model, "IGNORED", ())
    for name in sorted(rest):
        if not any(re.fullmatch(pattern, name) for pattern in ignored):
            kind = type(model).__name__
            raise HubError(f"{folder}: expected tensors of a {kind}, got {name!r} as well")


def initialize(model: M, seed: int) -> M:
    """The model with random weights: normal ones in place of tables and matrices.

    Their standard deviation is `DEVIATION`, or what a module says in `deviation`. Vectors (norms
    and biases) stay as they are, or become 0 if they are biases of linear maps.
    """
    generator = Generator(seed)
    for name, parameter in model.named_parameters():
        module, attribute = _owner(model, name)
        if parameter.ndim > 1:
            deviation = getattr(module, "deviation", DEVIATION)
            nn.init.normal_(parameter, std=deviation, generator=generator)
        elif attribute == "bias" and isinstance(module, nn.Linear):
            nn.init.zeros_(parameter)
    return model
