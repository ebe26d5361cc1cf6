"""Running a week's spec tests in a pytest process of their own, result by result.

A crash of that process ends one week, not the run: what had come until then is kept, the rest
counts as not run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.results import Result, WeekResult
from grader.weeks import ROOT, Week

NO_TESTS = 5
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Other plugins that happen to be installed change nothing, and cost no time."""
PLUGINS = ("pytest_benchmark.plugin", "xdist.plugin")
STALLED = 900.0
"""Seconds without a result after which a run is given up."""


@dataclass(frozen=True)
class Options:
    """What is passed on to pytest."""

    submission: Path | None = None
    seed: int = 0
    state: Path | None = None
    shrink: bool = True
    timeout: float | None = None
    jobs: int = 1
    sanitize: bool = False

    def arguments(self, week: Week) -> list[str]:
        """As options of `grader.plugin`."""
        found = ["--seed", str(self.seed), "--week", str(week.last)]
        if self.submission is not None:
            found += ["--submission", str(self.submission), "--built"]
        if self.state is not None:
            found += ["--state", str(self.state)]
        if self.timeout is not None:
            found += ["--verb-timeout", str(self.timeout)]
        if self.jobs > 1:
            found += ["-n", str(self.jobs)]
        if self.sanitize:
            found.append("--sanitize")
        return found if self.shrink else [*found, "--no-shrink"]


def command(week: Week, options: Options, plugins: Sequence[str] = PLUGINS) -> list[str]:
    """What a process of pytest for a week's spec tests is told, besides who hears of it."""
    found = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-q", "--no-header"]
    found += ["-p", "no:cacheprovider", "-p", "grader.plugin"]
    for plugin in filter(_installed, plugins):
        found += ["-p", plugin]
    return [*found, *options.arguments(week), *map(str, spec_tests(week))]


def spec_tests(week: Week) -> list[Path]:
    """The files of a week's spec tests."""
    return sorted(week.folder.glob("test_spec_*.py"))


def run_week(week: Week, options: Options) -> Iterator[WeekResult]:
    """Yield the growing result of a week after every event."""
    result = WeekResult(week.last, week.package, week.title)
    if not spec_tests(week):
        result.problem = f"{week.package} has no spec tests"
        yield result
        return
    with tempfile.TemporaryFile() as log:
        run = _Process(command(week, options), log)
        try:
            for event in run.events():
                _take(result, event)
                yield result
        finally:
            run.end()
        if not result.problem:
            result.problem = run.problem(result)
    yield result


def _take(result: WeekResult, event: dict[str, Any]) -> None:
    kind = event.pop("event")
    if kind == "collected":
        result.collected = event["tests"]
    elif kind == "result":
        result.results.append(Result(**event))


class _Process:
    """One pytest process and the pipe on which it reports."""

    def __init__(self, arguments: list[str], log: Any) -> None:  # noqa: ANN401
        self.log = log
        self.finished: int | None = None
        self.stalled = False
        self.reader, writer = os.pipe()
        streamed = ["-p", "grader.stream", "--stream-to", str(writer)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *streamed, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[writer],
            start_new_session=True,
            env=environment(),
        )
        os.close(writer)

    def events(self) -> Iterator[dict[str, Any]]:
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.reader, selectors.EVENT_READ)
            last = time.monotonic()
            while not self.stalled:
                if selector.select(1.0):
                    last = time.monotonic()
                    chunk = os.read(self.reader, 1 << 20)
                    if not chunk:
                        return
                    *lines, rest = (rest + chunk).split(b"\n")
                    yield from self._parsed(lines)
                self.stalled = time.monotonic() - last > STALLED

    def _parsed(self, lines: list[bytes]) -> Iterator[dict[str, Any]]:
        for line in lines:
            event = json.loads(line)
            if event["event"] == "finished":
                self.finished = event["status"]
            else:
                yield event

    def end(self) -> None:
        if self.stalled or (self.process.poll() is None and self.finished is None):
            _kill(self.process.pid)
        self.process.wait()
        os.close(self.reader)

    def problem(self, result: WeekResult) -> str:
        """Why the run as a whole is no good; failed tests alone are no such reason."""
        code = self.process.returncode
        if self.stalled:
            return f"fault of the grader: no result for {STALLED:g} s"
        if self.finished is None:
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            return f"fault of the grader: the tests ended early, {how}\n{self._last_words()}"
        if self.finished == NO_TESTS and not result.collected:
            return "no tests were found"
        if self.finished not in (0, 1) and not result.count("error"):
            return f"fault of the grader: pytest says\n{self._last_words()}"
        return ""

    def _last_words(self) -> str:
        self.log.seek(0)
        text = self.log.read().decode("utf-8", "replace")
        return "\n".join(text.strip().splitlines()[-15:])


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None


def environment() -> dict[str, str]:
    """What a process of pytest finds."""
    others = os.environ.get("PYTHONPATH")
    path = f"{ROOT}{os.pathsep}{others}" if others else str(ROOT)
    return {**os.environ, **ALONE, "PYTHONPATH": path}


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
