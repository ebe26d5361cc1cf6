"""What programs of strangers may cost the process that reads and evaluates them.

A text of a few lines can ask for any number of turns of a loop and for arrays of any size, so
what a compiler printed is evaluated with a watch: over processor time, which a busy machine does
not use up, over the growth of this process, and over each array before it is made.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from grader.sandbox import MIB
from grader.verdict import Verdict
from grader.weeks import MEANING
from week01_uops import node as nodes
from week01_uops.evaluate import Meaning
from week01_uops.node import Op, UOp

T = TypeVar("T")

ROOM = 256 * MIB
"""Bytes of one array, and by which this process may grow, for the smallest programs."""
ELEMENT = 8
"""Bytes of an element, at most; of an element's number, too."""
TICK = 0.05
"""Seconds of processor time between two looks."""
_MEMORY = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class CostError(Exception):
    """Something costs too much: TIMEOUT or MEMORY, and a sentence's end that says how much."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(why)
        self.verdict = verdict


def room(program: UOp) -> int:
    """The bytes for results that stand for a program: four times what all its values take."""
    return max(ROOM, 4 * ELEMENT * sum(node.size for node in program.toposort()))


def within(seconds: float, most: int, compute: Callable[[], T]) -> T:
    """The result of `compute`, or CostError once it took so many seconds or grew by so many bytes.

    Only the main thread can be told; in others nothing is watched.
    """
    global _limit
    if threading.current_thread() is not threading.main_thread():
        return compute()
    _limit = _Limit(seconds, time.process_time() + seconds, most, _resident() + most)
    signal.signal(signal.SIGPROF, _look)
    signal.setitimer(signal.ITIMER_PROF, TICK, TICK)
    try:
        return compute()
    finally:
        _limit = None
        signal.setitimer(signal.ITIMER_PROF, 0)


class _Limit(NamedTuple):
    """What may be used: seconds, until which time, bytes, up to which size of this process."""

    seconds: float
    end: float
    most: int
    largest: int


_limit: _Limit | None = None


def _look(number: int, frame: FrameType | None) -> None:
    """At each tick: raise once, and not where a node is forgotten, where an error would be lost."""
    global _limit
    limit = _limit
    if limit is None or (frame is not None and frame.f_globals is vars(nodes)):
        return
    late = time.process_time() > limit.end
    if late or _resident() > limit.largest:
        _limit = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        if late:
            raise CostError(Verdict.TIMEOUT, f"takes more than {limit.seconds:g} s")
        raise CostError(Verdict.MEMORY, f"takes more than {limit.most // MIB} MiB")


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        return int(_MEMORY.read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0


def table(most: int, meanings: Mapping[Op, Meaning] = MEANING) -> Mapping[Op, Meaning]:
    """The meanings of ops, each of which raises CostError before it makes too large an array."""

    def row(meaning: Meaning) -> Meaning:
        def computed(scope: Any, node: UOp) -> Any:  # noqa: ANN401 - as in the interpreter
            if node.size * scope.active.size * ELEMENT > most:
                shape = [*scope.active.shape, *node.shape]
                raise CostError(Verdict.MEMORY, f"has a value of {math.prod(shape):,} elements")
            return meaning(scope, node)

        return computed

    return {op: row(meaning) for op, meaning in meanings.items()}


def expect_room(program: UOp, directions: int, most: int) -> None:
    """CostError where so many tangents of one of a program's values would be too large."""
    largest = max(node.size for node in program.toposort()) * directions
    if largest * ELEMENT > most:
        raise CostError(Verdict.MEMORY, f"has a derivative of {largest:,} elements")
