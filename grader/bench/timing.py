"""Measuring side by side: rounds in which the contenders take turns.

In a round everybody gets the same fresh inputs, one after the other, in an order that turns round
every time, with a pause before each, in which the threads of the last one fall asleep. What one
needs is the mean over as many calls as fill a few milliseconds, and some more, after one call that
is not counted, and of several threads as many as they need to have a core each.
The result of every timed sample is checked. A round counts as disturbed if our threads had
to wait for a processor, or if other processes used one; it is replaced, so far as there is time.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.bench.contenders import Contender, threads
from grader.bench.workload import Answer, Answers, Array

PAUSE = 0.06
"""Seconds; spinning workers of OpenMP and OpenBLAS are asleep by then."""

SAMPLE = 0.005
"""Seconds that a sample takes at least."""

SPREAD = 4
"""A sample has up to one in so many calls more than fill it, so that the last is not known."""

GROWTH = 10
"""So many times more calls are tried at once when a sample was too short."""

WARM = 0.5
"""Seconds of a call from which on there is no call to warm up."""

WAITED = 0.02
"""The part of the time of a sample that each of its threads may have waited for a processor."""

SPREADING = 20
"""Times that several threads may need, a sample's calls each, until they have a core each.

Those that sleep in the pause are sometimes woken on one core, and stay there for 20 calls and more.
"""

OTHERS = 0.25
"""Processors that others may use in a round."""

TICK = os.sysconf("SC_CLK_TCK")


class WrongError(Exception):
    """A contender's result is not right; says where."""


@dataclass
class Usage:
    """Seconds of the processors so far: ours, waited for, and everybody's."""

    own: float
    waited: float
    all: float

    @classmethod
    def now(cls, pids: Iterable[int]) -> Usage:
        """Of these processes, from Linux's counters; zeros where there are none."""
        own = waited = 0.0
        for pid in pids:
            for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                try:
                    ran, delayed, *_ = map(int, task.read_text().split())
                except (OSError, ValueError):
                    continue
                own, waited = own + ran / 1e9, waited + delayed / 1e9
        return cls(own, waited, _busy())


def _busy() -> float:
    """Seconds that all processors were not idle."""
    try:
        words = Path("/proc/stat").read_text().split(maxsplit=9)
        user, nice, system, _, _, interrupts, soft, steal = map(int, words[1:9])
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + interrupts + soft + steal) / TICK


@dataclass
class Round:
    """Seconds for a call, by contender.

    Attributes:
        disturbed: whether other processes ran.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    disturbed: bool = False


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: that are wanted, and were not disturbed.
        budget: seconds after which no further round begins.
        sets: of inputs, which the rounds use in turn.
    """

    rounds: int = 7
    budget: float = 30.0
    sets: int = 2


class Measurement:
    """The contenders of one workload, over arrays that they share."""

    def __init__(
        self,
        contenders: Mapping[str, Contender],
        inputs: Sequence[Array],
        draws: Sequence[tuple[Sequence[Array], Answer | Answers]],
    ) -> None:
        self.contenders = dict(contenders)
        self.inputs = inputs
        self.draws = draws
        self.faults: dict[str, Exception] = {}
        self._calls: dict[str, int] = {}
        self._warm: dict[str, bool] = {}
        self._pids = [os.getpid(), *(pid for one in contenders.values() for pid in one.pids)]

    def calibrate(self) -> None:
        """Let everybody compute once and be checked; those who fail drop out."""
        self._fill(0)
        for name in list(self.contenders):
            try:
                seconds = self._first(name)
            except Exception as error:  # a library may raise what it likes
                self._drop(name, error)
                continue
            self._calls[name] = max(1, math.ceil(SAMPLE / max(seconds, 1e-9)))
            self._warm[name] = seconds < WARM

    def _first(self, name: str) -> float:
        """Seconds of a call, the second one unless that takes long."""
        one = self.contenders[name]
        one.take()
        seconds = _timed(one, 1)
        if seconds < 2 * WARM:
            seconds = _timed(one, 1)
            if seconds < SAMPLE / 10:
                seconds = _timed(one, 10) / 10
        self._check(name, 0)
        return seconds

    def _drop(self, name: str, why: Exception) -> None:
        self.faults[name] = why
        self.contenders.pop(name).close()

    def _fill(self, number: int) -> None:
        for array, drawn in zip(self.inputs, self.draws[number][0], strict=True):
            array[...] = drawn

    def _check(self, name: str, number: int) -> None:
        if why := self.contenders[name].fault(self.draws[number][1]):
            raise WrongError(why)

    def rounds(self, plan: Plan) -> list[Round]:
        """At least one round; those that were disturbed, too. None after ours drops out."""
        end = time.monotonic() + plan.budget
        wanted = {"ours"} & self.contenders.keys()
        found: list[Round] = []
        while sum(not r.disturbed for r in found) < plan.rounds and len(found) < 2 * plan.rounds:
            found.append(self._round(len(found)))
            if time.monotonic() > end or not self.contenders.keys() >= wanted:
                break
        return found

    def _round(self, number: int) -> Round:
        self._fill(number % len(self.draws))
        order = list(self.contenders)
        shift = number // 2 % max(len(order), 1)
        order = order[shift:] + order[:shift]
        result = Round()
        before, start = Usage.now(self._pids), time.perf_counter()
        for name in order[::-1] if number % 2 else order:
            self._sample(name, number % len(self.draws), result)
        after, wall = Usage.now(self._pids), time.perf_counter() - start
        others = (after.all - before.all) - (after.own - before.own)
        result.disturbed |= others > OTHERS * wall + 2 / TICK
        return result

    def _sample(self, name: str, draw: int, result: Round) -> None:
        one = self.contenders[name]
        try:
            one.take()
            time.sleep(PAUSE)
            if self._warm[name]:
                one.run(1)
                self._spread(name)
            one.ready()
            calls, seconds, waits = self._watched(name, self._filled)
            self._check(name, draw)
        except Exception as error:  # as in `calibrate`
            self._drop(name, error)
            return
        result.seconds[name] = seconds / calls
        result.disturbed |= waits

    def _spread(self, name: str) -> None:
        """Compute until each of several threads has a core, or is not going to."""
        calls = self._calls[name]
        run = lambda name: (calls, _timed(self.contenders[name], calls))
        for _ in range(SPREADING if threads() > 1 else 0):
            if not self._watched(name, run)[-1]:
                break

    def _watched(
        self, name: str, run: Callable[[str], tuple[int, float]]
    ) -> tuple[int, float, bool]:
        """Calls and seconds of a run, and whether those that compute waited for processors.

        Where they have a process of their own, the threads of this one, which watch it, may wait.
        """
        pids = self.contenders[name].pids or (os.getpid(),)
        before = Usage.now(pids)
        calls, seconds = run(name)
        waited = Usage.now(pids).waited - before.waited
        return calls, seconds, waited > WAITED * seconds * threads()

    def _filled(self, name: str) -> tuple[int, float]:
        """Calls that fill a sample, a random number of them, and their seconds.

        Whoever was slower in `calibrate` than it is makes up for it here.
        """
        calls = self._calls[name]
        while True:
            calls += random.randrange(calls // SPREAD + 1)
            seconds = _timed(self.contenders[name], calls)
            if seconds >= SAMPLE / 2:
                return calls, seconds
            wanted = math.ceil(calls * SAMPLE / seconds)
            self._calls[name] = calls = min(wanted, GROWTH * calls)

    def close(self) -> None:
        """End all contenders."""
        for one in self.contenders.values():
            one.close()


def _timed(one: Contender, calls: int) -> float:
    start = time.perf_counter()
    one.run(calls)
    return max(time.perf_counter() - start - one.overhead, 1e-9)


def undisturbed(rounds: Sequence[Round], least: int = 3) -> list[Round]:
    """Those that count: all of them if too few were undisturbed."""
    clean = [r for r in rounds if not r.disturbed]
    return clean if len(clean) >= least else list(rounds)


def median(values: Iterable[float]) -> float | None:
    """The median, None of nothing."""
    found = list(values)
    return statistics.median(found) if found else None
