"""Checkpoints: the whole state of a training run, written so that a kill at any moment loses none.

    folder/step-00001200/state.json            the tree, with a name for each tensor
                         tensors.safetensors   the tensors, memory-mapped when they are read

A state is a tree of dicts and lists; its leaves are tensors, arrays, numbers, strings and None:

    save("run", step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    checkpoint = load("run")
    model.load_state_dict(checkpoint.state["model"], assign=True)

A checkpoint is filled under another name, forced to the disk, and renamed: under its own name it is
complete. One process at a time writes to a folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from week02_render.buffers import Array
from week09_10_autodiff.atomic import PREFIX, atomic_folder
from week09_10_autodiff.core import Core
from week09_10_autodiff.safetensors_io import SafetensorsError, load_file, write_file

STATE = "state.json"
TENSORS = "tensors.safetensors"
FORMAT = 1
REFERENCE = "$tensor"
"""The key of the object that stands in the JSON for a tensor."""

_NAME = re.compile(r"step-(\d+)")


class CheckpointError(ValueError):
    """There is no checkpoint that can be read; says why."""


@dataclass(frozen=True)
class Checkpoint:
    """A state that was read.

    Attributes:
        step: when it was saved.
        state: the tree, with arrays for its tensors and strings for the keys of dicts.
        path: its folder.
    """

    step: int
    state: Any
    path: Path


def save(folder: str | os.PathLike[str], step: int, state: object, *, keep: int = 3) -> Path:
    """Write a checkpoint, then remove all but the newest `keep`. Returns its folder.

    One of the same step is replaced.

    Raises:
        TypeError: a leaf is neither a tensor nor a value of JSON.
    """
    if keep < 1:
        raise ValueError(f"expected to keep 1 checkpoint or more, got {keep}")
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root)
    found: dict[str, object] = {}
    tree = _pack(state, (), found)
    tensors = _arrays(found)
    target = root / f"step-{step:08d}"
    with atomic_folder(target) as temporary:
        write_file(tensors, temporary / TENSORS)
        text = json.dumps({"format": FORMAT, "step": step, "state": tree}, indent=1)
        (temporary / STATE).write_text(text + "\n", "utf-8")
        if target.exists():
            _discard(target)
    for old in steps(root)[:-keep]:
        _discard(root / f"step-{old:08d}")
    return target


def steps(folder: str | os.PathLike[str]) -> list[int]:
    """The steps of the checkpoints in a folder, oldest first."""
    root = Path(folder)
    names = [item.name for item in root.iterdir()] if root.is_dir() else []
    return sorted(int(found[1]) for found in map(_NAME.fullmatch, names) if found)


def load(folder: str | os.PathLike[str], step: int | None = None) -> Checkpoint:
    """The newest checkpoint that is whole, or the one of a step.

    A damaged one that is passed over is named in a warning.

    Raises:
        CheckpointError: there is none, or those there are damaged; the message says how.
    """
    root = Path(folder)
    found = steps(root)
    if step is not None:
        if step not in found:
            raise CheckpointError(f"expected one of the steps {found} of {root}, got {step}")
        return _read(root / f"step-{step:08d}")
    faults = []
    for candidate in reversed(found):
        try:
            checkpoint = _read(root / f"step-{candidate:08d}")
        except CheckpointError as error:
            faults.append(str(error))
        else:
            for fault in faults:
                warnings.warn(f"passed over: {fault}", stacklevel=2)
            return checkpoint
    raise CheckpointError(
        "\n".join([f"expected a whole checkpoint in {root}, found none", *faults])
    )


def _read(path: Path) -> Checkpoint:
    try:
        document = json.loads((path / STATE).read_text("utf-8"))
        tensors = load_file(path / TENSORS)
        if document["format"] != FORMAT:
            raise CheckpointError(f"{path}: expected format {FORMAT}, got {document['format']!r}")
        return Checkpoint(document["step"], _unpack(document["state"], tensors), path)
    except (OSError, SafetensorsError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path / STATE} is damaged: {error}") from error


def _pack(item: object, path: tuple[str, ...], tensors: dict[str, object]) -> Any:  # noqa: ANN401
    """The JSON of a tree; its tensors go into `tensors`, under their paths."""
    if item is None or isinstance(item, (bool, int, float, str)):
        return item
    if isinstance(item, Mapping):
        return {str(key): _pack(value, (*path, str(key)), tensors) for key, value in item.items()}
    if isinstance(item, Sequence):
        return [_pack(value, (*path, str(i)), tensors) for i, value in enumerate(item)]
    name = "/".join(path)
    if not hasattr(item, "__array__"):
        what = type(item).__name__
        raise TypeError(f"{name}: expected a tensor, dict, list, number or string, got {what}")
    while name in tensors:  # a key may have a slash of its own
        name += "'"
    tensors[name] = item
    return {REFERENCE: name}


def _arrays(found: Mapping[str, object]) -> dict[str, Array]:
    """The elements of tensors and arrays; those that are not known are computed in one program."""
    tensors = [item for item in found.values() if isinstance(item, Core)]
    if tensors:
        tensors[0].realize(*tensors[1:])
    return {
        name: item.storage().array if isinstance(item, Core) else np.asarray(item)
        for name, item in found.items()
    }


def _unpack(item: Any, tensors: Mapping[str, Array]) -> Any:  # noqa: ANN401 - a tree
    """The tree of a JSON."""
    if isinstance(item, dict):
        if set(item) == {REFERENCE}:
            return tensors[item[REFERENCE]]
        return {key: _unpack(value, tensors) for key, value in item.items()}
    return [_unpack(value, tensors) for value in item] if isinstance(item, list) else item


def _discard(path: Path) -> None:
    """Remove a checkpoint, under another name first: half of one is never seen."""
    doomed = path.with_name(f"{PREFIX}{path.name}-old")
    os.rename(path, doomed)
    shutil.rmtree(doomed)


def _sweep(root: Path) -> None:
    """Remove what writers that were killed have left."""
    for leftover in root.glob(f"{PREFIX}step-*"):
        shutil.rmtree(leftover, ignore_errors=True)
