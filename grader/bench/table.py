"""What a person sees of a run: progress, a table a number of threads, and a summary."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from grader.bench.row import Row, geomeans

HEADINGS = {"numpy": "NumPy", "torch": "PyTorch", "compile": "compile", "jax": "JAX"}


def console() -> Console:
    """The terminal, or lines wide enough for a table."""
    return Console() if Console().is_terminal else Console(width=150)


def progress(console: Console) -> Progress:
    """A bar on a terminal, nothing elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    )


def line(row: Row) -> Text:
    """A row that has just come, where there is no terminal."""
    text = Text(f"{row.case:34} {row.threads} thread{'s' * (row.threads > 1)}  ")
    if row.error:
        return text.append(f"failed: {row.error}", "red")
    ratios = "  ".join(f"{name} {ratio:.2f}" for name, ratio in row.ratio.items())
    return text.append(f"{_time(row.ours_s):>9}  {ratios}")


def table(rows: Sequence[Row], against: Sequence[str]) -> Table:
    """The rows of one number of threads; "busy" where others used the processors meanwhile."""
    found = Table(title_justify="left", title=_title(rows))
    found.add_column("case", no_wrap=True)
    for heading in ("ours", "GFLOP/s", "GB/s", "roofline"):
        found.add_column(heading, justify="right", no_wrap=True)
    for name in against:
        found.add_column(HEADINGS.get(name, name), justify="right", no_wrap=True)
    found.add_column("best", justify="right", no_wrap=True)
    found.add_column("", no_wrap=True)
    for row in rows:
        found.add_row(*_cells(row, against))
    means = geomeans(rows)
    found.add_section()
    cells = [_ratio(means.get(name)) for name in (*against, "best")]
    found.add_row("geometric mean", "", "", "", "", *cells)
    return found


def _title(rows: Sequence[Row]) -> str:
    threads = rows[0].threads if rows else 0
    return f"{threads} thread{'s' * (threads > 1)}: our time over theirs (below 1: we are faster)"


def _cells(row: Row, against: Sequence[str]) -> list[Text | str]:
    if row.error:
        return [Text(row.case, "red"), *["–"] * (5 + len(against)), Text("failed", "red")]
    share = "" if row.roofline is None else f"{100 * row.roofline:.0f} %"
    return [
        row.case,
        _time(row.ours_s),
        f"{row.gflops or 0:.1f}",
        f"{row.gbytes or 0:.1f}",
        share,
        *[_ratio(row.ratio.get(name)) for name in against],
        _ratio(row.best),
        _note(row),
    ]


def _note(row: Row) -> Text:
    words = [] if row.rounds >= 7 else [f"{row.rounds} round{'s' * (row.rounds > 1)}"]
    return Text(", ".join([*words, *["busy"] * row.disturbed]), "yellow")


def _ratio(ratio: float | None) -> Text:
    if ratio is None:
        return Text("–", "dim")
    digits = 2 if ratio < 100 else 0
    return Text(f"{ratio:.{digits}f}", "green" if ratio <= 1 else "red")


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def standing(rows: Sequence[Row]) -> str:
    """How many rows are as fast as the best, and which one is the slowest."""
    ranked = sorted(
        [(row.best, row.case) for row in rows if row.correct and row.best is not None],
    )
    if not ranked:
        return "no row has a ratio"
    good = sum(best <= 1 for best, _ in ranked)
    slowest, case = ranked[-1]
    return f"{good} of {len(rows)} rows at or below 1.00 of the best; slowest: {case} {slowest:.2f}"


def remarks(rows: Sequence[Row]) -> list[str]:
    """What failed and who did not take part, one line a reason; and what the means leave out."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.error:
            found.setdefault(f"failed: {row.error}", []).append(row.case)
        for name, why in row.skipped.items():
            found.setdefault(f"{HEADINGS.get(name, name)} skipped: {why}", []).append(row.case)
    lines = [f"{why} ({_cases(cases, len(rows))})" for why, cases in found.items()]
    failed = sum(not row.correct for row in rows)
    if failed:
        lines.append(f"{failed} of {len(rows)} rows failed and stand in no mean")
    return lines


def _cases(cases: Sequence[str], whole: int) -> str:
    return f"{len(cases)} of {whole} rows" if len(cases) > 4 else ", ".join(dict.fromkeys(cases))


NEAR = 0.9
"""The part of a family's best that other sizes of it should reach."""


def growth(rows: Sequence[Row]) -> list[str]:
    """How far each family falls below its own best part of the roofline, and over which sizes."""
    found: dict[tuple[str, int], list[tuple[str, float]]] = {}
    for row in rows:
        if row.roofline is not None:
            name, _, size = row.case.partition(".")
            found.setdefault((name, row.threads), []).append((size, row.roofline))
    return [
        f"{name}, {count} thread{'s' * (count > 1)}: {_fall(sizes)}"
        for (name, count), sizes in found.items()
    ]


def _fall(sizes: Sequence[tuple[str, float]]) -> str:
    """From the lowest to the highest part, and the longest run of sizes that stay near it."""
    best = max(part for _, part in sizes)
    lowest = min(part for _, part in sizes)
    runs = [
        [size for size, _ in group]
        for near, group in itertools.groupby(sizes, lambda pair: pair[1] >= NEAR * best)
        if near
    ]
    longest = max(runs, key=len)
    return (
        f"{100 * lowest / best:.0f} to 100 % of its own best, {100 * best:.0f} % of the roofline; "
        f"{100 * NEAR:.0f} % or more from {longest[0]} to {longest[-1]}"
    )
