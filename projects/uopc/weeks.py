"""The weeks that exist, and what each publishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from week01_uops import compiler as week01
from week01_uops import ops as week01_ops
from week01_uops.node import Op
from week01_uops.passes import Pipeline
from week01_uops.reference import Reference
from week02_render import compiler as week02
from week02_render import ops as week02_ops
from week03_loops import compiler as week03
from week03_loops import ops as week03_ops
from week04_fusion import compiler as week04
from week04_fusion import ops as week04_ops
from week05_06_memory import compiler as week05
from week05_06_memory import ops as week05_ops
from week05_06_memory.machine import detect
from week05_06_memory.nests import ScheduleError
from week05_06_memory.plan import Planner
from week05_06_memory.schedule import Schedule
from week05_06_memory.scheduling import Arranged, scheduled
from week07_08_gpu import compiler as week07
from week07_08_gpu.threads import ThreadPlanner
from week09_10_autodiff import compiler as week09


@dataclass(frozen=True)
class Week:
    """One week: the ops its programs may contain, its passes, its compiler, its scheduler."""

    number: int
    ops: frozenset[Op]
    pipeline: Pipeline
    reference: Reference
    planner: type[Planner] = Planner

    @property
    def has_schedules(self) -> bool:
        """Whether one of the passes arranges loops."""
        return any(item.name == SCHEDULE for item in self.pipeline.passes)

    def arranged(
        self,
        given: Mapping[str, Schedule],
        tell: Callable[[Arranged], None] = lambda done: None,
    ) -> Week:
        """The week with schedules by the name of their kernel; `tell` hears of every kernel's.

        Raises:
            ScheduleError: there are schedules, and the week has none.
        """
        if not self.has_schedules:
            if given:
                raise ScheduleError(f"week {self.number} has no schedules; they come in week 5")
            return self
        old = self.pipeline.passes[self.pipeline.index(SCHEDULE)]
        new = replace(old, run=scheduled(detect(), given, tell, self.planner))
        pipeline = self.pipeline.replace_pass(SCHEDULE, new)
        reference = replace(self.reference, pipeline=pipeline)
        return replace(self, pipeline=pipeline, reference=reference)


SCHEDULE = "schedule"
"""The pass that arranges loops."""

WEEKS_5_AND_6 = Week(6, week05_ops.OPS, week05.COMPILER, week05.REFERENCE)
WEEKS_7_AND_8 = Week(8, week05_ops.OPS, week07.COMPILER, week07.REFERENCE, ThreadPlanner)
WEEKS_9_AND_10 = Week(10, week05_ops.OPS, week09.COMPILER, week09.REFERENCE, ThreadPlanner)

WEEKS: Mapping[int, Week] = MappingProxyType(
    {
        1: Week(1, week01_ops.OPS, week01.COMPILER, week01.REFERENCE),
        2: Week(2, week02_ops.OPS, week02.COMPILER, week02.REFERENCE),
        3: Week(3, week03_ops.OPS, week03.COMPILER, week03.REFERENCE),
        4: Week(4, week04_ops.OPS, week04.COMPILER, week04.REFERENCE),
        5: WEEKS_5_AND_6,
        6: WEEKS_5_AND_6,
        7: WEEKS_7_AND_8,
        8: WEEKS_7_AND_8,
        9: WEEKS_9_AND_10,
        10: WEEKS_9_AND_10,
    }
)
LATEST = max(WEEKS)
