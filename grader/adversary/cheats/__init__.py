"""Submissions that try to pass without doing the work, and what the grader must say of each."""

from __future__ import annotations

from grader.adversary.case import Cheat
from grader.adversary.cheats import answers, faults, memory, processes, speed

CHEATS: tuple[Cheat, ...] = (
    *answers.CHEATS,
    *memory.CHEATS,
    *processes.CHEATS,
    *faults.CHEATS,
    *speed.CHEATS,
)
