"""The compiler of weeks 7 and 8, first half: that of weeks 5 and 6, with threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from week01_uops.passes import Pipeline
from week01_uops.reference import Reference
from week05_06_memory import compiler as week05
from week05_06_memory.machine import Machine, detect
from week05_06_memory.schedule import Schedule
from week05_06_memory.scheduling import NONE, scheduled
from week07_08_gpu.c_threads import render_threaded_c
from week07_08_gpu.threads import ThreadPlanner


def pipeline_for(machine: Machine, schedules: Mapping[str, Schedule] = NONE) -> Pipeline:
    """The passes for a machine; kernels named in `schedules` are arranged as these say."""
    earlier = week05.pipeline_for(machine).extend("week07_08", week05.DIALECT, {})
    old = earlier.passes[earlier.index("schedule")]
    arranged = scheduled(machine, schedules, planner=ThreadPlanner)
    return earlier.replace_pass("schedule", replace(old, run=arranged))


def compiler_for(machine: Machine, schedules: Mapping[str, Schedule] = NONE) -> Reference:
    """The compiler for a machine, with given schedules by the name of their kernel."""
    render = partial(render_threaded_c, near=machine.cores * machine.l2)
    return Reference(pipeline_for(machine, schedules), {"c": render})


REFERENCE = compiler_for(detect())
COMPILER = REFERENCE.pipeline
