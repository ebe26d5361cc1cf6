"""`python -m grader.classes.one`: grades the one submission that standard input names.

A line of JSON comes in (`task.Task`), lines of JSON go out as soon as something is known:

{"event": "waiting"}, {"event": "going"}              for the machine: this time does not count
{"event": "built", "seconds": s}
{"event": "collected", "tests": [test, …]}
{"event": "result", …}, {"event": "gate", …}          as in `grader.results`
{"event": "printed", "program": name, "answer": hash or null}
{"event": "end", "outcome": an Outcome, "message": a sentence or ""}

When standard input ends, whoever asked is gone: then this process and all that it started end.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from grader.classes.alone import alone, together
from grader.classes.task import Event, Manner, Outcome, Task
from grader.processes import Family, Process
from grader.sandbox import Limits
from grader.session import Options, run_week
from grader.subject import judged
from grader.submission import FILE, Submission, SubmissionError, load
from grader.verdict import Verdict
from grader.weeks import Week, conformance_files, read, week_of
from week01_uops.interchange import ReadErrors, write

LARGEST = 64 * 1024
"""Bytes of a submission.toml."""

PROBES = 16
"""Programs whose simplified form is kept, to compare submissions by what they print."""

Tell = Callable[[Event], None]


def main() -> None:
    """Grade, tell, end."""
    task = Task.of_line(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    if task.manner.only:
        os.environ["PYTEST_ADDOPTS"] = f"-k {shlex.quote(task.manner.only)}"
    try:
        outcome, message = grade(task, _tell)
        _tell({"event": "end", "outcome": outcome, "message": message})
    finally:
        _end_the_others()


def _tell(event: Event) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def grade(task: Task, tell: Tell) -> tuple[Outcome, str]:
    """What became of the submission; everything else is told."""
    week = week_of(task.manner.week)
    with _turn(tell, together()):
        try:
            student = valid(Path(task.folder), week)
        except SubmissionError as fault:
            return Outcome.INVALID, _without(str(fault), task)
        start = time.monotonic()
        try:
            student.prepare()
        except SubmissionError as fault:
            return Outcome.BUILD, _without(str(fault), task)
        tell({"event": "built", "seconds": time.monotonic() - start})
        if problem := _tests(week, student, task.manner, tell):
            return Outcome.GRADER, problem
        _probes(week, student, task.manner, tell)
    if task.manner.gates:
        _gates(week, student, task.manner, tell)
    return Outcome.GRADED, ""


def _without(text: str, task: Task) -> str:
    """The place where we happened to put it is of no interest."""
    return text.replace(f"{task.folder}/", "").replace(task.folder, "the folder")


@contextlib.contextmanager
def _turn(tell: Tell, turn: contextlib.AbstractContextManager[None]) -> Iterator[None]:
    tell({"event": "waiting"})
    with turn:
        tell({"event": "going"})
        yield


def valid(folder: Path, week: Week) -> Submission:
    """The submission in a folder, which must do without everything outside of it."""
    if (folder / FILE).is_file() and (folder / FILE).stat().st_size > LARGEST:
        raise SubmissionError(f"{FILE}: expected at most {LARGEST} bytes")
    try:
        student = load(folder)
    except SubmissionError:
        raise
    except Exception as error:  # what a hostile file does to a parser is not known in advance
        raise SubmissionError(f"{FILE} cannot be read: {type(error).__name__}") from None
    for name in student.requires:
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise SubmissionError(f"{FILE}: requires {name}, expected folders inside of this one")
    student.expect_named(week)
    return student


def _tests(week: Week, student: Submission, manner: Manner, tell: Tell) -> str:
    """Run the spec tests; why the run as a whole is no good, or an empty text."""
    state = Path(manner.state) if manner.state else None
    options = Options(student.folder, manner.seed, state, manner.shrink, manner.timeout)
    told, problem, collected = 0, "", False
    for result in run_week(week, options):
        if result.collected and not collected:
            tell({"event": "collected", "tests": result.collected})
            collected = True
        for one in result.results[told:]:
            tell({"event": "result", **one.json()})
        told, problem = len(result.results), result.problem
    return problem


def _gates(week: Week, student: Submission, manner: Manner, tell: Tell) -> None:
    """Measure, with nothing else of ours on the machine; weeks without gates import nothing."""
    from grader import gates  # noqa: PLC0415 - pulls in what only measuring needs

    found = gates.gates_of(week.package)
    if found is None:
        return
    with _turn(tell, alone()):
        for event in gates.run(
            week, found, submission=student.folder, seed=manner.seed, rounds=manner.rounds
        ):
            if not isinstance(event, str):
                tell({"event": "gate", **event.json()})


def _probes(week: Week, student: Submission, manner: Manner, tell: Tell) -> None:
    """What the compiler prints for some programs, in canonical form, as hashes."""
    files = [path for path in conformance_files(week) if "right" in path.parts]
    limits = Limits().within(min(manner.timeout or student.seconds, 2.0))
    compiler = judged(student, week.last, limits)
    for path in files[:: max(1, len(files) // PROBES)][:PROBES]:
        answer = compiler.ask(["simplify"], path.read_bytes())
        printed = _canonical(answer.stdout, week) if answer.verdict is Verdict.OK else None
        tell({"event": "printed", "program": path.stem, "answer": printed})


def _canonical(text: str, week: Week) -> str | None:
    try:
        program = write(read(text, week.last))
    except ReadErrors:
        return None
    return hashlib.sha256(program.encode()).hexdigest()[:16]


def _end_with_the_asker() -> None:
    sys.stdin.buffer.read()
    _end_the_others()
    os._exit(1)


def _end_the_others() -> None:
    """Stop all that was started here, so that none forks away, then kill it."""
    family, stopped = Family(os.getpid(), f"class-{os.getpid()}"), set[tuple[int, int]]()
    while fresh := [p for p in _others(family) if p.identity not in stopped]:
        _signal(fresh, signal.SIGSTOP)
        stopped.update(p.identity for p in fresh)
    while left := _others(family):
        _signal(left, signal.SIGKILL)
        time.sleep(0.01)


def _others(family: Family) -> list[Process]:
    return [process for process in family.members() if process.pid != os.getpid()]


def _signal(processes: list[Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


if __name__ == "__main__":
    main()
