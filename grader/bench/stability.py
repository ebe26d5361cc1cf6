"""`python -m grader.bench.stability`: do the gates say the same every time?

The gates of one submission are judged many times, in some of them next to a process that keeps a
core busy. Printed are the outcomes of every gate and how far the scores lie apart. A gate that says
different things of the same program, be it busy or not, is a gate that lies.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from grader import gates
from grader.gates import UNMEASURED, GateResult, gates_of
from grader.gates_report import how, line
from grader.submission import SubmissionError, load
from grader.weeks import week_of

CONSOLE = Console()
BUSY = (sys.executable, "-c", "while True: pass")


@dataclass(frozen=True)
class Pass:
    """The gates of a submission, once.

    Attributes:
        busy: whether another process kept a core busy.
    """

    number: int
    busy: bool
    results: Sequence[GateResult]

    @property
    def score(self) -> float:
        """The credit of all gates."""
        return sum(result.credit for result in self.results)


@contextlib.contextmanager
def neighbour(wanted: bool) -> Iterator[None]:
    """A process that computes all the time, if it is wanted."""
    if not wanted:
        yield
        return
    process = subprocess.Popen(BUSY)
    try:
        yield
    finally:
        process.kill()
        process.wait()


Measure = Callable[[int], Iterable[GateResult | str]]
"""Results of all gates, for a seed."""


def passes(measure: Measure, times: int, busy: int) -> Iterator[Pass]:
    """So many, of which so many are disturbed, in an order that is drawn."""
    order = [number < busy for number in range(times)]
    random.Random(0).shuffle(order)
    for number, disturbed in enumerate(order):
        with neighbour(disturbed):
            found = [event for event in measure(number) if not isinstance(event, str)]
        yield Pass(number, disturbed, found)


def contradictions(done: Sequence[Pass]) -> list[str]:
    """Gates with more than one outcome; that one could not be measured contradicts nothing."""
    found: dict[str, set[str]] = {}
    for one in done:
        for result in one.results:
            found.setdefault(_name(result), set()).add(result.outcome)
    return [name for name, outcomes in found.items() if len(outcomes - {UNMEASURED}) > 1]


def _name(result: GateResult) -> str:
    return f"{result.case}, {how(result)}"


def table(done: Sequence[Pass]) -> Table:
    """A row a gate: its outcomes, quiet and busy, and its ratios."""
    found = Table(title=f"{len(done)} times the same submission", title_justify="left")
    for name in ("gate", "quiet", "busy", "ratio"):
        found.add_column(name, justify="right" if name == "ratio" else "left")
    for name in dict.fromkeys(_name(result) for one in done for result in one.results):
        of = [(one.busy, r) for one in done for r in one.results if _name(r) == name]
        ratios = [r.ratio for _, r in of if r.ratio is not None]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "–"
        quiet, busy = (_counts(r for b, r in of if b is kind) for kind in (False, True))
        found.add_row(name, quiet, busy, spread)
    return found


def _counts(results: Iterable[GateResult]) -> str:
    counts = Counter(result.outcome for result in results)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()) or "–"


def scores(done: Sequence[Pass], busy: bool) -> str:
    """The least, middle and largest score."""
    found = sorted(one.score for one in done if one.busy is busy)
    if not found:
        return "none"
    middle = found[len(found) // 2]
    return f"{found[0]:.2f} to {found[-1]:.2f}, median {middle:.2f} ({len(found)} times)"


@click.command()
@click.option("--week", type=int, default=5, show_default=True)
@click.option("--submission", type=click.Path(path_type=Path), help="[default: the reference]")
@click.option("--times", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--busy", type=click.IntRange(min=0), default=10, show_default=True)
@click.option("--rounds", type=click.IntRange(min=3), help="Of measuring a gate.")
@click.option("--case", "cases", multiple=True, help="This gate; may be repeated [default: all].")
def main(
    week: int,
    submission: Path | None,
    times: int,
    busy: int,
    rounds: int | None,
    cases: tuple[str, ...],
) -> None:
    """Judge the gates of one submission again and again, in some of them on a busy machine."""
    try:
        there = week_of(week)
        folder = None if submission is None else load(submission).folder
    except (KeyError, SubmissionError) as fault:
        raise click.UsageError(str(fault.args[0])) from None
    found = gates_of(there.package)
    if found is None:
        raise click.UsageError(f"expected a week with gates, got {week}")
    found = found.only(cases)
    if not found.gates:
        raise click.UsageError(f"expected cases of {there.package} in gates.json, got {cases}")

    def measure(seed: int) -> Iterable[GateResult | str]:
        return gates.run(there, found, submission=folder, seed=seed, rounds=rounds)

    done: list[Pass] = []
    for one in passes(measure, times, min(busy, times)):
        done.append(one)
        state = "busy" if one.busy else "quiet"
        now = time.strftime("%H:%M:%S")
        words = f"{now} {one.number + 1} of {times}, {state}: {one.score:.2f}"
        CONSOLE.print(words, highlight=False)
        for result in one.results:
            if result.message:
                CONSOLE.print(line(result), soft_wrap=True)
    CONSOLE.print(table(done))
    CONSOLE.print(f"scores on a quiet machine: {scores(done, False)}", highlight=False)
    CONSOLE.print(f"scores on a busy machine: {scores(done, True)}", highlight=False)
    if odd := contradictions(done):
        CONSOLE.print(f"different outcomes: {', '.join(odd)}", highlight=False)
    sys.exit(1 if odd else 0)


if __name__ == "__main__":
    main()
