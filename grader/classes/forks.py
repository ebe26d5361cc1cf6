"""Forks of a warm process (`warm.py`), one for each submission, as they are seen from outside."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO

from grader.classes.task import Manner
from grader.session import environment
from grader.weeks import ROOT

COMMAND = (sys.executable, "-m", "grader.classes.warm")
ALONE = {"OPENBLAS_NUM_THREADS": "1"}
"""A process that forks has one thread."""


class LostError(Exception):
    """The process of a submission ended without saying how it went."""


class Fork:
    """A process that grades, with the pipes to it.

    Attributes:
        returncode: as of `subprocess.Popen`.
    """

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], report: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None
        self._report = report

    def wait(self, seconds: float | None = None) -> int:
        """The exit status; subprocess.TimeoutExpired if there is none by then."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._report, selectors.EVENT_READ)
                if not selector.select(seconds):
                    raise subprocess.TimeoutExpired(COMMAND, seconds or 0.0)
            # If the warm process itself is gone, its forks have lost their father but still run.
            said = self._report.readline()
            self.returncode = os.waitstatus_to_exitcode(int(said)) if said else -signal.SIGKILL
            self._report.close()
        return self.returncode

    def close(self) -> None:
        """Nobody wants to know any more: it ends itself and all that it started."""
        with contextlib.suppress(OSError):
            self.stdin.close()


class Warm:
    """A warm process for one manner of grading; a new one when it is gone."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._log: IO[bytes] | None = None

    def fork(self, stderr: IO[bytes]) -> Fork:
        """A process for one submission, as soon as there can be one; LostError if there is none."""
        (stdin, asks), (tells, stdout), (says, report) = (os.pipe() for _ in range(3))
        theirs = stdin, stdout, report
        try:
            self._send([stdin, stdout, stderr.fileno(), report])
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        said = open(says, "rb", buffering=0)  # noqa: SIM115 - the fork's
        fork = Fork(0, open(asks, "wb"), open(tells, "rb"), said)  # noqa: SIM115
        number = said.readline()
        if not number:
            fork.close()
            raise LostError(f"no process that grades: {self._last_words()}")
        fork.pid = int(number)
        return fork

    def _send(self, descriptors: Sequence[int]) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._close()
                self._start()
            assert self._socket is not None
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(self._socket, [b"?"], descriptors)

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        with theirs:
            self._process = subprocess.Popen(
                [*COMMAND, str(theirs.fileno()), json.dumps(asdict(self.manner))],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                cwd=ROOT,
                env={**environment(), **ALONE},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def _last_words(self) -> str:
        with self._lock:
            if self._log is None:
                return "closed"
            self._log.seek(0)
            words = self._log.read().decode("utf-8", "replace").strip().splitlines()
            return " / ".join(words[-3:]) or "it says nothing"

    def close(self) -> None:
        """End it; its forks end when nobody listens to them."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.wait()
        if self._log is not None:
            self._log.close()
        self._process = self._socket = self._log = None
