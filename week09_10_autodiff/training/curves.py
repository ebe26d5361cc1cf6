"""The picture of a run: loss over steps, of training and validation, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from week09_10_autodiff.training.log import Record, read_log
from week09_10_autodiff.training.optional import library

POINTS = 600
"""Points of a curve at most, so that the SVG stays small."""

KINDS = ("png", "svg")

Points = tuple[NDArray[np.float64], NDArray[np.float64]]


def points(records: Sequence[Record], kind: str) -> Points:
    """Steps and losses of the lines of a kind; what is not finite is left out."""
    found = [(r["step"], r["loss"]) for r in records if r["kind"] == kind and r["loss"] is not None]
    steps, losses = np.array(found, np.float64).reshape(-1, 2).T
    return steps, losses


def thinned(steps: NDArray[np.float64], losses: NDArray[np.float64], most: int) -> Points:
    """Means of neighbours, at most so many."""
    groups = np.array_split(np.arange(len(steps)), min(most, max(1, len(steps))))
    filled = [group for group in groups if len(group)]
    mean_steps = np.array([steps[group].mean() for group in filled])
    return mean_steps, np.array([losses[group].mean() for group in filled])


def smoothed(losses: NDArray[np.float64], span: int) -> NDArray[np.float64]:
    """Running means over so many points before each, fewer at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    ends = np.arange(1, len(sums))
    starts = np.maximum(0, ends - span)
    means: NDArray[np.float64] = (sums[ends] - sums[starts]) / (ends - starts)
    return means


def draw(log: Path, target: Path, title: str) -> list[Path]:
    """Draw a log as TARGET.png and TARGET.svg; the files.

    Raises:
        MissingLibraryError: matplotlib is not installed.
    """
    figures = library("matplotlib.figure", "the picture of the losses", "bench")
    records = list(read_log(log))
    figure = figures.Figure(figsize=(8, 4.5), layout="constrained", facecolor="white")
    axes = figure.subplots()
    _curves(axes, records)
    axes.set(xlabel="step", ylabel="loss (nats a token)")
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    files = [target.with_suffix(f".{kind}") for kind in KINDS]
    for file in files:
        figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    return files


def _curves(axes: Any, records: Sequence[Record]) -> None:  # noqa: ANN401 - matplotlib's Axes
    steps, losses = points(records, "step")
    if len(steps):
        shown, means = thinned(steps, losses, POINTS)
        axes.plot(shown, means, color="#bbccee", linewidth=1, label="training, each step")
        _, smooth = thinned(steps, smoothed(losses, max(1, len(losses) // 50)), POINTS)
        axes.plot(shown, smooth, color="#4477aa", linewidth=1.8, label="training, running mean")
    held, validation = points(records, "validation")
    if len(held):
        axes.plot(held, validation, "o-", color="#ee6677", markersize=4, label="validation")
    if len(steps) or len(held):
        axes.legend(frameon=False, fontsize=9)
