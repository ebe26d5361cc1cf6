"""What a person sees of gates: a table, and how credit is earned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.gates import BYTES, CERTAINTY, HELD, MARGIN, UNMEASURED, Gate, GateResult, declared
from grader.verdict import excerpt

MEANING = {
    "best": "the time of the faster of NumPy and PyTorch",
    BYTES: "the bytes that any program must move (counted, not timed)",
}
STYLES = {
    "passed": "green",
    "partial": "yellow",
    "failed": "red",
    HELD: "magenta",
    UNMEASURED: "yellow",
}


def line(result: GateResult) -> Text:
    """A gate on one line."""
    text = Text(f"gate {result.case}, {how(result)}: ")
    text.append(result.outcome, STYLES[result.outcome])
    text.append(f" {shown(result)}" if result.ratio is not None else "")
    return text.append(f" ({excerpt(result.message, 1)})" if result.message else "")


def how(gate: Gate | GateResult) -> str:
    """What is measured, in a word or two."""
    if gate.reference == BYTES:
        return BYTES
    return f"{gate.threads} thread{'s' * (gate.threads > 1)}"


def formulas(package: str) -> Iterator[str]:
    """How the gates of a week's package earn credit, a line for each way."""
    for steps, against in dict.fromkeys((g.thresholds, g.reference) for g in declared(package)):
        words = ", ".join(f"{step.credit:g} up to {step.ratio:g}" for step in steps)
        yield f"credit by the ratio to {MEANING.get(against, against)}: {words}"


def shown(result: GateResult) -> str:
    """The ratio and where it may lie."""
    if result.ratio is None:
        return "–"
    if result.reference == BYTES:
        return f"{result.ratio:.2f}"
    return f"{result.ratio:.2f} [{result.low:.2f}, {result.high:.2f}]"


def points(results: Sequence[GateResult]) -> str:
    """The credit earned, and how much there is; what is open is named."""
    found = f"{sum(result.credit for result in results):.2f} of {len(results)}"
    for outcome in (HELD, UNMEASURED):
        if count := sum(result.outcome == outcome for result in results):
            found += f", {count} {outcome}"
    return found


def table(results: Sequence[GateResult]) -> Table:
    """A row a gate."""
    found = Table(
        title="gates: our time, or the bytes that are moved, over the reference's",
        title_justify="left",
    )
    for name in ("case", "measured", "ratio", "credit", ""):
        found.add_column(name, justify="left" if name in ("case", "") else "right", no_wrap=True)
    for result in results:
        outcome = Text(result.outcome, STYLES[result.outcome])
        credit = f"{result.credit:.2f}"
        found.add_row(result.case, how(result), shown(result), credit, outcome)
    return found


def remarks(results: Sequence[GateResult]) -> Iterator[Text]:
    """What is to be said of single gates, a line a remark."""
    found: dict[str, list[GateResult]] = {}
    for result in results:
        if result.message:
            found.setdefault(result.message, []).append(result)
    for message, members in found.items():
        names = ", ".join(f"{m.case} ({how(m)})" for m in members)
        which = names if len(members) < len(results) else "all"
        yield Text(f"{which}: {excerpt(message, 1)}", "yellow")


def show(console: Console, package: str, results: Sequence[GateResult]) -> None:
    """The table, the points, and the formula, if there are results."""
    if not declared(package) or not results:
        return
    console.print(table(results))
    for remark in remarks(results):
        console.print(remark, soft_wrap=True)
    for formula in formulas(package):
        console.print(Text(formula, "dim"), soft_wrap=True)
    console.print(
        Text(
            f"the ratio that counts is the upper end of its {CERTAINTY:g} % interval; if a "
            f"threshold lies within it or {MARGIN - 1:.0%} beyond, it is measured again; if one "
            f"still does, it is {UNMEASURED} and earns the lower credit, which is certain",
            "dim",
        ),
        soft_wrap=True,
    )
    console.print(f"points: {points(results)}")
