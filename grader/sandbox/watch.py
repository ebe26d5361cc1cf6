"""Starting a program in the sandbox, and looking after it until it ends.

The process gets its own session, a fresh HOME, few environment variables and three pipes. Time,
memory and the number of tasks are watched on its whole family; output past a cap ends it. When
its first process ends, everything that it left behind is ended too.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from grader.processes import Family, close_pipes, ended
from grader.sandbox import levels, world
from grader.sandbox.clock import Clock
from grader.sandbox.levels import Reach
from grader.sandbox.limits import MIB, Completed, Limits
from grader.verdict import Verdict

FIRST_LOOK = 0.05
"""Seconds until a run's processes are looked at for the first time; most end before."""

SPENT = [0.0]
"""Seconds by the clock in which this process waited for programs, their start included."""

UNSTARTED = (b"bwrap: ", b"landlock: ")
"""How the words of a level begin that could not start a program."""


def start(
    argv: Sequence[str],
    home: Path,
    *,
    cwd: Path | None = None,
    limits: Limits,
    writes: bool = False,
    reads: Sequence[Path] = (),
    stderr: IO[bytes] | int = subprocess.PIPE,
) -> tuple[subprocess.Popen[bytes], Family]:
    """Start argv closed off, with pipes; OSError if that cannot be done.

    Args:
        argv: the command.
        home: its HOME, in which it may write; made in the sandbox's scratch space if there is none.
        cwd: where it runs, and what it may read; its home if not given.
        limits: of each of its processes; the caller looks after the whole.
        writes: whether it may write where it runs.
        reads: other folders that it may read.
        stderr: as in `subprocess.Popen`.
    """
    home, place = home.resolve(), (cwd or home).resolve()
    folders = dict.fromkeys((home, place) if writes else (home,))
    for folder in filter(Path.exists, folders):
        levels.lend(folder)
    tools = [] if "/" in argv[0] else world.around(argv[0])
    visible = [path.resolve() for path in (*tools, *reads, *(() if writes else (place,)))]
    reach = Reach(tuple(folders), tuple(path for path in visible if path != home))
    process = subprocess.Popen(
        [*levels.prefix(limits, reach, levels.level()), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=place,
        env=levels.environment(str(home)),
        start_new_session=True,
    )
    return process, Family(process.pid, str(home), wrapped=levels.level() == "bwrap")


@contextlib.contextmanager
def counted() -> Iterator[None]:
    """What is done here is waiting for a program."""
    start = time.monotonic()
    try:
        yield
    finally:
        SPENT[0] += time.monotonic() - start


def run(
    argv: Sequence[str],
    stdin: bytes = b"",
    *,
    cwd: Path | None = None,
    limits: Limits | None = None,
    writes: bool = False,
    reads: Sequence[Path] = (),
) -> Completed:
    """Run argv to its end, or to the first limit that it passes; the arguments are `start`'s."""
    limits = (limits or Limits()).bounded()
    if (why := _missing(argv[0], cwd)) is not None:
        return Completed(Verdict.GRADER, None, b"", b"", 0.0, note=why)
    with contextlib.ExitStack() as stack:
        stack.enter_context(levels.returned([cwd] if cwd is not None and writes else []))
        home = stack.enter_context(_home(cwd, writes=writes))
        try:
            started = start(argv, home, cwd=cwd, limits=limits, writes=writes, reads=reads)
        except OSError as error:
            why = f"cannot start {argv[0]}: {error.strerror or error}"
            return Completed(Verdict.GRADER, None, b"", b"", 0.0, note=why)
        return _Watch(*started, limits).to_the_end(stdin)


@contextlib.contextmanager
def _home(cwd: Path | None, *, writes: bool) -> Iterator[Path]:
    """A fresh HOME; one that is only named where the sandbox makes it, and nothing starts there."""
    if levels.has_scratch() and cwd is not None and not writes:
        yield Path(levels.SCRATCH[0], f"grader-run-{secrets.token_hex(4)}")
        return
    with world.scratch("grader-run-") as home:
        yield home


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
        self.clock = Clock(limits.seconds)
        self.peak = 0
        self.stdout = _Stream(limits.output, "standard output")
        self.stderr = _Stream(limits.errors, "standard error")
        self.fault: tuple[Verdict, str] | None = None

    def to_the_end(self, stdin: bytes) -> Completed:
        with selectors.DefaultSelector() as selector, counted():
            try:
                self._open(selector, stdin)
                self._loop(selector)
            finally:
                self.family.kill()
                self.process.wait()
            if self.fault is None:
                self._drain(selector)
        close_pipes(self.process)
        return self._completed()

    def _open(self, selector: selectors.BaseSelector, stdin: bytes) -> None:
        pipes = self.process.stdin, self.process.stdout, self.process.stderr
        for pipe, data in zip(pipes, (memoryview(stdin), self.stdout, self.stderr), strict=True):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            event = selectors.EVENT_WRITE if pipe is self.process.stdin else selectors.EVENT_READ
            selector.register(pipe, event, data)

    def _loop(self, selector: selectors.BaseSelector) -> None:
        pause, next_look = 0.005, self.clock.start + FIRST_LOOK
        while self.fault is None and ended(self.process) is None:
            if selector.get_map():
                self._exchange(selector, pause)
            else:
                time.sleep(pause / 5)
            now = time.monotonic()
            if now >= next_look:
                self._look()
                pause = min(pause * 1.5, 0.05)
                next_look = now + FIRST_LOOK

    def _look(self) -> None:
        members = self.family.members()
        self.peak = max(self.peak, sum(p.memory for p in members))
        if self.clock.over(members):
            self.fault = Verdict.TIMEOUT, f"more than {self.limits.seconds:g} s"
        else:
            self.fault = self.limits.passed(members)

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
        seconds = self.clock.elapsed
        code = self.process.returncode
        streams = bytes(self.stdout.data), bytes(self.stderr.data)
        if self.fault is None and code and streams[1].startswith(UNSTARTED):
            words = streams[1].decode("utf-8", "replace").splitlines()[0]
            self.fault = Verdict.GRADER, f"the sandbox did not start: {words}"
        verdict, note = self.fault or of_status(code)
        status = code if verdict is Verdict.OK else None
        return Completed(verdict, status, *streams, seconds, self.peak, note)


def of_status(code: int) -> tuple[Verdict, str]:
    """A process's end in words: OK for an exit status, else what ended it.

    A signal is a negative number; bwrap tells it as a shell does, by a status past 128.
    """
    number = code - 128 if code > 128 and levels.level() == "bwrap" else -code
    if number <= 0:
        return Verdict.OK, ""
    if number == signal.SIGXFSZ:
        return Verdict.OUTPUT, "a file larger than allowed"
    if number == signal.SIGXCPU:
        return Verdict.TIMEOUT, "more processor time than allowed"
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return Verdict.CRASH, name
