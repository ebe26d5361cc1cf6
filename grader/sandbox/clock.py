"""How long a run may take by the clock, on a machine that others use too.

    over  =  elapsed > limit + min(waited, (PATIENCE − 1) · limit)

What a run waited is the longest time that one of its processes was ready and had no processor, as
Linux counts it for the first thread of each (`/proc/PID/schedstat`). It counts a wait when it is
over; what is ready, and has neither run nor waited more since it was looked at, waits still.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from grader.processes import Process, scheduled

PATIENCE = 4
"""After how many times its limit a run ends, however long it waited."""


class Clock:
    """The wall clock of one run, or of one request to a process that runs on."""

    def __init__(self, seconds: float, running: Iterable[Process] = ()) -> None:
        """Start it; what those that run already have waited is not this run's."""
        self.seconds = seconds
        self.start = time.monotonic()
        self.before = {p.identity: scheduled(p.pid)[1] for p in running}
        self.waited = 0.0
        self._seen: dict[tuple[int, int], tuple[tuple[float, float], float]] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def over(self, running: Iterable[Process]) -> bool:
        """Whether the run has to end; to be asked several times a second, with its processes."""
        self.waited = max(self.waited, *map(self._wait, running), 0.0)
        return self.elapsed > self.seconds + min(self.waited, (PATIENCE - 1) * self.seconds)

    def _wait(self, process: Process) -> float:
        now, told = time.monotonic(), scheduled(process.pid)
        known, since = self._seen.get(process.identity, (told, now))
        if not process.ready or known != told:
            since = now
        self._seen[process.identity] = told, since
        return told[1] - self.before.get(process.identity, 0.0) + now - since
