"""Compilers to be judged: right ones, wrong ones, and ones that misbehave."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.judge import Judge
from grader.sandbox import Completed
from grader.subject import Answer, InProcess, SubprocessCompiler, _answer
from grader.verdict import Verdict
from week01_uops.interface import Artifact
from week01_uops.node import UOp


class Rewriting:
    """Simplifies by one function of a rebuilt node."""

    def __init__(self, change: Callable[[UOp], UOp] = lambda node: node) -> None:
        self.change = change

    def simplify(self, program: UOp) -> UOp:
        done: dict[UOp, UOp] = {}
        for node in program.toposort():
            done[node] = self.change(node.with_src(tuple(done[s] for s in node.src)))
        return done[program]


class Printing:
    """Compiles every program to one text."""

    def __init__(self, source: str) -> None:
        self.source = source

    def compile(self, program: UOp, target: str) -> Artifact:
        return Artifact(self.source)


def drop(name: str) -> Rewriting:
    """A compiler that replaces an op by its first source."""
    return Rewriting(lambda node: node.src[0] if node.op.name == name else node)


@dataclass
class Conversation:
    """A subject that gives the answers of an honest compiler, but for one.

    Attributes:
        told: the honest answers, once the question was asked without `instead`.
        instead: the number of an answer, and what comes in its place.
        asked: answers since the question began.
    """

    honest: InProcess
    told: list[Completed] = field(default_factory=list)
    instead: tuple[int, Completed] | None = None
    asked: int = 0
    name: str = "conversation"

    def ask(self, verb: Sequence[str], text: str | bytes) -> Answer:
        self.asked += 1
        at = self.asked - 1
        if self.instead is None:
            answer = self.honest.ask(verb, text)
            status = int(answer.verdict is not Verdict.OK)
            out, err = answer.stdout.encode(), answer.stderr.encode()
            self.told.append(Completed(Verdict.OK, status, out, err, 0.0))
            return answer
        if at == self.instead[0]:
            return _answer(self.instead[1])
        return _answer(self.told[at % len(self.told)])

    def command(self, verb: Sequence[str]) -> str:
        return " ".join(("compiler", *verb))


def judge(compiler: object, week: int = 1, seconds: float | None = None) -> Judge:
    """Claims about a compiler in this process."""
    return Judge(InProcess(compiler, week, "test"), week, seconds=seconds)


def judge_argv(argv: Sequence[str], seconds: float = 10.0) -> Judge:
    """Claims about an executable."""
    subject = SubprocessCompiler(argv, week=1)
    subject.limits = subject.limits.within(seconds)
    return Judge(subject, 1)


def judge_python(code: str, seconds: float = 10.0) -> Judge:
    """Claims about a Python program."""
    return judge_argv([sys.executable, "-c", textwrap.dedent(code)], seconds)


def submission(folder: Path, code: str, weeks: Sequence[int] = (1,)) -> Path:
    """A folder that hands in a Python program."""
    folder.mkdir(exist_ok=True)
    (folder / "compiler.py").write_text(textwrap.dedent(code))
    toml = f'name = "Test"\nlanguage = "Python"\nweeks = {list(weeks)}\n'
    toml += f'compiler = ["{sys.executable}", "compiler.py"]\n'
    (folder / "submission.toml").write_text(toml)
    return folder


ECHO = "import sys; sys.stdout.write(sys.stdin.read())"
