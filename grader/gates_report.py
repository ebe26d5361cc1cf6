"""What a person sees of gates: a table, and how credit is earned."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.gates import GateResult, gates_of

STYLES = {"passed": "green", "partial": "yellow", "failed": "red", "skipped": "yellow"}


def line(result: GateResult) -> Text:
    """A gate on one line."""
    text = Text(f"gate {result.case}, {result.threads} thread{'s' * (result.threads > 1)}: ")
    text.append(result.outcome, STYLES[result.outcome])
    text.append(f" {shown(result)}" if result.ratio is not None else "")
    return text.append(f" ({result.message})" if result.message else "")


def shown(result: GateResult) -> str:
    """The ratio and where it may lie."""
    if result.ratio is None:
        return "–"
    return f"{result.ratio:.2f} [{result.low:.2f}, {result.high:.2f}]"


def points(results: Sequence[GateResult]) -> str:
    """The credit earned, and how much there is."""
    return f"{sum(result.credit for result in results):.2f} of {len(results)}"


def table(results: Sequence[GateResult]) -> Table:
    """A row a gate."""
    found = Table(title="gates: our time over the reference's", title_justify="left")
    for name in ("case", "threads", "against", "at most", "ratio", "credit", "outcome", ""):
        found.add_column(
            name, justify="left" if name in ("case", "") else "right", no_wrap=bool(name)
        )
    for result in results:
        found.add_row(
            result.case,
            str(result.threads),
            result.reference,
            f"{result.wanted:.2f}",
            shown(result),
            f"{result.credit:.2f}",
            Text(result.outcome, STYLES[result.outcome]),
            result.message,
        )
    return found


def show(console: Console, package: str, results: Sequence[GateResult]) -> None:
    """The table, the points, and the formula, if there are results."""
    gates = gates_of(package)
    if gates is None or not results:
        return
    console.print(table(results))
    for thresholds in dict.fromkeys(gate.thresholds for gate in gates.gates):
        words = ", ".join(f"{t.credit:g} up to {t.ratio:g}" for t in thresholds)
        console.print(Text(f"credit by ratio: {words}", "dim"), soft_wrap=True)
    console.print(f"{points(results)} points")
