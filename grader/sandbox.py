"""Running a program that is not trusted, under limits.

The process gets its own session, a fresh HOME, few environment variables and three pipes. Time,
memory and the number of tasks are watched on its whole family; output past a cap ends it. When
its first process ends, everything that it left behind is ended too.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from grader.processes import Family
from grader.verdict import Verdict

MIB = 1 << 20
PASSED_ON = ("PATH", "OMP_NUM_THREADS", "RUSTUP_HOME")
TOOLCHAINS = {"RUSTUP_HOME": "~/.rustup"}
"""Where a command that only chooses a version of a toolchain looks for them."""


@dataclass(frozen=True)
class Limits:
    """What a run may use: seconds of wall clock, bytes, and numbers of tasks."""

    seconds: float = 10.0
    memory: int = 2048 * MIB
    output: int = 64 * MIB
    errors: int = MIB
    file_size: int = 512 * MIB
    tasks: int = 256

    def within(self, seconds: float | None) -> Limits:
        """The same limits with another wall clock."""
        return self if seconds is None else replace(self, seconds=seconds)


@dataclass(frozen=True)
class Completed:
    """How a run ended.

    Attributes:
        verdict: OK for any exit status, else CRASH, TIMEOUT, MEMORY, OUTPUT or GRADER.
        status: the exit status, where it exited by itself.
        note: the signal's name, or the limit that was passed, in words.
    """

    verdict: Verdict
    status: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    peak_memory: int = 0
    note: str = ""


def level() -> str:
    """How far a run is closed off here: what `prefix` can use on this machine."""
    return "rlimit" if shutil.which("prlimit") else "none"


def prefix(limits: Limits) -> list[str]:
    """The command that stands before an untrusted one and closes it off."""
    if level() == "none":
        return []
    tasks = f"--nproc={limits.tasks + 4096}"
    return ["prlimit", "--core=0", f"--fsize={limits.file_size}", "--nofile=512", tasks, "--"]


def environment(home: str) -> dict[str, str]:
    """All that an untrusted process learns of ours."""
    ours = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    places = {name: os.path.expanduser(place) for name, place in TOOLCHAINS.items()}
    chosen = {name: place for name, place in places.items() if os.path.isdir(place)}
    return {"PATH": os.defpath, "HOME": home, "LANG": "C.UTF-8", **chosen, **ours}


def run(
    argv: Sequence[str],
    stdin: bytes = b"",
    *,
    cwd: Path | None = None,
    limits: Limits | None = None,
) -> Completed:
    """Run argv to its end, or to the first limit that it passes."""
    limits = limits or Limits()
    if (why := _missing(argv[0], cwd)) is not None:
        return Completed(Verdict.GRADER, None, b"", b"", 0.0, note=why)
    home = tempfile.mkdtemp(prefix="grader-run-")
    try:
        process = subprocess.Popen(
            [*prefix(limits), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or home,
            env=environment(home),
            start_new_session=True,
        )
    except OSError as error:
        shutil.rmtree(home, ignore_errors=True)
        why = f"cannot start {argv[0]}: {error.strerror or error}"
        return Completed(Verdict.GRADER, None, b"", b"", 0.0, note=why)
    try:
        return _Watch(process, Family(process.pid, home), limits).to_the_end(stdin)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _missing(program: str, cwd: Path | None) -> str | None:
    """What keeps a program from being started, if it is plain to see."""
    path = str((cwd or Path.cwd()) / program) if "/" in program else program
    return None if shutil.which(path) else f"cannot start {program}: no such program"


@dataclass
class _Stream:
    """What came through one pipe so far, and how much may."""

    cap: int
    name: str
    data: bytearray = field(default_factory=bytearray)


class _Watch:
    """One run: feeds standard input, collects output, and looks at the limits."""

    def __init__(self, process: subprocess.Popen[bytes], family: Family, limits: Limits) -> None:
        self.process = process
        self.family = family
        self.limits = limits
        self.start = time.monotonic()
        self.peak = 0
        self.stdout = _Stream(limits.output, "standard output")
        self.stderr = _Stream(limits.errors, "standard error")
        self.fault: tuple[Verdict, str] | None = None

    def to_the_end(self, stdin: bytes) -> Completed:
        with selectors.DefaultSelector() as selector:
            try:
                self._open(selector, stdin)
                self._loop(selector)
            finally:
                self.family.kill()
                self.process.wait()
            if self.fault is None:
                self._drain(selector)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return self._completed()

    def _open(self, selector: selectors.BaseSelector, stdin: bytes) -> None:
        pipes = self.process.stdin, self.process.stdout, self.process.stderr
        for pipe, data in zip(pipes, (memoryview(stdin), self.stdout, self.stderr), strict=True):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            event = selectors.EVENT_WRITE if pipe is self.process.stdin else selectors.EVENT_READ
            selector.register(pipe, event, data)

    def _loop(self, selector: selectors.BaseSelector) -> None:
        pause, next_look = 0.005, 0.0
        while self.fault is None and not self._ended():
            if selector.get_map():
                self._exchange(selector, pause)
            else:
                time.sleep(pause / 5)
            now = time.monotonic()
            if now >= next_look:
                self._look(now)
                pause = min(pause * 1.5, 0.05)
                next_look = now + pause

    def _ended(self) -> bool:
        """Whether the first process has ended; it stays unreaped, so that its number is kept."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.process.pid, flags) is not None

    def _look(self, now: float) -> None:
        members = self.family.members()
        memory = sum(p.memory for p in members)
        self.peak = max(self.peak, memory)
        tasks = sum(p.threads for p in members)
        if now - self.start > self.limits.seconds:
            self.fault = Verdict.TIMEOUT, f"more than {self.limits.seconds:g} s"
        elif memory > self.limits.memory:
            self.fault = Verdict.MEMORY, f"more than {self.limits.memory // MIB} MiB"
        elif tasks > self.limits.tasks:
            self.fault = Verdict.CRASH, f"more than {self.limits.tasks} processes and threads"

    def _exchange(self, selector: selectors.BaseSelector, pause: float) -> None:
        for key, _ in selector.select(pause):
            pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
            if isinstance(key.data, _Stream):
                done = self._receive(pipe, key.data)
            else:
                done = self._send(selector, pipe, key.data)
            if done:
                selector.unregister(pipe)
                with contextlib.suppress(OSError):
                    pipe.close()

    def _receive(self, pipe: IO[bytes], stream: _Stream) -> bool:
        try:
            chunk = os.read(pipe.fileno(), MIB)
        except BlockingIOError:
            return False
        stream.data += chunk
        if len(stream.data) > stream.cap:
            del stream.data[stream.cap :]
            self.fault = Verdict.OUTPUT, f"more than {stream.cap // 1024} KiB on {stream.name}"
        return not chunk

    def _send(self, selector: selectors.BaseSelector, pipe: IO[bytes], rest: memoryview) -> bool:
        try:
            sent = os.write(pipe.fileno(), rest[: 1 << 16]) if rest else 0
        except BlockingIOError:
            return False
        except BrokenPipeError:
            return True
        if len(rest) > sent:
            selector.modify(pipe, selectors.EVENT_WRITE, rest[sent:])
        return len(rest) <= sent

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what is still in the pipes of a process that has ended."""
        for key in list(selector.get_map().values()):
            if not isinstance(key.data, _Stream):
                selector.unregister(key.fileobj)
        while self.fault is None and selector.get_map() and selector.select(0):
            self._exchange(selector, 0)

    def _completed(self) -> Completed:
        seconds = time.monotonic() - self.start
        code = self.process.returncode
        verdict, note = self.fault or _of_status(code)
        status = code if self.fault is None and code >= 0 else None
        streams = bytes(self.stdout.data), bytes(self.stderr.data)
        return Completed(verdict, status, *streams, seconds, self.peak, note)


def _of_status(code: int) -> tuple[Verdict, str]:
    if code >= 0:
        return Verdict.OK, ""
    if -code == signal.SIGXFSZ:
        return Verdict.OUTPUT, "a file larger than allowed"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return Verdict.CRASH, name
