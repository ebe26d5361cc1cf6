"""Gradescope's results.json: one test an item of the scale, in the order of the course."""

from __future__ import annotations

import json
import math
from typing import Any

from grader.formats import scale
from grader.formats.scale import Item
from grader.formats.texts import described
from grader.gates import BYTES
from grader.results import RunResult
from grader.verdict import clean


def text(run: RunResult) -> str:
    """The whole file, also of a run that is not complete."""
    found = scale.all_items(run)
    table: dict[str, Any] = {
        "score": scale.exact(scale.earned(found)),
        "execution_time": round(run.seconds),
        "output": clean(summary(run, found)),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_test(number, item) for number, item in enumerate(found, 1)],
        "leaderboard": _leaderboard(run),
        "extra_data": {"max_score": scale.exact(scale.most(found)), "complete": run.complete},
    }
    return json.dumps(table, indent=1) + "\n"


def summary(run: RunResult, found: list[Item]) -> str:
    """The run in a few sentences."""
    lines = [f"{scale.shown(scale.earned(found))} of {scale.shown(scale.most(found))} points"]
    if left := scale.left_open(found):
        lines.append(f"{scale.shown(left)} points are open: what they stand for was not judged")
    if not run.complete:
        done = sum(len(week.results) for week in run.weeks)
        total = sum(len(week.collected) for week in run.weeks)
        lines.append(f"The run did not finish: {done} of {total} tests are here.")
    lines += [f"{week.title}: {week.problem}" for week in run.weeks if week.problem]
    lines.append(f"{run.subject}, seed {run.seed}, sandbox {run.sandbox}")
    return "\n".join(lines)


def _test(number: int, item: Item) -> dict[str, Any]:
    found = {
        "name": f"{item.week.title}: {item.title}",
        "number": str(number),
        "score": scale.exact(item.earned),
        "max_score": scale.exact(item.points),
        "output": described(item),
        "output_format": "text",
        "tags": [item.week.package],
        "visibility": "visible",
        "extra_data": {"parts": len(item.parts), "open": scale.exact(item.open)},
    }
    status = {"passed": "passed", "partial": "failed", "failed": "failed"}
    return found | ({"status": status[item.state]} if item.state in status else {})


def _leaderboard(run: RunResult) -> list[dict[str, Any]]:
    """The geometric mean of the ratios of times, of each week that has some."""
    rows = []
    for week in run.weeks:
        if ratios := [g.ratio for g in week.gates if g.ratio and g.reference != BYTES]:
            mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
            name = f"{week.title}: our time over the reference's"
            rows.append({"name": name, "value": round(mean, 3), "order": "asc"})
    return rows
