"""Grading one submission in a process of its own, and several of them side by side."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Protocol

from grader.classes.forks import Fork, LostError, Warm
from grader.classes.task import Event, Manner, Outcome, Task, Tell
from grader.processes import Family

GRACE = 15.0
"""Seconds that the process of a submission gets to end what it started."""


class Backend(Protocol):
    """Where submissions are graded."""

    def submit(self, task: Task) -> None:
        """Have a submission graded, soon."""

    def next(self) -> tuple[Task, Event]:
        """What is heard next; the last of a task is an event `end` or `lost`."""

    def close(self) -> None:
        """End what still runs."""


def grade(
    task: Task, warm: Warm, tell: Tell, started: Callable[[Fork], None] = lambda fork: None
) -> None:
    """Grade in a process of its own, and tell what it tells; the last event is an `end`.

    Raises:
        LostError: it ended before that.
    """
    with tempfile.TemporaryFile() as said:
        fork = warm.fork(said)
        start = time.monotonic()
        started(fork)
        try:
            end = _listen(fork, task, tell)
        finally:
            _end(fork)
        if end is None:
            raise LostError(_how(fork, said))
    tell({**end, "seconds": time.monotonic() - start})


def _listen(fork: Fork, task: Task, tell: Tell) -> Event | None:
    """Pass on what is told until the end, which is returned."""
    with contextlib.suppress(OSError):
        fork.stdin.write(task.line())
        fork.stdin.flush()
    clock = _Clock(task.manner.limit)
    for event in _events(fork, clock):
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


def _events(fork: Fork, clock: _Clock) -> Iterator[Event]:
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(fork.stdout, selectors.EVENT_READ)
        while not clock.is_over:
            if not selector.select(0.5):
                continue
            chunk = os.read(fork.stdout.fileno(), 1 << 20)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from map(json.loads, lines)


def _end(fork: Fork) -> None:
    """It ends itself and its family when its standard input ends; if it does not, we do."""
    fork.close()
    try:
        fork.wait(GRACE)
    except subprocess.TimeoutExpired:
        family = Family(fork.pid, f"class-{fork.pid}")
        family.members()
        family.kill()
        fork.wait()
    fork.stdout.close()


def _how(fork: Fork, said: IO[bytes]) -> str:
    code = fork.wait()
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    said.seek(0)
    words = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
    return ": ".join([f"the process that grades ended early, {how}", *words])


class Local:
    """This machine, so many submissions at a time."""

    def __init__(self, jobs: int, manner: Manner) -> None:
        self._heard: queue.SimpleQueue[tuple[Task, Event]] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(jobs, "grading")
        self._warm = Warm(manner)
        self._running: dict[str, Fork] = {}
        self._closing = threading.Event()

    def submit(self, task: Task) -> None:
        """See `Backend`."""
        self._pool.submit(self._work, task)

    def next(self) -> tuple[Task, Event]:
        """See `Backend`."""
        return self._heard.get()

    def _work(self, task: Task) -> None:
        def started(fork: Fork) -> None:
            self._running[task.name] = fork
            if self._closing.is_set():
                fork.close()

        self._heard.put((task, {"event": "begin"}))
        try:
            grade(task, self._warm, lambda event: self._heard.put((task, event)), started)
        except Exception as error:  # whatever it is, the class must not wait for this one
            why = str(error) if isinstance(error, LostError) else f"{type(error).__name__}: {error}"
            self._heard.put((task, {"event": "lost", "message": why}))
        finally:
            self._running.pop(task.name, None)

    def close(self) -> None:
        """See `Backend`."""
        self._closing.set()
        for fork in list(self._running.values()):
            fork.close()
        self._warm.close()
        self._pool.shutdown(cancel_futures=True)
