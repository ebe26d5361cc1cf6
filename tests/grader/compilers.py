"""Compilers to be judged: right ones, wrong ones, and ones that misbehave."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from grader.judge import Judge
from grader.subject import InProcess, SubprocessCompiler
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
