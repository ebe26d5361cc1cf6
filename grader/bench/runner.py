"""Measuring in processes of their own, one a number of threads; a crash costs one case."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, Any

from grader.bench.contenders import environment
from grader.bench.row import Row
from grader.bench.worker import Job
from grader.weeks import ROOT

WORKER = (sys.executable, "-m", "grader.bench.worker")
STALLED = 300.0
"""Seconds without a word after which a case is given up."""


def run(job: Job, threads: int) -> Iterator[Row | str]:
    """The name of each case when it begins, and its row when it ends."""
    left = list(job.cases)
    while left:
        begun = ""
        with _Process(replace(job, cases=tuple(left)), threads) as process:
            for event in process.events():
                if event["event"] == "start":
                    begun = event["case"]
                    yield begun
                    continue
                row = Row(**event["row"])
                left.remove(row.case)
                begun = ""
                yield row
        if left:
            lost = begun or left[0]
            left.remove(lost)
            yield Row(lost, threads, error=process.fate(), blameless=bool(job.week))


class _Process:
    """One worker and the pipe on which it reports."""

    def __init__(self, job: Job, threads: int) -> None:
        self.job = job
        self.threads = threads
        self.stalled = False

    def __enter__(self) -> _Process:
        self.log: IO[bytes] = tempfile.TemporaryFile()
        self.reader, writer = os.pipe()
        self.process = subprocess.Popen(
            [*WORKER, str(writer)],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            pass_fds=[writer],
            start_new_session=True,
            cwd=ROOT,
            env=environment(self.threads),
        )
        os.close(writer)
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self.process.stdin as stdin:
            stdin.write(self.job.write().encode())
        return self

    def events(self) -> Iterator[dict[str, Any]]:
        """Until it has nothing more to say, or says nothing for too long."""
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.reader, selectors.EVENT_READ)
            while selector.select(STALLED):
                chunk = os.read(self.reader, 1 << 20)
                if not chunk:
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                yield from map(json.loads, lines)
        self.stalled = True

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0 if self.stalled else 5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.reader)
        self.log.seek(0)
        self.words = self.log.read().decode("utf-8", "replace").strip()
        self.log.close()

    def fate(self) -> str:
        """Why it ended before its work was done."""
        if self.stalled:
            return f"no result after {STALLED:g} s"
        code = self.process.returncode
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        last = self.words.splitlines()[-1:] or [""]
        return f"the process ended with {how}: {last[0]}".rstrip(": ")
