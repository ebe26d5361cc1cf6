"""Gates: how fast the compiled programs of a week must be, next to NumPy and PyTorch.

`gates.json` holds, for a week's package, a suite of `grader.bench` and its gates: {"case",
"threads", "reference", "thresholds": [{"ratio", "credit"}]}; what a gate leaves out is said once
for all. A reference is the name of a contender, or "best", the faster of NumPy and PyTorch. The
credit is that of the strictest threshold that the ratio of times, ours over the reference's, does
not pass: not the median, but the upper end of its interval. Where a threshold lies in the
interval, or others kept the machine busy, it is measured once more.

Gates that are counted come first: {"counted": {"thresholds", "cases"}}. Their ratio is that of the
bytes that the program's loads and stores move to those that any program must (`counting`). It is
the same every time.

Outcomes: passed (the full credit), partial, failed (none), and two that earn nothing yet:
"held for review" (faster than this machine can be) and "not measurable" (no reference, no compiler,
too few cores, a busy machine, an interval too wide to tell credits apart).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from grader.bench.contenders import EAGER
from grader.bench.row import Row
from grader.bench.runner import run as run_job
from grader.bench.timing import Plan, median
from grader.bench.worker import Job
from grader.counting import Counts, UncountableError, moved
from grader.floor import least_seconds
from grader.run_c import RunError
from grader.verdict import Verdict
from grader.weeks import Week
from week05_06_memory.machine import detect

FILE = Path(__file__).parent / "gates.json"
CERTAINTY = 95.0
"""Per cent of the medians of resampled rounds that lie in the interval."""

RESAMPLES = 1000
MARGIN = 1.04
"""So far an interval has to be from all thresholds: from run to run ratios differ beyond it."""

BUSY = 1.25
"""The same on a busy machine."""

LEAST = 3
"""Rounds, without which nothing is earned."""

BYTES = "bytes"
"""The reference of gates that are counted."""

HELD = "held for review"
UNMEASURED = "not measurable"


@dataclass(frozen=True)
class Threshold:
    """Up to this ratio, this credit, from 0 to 1."""

    ratio: float
    credit: float


@dataclass(frozen=True)
class Gate:
    """One demand; thresholds from the strictest on."""

    case: str
    threads: int
    reference: str
    thresholds: tuple[Threshold, ...]

    def credit(self, ratio: float) -> float:
        """What a ratio earns."""
        return next((t.credit for t in self.thresholds if ratio <= t.ratio), 0.0)


@dataclass(frozen=True)
class Gates:
    """The gates of a week."""

    suite: str
    rounds: int
    gates: tuple[Gate, ...]
    counted: tuple[Gate, ...] = ()

    @property
    def every(self) -> tuple[Gate, ...]:
        """Those that are counted, and those that are timed."""
        return (*self.counted, *self.gates)

    def only(self, cases: Sequence[str]) -> Gates:
        """Those of these cases; all if none are named."""
        timed, counted = (
            tuple(gate for gate in group if not cases or gate.case in cases)
            for group in (self.gates, self.counted)
        )
        return replace(self, gates=timed, counted=counted)


@dataclass(frozen=True)
class GateResult:
    """What came of a gate.

    Attributes:
        outcome: passed, partial, failed, HELD or UNMEASURED.
        ratio: our time over the reference's; `low` and `high` bound it.
        message: why there is no ratio, or what is odd.
    """

    case: str
    threads: int
    reference: str
    wanted: float
    outcome: str
    credit: float = 0.0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    message: str = ""

    def json(self) -> dict[str, Any]:
        """As in the file of results."""
        return asdict(self)


def gates_of(package: str, file: Path = FILE) -> Gates | None:
    """The gates of a week's package, if it has some."""
    table = json.loads(file.read_text(encoding="utf-8")).get(package)
    if table is None:
        return None
    timed = tuple(_gate(table, gate) for gate in table["gates"])
    given = table.get("counted", {"cases": []})
    counted = tuple(
        _gate({**given, "reference": BYTES}, {"case": case, "threads": 1})
        for case in given["cases"]
    )
    return Gates(table["suite"], table["rounds"], timed, counted)


def declared(package: str) -> tuple[Gate, ...]:
    """All gates of a week's package."""
    found = gates_of(package)
    return found.every if found else ()


def _gate(table: dict[str, Any], given: dict[str, Any]) -> Gate:
    whole = {"reference": table["reference"], "thresholds": table["thresholds"], **given}
    thresholds = sorted((Threshold(**t) for t in whole["thresholds"]), key=lambda t: t.ratio)
    return Gate(**{**whole, "thresholds": tuple(thresholds)})


Measure = Callable[[Job, int], Iterator[Row | str]]
Count = Callable[[Job], tuple[float, Counts]]


def run(
    week: Week,
    gates: Gates,
    *,
    submission: Path | None = None,
    seed: int = 0,
    rounds: int | None = None,
    measure: Measure = run_job,
    count: Count = moved,
) -> Iterator[GateResult | str]:
    """The case of each gate when it begins, and its result when that is known."""
    against = [*EAGER, *(g.reference for g in gates.gates if g.reference not in (*EAGER, "best"))]
    plan = Plan(rounds or gates.rounds, sets=3)
    job = Job(gates.suite, (), against, plan, seed, week.last, str(submission or "") or None)
    cores = len(os.sched_getaffinity(0))
    for gate in gates.counted:
        yield gate.case
        yield judge_counted(gate, job, count)
    for threads in sorted({gate.threads for gate in gates.gates}):
        open_gates = {gate.case: gate for gate in gates.gates if gate.threads == threads}
        if threads > cores:
            why = f"this machine has {cores} core(s)"
            yield from (unmeasured(gate, why) for gate in open_gates.values())
            continue
        earlier: dict[str, list[float]] = {}
        for again in (False, True):
            job = replace(job, cases=tuple(open_gates), seed=job.seed + again)
            for event in measure(job, threads) if open_gates else ():
                if isinstance(event, str):
                    yield event
                    continue
                gate = open_gates[event.case]
                result = judge(gate, event, earlier.get(gate.case, ()))
                if not again and _undecided(gate, result):
                    earlier[gate.case] = [] if event.disturbed else _ratios(gate, event)
                    continue
                del open_gates[gate.case]
                yield result


def judge(gate: Gate, row: Row, earlier: Sequence[float] = ()) -> GateResult:
    """What a row earns, with the ratios of earlier rounds."""
    result = unmeasured(gate, row.error)
    if row.error:
        return result if row.blameless else replace(result, outcome="failed")
    if why := _missing(gate, row):
        return unmeasured(gate, why)
    ratios = [*earlier, *_ratios(gate, row)]
    ratio = median(ratios)
    assert ratio is not None
    low, high = interval(ratios)
    result = replace(result, ratio=ratio, low=low, high=high)
    least = least_seconds(row.flops, row.bytes, gate.threads, detect())
    if row.ours_s is not None and row.ours_s < least:
        why = f"{row.ours_s:.2g} s a call, of which this machine needs {least:.2g} s at least"
        return replace(result, outcome=HELD, message=why)
    credit, hoped = _credits(gate, result, BUSY if row.disturbed else MARGIN)
    if hoped and len(ratios) < LEAST:
        return replace(result, message=f"expected {LEAST} rounds, got {len(ratios)} in the time")
    if credit != hoped:
        busy = "other processes ran in too many rounds, and it is " if row.disturbed else ""
        why = f"{busy}too near a threshold to tell {hoped:g} from {credit:g}, which is certain"
        return replace(result, credit=credit, message=why)
    return _earning(gate, result, credit)


def judge_counted(gate: Gate, job: Job, count: Count = moved) -> GateResult:
    """What the bytes earn that a program moves."""
    result = unmeasured(gate, "")
    try:
        ratio, counts = count(replace(job, cases=(gate.case,)))
    except UncountableError as why:
        return replace(result, message=str(why))
    except RunError as error:
        outcome = UNMEASURED if error.verdict is Verdict.GRADER else "failed"
        return replace(result, outcome=outcome, message=error.sentence)
    result = _earning(gate, result, gate.credit(ratio))
    message = "" if result.outcome == "passed" else str(counts)
    return replace(result, ratio=ratio, low=ratio, high=ratio, message=message)


def _earning(gate: Gate, result: GateResult, credit: float) -> GateResult:
    full = credit == gate.thresholds[0].credit
    outcome = "passed" if full else "partial" if credit else "failed"
    return replace(result, outcome=outcome, credit=credit, message="")


def unmeasured(gate: Gate, why: str) -> GateResult:
    """No result of a gate, and why there is none."""
    wanted = gate.thresholds[0].ratio
    return GateResult(gate.case, gate.threads, gate.reference, wanted, UNMEASURED, message=why)


def _missing(gate: Gate, row: Row) -> str:
    """Why the reference has no time, in words: of the best, all must be there that can be."""
    names = EAGER if gate.reference == "best" else (gate.reference,)
    absent = [f"{name}: {row.skipped[name]}" for name in names if name in row.skipped]
    there = [name for name in names if name in row.ratio]
    if there and all("has no function for it" in why for why in absent):
        return ""
    return "; ".join(absent) or "no reference was measured"


def _ratios(gate: Gate, row: Row) -> list[float]:
    name = row.rival if gate.reference == "best" else gate.reference
    return row.ratios.get(name or "", [])


def _undecided(gate: Gate, result: GateResult) -> bool:
    """Whether more rounds can change what it earns."""
    if result.low is None or result.high is None or result.outcome == HELD:
        return False
    certain, hoped = _credits(gate, result, MARGIN)
    return certain != hoped or result.outcome == UNMEASURED


def _credits(gate: Gate, result: GateResult, margin: float) -> tuple[float, float]:
    """What is certain, and what may be: the credits beyond both ends of the interval."""
    assert result.low is not None
    assert result.high is not None
    return gate.credit(result.high * margin), gate.credit(result.low / margin)


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Where the median lies, by resampling (Efron, 1979)."""
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(ratios, (RESAMPLES, len(ratios))), axis=1)
    low, high = np.percentile(medians, [(100 - CERTAINTY) / 2, (100 + CERTAINTY) / 2])
    return float(low), float(high)
