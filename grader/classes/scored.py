"""The points of a submission, by the course's scale, from what is stored of its tests and gates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.formats import scale
from grader.gates import GateResult
from grader.results import Result, WeekResult
from grader.verdict import Verdict
from grader.weeks import week_of


@dataclass(frozen=True)
class Points:
    """Earned, of how many there are, and those that nothing was judged for."""

    earned: float
    most: float
    open: float


def points(
    number: int,
    tests: Iterable[tuple[str, str | None, str | None]],
    gates: Sequence[tuple[str, int, str, float]],
) -> Points:
    """The same as the grader's for a single submission.

    Args:
        number: of the week.
        tests: test, outcome (None if it did not run) and the verdict of its failure.
        gates: case, threads, outcome and credit.
    """
    week, rows = week_of(number), list(tests)
    found = WeekResult(week.last, week.package, week.title, [test for test, *_ in rows])
    for test, outcome, verdict in rows:
        if outcome is not None:
            # For a fault of the grader a test earns nothing and blames nobody, as for an error.
            found.results.append(Result(test, "error" if verdict == Verdict.GRADER else outcome))
    for case, threads, outcome, credit in gates:
        found.gates.append(GateResult(case, threads, "", 0.0, outcome, credit))
    items = scale.items(found)
    return Points(scale.earned(items), scale.most(items), scale.left_open(items))
