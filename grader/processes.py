"""Finding and ending all processes of a run, through /proc.

A run's processes are those of its session, their descendants, and those that have the run's own
HOME or mark, so that a child which leaves the session is still found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import zlib
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """One line of the process table; `started` is in ticks, resident `memory` in bytes.

    One that is `ready` runs, or waits for a processor and nothing else.
    """

    pid: int
    parent: int
    session: int
    threads: int
    started: int
    memory: int
    ready: bool = False

    @property
    def identity(self) -> tuple[int, int]:
        """What tells it from a later process of the same number."""
        return self.pid, self.started


def _read(pid: str) -> Process | None:
    """Without `pathlib` and files of Python: all processes are read for every program that runs."""
    try:
        file = os.open(f"{PROC}/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        text = os.read(file, 4096)
    except OSError:
        return None
    finally:
        os.close(file)
    # The name stands in parentheses and may hold anything, so fields count from the last one.
    fields = text[text.rindex(b")") + 2 :].split(None, 22)
    if fields[0] in (b"Z", b"X"):
        return None
    parent, session, threads, started = map(int, (fields[1], fields[3], fields[17], fields[19]))
    memory, ready = int(fields[21]) * PAGE, fields[0] == b"R"
    return Process(int(pid), parent, session, threads, started, memory, ready)


def table(first: int = 0) -> list[Process]:
    """All live processes of the machine, from a number on; empty where there is no /proc."""
    try:
        names = os.listdir(PROC)
    except OSError:
        return []
    found = (_read(name) for name in names if name.isdigit() and int(name) >= first)
    return [process for process in found if process is not None]


def scheduled(pid: int) -> tuple[float, float]:
    """Seconds that a process (its first thread) ran, and was ready until it got a processor."""
    fields = _told(pid, "schedstat").split()
    return (int(fields[0]) / 1e9, int(fields[1]) / 1e9) if len(fields) == 3 else (0.0, 0.0)


def mark(home: str) -> int:
    """A run's limit of resident memory: no kernel keeps to it, and all descendants have it."""
    return 1 << 50 | zlib.crc32(home.encode())


def _belongs(pid: int, home: str) -> bool:
    """Whether a process was started with a HOME, or has its mark."""
    told = f"HOME={home}".encode() in _told(pid, "environ").split(b"\0")
    return told or b" %d " % mark(home) in _told(pid, "limits")


def _told(pid: int, name: str) -> bytes:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def ended(process: subprocess.Popen[bytes]) -> os.waitid_result | None:
    """How a child ended, if it has; it stays unreaped, so that its number is kept."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close our ends."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


class Family:
    """The processes of one run; its leader must not be reaped before the family has ended.

    Attributes:
        wrapped: the leader and its only child are bwrap's; they close the run off and are no
            members. The child is the first process of all that run there: as long as one of them
            lives, so does it.
    """

    def __init__(self, leader: int, home: str, *, wrapped: bool = False) -> None:
        self.leader = leader
        self.home = home
        self.wrapped = wrapped
        self._known: set[tuple[int, int]] = set()

    def members(self, *, strays: bool = False) -> list[Process]:
        """Those alive now; `strays` looks through every process's environment too."""
        processes = table()
        mine = [
            p for p in processes if self.leader in (p.pid, p.session) or p.identity in self._known
        ]
        if strays:
            mine += [p for p in processes if p not in mine and _belongs(p.pid, self.home)]
        pids = {p.pid for p in mine}
        while more := [p for p in processes if p.pid not in pids and p.parent in pids]:
            mine += more
            pids.update(p.pid for p in more)
        self._known.update(p.identity for p in mine)
        return [p for p in mine if not self._wraps(p)]

    def _wraps(self, process: Process) -> bool:
        return self.wrapped and self.leader in (process.pid, process.parent)

    def program(self) -> int:
        """The number of the program itself, once it runs."""
        if not self.wrapped:
            return self.leader
        processes = table()
        wrappers = {p.pid for p in processes if p.parent == self.leader}
        found = [(p.started, p.pid) for p in processes if p.parent in wrappers]
        return min(found, default=(0, self.leader))[1]

    def kill(self, patience: float = 2.0) -> None:
        """End them all: stop them, so that none forks away, then kill, until none is left."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, signal.SIGKILL)
        deadline = time.monotonic() + patience
        while (left := self._left()) and time.monotonic() < deadline:
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for process in left:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(process.pid, number)
            time.sleep(0.001)

    def _left(self) -> list[Process]:
        """What must still be ended.

        The kernel ends what bwrap wraps when bwrap ends, and this is waited for; numbers of
        processes rise, so that few have to be read.
        """
        if not self.wrapped:
            return self.members(strays=True)
        return [p for p in table(self.leader + 1) if p.session == self.leader]


def end_the_others() -> None:
    """End all that this process started: stop it, so that none forks away, then kill it."""
    family, stopped = Family(os.getpid(), f"grader-{os.getpid()}"), set[tuple[int, int]]()
    while fresh := [p for p in _others(family) if p.identity not in stopped]:
        _signal(fresh, signal.SIGSTOP)
        stopped.update(p.identity for p in fresh)
    while left := _others(family):
        _signal(left, signal.SIGKILL)
        time.sleep(0.01)


def _others(family: Family) -> list[Process]:
    return [process for process in family.members() if process.pid != os.getpid()]


def _signal(processes: list[Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
