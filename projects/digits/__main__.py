"""Train the digit classifier and export it: python -m projects.digits FOLDER."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import torch

from projects.digits.exporting import export, logits
from projects.digits.training import HELD_OUT, digits, train
from week01_uops.dtypes import float32


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--epochs", default=20, show_default=True, help="Passes over the training images.")
@click.option("--seed", default=0, show_default=True)
def main(folder: Path, epochs: int, seed: int) -> None:
    """Train on scikit-learn's digits; write programs, weights and answers to FOLDER."""
    torch.set_num_threads(1)
    network = train(epochs, seed)
    export(network, folder)
    _, labels = digits()
    right = np.mean(logits(network, float32).argmax(1) == labels[-HELD_OUT:])
    click.echo(f"{right:.1%} of {HELD_OUT} held-out images right; wrote {folder}")


if __name__ == "__main__":
    main()
