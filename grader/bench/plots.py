"""Drawings of a comparison, as PNG and SVG: ratios, the roofline, how cost grows."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from grader.bench.row import Row
from grader.bench.table import HEADINGS
from week05_06_memory.machine import Machine

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
MARKS = ("o", "s", "^", "D", "v", "P", "X")


class NoPlotError(Exception):
    """Nothing can be drawn here; says why."""


def draw(rows: Sequence[Row], suite: str, machine: Machine, folder: Path) -> list[Path]:
    """Write all drawings of a suite's rows; the files.

    Raises:
        NoPlotError: matplotlib is not installed, or no row is right.
    """
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError:
        why = "expected matplotlib for --plot, which is not installed: pip install -e '.[bench]'"
        raise NoPlotError(why) from None
    right = [row for row in rows if row.correct]
    if not right:
        raise NoPlotError("expected rows that are right for --plot, got none")
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, Callable[[Any, Sequence[Row], Machine], None]] = {
        "ratios": _ratios,
        "roofline": _roofline,
    }
    if suite == "scaling":
        drawn["sizes"] = _sizes
    found = []
    for name, function in drawn.items():
        figure = figures.Figure(layout="constrained")
        function(figure, right, machine)
        for kind in ("png", "svg"):
            found.append(folder / f"{suite}-{name}.{kind}")
            figure.savefig(found[-1], dpi=150)
    return found


def _threads(rows: Sequence[Row]) -> list[int]:
    return sorted({row.threads for row in rows})


def _words(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def _ratios(figure: Any, rows: Sequence[Row], machine: Machine) -> None:  # noqa: ANN401
    """Bars of our time over theirs, a panel a number of threads."""
    cases = list(dict.fromkeys(row.case for row in rows))
    names = list(dict.fromkeys(name for row in rows for name in row.ratio))
    counts = _threads(rows)
    figure.set_size_inches(5 + 4 * len(counts), 1.5 + 0.14 * len(cases) * (len(names) + 1))
    panels = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    height = 0.8 / max(len(names), 1)
    for panel, count in zip(panels, counts, strict=True):
        for number, name in enumerate(names):
            bars = [row for row in rows if row.threads == count and name in row.ratio]
            places = [cases.index(row.case) + (number + 0.5) * height - 0.4 for row in bars]
            values = [row.ratio[name] for row in bars]
            label, colour = HEADINGS.get(name, name), COLOURS[number % len(COLOURS)]
            panel.barh(places, [v - 1 for v in values], height, 1, color=colour, label=label)
        panel.set_xscale("log")
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set_title(_words(count))
        panel.set_xlabel("our time / theirs, left of 1: we are faster")
        panel.grid(axis="x", which="both", linewidth=0.3)
    panels[0].set_yticks(range(len(cases)), cases, fontsize=7)
    panels[0].set_ylim(len(cases) - 0.4, -0.6)
    if names:
        panels[0].legend(loc="best")


def _families(rows: Sequence[Row]) -> Iterator[tuple[str, str, str, list[Row]]]:
    """Each family with a colour, a mark and its rows."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.case.partition(".")[0], []).append(row)
    for number, (name, members) in enumerate(found.items()):
        mark = MARKS[number // len(COLOURS) % len(MARKS)]
        yield name, COLOURS[number % len(COLOURS)], mark, members


def _roofline(figure: Any, rows: Sequence[Row], machine: Machine) -> None:  # noqa: ANN401
    """Operations a second over operations a byte, under what the machine can do."""
    counts = _threads(rows)
    figure.set_size_inches(2 + 5 * len(counts), 5)
    panels = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    intensities = [row.flops / row.bytes for row in rows]
    low, high = min(intensities) / 2, max(intensities) * 2
    for panel, count in zip(panels, counts, strict=True):
        peak, slope = count * machine.peak_flops / 1e9, count * machine.bandwidth / 1e9
        corners = sorted({low, min(max(peak / slope, low), high), high})
        panel.plot(corners, [min(peak, slope * x) for x in corners], color="black")
        for name, colour, mark, members in _families([r for r in rows if r.threads == count]):
            across = [row.flops / row.bytes for row in members]
            up = [row.gflops for row in members]
            panel.plot(across, up, mark, color=colour, label=name, markersize=5)
        panel.set(xscale="log", yscale="log", title=_words(count))
        panel.set_xlabel("operations for each byte of inputs and outputs")
        panel.grid(which="both", linewidth=0.3)
    panels[0].set_ylabel("GFLOP/s")
    panels[-1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))


def _sizes(figure: Any, rows: Sequence[Row], machine: Machine) -> None:  # noqa: ANN401
    """The part of the roofline that is reached over the size, a panel a family."""
    families = list(_families(rows))
    top = 105 * max([1.0, *(row.roofline or 0 for row in rows)])
    figure.set_size_inches(2 + 4 * len(families), 4)
    panels = figure.subplots(1, len(families), sharey=True, squeeze=False)[0]
    for panel, (name, *_, members) in zip(panels, families, strict=True):
        for count, colour in zip(_threads(members), COLOURS, strict=False):
            line = [row for row in members if row.threads == count]
            across = [int(row.case.partition(".")[2]) for row in line]
            up = [100 * (row.roofline or 0) for row in line]
            panel.plot(across, up, "o-", color=colour, label=_words(count))
        panel.set(xscale="log", title=name, xlabel="size", ylim=(0, top))
        panel.grid(which="both", linewidth=0.3)
    panels[0].set_ylabel("% of the roofline")
    panels[0].legend()
