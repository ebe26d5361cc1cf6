"""CSV: a row a week, for a table of grades."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from grader.formats import scale
from grader.results import RunResult
from grader.verdict import clean

COLUMNS = (
    *("subject", "submission", "week", "points", "max", "open", "passed", "complete"),
    *("tests", "tests_passed", "tests_failed", "tests_skipped", "tests_not_run"),
    *("gates", "gate_credit", "seed", "started", "problem"),
)
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\n")


def text(run: RunResult) -> str:
    """The header and the rows."""
    page = io.StringIO()
    table = csv.DictWriter(page, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows(run))
    return page.getvalue()


def rows(run: RunResult) -> Iterator[dict[str, object]]:
    """One row a week."""
    for week in run.weeks:
        found = scale.items(week)
        yield {
            "subject": cell(run.subject),
            "submission": cell(run.submission or ""),
            "week": week.week,
            "points": scale.exact(scale.earned(found)),
            "max": scale.exact(scale.most(found)),
            "open": scale.exact(scale.left_open(found)),
            "passed": week.passed(allow_skips=run.allow_skips),
            "complete": run.complete,
            "tests": len(week.collected),
            "tests_passed": week.count("passed"),
            "tests_failed": week.count("failed", "error"),
            "tests_skipped": week.count("skipped"),
            "tests_not_run": len(week.not_run),
            "gates": len(week.gates),
            "gate_credit": scale.exact(sum(gate.credit for gate in week.gates)),
            "seed": run.seed,
            "started": run.started,
            "problem": cell(week.problem),
        }


def cell(text: str) -> str:
    """Text that a spreadsheet shows and does not compute: an apostrophe stands before a formula."""
    found = clean(text)
    begins = found.startswith(_FORMULA) or found.lstrip().startswith(_FORMULA)
    return f"'{found}" if begins else found
