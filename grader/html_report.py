"""The report of a run as one HTML page that loads nothing: for students, to read and to keep."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from grader.advice import ADVICE
from grader.formats import scale
from grader.gates import CERTAINTY, GateResult, Threshold, declared
from grader.gates_report import formulas, how
from grader.results import Result, RunResult, WeekResult
from grader.verdict import Verdict, clean, excerpt

FOLDER = Path(__file__).parent / "html"
OPENED = 3
"""Failures of a week that are unfolded from the start."""
WHOLE = 60
"""Failures of a week that are shown at all; of further ones, a line each."""
AXIS = (0.5, 16.0)
WIDTH = 200.0
TONES = {"passed": "good", "partial": "warn", "failed": "bad", "open": "warn"}

View = dict[str, Any]


def text(run: RunResult) -> str:
    """The page; whatever comes from a submission is escaped."""
    return _template().render(_page(run)) + "\n"


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_fit,
    )
    return environment.get_template("page.html.jinja")


def _fit(value: object) -> object:
    return clean(value) if type(value) is str else value


def _page(run: RunResult) -> View:
    found = scale.all_items(run)
    left = scale.left_open(found)
    kinds = Counter(_verdict(result) for _, result in run.failures())
    return {
        "run": run,
        "state": "passed" if run.passed else "not passed" if run.complete else "not finished",
        "tone": "good" if run.passed else "bad",
        "points": scale.shown(scale.earned(found)),
        "most": scale.shown(scale.most(found)),
        "open": scale.shown(left) if left else "",
        "facts": list(_facts(run)),
        "verdicts": kinds.most_common(),
        "weeks": [_week(run, week) for week in run.weeks],
        "certainty": f"{CERTAINTY:g}",
        "axis": [f"{end:g}" for end in AXIS],
    }


def _facts(run: RunResult) -> Iterator[tuple[str, str]]:
    if run.submission is not None:
        yield "submission", run.submission
    yield "started", run.started
    yield "took", f"{run.seconds:.1f} s"
    yield "seed", str(run.seed)
    yield "sandbox", run.sandbox


def _week(run: RunResult, week: WeekResult) -> View:
    passed = week.passed(allow_skips=run.allow_skips)
    bad = [result for result in week.results if result.outcome in ("failed", "error")]
    anchors = {result.test: f"{week.package}-{number}" for number, result in enumerate(bad[:WHOLE])}
    found = scale.items(week)
    return {
        "anchor": week.package,
        "title": week.title,
        "package": week.package,
        "state": "passed" if passed else "not passed",
        "tone": "good" if passed else "bad",
        "points": scale.shown(scale.earned(found)),
        "most": scale.shown(scale.most(found)),
        "total": max(len(week.collected), len(week.results)),
        "passed": week.count("passed"),
        "failed": week.count("failed", "error"),
        "skipped": week.count("skipped"),
        "not_run": len(week.not_run),
        "problem": excerpt(week.problem, 40),
        "failures": [
            _failure(result, anchors[result.test]) | {"shown": number < OPENED}
            for number, result in enumerate(bad[:WHOLE])
        ],
        "more": len(bad) - len(anchors),
        "gates": [_gate(week.package, gate) for gate in week.gates],
        "formulas": [f"{f[0].upper()}{f[1:]}." for f in formulas(week.package)],
        "groups": [_item(item, anchors) for item in found],
    }


def _verdict(result: Result) -> str:
    return str(result.failure["verdict"]) if result.failure else "the test itself went wrong"


def _failure(result: Result, anchor: str) -> View:
    kept = result.failure or {}
    verdict = _verdict(result)
    printed = kept.get("shrunk_result") if kept.get("shrunk") else kept.get("result")
    command = kept.get("command", "")
    return {
        "anchor": anchor,
        "verdict": verdict,
        "sentence": result.sentence or result.test,
        "test": result.test,
        "message": kept.get("message", ""),
        "advice": ADVICE[Verdict(verdict)] if kept else "",
        "differences": list(_differences(kept)),
        "shrunk": excerpt(kept.get("shrunk") or "", 60),
        "program": excerpt(kept.get("program", ""), 60),
        "printed": excerpt(printed or "", 40),
        "stderr": excerpt(kept.get("stderr", ""), 20),
        "body": "" if kept else excerpt(result.message, 40),
        "command": f"{command} < {kept.get('file', 'program.uop')}" if command else "",
        "id": kept.get("id", ""),
    }


def _differences(kept: View) -> Iterator[View]:
    for key, whose in (("shrunk_difference", "the smallest"), ("difference", "the test's")):
        if found := kept.get(key):
            yield found | {"whose": whose, "index": str(found["index"]) if found["index"] else "–"}


def _gate(package: str, gate: GateResult) -> View:
    state = scale.gate_state(gate)
    shown = {
        "case": gate.case,
        "how": how(gate),
        "ratio": "–" if gate.ratio is None else f"{gate.ratio:.2f}",
        "credit": f"{gate.credit:.2f}",
        "state": state,
        "outcome": gate.outcome,
        "tone": TONES[state],
        "message": gate.message,
        "measured": False,
    }
    if gate.ratio is None:
        return shown
    low, high = gate.low or gate.ratio, gate.high or gate.ratio
    left, right = place(low), place(high)
    return shown | {
        "measured": True,
        "interval": f"{low:.2f}–{high:.2f}" if low < high else "–",
        "at": round(place(gate.ratio), 1),
        "left": round(left, 1),
        "width": round(max(right - left, 2.0), 1),
        "ticks": [round(place(t.ratio), 1) for t in thresholds(package, gate)],
        "spoken": f"{gate.ratio:.2f}, between {low:.2f} and {high:.2f}",
    }


def place(ratio: float) -> float:
    """Where a ratio stands on the bar, by its logarithm, 0 to WIDTH."""
    low, high = (math.log2(end) for end in AXIS)
    share = (math.log2(max(ratio, AXIS[0])) - low) / (high - low)
    return WIDTH * min(share, 1.0)


def thresholds(package: str, result: GateResult) -> tuple[Threshold, ...]:
    """Those of the gate that a result is of."""
    wanted = (result.case, result.threads, result.reference)
    found = (g.thresholds for g in declared(package) if (g.case, g.threads, g.reference) == wanted)
    return next(found, ())


def _item(item: scale.Item, anchors: dict[str, str]) -> View:
    return {
        "title": item.title,
        "good": sum(part.state == "passed" for part in item.parts),
        "total": len(item.parts),
        "earned": scale.shown(item.earned),
        "points": scale.shown(item.points),
        "parts": [_part(part, anchors) for part in item.parts],
    }


def _part(part: scale.Part, anchors: dict[str, str]) -> View:
    anchor = anchors.get(part.test, "")
    return {
        "name": part.name,
        "state": part.state,
        "tone": TONES[part.state],
        "anchor": anchor,
        "note": "" if anchor else excerpt(part.message, 1),
    }
