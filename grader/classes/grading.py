"""Grading one submission in a process of its own, and several of them side by side."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Protocol

from grader.classes.task import Event, Outcome, Task
from grader.processes import Family
from grader.weeks import ROOT

COMMAND = (sys.executable, "-m", "grader.classes.one")
GRACE = 15.0
"""Seconds that the process of a submission gets to end what it started."""

Tell = Callable[[Event], None]


class LostError(Exception):
    """The process of a submission ended without saying how it went."""


class Backend(Protocol):
    """Where submissions are graded."""

    def submit(self, task: Task) -> None:
        """Have a submission graded, soon."""

    def next(self) -> tuple[Task, Event]:
        """What is heard next; the last of a task is an event `end` or `lost`."""

    def close(self) -> None:
        """End what still runs."""


def grade(task: Task, tell: Tell, started: Callable[[Any], None] = lambda process: None) -> None:
    """Grade in another process, and tell what it tells; the last event is an `end`.

    Raises:
        LostError: it ended before that.
    """
    start = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            cwd=ROOT,
            start_new_session=True,
        )
        started(process)
        try:
            end = _listen(process, task, tell)
        finally:
            _end(process)
        if end is None:
            raise LostError(_how(process, said))
    tell({**end, "seconds": time.monotonic() - start})


def _listen(process: subprocess.Popen[bytes], task: Task, tell: Tell) -> Event | None:
    """Pass on what is told until the end, which is returned."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(task.line())
        process.stdin.flush()
    clock = _Clock(task.manner.limit)
    for event in _events(process, clock):
        if event["event"] in ("waiting", "going"):
            clock.run(on=event["event"] == "going")
        elif event["event"] == "end":
            return event
        tell(event)
    if clock.is_over:
        why = f"more than {task.manner.limit:g} s for the whole submission"
        return {"event": "end", "outcome": Outcome.TIMEOUT, "message": why}
    return None


class _Clock:
    """Seconds that are left; waiting for the machine does not count."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self.since: float | None = time.monotonic()

    def run(self, *, on: bool) -> None:
        """Stop, or go on."""
        now = time.monotonic()
        if self.since is not None:
            self.left -= now - self.since
        self.since = now if on else None

    @property
    def is_over(self) -> bool:
        """Whether none are left."""
        return self.since is not None and time.monotonic() - self.since > self.left


def _events(process: subprocess.Popen[bytes], clock: _Clock) -> Iterator[Event]:
    assert process.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not clock.is_over:
            if not selector.select(0.5):
                continue
            chunk = os.read(process.stdout.fileno(), 1 << 20)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from map(json.loads, lines)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends itself and its family when its standard input ends; if it does not, we do."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        family = Family(process.pid, f"class-{process.pid}")
        family.members()
        family.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _how(process: subprocess.Popen[bytes], said: IO[bytes]) -> str:
    code = process.returncode
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    said.seek(0)
    words = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
    return ": ".join([f"the process that grades ended early, {how}", *words])


class Local:
    """This machine, so many submissions at a time."""

    def __init__(self, jobs: int) -> None:
        self._heard: queue.SimpleQueue[tuple[Task, Event]] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(jobs, "grading")
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._closing = threading.Event()

    def submit(self, task: Task) -> None:
        """See `Backend`."""
        self._pool.submit(self._work, task)

    def next(self) -> tuple[Task, Event]:
        """See `Backend`."""
        return self._heard.get()

    def _work(self, task: Task) -> None:
        def started(process: subprocess.Popen[bytes]) -> None:
            self._running[task.name] = process
            if self._closing.is_set():
                _close(process)

        self._heard.put((task, {"event": "begin"}))
        try:
            grade(task, lambda event: self._heard.put((task, event)), started)
        except Exception as error:  # whatever it is, the class must not wait for this one
            why = str(error) if isinstance(error, LostError) else f"{type(error).__name__}: {error}"
            self._heard.put((task, {"event": "lost", "message": why}))
        finally:
            self._running.pop(task.name, None)

    def close(self) -> None:
        """See `Backend`."""
        self._closing.set()
        for process in list(self._running.values()):
            _close(process)
        self._pool.shutdown(cancel_futures=True)


def _close(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()
