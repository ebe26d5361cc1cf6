"""The results of a run, and their JSON form.

Schema 1, an object with the keys

- schema: 1; subject: a name; submission: a folder or null; seed; sandbox: its level
- started: UTC; seconds; complete: false while running; passed: whether the whole run did
- weeks: a list of objects with week, package, the numbers collected, passed, failed, skipped,
  not_run, problem (a sentence or ""), and tests: a list of objects with test, sentence, outcome,
  seconds, message, and failure (see `failures`, without arrays; or null); gates: a list of objects
  with case, threads, reference, wanted, outcome, credit, ratio, low, high, message (see `gates`).

Outcomes: passed, failed (a claim that does not hold), error (the test itself went wrong), skipped;
of a gate also partial, "held for review" and "not measurable".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.failures import Record, write_whole

if TYPE_CHECKING:
    from grader.gates import GateResult

SCHEMA = 1
_ARRAYS = ("inputs", "expected", "got")


@dataclass(frozen=True)
class Result:
    """What came of one test."""

    test: str
    outcome: str
    seconds: float = 0.0
    sentence: str = ""
    message: str = ""
    failure: Record | None = None

    def json(self) -> dict[str, Any]:
        """As in the schema: large arrays stay in the stored failure."""
        failure = self.failure
        if failure is not None:
            failure = {key: value for key, value in failure.items() if key not in _ARRAYS}
        return {**vars(self), "failure": failure}


@dataclass
class WeekResult:
    """What came of one package's spec tests.

    Attributes:
        collected: the tests that should run.
        problem: why the run as a whole went wrong; empty if it did not.
        gates: what came of the week's gates.
    """

    week: int
    package: str
    title: str
    collected: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    problem: str = ""
    gates: list[GateResult] = field(default_factory=list)

    def count(self, *outcomes: str) -> int:
        """How many tests had one of these outcomes."""
        return sum(result.outcome in outcomes for result in self.results)

    @property
    def not_run(self) -> list[str]:
        """Collected, and never heard of again."""
        seen = {result.test for result in self.results}
        return [test for test in self.collected if test not in seen]

    def passed(self, *, allow_skips: bool) -> bool:
        """Whether there were tests, all of them ran, and all passed: missing data fails.

        A gate must earn some credit; one that earns none as it could not be measured counts as
        skipped.
        """
        gates = [gate.outcome for gate in self.gates if not gate.credit]
        skips = 0 if allow_skips else self.count("skipped") + gates.count("not measurable")
        bad = self.count("failed", "error") + len(self.not_run) + skips
        bad += gates.count("failed") + gates.count("held for review")
        return bool(self.results) and not bad and not self.problem

    def json(self) -> dict[str, Any]:
        """As in the schema."""
        return {
            "week": self.week,
            "package": self.package,
            "collected": len(self.collected),
            "passed": self.count("passed"),
            "failed": self.count("failed", "error"),
            "skipped": self.count("skipped"),
            "not_run": len(self.not_run),
            "problem": self.problem,
            "tests": [result.json() for result in self.results],
            "gates": [gate.json() for gate in self.gates],
        }


@dataclass
class RunResult:
    """A whole run of the grader."""

    subject: str
    submission: str | None
    seed: int
    sandbox: str
    started: str
    allow_skips: bool = False
    seconds: float = 0.0
    complete: bool = False
    weeks: list[WeekResult] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every week passed, and there was one."""
        good = all(week.passed(allow_skips=self.allow_skips) for week in self.weeks)
        return self.complete and bool(self.weeks) and good

    def failures(self) -> Iterable[tuple[WeekResult, Result]]:
        """All tests that failed or went wrong."""
        for week in self.weeks:
            for result in week.results:
                if result.outcome in ("failed", "error"):
                    yield week, result

    def json(self) -> dict[str, Any]:
        """As in the schema."""
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "submission": self.submission,
            "seed": self.seed,
            "sandbox": self.sandbox,
            "started": self.started,
            "seconds": round(self.seconds, 2),
            "complete": self.complete,
            "passed": self.passed,
            "weeks": [week.json() for week in self.weeks],
        }

    def write(self, path: Path) -> None:
        """Put the JSON in place; a reader finds the former or this state, never half of one."""
        write_whole(path, json.dumps(self.json(), indent=1) + "\n")
