"""One table of all that must fail and of what must pass: who was caught, and by which test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from grader.adversary.case import Cheat, Outcome
from grader.adversary.mutant import Mutant
from grader.adversary.mutants import CONTROLS, MUTANTS
from grader.adversary.trial import SKIPPED, Trial, judge_by, search
from grader.failures import write_whole
from grader.verdict import Verdict, excerpt

SCHEMA = 1
KILLERS = Path(__file__).parent / "killers.json"
CHEATS = "grader.adversary.cheats"
STYLES = {"caught": "green", "passed": "green", "escaped": "bold red", "not judged": "yellow"}


def killers() -> Mapping[str, str]:
    """Mutant → a test that is known to kill it."""
    known: dict[str, str] = json.loads(KILLERS.read_text())
    return known


@dataclass(frozen=True)
class Row:
    """What came of one case.

    Attributes:
        kind: cheat, mutant or control.
        state: caught, passed, escaped (also of a control that failed), or not judged.
        test: the test that killed a mutant.
        told: the grader's sentence.
    """

    name: str
    week: int
    kind: str
    about: str
    expected: str
    got: str
    state: str
    test: str
    told: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the grader said what it must say."""
        return self.state in ("caught", "passed")


@dataclass(frozen=True)
class Item:
    """A cheat, a mutant or a control, and how it is judged."""

    kind: str
    case: Cheat | Mutant
    judge: Callable[[], Trial]

    def row(self) -> Row:
        """Judge it; what is raised is a fault of ours, and ends nothing else."""
        start = time.monotonic()
        try:
            trial = self.judge()
        except Exception as error:  # one broken case must not hide the others
            trial = Trial(Outcome(Verdict.GRADER, f"{type(error).__name__}: {error}"))
        case, outcome = self.case, trial.outcome
        seconds = round(time.monotonic() - start, 2)
        verdicts = str(case.expected), str(outcome.verdict)
        state = self._state(trial)
        named = (case.name, case.week, self.kind, case.about)
        return Row(*named, *verdicts, state, trial.test, outcome.told, seconds)

    def _state(self, trial: Trial) -> str:
        verdict = trial.outcome.verdict
        if verdict in (SKIPPED, Verdict.GRADER) and verdict != self.case.expected:
            return "not judged"
        if self.kind == "control":
            return "passed" if verdict == Verdict.OK else "escaped"
        caught = bool(trial.test) if self.kind == "mutant" else verdict == self.case.expected
        return "caught" if caught else "escaped"


def items(*, full: bool = False) -> list[Item]:
    """All cases: cheats, mutants, controls.

    Args:
        full: mutants and controls are judged by their whole week, not by known killers first.
    """
    known = killers()

    def cheat(case: Cheat) -> Trial:
        return Trial(case.run())

    def mutant(case: Mutant) -> Trial:
        found = judge_by(case, [known[case.name]]) if case.name in known and not full else None
        return found if found is not None and found.test else search(case)

    def control(case: Mutant) -> Trial:
        tests = [known[m.name] for m in MUTANTS if m.week == case.week and m.name in known]
        return judge_by(case, list(dict.fromkeys(tests))) if tests and not full else search(case)

    return [
        *(Item("cheat", case, partial(cheat, case)) for case in cheats() or ()),
        *(Item("mutant", case, partial(mutant, case)) for case in MUTANTS),
        *(Item("control", case, partial(control, case)) for case in CONTROLS),
    ]


def cheats() -> Sequence[Cheat] | None:
    """The cheats, if there are any."""
    try:
        found: Sequence[Cheat] = import_module(CHEATS).CHEATS
    except ModuleNotFoundError as error:
        if error.name != CHEATS:
            raise
        return None
    return found


def chosen(all_items: Sequence[Item], names: Sequence[str]) -> list[Item]:
    """Those of some names, or all; a KeyError names one that there is not."""
    known = {item.case.name for item in all_items}
    for name in names:
        if name not in known:
            raise KeyError(f"expected the name of a cheat, mutant or control, got {name}")
    return [item for item in all_items if not names or item.case.name in names]


def rows(judged: Sequence[Item], json_file: Path | None) -> Iterator[Row]:
    """Judge one after the other; the file is written after each."""
    done: list[Row] = []
    for item in judged:
        done.append(item.row())
        if json_file is not None:
            write_whole(json_file, json.dumps(_document(done, len(judged)), indent=1))
        yield done[-1]


def _document(done: Sequence[Row], count: int) -> Mapping[str, object]:
    complete = len(done) == count
    return {
        "schema": SCHEMA,
        "complete": complete,
        "passed": complete and all(row.ok for row in done),
        "rows": [asdict(row) for row in done],
    }


def table(done: Sequence[Row]) -> Table:
    """As a reader wants to see it."""
    shown = Table("name", "week", "kind", "expected verdict", "got verdict", "", "killed by")
    for row in done:
        state = f"[{STYLES[row.state]}]{row.state}[/]"
        shown.add_row(
            row.name,
            str(row.week),
            row.kind,
            row.expected,
            row.got,
            state,
            escape(row.test or excerpt(row.told, 1, 100)),
        )
    return shown


def summary(done: Sequence[Row]) -> str:
    """How many of each state."""
    counts = {state: sum(row.state == state for row in done) for state in STYLES}
    return ", ".join(f"{count} {state}" for state, count in counts.items())
