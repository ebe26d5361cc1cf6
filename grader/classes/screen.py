"""What an instructor sees while a class is graded, and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import mean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from grader.classes.classroom import Pace
from grader.classes.store import Grade, clean
from grader.classes.task import Event, Outcome

NAMED = 3
"""Submissions named beside the bar as being graded."""


class Screen:
    """A bar with the time left on a terminal, a line a submission elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.running: dict[str, int] = {}
        self.done = 0
        self.total = 0

    @contextmanager
    def showing(self) -> Iterator[Screen]:
        """Show what comes until the block ends."""
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[what]}", markup=False),
            console=self.console,
            disable=not self.console.is_terminal,
            speed_estimate_period=600,
        )
        self.reading = self.bar.add_task("reading", total=None, what="")
        with self.bar:
            yield self

    def taken(self, done: int, total: int) -> None:
        """See `classroom.Watcher`."""
        self.bar.update(self.reading, completed=done, total=total)

    def planned(self, kept: int, open_: int) -> None:
        """See `classroom.Watcher`."""
        self.total = open_
        self.bar.remove_task(self.reading)
        self.grading = self.bar.add_task("grading", total=open_, what="")
        if kept:
            self.console.print(f"{kept} graded already, {open_} to grade", highlight=False)

    def event(self, name: str, event: Event) -> None:
        """See `classroom.Watcher`."""
        kind = event["event"]
        if kind == "begin":
            self.running[name] = 0
        elif kind == "result":
            self.running[name] = self.running.get(name, 0) + (event["outcome"] == "passed")
        elif kind == "lost":
            self._say(name, f"tried again: {event['message']}", "yellow")
        elif kind == "end":
            self._end(name, event)
        if self.console.is_terminal and kind in ("begin", "end"):
            names = list(self.running)
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            what = f"{', '.join(names[:NAMED])}{more}"
            self.bar.update(self.grading, completed=self.done, what=clean(what))

    def _end(self, name: str, event: Event) -> None:
        self.done += 1
        passed = self.running.pop(name, 0)
        outcome = Outcome(event["outcome"])
        words = f"{outcome}, {passed} passed" if outcome is Outcome.GRADED else str(outcome)
        why = (clean(event["message"]).splitlines() or [""])[0]
        style = "green" if outcome is Outcome.GRADED else "red"
        if not self.console.is_terminal or outcome is not Outcome.GRADED:
            self._say(name, f"{words}: {why}" if why else words, style)

    def _say(self, name: str, words: str, style: str) -> None:
        line = Text(f"{self.done:>4}/{self.total} ", "dim").append(f"{clean(name)}: ", "default")
        self.console.print(line.append(clean(words), style), soft_wrap=True)


def summary(grades: Sequence[Grade], pace: Pace) -> Iterator[str]:
    """The class in some lines: outcomes, scores, how fast it was graded, and what was overhead."""
    counts = Counter(grade.outcome for grade in grades)
    yield ", ".join(f"{counts[o]} {o}" for o in Outcome if counts[o]) or "no grades"
    if not pace.graded:
        return
    yield f"{pace.graded} graded in {pace.seconds:.1f} s: {pace.hourly:.0f} submissions an hour"
    if ran := [g for g in grades if g.own_seconds]:
        names = "program_seconds", "build_seconds", "own_seconds", "processor"
        theirs, build, own, processor = (mean(getattr(g, name) for g in ran) for name in names)
        yield (
            f"a submission, on average: {theirs:.2f} s in its own processes ({build:.2f} s its"
            f" build), overhead {own:.2f} s (waiting and gates included; {processor:.2f} s of it"
            " computing)"
        )
