"""A submission's server: one process that answers many requests.

A request on its standard input is a line of JSON and the program, an answer on its standard
output a line of JSON and what a process of its own would have printed:

    {"verb": ["compile", "--target", "c"], "bytes": 37}⏎     then 37 bytes
    {"status": 0, "stdout": 512, "stderr": 0}⏎               then 512 bytes, and 0 bytes

One request at a time; the end of standard input is the end of the server. What it does wrong
counts for the request at hand, and the next one is answered by a new process.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from grader import sandbox
from grader.processes import Family, Process, close_pipes, ended
from grader.sandbox import MIB, Clock, Completed, Limits
from grader.sandbox.world import remove
from grader.verdict import Verdict, excerpt

LONGEST_HEAD = 1024
"""Bytes of an answer's first line."""
KEYS = ("status", "stdout", "stderr")
CHUNK = 1 << 16
LOOK = 0.05
"""Seconds between two looks at the server's memory and tasks."""


class _NoAnswerError(Exception):
    """Why there is no answer."""

    def __init__(self, verdict: Verdict, note: str) -> None:
        super().__init__(note)
        self.verdict = verdict
        self.note = note


class _Head(NamedTuple):
    """The first line of an answer: the exit status, and numbers of bytes."""

    status: int
    stdout: int
    stderr: int


def request(verb: Sequence[str], program: bytes) -> bytes:
    """What a server reads."""
    return json.dumps({"verb": list(verb), "bytes": len(program)}).encode() + b"\n" + program


class Server:
    """Answers as `sandbox.run` of a command does; its process is started when it is needed."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        limits: Limits | None = None,
        reads: Sequence[Path] = (),
    ) -> None:
        self.argv = tuple(argv)
        self.cwd = cwd
        self.limits = limits or Limits()
        self.reads = tuple(reads)
        self.starts = 0
        self._running: _Running | None = None

    def ask(self, verb: Sequence[str], program: bytes) -> Completed:
        """The answer to one request, or what went wrong with it."""
        start = time.monotonic()
        try:
            with sandbox.counted():
                status, stdout, stderr = self._process().exchange(request(verb, program))
        except _NoAnswerError as fault:
            said = bytes(self._running.said) if self._running else b""
            self.close()
            seconds = time.monotonic() - start
            return Completed(fault.verdict, None, b"", said, seconds, note=fault.note)
        return Completed(Verdict.OK, status, stdout, stderr, time.monotonic() - start)

    def close(self) -> None:
        """End the process, and all that it started."""
        if self._running is not None:
            self._running.end()
            self._running = None

    def _process(self) -> _Running:
        """The process, a new one if there is none that lives."""
        if self._running is not None and ended(self._running.process) is not None:
            self.close()
        if self._running is None:
            self._running = _Running(self.argv, self.cwd, self.limits, self.reads)
            self.starts += 1
        return self._running


class _Running:
    """One process of a server, and the bytes under way."""

    def __init__(
        self, argv: Sequence[str], cwd: Path, limits: Limits, reads: Sequence[Path]
    ) -> None:
        self.limits = limits
        self.answer = bytearray()
        self.said = bytearray()
        self.members: list[Process] = []
        home = tempfile.mkdtemp(prefix="grader-run-")
        try:
            self.process, self.family = sandbox.start(
                argv, Path(home), cwd=cwd, limits=limits, reads=reads
            )
        except (OSError, ValueError) as error:
            remove(Path(home))
            raise _NoAnswerError(Verdict.CRASH, f"cannot start {argv[0]}: {error}") from None
        self.end = weakref.finalize(self, _end, self.process, self.family, home)
        pipes = self.process.stdin, self.process.stdout, self.process.stderr
        self.stdin, self.stdout, self.stderr = (pipe.fileno() for pipe in pipes if pipe)
        for pipe in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(pipe, False)

    def exchange(self, data: bytes) -> tuple[int, bytes, bytes]:
        """Send a request and receive its answer, or raise a _NoAnswerError."""
        self.said.clear()
        self._receive(self.stdout)
        if self.answer:
            raise _NoAnswerError(Verdict.PROTOCOL, "the server wrote before it was asked")
        clock = Clock(self.limits.seconds, self.members)
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdin, selectors.EVENT_WRITE)
            selector.register(self.stdout, selectors.EVENT_READ)
            selector.register(self.stderr, selectors.EVENT_READ)
            return self._loop(selector, memoryview(data), clock)

    def _loop(
        self, selector: selectors.BaseSelector, rest: memoryview, clock: Clock
    ) -> tuple[int, bytes, bytes]:
        next_look = time.monotonic() + LOOK
        while True:
            over = ended(self.process)  # before reading, so that its last words are read
            for key, _ in selector.select(0 if over else LOOK):
                if key.fd == self.stdin:
                    rest = self._send(rest)
                    more = bool(rest)
                else:
                    more = self._receive(key.fd)
                if not more:
                    selector.unregister(key.fd)
            if (found := self._parsed()) is not None:
                if rest:
                    raise _NoAnswerError(Verdict.PROTOCOL, "the server answered before it had read")
                return found
            if over is not None:
                raise _NoAnswerError(Verdict.CRASH, _how(over))
            if (now := time.monotonic()) > next_look:
                self._look(clock)
                next_look = now + LOOK

    def _send(self, rest: memoryview) -> memoryview:
        try:
            return rest[os.write(self.stdin, rest[:CHUNK]) :]
        except BlockingIOError:
            return rest
        except BrokenPipeError:
            return rest[:0]

    def _receive(self, pipe: int) -> bool:
        """Take what is there; False at the end of the pipe."""
        into, cap = (
            (self.answer, self.limits.output + self.limits.errors + LONGEST_HEAD)
            if pipe == self.stdout
            else (self.said, self.limits.errors)
        )
        try:
            chunk = os.read(pipe, MIB)
        except BlockingIOError:
            return True
        into += chunk
        if len(into) > cap:
            raise _NoAnswerError(Verdict.OUTPUT, f"more than {cap // 1024} KiB from the server")
        return bool(chunk)

    def _parsed(self) -> tuple[int, bytes, bytes] | None:
        """The answer, once all of it is there; a _NoAnswerError if it is none."""
        end = self.answer.find(b"\n", 0, LONGEST_HEAD)
        if end < 0:
            if len(self.answer) >= LONGEST_HEAD:
                raise self._garbage(bytes(self.answer[:LONGEST_HEAD]))
            return None
        head = self._head(bytes(self.answer[:end]))
        extra = len(self.answer) - (end + 1 + head.stdout + head.stderr)
        if extra < 0:
            return None
        if extra:
            why = f"the server wrote {extra} bytes more than its answer announced"
            raise _NoAnswerError(Verdict.PROTOCOL, why)
        body = bytes(self.answer[end + 1 :])
        self.answer.clear()
        return head.status, body[: head.stdout], body[head.stdout :]

    def _head(self, line: bytes) -> _Head:
        try:
            table = json.loads(line)
        except (ValueError, RecursionError):
            raise self._garbage(line) from None
        good = isinstance(table, dict) and sorted(table) == sorted(KEYS)
        if not good or any(type(table[key]) is not int or table[key] < 0 for key in KEYS):
            raise self._garbage(line)
        head = _Head(**table)
        if head.status > 1:
            why = f"exit status {head.status}, expected 0 or 1"
            raise _NoAnswerError(Verdict.CRASH, why)
        if head.stdout > self.limits.output or head.stderr > self.limits.errors:
            raise _NoAnswerError(
                Verdict.OUTPUT, f"an answer of {head.stdout} and {head.stderr} bytes"
            )
        return head

    @staticmethod
    def _garbage(line: bytes) -> _NoAnswerError:
        got = excerpt(repr(line), 1, 60)
        form = '{"status": 0, "stdout": 12, "stderr": 0}'
        return _NoAnswerError(
            Verdict.PROTOCOL, f"expected the server's answer to begin {form}, got {got}"
        )

    def _look(self, clock: Clock) -> None:
        self.members = self.family.members()
        if clock.over(self.members):
            raise _NoAnswerError(Verdict.TIMEOUT, f"more than {self.limits.seconds:g} s")
        if fault := self.limits.passed(self.members):
            raise _NoAnswerError(*fault)


def _how(over: os.waitid_result) -> str:
    """An end instead of an answer, in words."""
    exited = over.si_code == os.CLD_EXITED
    verdict, note = sandbox.of_status(over.si_status if exited else -over.si_status)
    if verdict is Verdict.OK:
        return f"the server ended with exit status {over.si_status} instead of an answer"
    return note


def _end(process: subprocess.Popen[bytes], family: Family, home: str) -> None:
    """End a server's processes, close its pipes and remove its folder."""
    family.kill()
    process.wait()
    close_pipes(process)
    remove(Path(home))
