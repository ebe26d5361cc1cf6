"""Inputs for a program: from .npy files, or made up for a check."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from week01_uops.node import UOp
from week01_uops.ops import parameters


class InputError(Exception):
    """Inputs that do not fit the program; the message says what was expected."""


def load_inputs(program: UOp, files: tuple[Path, ...]) -> dict[int, np.ndarray]:
    """One .npy file for each PARAM, in the order of slots; or one .npz with a key for each slot."""
    wanted = sorted(parameters(program))
    if len(files) == 1 and files[0].suffix == ".npz":
        return _load_archive(wanted, files[0])
    if len(files) != len(wanted):
        slots = ", ".join(map(str, wanted)) or "none"
        raise InputError(f"expected {len(wanted)} --input files (slots {slots}), got {len(files)}")
    return {slot: _load(file) for slot, file in zip(wanted, files, strict=True)}


def _load_archive(wanted: list[int], file: Path) -> dict[int, np.ndarray]:
    archive = np.load(file, allow_pickle=False)
    missing = [slot for slot in wanted if str(slot) not in archive]
    if missing:
        raise InputError(
            f"expected the keys {', '.join(map(str, wanted))} in {file}, "
            f"got {', '.join(archive.files)}"
        )
    return {slot: archive[str(slot)] for slot in wanted}


def _load(file: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"expected a .npy file, got {file}: {error}") from None
    return array


def random_inputs(program: UOp, seed: int = 0) -> dict[int, np.ndarray]:
    """Made-up values for every PARAM: small integers within its range, floats around 0."""
    generator = np.random.default_rng(seed)
    made: dict[int, np.ndarray] = {}
    for slot, node in sorted(parameters(program).items()):
        if node.dtype.is_float:
            made[slot] = generator.standard_normal(node.shape).astype(node.dtype.numpy)
        elif node.dtype.is_int:
            low, high = node.interval if node.arg.range else (max(node.dtype.min, -9), 9)
            made[slot] = generator.integers(
                low, high, node.shape, dtype=node.dtype.numpy, endpoint=True
            )
        else:
            made[slot] = generator.integers(0, 2, node.shape).astype(np.bool_)
        made[slot] = np.asarray(made[slot], dtype=node.dtype.numpy)
    return made
