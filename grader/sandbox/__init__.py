"""Running a program that is not trusted, closed off and under limits.

`run` runs one to its end, `start` only starts it. `levels` says how far it is closed off and how
that is chosen, `world` what it may read, `landlock` is one of the ways, `watch` looks after a run,
by its `clock`.
"""

from grader.sandbox.clock import Clock
from grader.sandbox.levels import (
    CHOICES,
    LEVELS,
    VARIABLE,
    SandboxError,
    choose,
    environment,
    level,
    trouble,
)
from grader.sandbox.limits import MIB, Completed, Limits
from grader.sandbox.watch import SPENT, counted, of_status, run, start
from grader.sandbox.world import around

__all__ = [
    "CHOICES",
    "LEVELS",
    "MIB",
    "SPENT",
    "VARIABLE",
    "Clock",
    "Completed",
    "Limits",
    "SandboxError",
    "around",
    "choose",
    "counted",
    "environment",
    "level",
    "of_status",
    "run",
    "start",
    "trouble",
]
