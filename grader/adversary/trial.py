"""Judging a mutant by the spec tests of its week, until one kills it.

By single tests in this process; by all of them in a process of their own.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from grader.adversary.case import Outcome
from grader.adversary.mutant import Mutant
from grader.results import Result, WeekResult
from grader.session import ALONE, Options, run_week
from grader.stream import Stream
from grader.verdict import Verdict
from grader.weeks import ROOT, Week, week_of

PLUGIN = "grader.adversary.plugin"
SKIPPED = "skipped"
INNOCENT = frozenset({str(Verdict.OK), str(Verdict.GRADER)})
"""Verdicts that say nothing against the compiler."""


@dataclass(frozen=True)
class Trial:
    """What came of judging a mutant.

    Attributes:
        outcome: of the test that killed it, else that it passed, or why there is no verdict.
        test: the test that killed it; empty if none did.
        seen: tests that were run.
    """

    outcome: Outcome
    test: str = ""
    seen: int = 0


@dataclass(frozen=True)
class _Search(Options):
    """A week's tests on a mutant, up to the first failure."""

    mutant: str = ""

    def arguments(self, week: Week) -> list[str]:
        return [*super().arguments(week), *_options(self.mutant)]


def _options(name: str) -> list[str]:
    return ["-p", PLUGIN, "--mutant", name]


def search(mutant: Mutant, tell: Callable[[str], None] = lambda test: None) -> Trial:
    """Judge by all spec tests of its week, up to the first that kills it."""
    results: list[Result] = []
    problem = ""
    with tempfile.TemporaryDirectory() as state:
        options = _Search(state=Path(state), shrink=False, mutant=mutant.name)
        running = cast(Generator[WeekResult, None, None], run_week(week_of(mutant.week), options))
        with contextlib.closing(running):
            for week in running:
                problem = week.problem
                for result in week.results[len(results) :]:
                    results.append(result)
                    tell(result.test)
                    if _convicts(result):
                        return _trial(results, "")
    return _trial(results, problem)


def judge_by(mutant: Mutant, tests: Sequence[str]) -> Trial:
    """Judge by these tests, up to the first that kills it."""
    heard = _Listener()
    with (
        tempfile.TemporaryDirectory() as state,
        contextlib.redirect_stdout(io.StringIO()) as said,
        mock.patch.dict(os.environ, ALONE),
    ):
        arguments = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
        arguments += ["-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider"]
        arguments += ["--assert=plain"]  # the grader's modules are imported already
        arguments += ["-p", "grader.plugin", "--no-shrink", "--state", state, "--seed", "0"]
        arguments += [*_options(mutant.name), "-q", "-x", "-m", "not nightly"]
        status = pytest.main([*arguments, *[str(ROOT / test) for test in tests]], [heard])
    ended = status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    return _trial(heard.results, "" if ended else said.getvalue().strip()[-500:])


class _Listener(Stream):
    """The results of a pytest run in this process."""

    def __init__(self) -> None:
        super().__init__(self._hear)
        self.results: list[Result] = []

    def _hear(self, event: dict[str, Any]) -> None:
        if event.pop("event") == "result":
            self.results.append(Result(**event))


def _convicts(result: Result) -> bool:
    return result.failure is not None and result.failure["verdict"] not in INNOCENT


def _trial(results: Sequence[Result], problem: str) -> Trial:
    for result in results:
        if result.failure is not None and _convicts(result):
            told = Outcome(result.failure["verdict"], result.failure["message"])
            return Trial(told, result.test, len(results))
    for result in results:
        if result.outcome in ("failed", "error"):
            problem = problem or f"{result.test}: {result.message}"
    if problem or not results:
        return Trial(Outcome(Verdict.GRADER, problem or "no test was run"), "", len(results))
    skipped = [result for result in results if result.outcome == "skipped"]
    if skipped:
        why = f"{len(skipped)} of {len(results)} tests: {skipped[0].message}"
        return Trial(Outcome(SKIPPED, why), "", len(results))
    return Trial(Outcome(Verdict.OK, f"{len(results)} tests passed"), "", len(results))
