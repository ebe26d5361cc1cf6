"""A pytest plugin that tells another process what happens, one JSON object a line.

{"event": "collected", "tests": [id, …]}        once
{"event": "result", "test": id, "outcome": "passed", "failed", "skipped" or "error",
 "seconds": s, "sentence": …, "message": …, "failure": record or null}
{"event": "finished", "status": pytest's exit status}
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from grader.processes import end_the_others


def pytest_addoption(parser: pytest.Parser) -> None:
    """The descriptor to write to."""
    parser.getgroup("grader").addoption("--stream-to", type=int, help="a file descriptor")


def pytest_configure(config: pytest.Config) -> None:
    """Stream from the process that has all results, not from pytest-xdist's workers."""
    descriptor = config.getoption("--stream-to")
    if descriptor is not None and not hasattr(config, "workerinput"):
        threading.Thread(target=_end_with_the_reader, args=[descriptor], daemon=True).start()
        config.pluginmanager.register(Stream(partial(_write, descriptor)), "grader-stream-writer")


def _write(descriptor: int, event: dict[str, Any]) -> None:
    data = memoryview((json.dumps(event) + "\n").encode())
    with contextlib.suppress(BrokenPipeError):
        while data:
            data = data[os.write(descriptor, data) :]


def _end_with_the_reader(descriptor: int) -> None:
    """Without a reader nobody wants to know; then this process and all that it started end."""
    gone = select.poll()
    gone.register(descriptor, 0)
    gone.poll()
    end_the_others()
    os._exit(1)


class Stream:
    """Tells what happens, an event at a time."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self.tell = tell
        self.collected: list[str] = []
        self.parts: dict[str, list[pytest.TestReport]] = {}

    def send(self, **event: object) -> None:
        """Tell one event."""
        self.tell(event)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Name all tests before the first one runs."""
        self._collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """The same from pytest-xdist's workers, which all collect the same tests."""
        self._collected(ids)

    def _collected(self, names: list[str]) -> None:
        if names and not self.collected:
            self.collected = names
            self.send(event="collected", tests=names)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported counts as a test that went wrong."""
        if report.failed:
            self._result(report.nodeid, "error", 0.0, "", report.longreprtext, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather set-up, call and tear-down of a test, then send one result."""
        parts = self.parts.setdefault(report.nodeid, [])
        parts.append(report)
        if report.when != "teardown":
            return
        del self.parts[report.nodeid]
        properties = {key: value for part in parts for key, value in part.user_properties}
        worst = next((p for p in parts if p.failed), None) or next(
            (p for p in parts if p.skipped), None
        )
        seconds = sum(part.duration for part in parts)
        outcome, message = ("passed", "") if worst is None else _outcome(worst)
        sentence = str(properties.get("sentence", ""))
        self._result(report.nodeid, outcome, seconds, sentence, message, properties.get("failure"))

    def _result(
        self,
        test: str,
        outcome: str,
        seconds: float,
        sentence: str,
        message: str,
        failure: Any,  # noqa: ANN401 - JSON
    ) -> None:
        self.send(
            event="result",
            test=test,
            outcome=outcome,
            seconds=round(seconds, 4),
            sentence=sentence,
            message=message,
            failure=failure,
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """The end, so that a run that died is told from one that finished."""
        self.send(event="finished", status=int(exitstatus))


def _outcome(report: pytest.TestReport) -> tuple[str, str]:
    if report.skipped:
        longrepr = report.longrepr
        reason = str(longrepr[2]) if isinstance(longrepr, tuple) else report.longreprtext
        return "skipped", reason.removeprefix("Skipped: ")
    return ("failed" if report.when == "call" else "error"), report.longreprtext
