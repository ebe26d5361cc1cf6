"""What a class leaves behind: grades.csv, similarity.csv, leaderboard.html, and a drawing."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from grader.classes.similarity import Pair
from grader.classes.store import Grade
from grader.classes.task import Outcome
from grader.failures import write_whole
from grader.formats import scale
from grader.formats.grades import cell

COLUMNS = (
    *("name", "outcome", "points", "max", "open", "tests", "passed", "failed", "skipped"),
    *("not_run", "gates", "gate_credit", "message"),
)
BARS = 20


class NoPlotError(Exception):
    """Nothing can be drawn here; says why."""


def _table(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([cell(v) if isinstance(v, str) else v for v in row] for row in rows)
    write_whole(path, text.getvalue())


def write_grades(path: Path, grades: Sequence[Grade]) -> None:
    """A row a submission; nothing in it depends on when or where it was graded."""
    _table(path, COLUMNS, map(_row, grades))


def _row(grade: Grade) -> tuple[object, ...]:
    ran = grade.passed + grade.failed + grade.skipped
    counts = grade.tests, grade.passed, grade.failed, grade.skipped, grade.tests - ran
    earned = tuple(map(scale.exact, (grade.earned, grade.most, grade.open)))
    first = (grade.message.splitlines() or [""])[0]
    credit = grade.gates, scale.exact(grade.credit)
    return grade.name, str(grade.outcome), *earned, *counts, *credit, first


def write_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    """A row a pair."""
    rows = ((p.first, p.second, _number(p.source), _number(p.printed)) for p in pairs)
    _table(path, ("first", "second", "source", "printed"), rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def draw(folder: Path, grades: Sequence[Grade], title: str) -> list[Path]:
    """How the scores are distributed, as PNG and SVG; the files.

    Raises:
        NoPlotError: matplotlib is not installed.
    """
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError:
        why = "no drawing: expected matplotlib, which is not installed: pip install -e '.[bench]'"
        raise NoPlotError(why) from None
    figure = figures.Figure(figsize=(7, 4), layout="constrained")
    panel = figure.subplots()
    edges = [100 * k / BARS for k in range(BARS + 1)]
    groups = [
        [100 * g.score for g in grades if (g.outcome is Outcome.GRADED) is ran]
        for ran in (True, False)
    ]
    labels = [f"graded ({len(groups[0])})", f"not graded to the end ({len(groups[1])})"]
    panel.hist(groups, bins=edges, stacked=True, color=("#4477aa", "#ee6677"), label=labels)
    panel.set(title=title, xlabel="points in %", ylabel="submissions", xlim=(0, 100))
    panel.yaxis.get_major_locator().set_params(integer=True)
    panel.grid(axis="y", linewidth=0.3)
    panel.legend()
    files = [folder / f"distribution.{kind}" for kind in ("png", "svg")]
    for file in files:
        figure.savefig(file, dpi=150)
    return files


STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --paper: #fff; --line: #d8dee5; --bar: #4477aa }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ee; --paper: #14191f; --line: #333d48; --bar: #6699cc }
}
body { background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif;
  margin: 2rem auto; max-width: 56rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left }
th { position: sticky; top: 0; background: var(--paper) }
.number { text-align: right; font-variant-numeric: tabular-nums }
meter { width: 100%; accent-color: var(--bar) }
td.name { overflow-wrap: anywhere }
"""
HEADINGS = ("", "name", "points", "", "tests passed", "gates", "outcome")


def write_leaderboard(path: Path, grades: Sequence[Grade], title: str) -> None:
    """One page that needs nothing else, the best first; equal scores have the same place."""
    ordered = sorted(grades, key=lambda grade: (-grade.score, grade.name.casefold()))
    scores = [scale.shown(grade.earned) for grade in ordered]
    rows = "".join(
        _line(scores.index(score) + 1, grade, score)
        for grade, score in zip(ordered, scores, strict=True)
    )
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in HEADINGS)
    write_whole(
        path,
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f"<h1>{escape(title)}</h1>\n<p>{len(ordered)} submissions</p>\n"
        f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</html>\n",
    )


def _line(place: int, grade: Grade, score: str) -> str:
    gates = f"{grade.credit:.2f} of {grade.gates}" if grade.gates else "–"
    tests = f"{grade.passed} of {grade.tests}" if grade.tests else "–"
    return (
        f'<tr><td class="number">{place}</td><td class="name">{escape(grade.name)}</td>'
        f'<td class="number">{score}</td>'
        f'<td><meter max="{grade.most:g}" value="{score}">{score}</meter></td>'
        f'<td class="number">{tests}</td><td class="number">{gates}</td>'
        f"<td>{escape(str(grade.outcome))}</td></tr>\n"
    )
