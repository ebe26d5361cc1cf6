"""What a person sees of a run: a live table, or plain lines, then the failures one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from grader import failures, gates_report
from grader.gates import GateResult
from grader.results import Result, RunResult, WeekResult
from grader.verdict import clean, excerpt

MARKS = {"passed": "ok", "failed": "FAILED", "error": "ERROR", "skipped": "skipped"}
SHOWN = 20
"""Failures that are shown whole; of further ones, a line each."""
STYLES = {"passed": "green", "failed": "red", "error": "red", "skipped": "yellow"}


class Screen:
    """Shows a run while it goes on."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | None = None
        self._shown = 0

    @contextmanager
    def showing(self, run: RunResult) -> Iterator[None]:
        """A table that follows the run on a terminal, a line a test elsewhere."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=8) as live:
            self._live = live
            yield
            live.update(table(run))
            self._live = None

    def update(self, run: RunResult, week: WeekResult) -> None:
        """After every event."""
        if self._live is not None:
            self._live.update(Group(table(run), _current(week)))
            return
        for result in week.results[self._shown :]:
            self.console.print(_line(week, result), soft_wrap=True)
        self._shown = len(week.results)

    def gate(self, run: RunResult, event: GateResult | str) -> None:
        """When a gate begins, and when its result is there."""
        if self._live is not None:
            text = Text(f"  gate {event}: measuring", "dim") if isinstance(event, str) else ""
            self._live.update(Group(table(run), text))
        elif not isinstance(event, str):
            self.console.print(gates_report.line(event), soft_wrap=True)

    def end_week(self) -> None:
        """The next week's results start anew."""
        self._shown = 0


def _current(week: WeekResult) -> Text:
    left = week.not_run
    return Text(f"  {week.title}: {left[0] if left else '…'}", style="dim", overflow="ellipsis")


def _line(week: WeekResult, result: Result) -> Text:
    total = max(len(week.collected), len(week.results))
    text = Text(f"{week.title} {len(week.results):>4}/{total} ", style="dim")
    text.append(f"{MARKS[result.outcome]:8}", STYLES[result.outcome])
    text.append(clean(result.sentence or result.test), "default")
    if result.outcome == "skipped":
        text.append(f" ({excerpt(result.message, 1)})", "yellow")
    return text


def table(run: RunResult) -> Table:
    """One row a week."""
    found = Table(title=escape(excerpt(run.subject, 1)), title_justify="left", title_style="bold")
    found.add_column("week")
    for name in ("tests", "passed", "failed", "skipped", "not run"):
        found.add_column(name, justify="right")
    if any(week.gates for week in run.weeks):
        found.add_column("gates", justify="right")
    found.add_column("")
    for week in run.weeks:
        found.add_row(*_row(run, week))
    return found


def _row(run: RunResult, week: WeekResult) -> list[Text]:
    failed, skipped = week.count("failed", "error"), week.count("skipped")
    total = max(len(week.collected), len(week.results))
    good = week.passed(allow_skips=run.allow_skips)
    going = week is run.weeks[-1] and not run.complete and not week.problem and week.not_run
    state = "" if going or not total else "passed" if good else "not passed"
    return [
        Text(f"{week.title}  {week.package}"),
        Text(str(total)),
        Text(str(week.count("passed")), "green"),
        Text(str(failed), "red" if failed else "dim"),
        Text(str(skipped), "yellow" if skipped else "dim"),
        Text(str(len(week.not_run)), "dim"),
        *([Text(gates_report.points(week.gates))] if any(w.gates for w in run.weeks) else []),
        Text(state or ("not passed" if week.problem else ""), "green" if good else "red"),
    ]


def show(console: Console, run: RunResult) -> None:
    """The report at the end: failures, what was skipped or never ran, and the table."""
    for number, (week, result) in enumerate(run.failures()):
        _show_failure(console, week, result, whole=number < SHOWN)
    for week in run.weeks:
        _remarks(console, week)
        gates_report.show(console, week.package, week.gates)
    if not console.is_terminal:
        console.print(table(run))
    verdict = Text("passed", "bold green") if run.passed else Text("not passed", "bold red")
    how = f"seed {run.seed}, sandbox {run.sandbox}, {run.seconds:.1f} s"
    console.print(verdict, Text(f"({how})", "dim"))


def _show_failure(console: Console, week: WeekResult, result: Result, *, whole: bool) -> None:
    head = Text(f"\n{MARKS[result.outcome]} {week.title}: ", "bold red")
    console.print(head.append(clean(result.sentence or result.test), "bold"), soft_wrap=True)
    if not whole:
        again = f"grader repro {result.failure['id']}" if result.failure else "see the JSON file"
        console.print(Text(f"    {result.test}: {again}"), soft_wrap=True)
        return
    body = failures.text(result.failure) if result.failure else _tail(result.message)
    console.print(Text(f"    {result.test}", "dim"), soft_wrap=True)
    console.print(Text(_indented(body)), soft_wrap=True)


def _tail(message: str, lines: int = 20) -> str:
    return excerpt("\n".join(message.rstrip().splitlines()[-lines:]), lines)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _remarks(console: Console, week: WeekResult) -> None:
    if week.problem:
        console.print(Text(f"{week.title}: {excerpt(week.problem, 40)}", "red"))
    reasons: dict[str, int] = {}
    for result in week.results:
        if result.outcome == "skipped":
            reasons[result.message] = reasons.get(result.message, 0) + 1
    for reason, count in reasons.items():
        console.print(Text(f"{week.title}: {count} skipped: {excerpt(reason, 1)}", "yellow"))
    if week.not_run:
        console.print(Text(f"{week.title}: {len(week.not_run)} never ran", "red"))
