"""The compiler of weeks 7 and 8, first half: that of weeks 5 and 6, with threads."""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops.passes import Pipeline
from week01_uops.reference import Reference
from week05_06_memory import compiler as week05
from week05_06_memory.machine import Machine, detect
from week05_06_memory.schedule import Schedule
from week05_06_memory.scheduling import NONE
from week07_08_gpu.c_threads import render_threaded_c


def pipeline_for(machine: Machine, schedules: Mapping[str, Schedule] = NONE) -> Pipeline:
    """The passes for a machine; kernels named in `schedules` are arranged as these say."""
    return week05.pipeline_for(machine, schedules).extend("week07_08", week05.DIALECT, {})


def compiler_for(machine: Machine, schedules: Mapping[str, Schedule] = NONE) -> Reference:
    """The compiler for a machine, with given schedules by the name of their kernel."""
    return Reference(pipeline_for(machine, schedules), {"c": render_threaded_c})


REFERENCE = compiler_for(detect())
COMPILER = REFERENCE.pipeline
