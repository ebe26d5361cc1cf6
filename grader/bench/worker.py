"""The process in which one number of threads is measured: a job comes in, rows go out.

`python -m grader.bench.worker FD` reads a job, a JSON object, on standard input, and writes one
JSON object a line to the file descriptor: {"event": "start" | "row", …}.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from grader.bench.contenders import LIBRARIES, AbsentError, Contender, Ours, threads
from grader.bench.row import Row
from grader.bench.suites import SUITES
from grader.bench.timing import Measurement, Plan
from grader.bench.workload import Array, Workload
from grader.weeks import WEEKS
from week01_uops.dtypes import float32
from week02_render.buffers import aligned_empty


@dataclass(frozen=True)
class Job:
    """What to measure.

    Attributes:
        suite: where the cases are from.
        cases: their names.
        against: names of contenders.
        seed: what the inputs follow from.
    """

    suite: str
    cases: Sequence[str]
    against: Sequence[str]
    plan: Plan
    seed: int = 0

    @classmethod
    def read(cls, text: str) -> Job:
        """From JSON."""
        table = json.loads(text)
        return cls(**{**table, "plan": Plan(**table["plan"])})

    def write(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def workloads(self) -> list[Workload]:
        """The cases, in the order of the suite."""
        return [workload for workload in SUITES[self.suite]() if workload.name in self.cases]


def measure(workload: Workload, job: Job) -> Row:
    """One row, whatever happens."""
    row = Row(workload.name, threads(), workload.flops, workload.bytes)
    inputs = [aligned_empty(shape, float32) for shape in workload.shapes]
    contenders: dict[str, Contender] = {}
    try:
        contenders["ours"] = Ours(workload, inputs, WEEKS[-1].reference())
    except Exception as error:  # a fault of the compiler is a result
        row.fail(_words(error))
        return row
    for name in job.against:
        try:
            contenders[name] = LIBRARIES[name](workload, inputs)
        except AbsentError as absent:
            row.skipped[name] = str(absent)
        except Exception as error:  # an optional package that does not work here
            row.skipped[name] = _words(error)
    _compare(workload, job, row, contenders, inputs)
    return row


def _compare(
    workload: Workload,
    job: Job,
    row: Row,
    contenders: dict[str, Contender],
    inputs: list[Array],
) -> None:
    seeds = [job.plan.sets * job.seed + number for number in range(job.plan.sets)]
    draws = [(drawn, workload.answer(drawn)) for drawn in map(workload.draw, seeds)]
    measurement = Measurement(contenders, inputs, draws)
    try:
        measurement.calibrate()
        if "ours" not in measurement.faults:
            row.take(measurement.rounds(job.plan))
    finally:
        measurement.close()
    faults = dict(measurement.faults)
    if why := faults.pop("ours", ""):
        row.fail(why)
    for name, why in faults.items():
        row.skipped[name] = why
        row.ratio.pop(name, None)
        row.ratios.pop(name, None)


def _words(error: Exception) -> str:
    first = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {first[0]}"


def main(descriptor: int) -> None:
    """Do a job from standard input."""
    job = Job.read(sys.stdin.read())
    with os.fdopen(descriptor, "w", encoding="utf-8") as channel:

        def say(**event: Any) -> None:  # noqa: ANN401
            channel.write(json.dumps(event) + "\n")
            channel.flush()

        for workload in job.workloads():
            say(event="start", case=workload.name)
            say(event="row", row=asdict(measure(workload, job)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
