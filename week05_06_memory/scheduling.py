"""The pass from loops to tiles: each kernel gets its schedule, the given one or the default."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from week01_uops.node import UOp
from week01_uops.ops import CALL
from week01_uops.passes import PassFunction, on_kernels, top_nodes
from week01_uops.rewrite import Trace, rewrite
from week03_loops.compiler import RULES_OF_LOOPS
from week05_06_memory.expand import expand
from week05_06_memory.machine import Machine
from week05_06_memory.nests import ScheduleError
from week05_06_memory.plan import Planner
from week05_06_memory.schedule import Applied, Schedule, apply, show

NONE: Mapping[str, Schedule] = MappingProxyType({})


def kernel_names(program: UOp) -> dict[UOp, str]:
    """The name of each kernel's body."""
    calls = [node for node in top_nodes(program) if node.op is CALL]
    return {call.src[0]: call.arg.name if call.arg else "kernel" for call in calls}


def scheduled(machine: Machine, given: Mapping[str, Schedule] = NONE) -> PassFunction:
    """The pass that schedules every kernel.

    Args:
        machine: what the default schedule is made for.
        given: schedules by the name of their kernel; "*" stands for all others.

    Raises:
        ScheduleError: (by the pass) a step is refused, or a kernel's name is unknown.
    """

    def run(program: UOp, trace: Trace) -> UOp:
        names = kernel_names(program)
        if unknown := sorted(given.keys() - {*names.values(), "*"}):
            known = ", ".join(names.values())
            raise ScheduleError(f"expected the name of a kernel ({known}), got {unknown[0]}")

        def one(body: UOp, trace: Trace) -> UOp:
            own = given.get(names[body], given.get("*"))
            if own is None:
                return planned(body, machine, trace)
            tell = lambda done: count(done, trace)
            try:
                return rewrite(apply(body, own, tell), RULES_OF_LOOPS)
            except ScheduleError as refusal:
                raise ScheduleError(f"kernel {names[body]}: {refusal}") from refusal

        return on_kernels(one)(program, trace)

    return run


def count(done: Applied, trace: Trace) -> None:
    """Note a step that was done."""
    trace.fired[show(done.step)] += 1


def planned(body: UOp, machine: Machine, trace: Trace) -> UOp:
    """The body after its default schedule."""
    planner = Planner(body, machine).run()
    for item in planner.steps:
        trace.fired[show(item.step)] += 1
    return rewrite(planner.body, RULES_OF_LOOPS)


def unrolled(body: UOp, trace: Trace) -> UOp:
    """The body with copies for what is unrolled, simplified."""
    return rewrite(expand(body, trace), RULES_OF_LOOPS, trace=trace)
