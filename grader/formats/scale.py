"""Points: what a run earns by the course's scale.

`scale.json` gives each week's package its points P and the share g of them that its gates decide:

    earned = P · ((1 − g) · mean over spec files of passed / tests + g · mean credit of gates)

A spec file is one item, the gates of a week are another. What could not be judged (skipped, never
run, a fault of the grader) earns what is certain, mostly nothing, and the rest of its points are
counted as open: no verdict on the submission stands behind them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader import failures, gates_report
from grader.gates import GateResult, declared
from grader.gates_report import how
from grader.results import Result, RunResult, WeekResult
from grader.session import spec_tests
from grader.verdict import Verdict, excerpt
from grader.weeks import week_of

FILE = Path(__file__).parent / "scale.json"
NOT_RUN = "did not run"
NOT_MEASURED = "not measured"
WHOLE = "tests"
"""The name of the item of tests that stand in no spec file."""


@dataclass(frozen=True)
class Share:
    """What a week is worth: its points, and the part of them that its gates decide, 0 to 1."""

    points: float
    gates: float


@dataclass(frozen=True)
class Part:
    """A test or a gate.

    Attributes:
        state: passed, partial, failed, or open (not judged).
        credit: 0 to 1.
        message: why it is not whole.
    """

    name: str
    state: str
    credit: float = 0.0
    seconds: float = 0.0
    message: str = ""
    test: str = ""


@dataclass(frozen=True)
class Item:
    """What is scored at once: the tests of a spec file, or the gates of a week.

    Attributes:
        key: letters, digits and underscores; the same in every run.
    """

    key: str
    title: str
    week: WeekResult
    points: float
    parts: tuple[Part, ...]

    @property
    def state(self) -> str:
        """The worst state of a part."""
        states = {part.state for part in self.parts}
        return next(s for s in ("failed", "partial", "open", "passed") if s in states)

    @property
    def earned(self) -> float:
        """Points, by the mean credit of the parts."""
        return self._share(part.credit for part in self.parts)

    @property
    def open(self) -> float:
        """Points that were not judged."""
        return self._share(1.0 - part.credit for part in self.parts if part.state == "open")

    def _share(self, credits_: Iterable[float]) -> float:
        return self.points * math.fsum(credits_) / len(self.parts)


@cache
def shares(file: Path = FILE) -> Mapping[str, Share]:
    """The scale, by package."""
    table = json.loads(file.read_text(encoding="utf-8"))
    return {package: Share(**given) for package, given in table.items()}


def items(week: WeekResult) -> list[Item]:
    """The scored items of a week; their points add up to the week's."""
    share = shares()[week.package]
    gates = gate_parts(week)
    for_gates = share.points * share.gates if gates else 0.0
    groups = _by_file(week)
    each = (share.points - for_gates) / len(groups)
    prefix = week.package.split("_")[0]
    found = [
        Item(f"{prefix}_{name}", name.replace("_", " "), week, each, tuple(parts))
        for name, parts in groups.items()
    ]
    return [*found, Item(f"{prefix}_speed", "speed", week, for_gates, gates)] if gates else found


def _by_file(week: WeekResult) -> dict[str, list[Part]]:
    """The tests of each spec file, also of one that never began."""
    names = [path.stem for path in spec_tests(week_of(week.week))]
    groups: dict[str, list[Part]] = {_plain(name): [] for name in names}
    parts = [*map(_test_part, week.results), *(Part(t, "open", test=t) for t in week.not_run)]
    for part in parts:
        stem = Path(part.test.split("::")[0]).stem
        groups.setdefault(_plain(stem), []).append(part)
    why = week.problem.split("\n")[0] or NOT_RUN
    nothing = [Part("its tests", "open", message=why)]
    return {name: parts or nothing for name, parts in groups.items()} or {WHOLE: nothing}


def _plain(stem: str) -> str:
    return stem.removeprefix("test_spec_") or WHOLE


def _test_part(result: Result) -> Part:
    fault = result.failure is not None and result.failure["verdict"] == Verdict.GRADER
    judged = result.outcome in ("passed", "failed") and not fault
    state = result.outcome if judged else "open"
    _, bracket, parameters = result.test.partition("[")
    return Part(
        f"{result.sentence} {bracket}{parameters}".strip() if result.sentence else result.test,
        state,
        float(result.outcome == "passed"),
        result.seconds,
        "" if result.outcome == "passed" else explained(result),
        result.test,
    )


def explained(result: Result, lines: int = 12) -> str:
    """Why a test did not pass."""
    if result.failure is not None:
        return failures.text(result.failure, lines)
    return excerpt(result.message, lines)


def gate_parts(week: WeekResult) -> tuple[Part, ...]:
    """The week's gates, measured or not."""
    measured = Counter((gate.case, how(gate)) for gate in week.gates)
    wanted = Counter((gate.case, how(gate)) for gate in declared(week.package))
    missing = (wanted - measured).elements()
    return (
        *map(_gate_part, week.gates),
        *(Part(f"{case}, {what}", "open", message=NOT_MEASURED) for case, what in missing),
    )


def gate_state(gate: GateResult) -> str:
    """As of a part: what is held for review or was not measurable is open."""
    return gate.outcome if gate.outcome in ("passed", "partial", "failed") else "open"


def _gate_part(gate: GateResult) -> Part:
    state = gate_state(gate)
    said = f"ratio {gates_report.shown(gate)}" if gate.ratio is not None else ""
    outcome = gate.outcome if state == "open" else ""
    message = ": ".join(filter(None, (said, outcome, gate.message)))
    name = f"{gate.case}, {how(gate)}"
    return Part(name, state, gate.credit, message=message)


def all_items(run: RunResult) -> list[Item]:
    """The items of all weeks of a run."""
    return [item for week in run.weeks for item in items(week)]


def earned(found: Sequence[Item]) -> float:
    """Points of these items."""
    return math.fsum(item.earned for item in found)


def most(found: Sequence[Item]) -> float:
    """Points that there are."""
    return math.fsum(item.points for item in found)


def left_open(found: Sequence[Item]) -> float:
    """Points that were not judged."""
    return math.fsum(item.open for item in found)


def shown(points: float) -> str:
    """Points with two decimals, cut and never rounded up: only what is whole looks whole."""
    return f"{math.floor(points * 100 + 1e-6) / 100:.2f}"


def exact(points: float) -> float:
    """Points as a file holds them."""
    return round(points, 6)
