"""In a process of its own (a fork of `warm.py`): grades the one submission that it is told of.

A line of JSON comes in (`task.Task`), lines of JSON go out as soon as something is known:

{"event": "waiting"}, {"event": "going"}              for the machine: this time does not count
{"event": "built", "seconds": s}
{"event": "collected", "tests": [test, …]}
{"event": "result", …}, {"event": "gate", …}          as in `grader.results`
{"event": "printed", "program": name, "answer": hash or null}
{"event": "spent", "seconds": s, "own": s, "processor": s}
                                                      by the submission's processes; by this one,
                                                      and of its processor
{"event": "end", "outcome": an Outcome, "message": a sentence or ""}

When the input ends, whoever asked is gone: then this process and all that it started end.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from grader.classes.alone import alone, together
from grader.classes.task import Event, Manner, Outcome, Task, Tell
from grader.processes import end_the_others
from grader.sandbox import SPENT, Limits
from grader.subject import judged
from grader.submission import FILE, Submission, SubmissionError, load
from grader.verdict import Verdict
from grader.weeks import Week, conformance_files, read, week_of
from week01_uops.interchange import ReadErrors, write

LARGEST = 64 * 1024
"""Bytes of a submission.toml."""

PROBES = 16
"""Programs whose simplified form is kept, to compare submissions by what they print."""

Tests = Callable[[Submission, Tell], str]
"""Runs the spec tests and tells of them; why that is no good, or an empty text."""


def main(asked: IO[bytes], told: IO[bytes], tests: Tests) -> None:
    """Grade, tell, end."""
    task, start = Task.of_line(asked.readline()), time.monotonic()
    threading.Thread(target=_end_with_the_asker, args=[asked], daemon=True).start()

    def tell(event: Event) -> None:
        told.write(json.dumps(event).encode() + b"\n")

    try:
        outcome, message = grade(task, tell, tests)
        own = time.monotonic() - start - SPENT[0]
        tell({"event": "spent", "seconds": SPENT[0], "own": own, "processor": time.process_time()})
        tell({"event": "end", "outcome": outcome, "message": message})
    finally:
        end_the_others()


def grade(task: Task, tell: Tell, tests: Tests) -> tuple[Outcome, str]:
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
        if problem := tests(student, tell):
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


def _end_with_the_asker(asked: IO[bytes]) -> None:
    asked.read()
    end_the_others()
    os._exit(1)
