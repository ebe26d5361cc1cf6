"""What a run may use, and how it ended."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from grader.processes import Process
from grader.verdict import Verdict

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a run may use: seconds of wall clock, bytes, and numbers of tasks.

    Attributes:
        processor: seconds of processor time of one process; 0 for no such limit.
    """

    seconds: float = 10.0
    memory: int = 2048 * MIB
    output: int = 64 * MIB
    errors: int = MIB
    file_size: int = 512 * MIB
    tasks: int = 256
    processor: int = 0

    def within(self, seconds: float | None) -> Limits:
        """The same limits with another wall clock."""
        return self if seconds is None else replace(self, seconds=seconds)

    def passed(self, members: Iterable[Process]) -> tuple[Verdict, str] | None:
        """The limit that a run's processes are past together."""
        several = list(members)
        if sum(p.memory for p in several) > self.memory:
            return Verdict.MEMORY, f"more than {self.memory // MIB} MiB"
        if sum(p.threads for p in several) > self.tasks:
            return Verdict.CRASH, f"more than {self.tasks} processes and threads"
        return None

    def bounded(self) -> Limits:
        """With as much processor time as all cores have until the wall clock ends the run."""
        most = math.ceil(self.seconds * (os.cpu_count() or 1)) + 1
        return self if self.processor else replace(self, processor=most)


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
