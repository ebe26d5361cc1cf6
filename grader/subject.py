"""What is judged: anything that answers a verb and a text with a text.

A submission is an executable, asked in a sandboxed process. The reference is asked in this
process, through the same reader and writer, so that both are judged on what they print.
"""

from __future__ import annotations

import random
import shlex
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast

from grader import sandbox
from grader.sandbox import Completed, Limits
from grader.serve import Server
from grader.submission import Submission
from grader.verdict import Verdict
from grader.weeks import Week, read
from week01_uops.errors import ProgramError
from week01_uops.interchange import ReadErrors, write
from week01_uops.interface import Artifact, Compiler, Target, UnsupportedError
from week01_uops.node import UOp


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        verdict: OK for exit status 0, REFUSED for 1, or what else happened.
        note: the signal, the limit or the exit status, in words.
    """

    verdict: Verdict
    stdout: str
    stderr: str
    note: str = ""

    @property
    def told(self) -> tuple[Verdict, str]:
        """What counts of an answer: the program, or why there is none."""
        return self.verdict, self.stdout if self.verdict is Verdict.OK else self.stderr


class Subject(Protocol):
    """A compiler under judgement."""

    name: str

    @property
    def compiler(self) -> Compiler:
        """It behind the stable interface."""

    def ask(self, verb: Sequence[str], text: str | bytes) -> Answer:
        """The answer to `verb…` with the text on standard input."""

    def command(self, verb: Sequence[str]) -> str:
        """A shell command that asks the same, the program on standard input."""


class SubprocessCompiler:
    """The stable interface over any executable: text in, text out, exit status 0 or 1.

    Attributes:
        argv: the command, to which a verb and its options are appended.
        cwd: where it runs, and what it may read.
        week: what it prints is read as a program of this week.
        reads: other folders that it may read.
    """

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path | None = None,
        week: int = 10,
        limits: Limits | None = None,
        name: str = "submission",
        reads: Sequence[Path] = (),
    ) -> None:
        self.argv = tuple(argv)
        self.cwd = cwd
        self.week = week
        self.limits = limits or Limits()
        self.name = name
        self.reads = tuple(reads)

    @property
    def compiler(self) -> Compiler:
        """This one: it offers the stable interface."""
        return self

    def ask(self, verb: Sequence[str], text: str | bytes) -> Answer:
        """Run the executable once."""
        command, limits, data = [*self.argv, *verb], self.limits, _bytes(text)
        return _answer(sandbox.run(command, data, cwd=self.cwd, limits=limits, reads=self.reads))

    def command(self, verb: Sequence[str]) -> str:
        """The command as typed in a shell, from anywhere."""
        call = shlex.join([*self.argv, *verb])
        return call if self.cwd is None else f"cd {shlex.quote(str(self.cwd))} && {call}"

    def simplify(self, program: UOp) -> UOp:
        """The verb `simplify`."""
        return read(self._text(["simplify"], program), self.week)

    def compile(self, program: UOp, target: Target) -> Artifact:
        """The verb `compile`."""
        return Artifact(self._text(["compile", "--target", target], program), target)

    def grad(self, program: UOp, wrt: Sequence[int]) -> UOp:
        """The verb `grad`."""
        slots = ",".join(map(str, wrt))
        return read(self._text(["grad", "--wrt", slots], program), self.week)

    def _text(self, verb: Sequence[str], program: UOp) -> str:
        answer = self.ask(verb, write(program))
        if answer.verdict is not Verdict.OK:
            raise AnswerError(answer)
        return answer.stdout


class ServedCompiler(SubprocessCompiler):
    """A submission whose server answers; its command answers a random sample of requests again.

    Attributes:
        server: the process that is asked.
        sampled: the part of the answers that are held against those of a process of their own.
    """

    def __init__(self, submission: Submission, week: int, limits: Limits | None = None) -> None:
        folder, reads = submission.folder, submission.reads
        super().__init__(submission.compiler, folder, week, limits, submission.name, reads)
        self.server = Server(submission.serve, folder, self.limits, reads)
        self.sampled = 1 / 8
        self._random = random.SystemRandom()

    def ask(self, verb: Sequence[str], text: str | bytes) -> Answer:
        """Ask the server; where a process of its own answers otherwise, that is an error."""
        data = _bytes(text)
        answer = _answer(self.server.ask(verb, data))
        if answer.verdict not in ANSWERED or self._random.random() >= self.sampled:
            return answer
        fresh = super().ask(verb, data)
        if fresh.verdict not in ANSWERED or fresh.told == answer.told:
            return fresh
        return replace(answer, verdict=Verdict.PROTOCOL, note=STATE_LEAKS)


ANSWERED = frozenset({Verdict.OK, Verdict.REFUSED})
STATE_LEAKS = "a process of its own answers this request otherwise than the server did"


def judged(submission: Submission, week: int, limits: Limits) -> SubprocessCompiler:
    """A submission as it is to be asked in a week: through its server, if it has one."""
    if submission.serve:
        return ServedCompiler(submission, week, limits)
    folder, name = submission.folder, submission.name
    return SubprocessCompiler(submission.compiler, folder, week, limits, name, submission.reads)


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


class AnswerError(Exception):
    """A submission did not answer; `answer` says how."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.verdict}: {answer.note or answer.stderr}")
        self.answer = answer


def _answer(run: Completed) -> Answer:
    stderr = run.stderr.decode("utf-8", "replace")
    try:
        stdout = run.stdout.decode()
    except UnicodeDecodeError as error:
        why = f"standard output is not UTF-8, from byte {error.start}"
        return Answer(Verdict.PROTOCOL, run.stdout.decode("utf-8", "replace"), stderr, why)
    verdict, note = run.verdict, run.note
    if run.status == 1:
        verdict = Verdict.REFUSED
    elif run.status:
        verdict, note = Verdict.CRASH, f"exit status {run.status}, expected 0 or 1"
    elif verdict is Verdict.GRADER:
        verdict = Verdict.CRASH
    return Answer(verdict, stdout, stderr, note)


class InProcess:
    """The reference, or any compiler of ours, in this process."""

    def __init__(self, compiler: Compiler, week: int, name: str = "reference") -> None:
        self.compiler = compiler
        self.week = week
        self.name = name

    def ask(self, verb: Sequence[str], text: str | bytes) -> Answer:
        """Read, call, write; what is raised beside ProgramErrors is our own fault."""
        try:
            return Answer(Verdict.OK, self._call(verb, read(text, self._week(verb))), "")
        except ReadErrors as errors:
            return Answer(Verdict.REFUSED, "", str(errors))
        except ProgramError as error:
            return Answer(Verdict.REFUSED, "", f"<stdin>:1:1: {error}")
        except UnsupportedError as error:
            return Answer(Verdict.UNSUPPORTED, "", str(error), str(error))
        except Exception as error:  # a fault of the reference must not end the run
            why = f"{type(error).__name__}: {error}"
            return Answer(Verdict.GRADER, "", traceback.format_exc(), why)

    def _week(self, verb: Sequence[str]) -> int:
        return int(verb[verb.index("--week") + 1]) if "--week" in verb else self.week

    def _call(self, verb: Sequence[str], program: UOp) -> str:
        if verb[0] == "simplify":
            return write(self.compiler.simplify(program))
        if verb[0] == "compile":
            return self.compiler.compile(program, cast(Target, verb[2])).source
        slots = [int(slot) for slot in verb[2].split(",")]
        return write(self.compiler.grad(program, slots))

    def command(self, verb: Sequence[str]) -> str:
        """The same through the course's own command."""
        week = [] if "--week" in verb else ["--week", str(self.week)]
        return shlex.join(["uopc", *verb, *week])


def reference(week: Week, by: Week | None = None, *, checked: bool = False) -> InProcess:
    """The reference on programs of a week: that week's, or another's; or its debug build."""
    compiler = (by or week).reference()
    return InProcess(compiler.debug() if checked else compiler, week.last)
