"""The process in which one number of threads is measured: a job comes in, rows go out.

`python -m grader.bench.worker FD` reads a job, a JSON object, on standard input, and writes one
JSON object a line to the file descriptor: {"event": "start" | "row", …}.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.bench.apart import Apart
from grader.bench.ceiling import Ceiling
from grader.bench.contenders import LIBRARIES, ROOFLINE, AbsentError, Contender, Ours, threads
from grader.bench.row import Row
from grader.bench.suites import SUITES
from grader.bench.timing import Measurement, Plan, WrongError
from grader.bench.workload import Array, Workload
from grader.grad_checks import verb
from grader.run_c import RunError
from grader.sandbox import Limits
from grader.subject import InProcess, Subject, SubprocessCompiler
from grader.submission import load
from grader.verdict import Verdict
from grader.weeks import WEEKS, read, week_of
from week01_uops.interchange import ReadErrors, write
from week01_uops.node import UOp
from week02_render.toolchain import BuildError, find_toolchain


@dataclass(frozen=True)
class Job:
    """What to measure.

    Attributes:
        suite: where the cases are from.
        cases: their names.
        against: names of contenders.
        seed: what the inputs follow from.
        week: whose compiler; 0 for the latest, and in this process.
        submission: a folder with another compiler of that week.
    """

    suite: str
    cases: Sequence[str]
    against: Sequence[str]
    plan: Plan
    seed: int = 0
    week: int = 0
    submission: str | None = None

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

    def ours(self, workload: Workload, inputs: list[Array]) -> Ours | Apart:
        """The contender that is judged."""
        find_toolchain()
        if not self.week:
            return Ours(workload, inputs, WEEKS[-1].reference())
        return Apart(workload, inputs, self.source(workload))

    def source(self, workload: Workload) -> str:
        """The C of a workload, as the compiler that is judged prints it."""
        subject = self._subject()

        def grad(program: UOp, slots: Sequence[int]) -> UOp:
            text = _ask(subject, verb(slots), program)
            try:
                return read(text, week_of(self.week).last)
            except ReadErrors as errors:
                first = str(errors).partition("\n")[0]
                raise RunError(Verdict.PROTOCOL, f"grad: {first}") from None

        return _ask(subject, ["compile", "--target", "c"], workload.timed(grad))

    def _subject(self) -> Subject:
        week = week_of(self.week)
        if self.submission is None:
            return InProcess(week.reference(), week.last)
        given = load(Path(self.submission))
        limits, folder = Limits().within(given.seconds), given.folder
        return SubprocessCompiler(
            given.compiler, folder, week.last, limits, given.name, given.reads
        )


def _ask(subject: Subject, words: Sequence[str], program: UOp) -> str:
    answer = subject.ask(words, write(program))
    if answer.verdict is not Verdict.OK:
        said = answer.note or answer.stderr.strip().partition("\n")[0]
        raise RunError(answer.verdict, f"{words[0]}: {answer.verdict}: {said}")
    return answer.stdout


def measure(workload: Workload, job: Job) -> Row:
    """One row, whatever happens."""
    row = Row(workload.name, threads(), workload.flops, workload.bytes)
    inputs = workload.arrays()
    contenders: dict[str, Contender] = {}
    try:
        contenders["ours"] = ours = job.ours(workload, inputs)
    except Exception as error:  # a fault of the compiler is a result
        row.fail(_words(error), blameless=_blameless(error))
        return row
    makers: dict[str, Callable[[], Contender]]
    makers = {name: functools.partial(LIBRARIES[name], workload, inputs) for name in job.against}
    if not job.week:
        makers[ROOFLINE] = functools.partial(Ceiling, workload, inputs, ours.outs)
    for name, make in makers.items():
        try:
            contenders[name] = make()
        except Exception as error:  # an optional package that does not work here
            row.skipped[name] = _words(error)
    _compare(workload, job, row, contenders, inputs)
    return row


def _compare(
    workload: Workload,
    job: Job,
    row: Row,
    contenders: Mapping[str, Contender],
    inputs: list[Array],
) -> None:
    seeds = [job.plan.sets * job.seed + number for number in range(job.plan.sets)]
    try:
        draws = [(drawn, workload.answer(drawn)) for drawn in map(workload.draw, seeds)]
    except AbsentError as absent:
        for one in contenders.values():
            one.close()
        row.fail(f"no right result to compare with: {absent}", blameless=True)
        return
    measurement = Measurement(contenders, inputs, draws)
    try:
        measurement.calibrate()
        if "ours" not in measurement.faults:
            row.take(measurement.rounds(job.plan))
    finally:
        measurement.close()
    for name, error in measurement.faults.items():
        if name == "ours":
            row.fail(_words(error), blameless=_blameless(error))
            continue
        row.skipped[name] = _words(error)
        row.ratio.pop(name, None)
        row.ratios.pop(name, None)


def _words(error: Exception) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines()]
    first = ": ".join(lines[: 2 if isinstance(error, BuildError) else 1])
    known = isinstance(error, AbsentError | WrongError | RunError | BuildError)
    return first if known else f"{type(error).__name__}: {first}"


def _blameless(error: Exception) -> bool:
    """Whether this machine is at fault and not the compiler."""
    if isinstance(error, RunError):
        return error.verdict is Verdict.GRADER
    return isinstance(error, AbsentError) or (isinstance(error, BuildError) and not _compiles())


def _compiles() -> bool:
    try:
        find_toolchain()
    except BuildError:
        return False
    return True


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
