"""`grader doctor`: whether a folder is ready to be graded, step by step, and what to do next."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.case import DIAGNOSTIC, FIRST_VERBS
from grader.judge import Judge
from grader.new import LANGUAGES, language_of
from grader.sandbox import Limits
from grader.subject import Answer, SubprocessCompiler, judged
from grader.submission import FILE, Submission, SubmissionError, load
from grader.verdict import SpecFailure, Verdict, clean, excerpt
from grader.weeks import WEEKS, Week, conformance_files, read
from week01_uops.interchange import ReadErrors

TINY = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": []}
y = MUL x x
return y
"""
VERBS = {("simplify",): 1, ("compile", "--target", "c"): 2, ("grad", "--wrt", "0"): 9}
"""Verb → the week that brings it."""
SPAWNS = 5
SMOKE = {"right": 3, "wrong": 1}
"""How many conformance programs of a week make its smoke test."""


class State(StrEnum):
    """What a step came to; only what is missing keeps a submission from being graded."""

    OK = "ok"
    LATER = "not yet"
    MISSING = "missing"


STYLES = {State.OK: "green", State.LATER: "yellow", State.MISSING: "red"}


@dataclass(frozen=True)
class Finding:
    """One step: what it looked at, what came of it, and what to type where it is not ok."""

    step: str
    state: State
    says: str
    next: str = ""


def examine(folder: Path) -> Iterator[Finding]:
    """The steps in order, up to the first without which the next makes no sense."""
    begin = f"grader new {folder} --lang LANGUAGE"
    if not folder.is_dir():
        yield Finding("folder", State.MISSING, f"there is no folder {folder}", begin)
        return
    yield Finding("folder", State.OK, str(folder.resolve()))
    try:
        submission = load(folder)
    except SubmissionError as fault:
        there = (folder / FILE).exists()
        yield Finding(FILE, State.MISSING, str(fault), f"edit {folder / FILE}" if there else begin)
        return
    weeks = ", ".join(map(str, submission.weeks))
    says = f"{submission.name}, in {submission.language}, for the weeks {weeks}"
    yield Finding(FILE, State.OK, says)
    yield from _answers(submission, folder)


def _answers(submission: Submission, folder: Path) -> Iterator[Finding]:
    """The steps of a folder that says what it is."""
    for steps in (_toolchain, _build, _programs, _verbs):
        found = list(steps(submission, folder))
        yield from found
        if any(finding.state is State.MISSING for finding in found):
            return
    yield from _times(submission)
    for week in _weeks(submission):
        yield _smoke(submission, week, folder)


def _toolchain(submission: Submission, folder: Path) -> Iterator[Finding]:
    """What the language needs, if it is known, and what the commands name."""
    language = language_of(submission.language)
    heads = [*submission.build[:1], *submission.compiler[:1], *submission.serve[:1]]
    named = [word for word in heads if "/" not in word]
    tools = dict.fromkeys((*(named if language is None else language.tools), *named))
    gone = [tool for tool in tools if submission.which(tool) is None]
    if gone:
        packages = f"apt-get install {' '.join(language.packages)}" if language else ""
        says = f"expected {', '.join(gone)} on the PATH"
        yield Finding("toolchain", State.MISSING, says, packages or f"install {' '.join(gone)}")
        return
    known = "" if language else f"; of {', '.join(LANGUAGES)} more is known"
    yield Finding("toolchain", State.OK, f"{', '.join(tools) or 'nothing needed'}{known}")


def _build(submission: Submission, folder: Path) -> Iterator[Finding]:
    start = time.monotonic()
    try:
        submission.run_build()
    except SubmissionError as fault:
        again = f"cd {folder} && {' '.join(submission.build)}"
        yield Finding("build", State.MISSING, str(fault), again)
        return
    seconds = time.monotonic() - start
    allowed = f"{seconds:.1f} s of {submission.build_seconds:g} s"
    yield Finding("build", State.OK, allowed if submission.build else "nothing to build")


def _programs(submission: Submission, folder: Path) -> Iterator[Finding]:
    try:
        submission.expect_programs()
    except SubmissionError as fault:
        yield Finding("executable", State.MISSING, str(fault), f"edit {folder / FILE}")
        return
    yield Finding("executable", State.OK, submission.which(submission.compiler[0]) or "")


def _verbs(submission: Submission, folder: Path) -> Iterator[Finding]:
    """What each verb of the submission's weeks says to a tiny program."""
    subject = _subject(submission)
    for verb, first in VERBS.items():
        if first <= max(submission.weeks):
            state, says = _of(verb, subject.ask(verb, TINY))
            again = f"{subject.command(verb)} < {conformance_files(WEEKS[0])[0]}"
            yield Finding(verb[0], state, says, again if state is State.MISSING else "")


def _of(verb: Sequence[str], answer: Answer) -> tuple[State, str]:
    """An answer, as far as it keeps to the protocol."""
    words = excerpt(answer.stderr, 1) or "no word on standard error"
    if answer.verdict is Verdict.REFUSED:
        if DIAGNOSTIC.search(answer.stderr):
            return State.LATER, words
        if verb[0] not in FIRST_VERBS:
            return State.LATER, f"not offered: {words}"
        return State.MISSING, f"exit status 1 without FILE:LINE:COL: CODE message; {words}"
    if answer.verdict is not Verdict.OK:
        return State.MISSING, f"{answer.verdict}: {answer.note}; {words}"
    if verb[0] != "compile":
        try:
            read(answer.stdout, WEEKS[-1].last)
        except ReadErrors as errors:
            first = excerpt(str(errors.diagnostics[0]).replace("<stdin>", "<stdout>"), 1)
            return State.MISSING, f"{Verdict.PROTOCOL}: {first}"
    return State.OK, "answered"


def _subject(submission: Submission, week: int | None = None) -> SubprocessCompiler:
    limits = Limits().within(submission.seconds)
    return judged(submission, week or WEEKS[-1].last, limits)


def _times(submission: Submission) -> Iterator[Finding]:
    """Milliseconds for one answer by a process of its own, and by the server."""
    week, limits = WEEKS[-1].last, Limits().within(submission.seconds)
    folder, reads = submission.folder, submission.reads
    spawned = SubprocessCompiler(submission.compiler, folder, week, limits, reads=reads)
    says = f"{_median(spawned):.0f} ms for an answer by a process of its own"
    if submission.serve:
        says += f", {_median(_subject(submission)):.1f} ms by the server"
    yield Finding("time", State.OK, says)


def _median(subject: SubprocessCompiler) -> float:
    subject.ask(["simplify"], TINY)  # a server starts
    times = []
    for _ in range(SPAWNS):
        start = time.monotonic()
        subject.ask(["simplify"], TINY)
        times.append(time.monotonic() - start)
    return 1000 * statistics.median(times)


def _weeks(submission: Submission) -> list[Week]:
    """The weeks that are named, and the one behind them."""
    named = [week for week in WEEKS if submission.names(week)]
    after = [week for week in WEEKS if named and week.first > named[-1].last]
    return [*named, *after[:1]]


def _smoke(submission: Submission, week: Week, folder: Path) -> Finding:
    """A few conformance programs of a week, or of the last one before it that has some."""
    judge = Judge(_subject(submission, week.last), week.last)
    earlier = [conformance_files(w) for w in WEEKS if w.first <= week.first]
    files = [files for files in earlier if files][-1]
    named = submission.names(week)
    for path in _some(files):
        try:
            judge.conforms(path)
        except SpecFailure as failure:
            says = f"{path.parent.name}/{path.name}: {excerpt(str(failure), 2)}"
            says = says if named else f"not named in {FILE}, and not there yet"
            again = f"grader --week {week.first} --submission {folder}" if named else ""
            return Finding(week.title, State.LATER, says, again)
    says = "passes a smoke test" + ("" if named else f", though {FILE} does not name it")
    return Finding(week.title, State.OK, says)


def _some(files: Sequence[Path]) -> Iterator[Path]:
    for kind, count in SMOKE.items():
        found = [path for path in files if path.parent.name == kind]
        yield from found[:: max(1, len(found) // count)][:count]


def report(folder: Path, console: Console) -> bool:
    """Print the findings and what to do next; whether the folder is ready to be graded."""
    table = Table("", "step", "what was found")
    found: list[Finding] = []
    try:
        for finding in examine(folder):
            found.append(finding)
    except Exception as error:  # a student is helped by a sentence, not by a traceback
        says = f"{Verdict.GRADER}: {type(error).__name__}: {error}"
        found.append(Finding("doctor", State.MISSING, says))
    for finding in found:
        style = STYLES[finding.state]
        table.add_row(Text(finding.state, style), finding.step, Text(clean(finding.says)))
    console.print(table)
    steps = [f for state in (State.MISSING, State.LATER) for f in found if f.state is state]
    ready = not any(f.state is State.MISSING for f in found)
    judging = f"grader --submission {folder}"
    following = next((f.next for f in steps if f.next), judging)
    console.print("ready to be graded" if ready else "not ready to be graded", style="bold")
    console.print(clean(f"next: {following}"), markup=False, highlight=False, soft_wrap=True)
    return ready


@click.command("doctor")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def doctor(folder: Path) -> None:
    """Look through the submission in DIR: what works, what is missing, what to type next."""
    sys.exit(0 if report(folder, Console()) else 1)
