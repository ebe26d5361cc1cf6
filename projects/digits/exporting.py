"""From a trained network to programs with weights, and the answers that they must give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from projects.digits.files import Exported, save
from projects.digits.training import HELD_OUT, Network, digits
from projects.models import Classifier, digits_classifier
from week01_uops.dtypes import DType, float32, float64

DTYPES = (float32, float64)


def exported(network: Network, dtype: DType, batch: int = HELD_OUT) -> Exported:
    """The classifier as a program for `batch` images, with the network's weights."""
    sizes = Classifier(batch)
    slots = {name: slot for slot, name in enumerate(sizes.shapes()) if slot}
    state = network.state_dict()
    weights = {name: state[name].numpy().astype(dtype.numpy) for name in slots}
    return Exported(digits_classifier(sizes, dtype), weights, slots)


def logits(network: Network, dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """PyTorch's logits (held out, classes) of the held-out images, computed in a dtype."""
    images, _ = digits()
    width = torch.float64 if dtype is float64 else torch.float32
    copy = Network(Classifier()).to(width)
    copy.load_state_dict(network.state_dict())
    with torch.no_grad():
        result: np.ndarray[tuple[int, ...], np.dtype[np.generic]] = copy(
            torch.from_numpy(images[-HELD_OUT:]).to(width)
        ).numpy()
    return result


def export(network: Network, folder: Path) -> None:
    """Write digits_float32 and digits_float64 (.uop, .npz), and held_out.npz.

    held_out.npz: images (n, 1, 8, 8), labels (n), and PyTorch's logits_float32, logits_float64.
    """
    images, labels = (array[-HELD_OUT:] for array in digits())
    for dtype in DTYPES:
        save(folder, f"digits_{dtype}", exported(network, dtype))
    answers = {f"logits_{dtype}": logits(network, dtype) for dtype in DTYPES}
    np.savez(folder / "held_out.npz", images=images, labels=labels, **answers)  # type: ignore[arg-type]
