"""A program with its weights in a folder: NAME.uop and NAME.npz.

The npz holds every weight under its name, and under "slots" a JSON object from names to PARAM
slots. Slot 0, the images, is left to the caller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from week01_uops.errors import ProgramError
from week01_uops.interchange import read, write
from week01_uops.node import UOp
from week01_uops.ops import parameters
from week03_loops.ops import OPS

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Exported:
    """A program, its weights by name, and the slot of each weight."""

    program: UOp
    weights: Mapping[str, Array]
    slots: Mapping[str, int]

    def inputs(self, images: Array) -> dict[int, Array]:
        """All inputs by slot: the images in slot 0, and the weights."""
        return {0: images, **{slot: self.weights[name] for name, slot in self.slots.items()}}


def save(folder: Path, name: str, exported: Exported) -> None:
    """Write NAME.uop and NAME.npz."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.uop").write_text(write(exported.program), encoding="utf-8")
    slots = np.array(json.dumps(dict(exported.slots)))
    np.savez(folder / f"{name}.npz", **exported.weights, slots=slots)  # type: ignore[arg-type]


def load(folder: Path, name: str) -> Exported:
    """Read what `save` wrote; E407 where a weight does not match its PARAM."""
    path = folder / f"{name}.uop"
    program = read(path.read_bytes(), file=str(path), ops=OPS)
    with np.load(folder / f"{name}.npz") as archive:
        slots: dict[str, int] = json.loads(str(archive["slots"]))
        weights = {key: archive[key] for key in slots}
    wanted = parameters(program)
    for key, slot in slots.items():
        _check(key, slot, weights[key], wanted)
    return Exported(program, weights, slots)


def _check(name: str, slot: int, weight: Array, wanted: Mapping[int, UOp]) -> None:
    x = wanted.get(slot)
    if x is None or x.shape != weight.shape or x.dtype.numpy != weight.dtype:
        expected = "no such slot" if x is None else f"{x.dtype}{list(x.shape)}"
        got = f"{weight.dtype}{list(weight.shape)}"
        raise ProgramError("E407", f"expected {expected} in slot {slot}, got {got} as {name}")
