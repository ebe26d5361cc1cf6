"""The pass from loops to tiles: each kernel gets its schedule, the given one or the default."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from week01_uops.node import UOp, make, toposort
from week01_uops.ops import CALL
from week01_uops.passes import PassFunction, on_kernels, top_nodes
from week01_uops.rewrite import Trace, rewrite
from week02_render.ops import RANGE
from week03_loops.compiler import RULES_OF_LOOPS
from week05_06_memory.expand import expand
from week05_06_memory.machine import Machine
from week05_06_memory.nests import ScheduleError
from week05_06_memory.plan import Decision, Planned, Planner
from week05_06_memory.schedule import Schedule, apply, show
from week05_06_memory.split import plain_tiles

NONE: Mapping[str, Schedule] = MappingProxyType({})


def kernel_names(program: UOp) -> dict[UOp, str]:
    """The name of each kernel's body: that of its CALL, with a number if others have the same."""
    found: dict[UOp, str] = {}
    for call in [node for node in top_nodes(program) if node.op is CALL]:
        name = call.arg.name if call.arg and call.arg.name else "kernel"
        taken = frozenset(found.values())
        numbered = (f"{name}_{k}" for k in itertools.count(2))
        free = next(n for n in itertools.chain([name], numbered) if n not in taken)
        found.setdefault(call.src[0], free)
    return found


@dataclass(frozen=True)
class Arranged:
    """What was done to one kernel.

    Attributes:
        kernel: its name.
        before: its body at loop level.
        steps: its schedule; a given one has no reasons.
        after: its body at tile level, simplified.
        decisions: nest by nest, of the default scheduler.
        refused: steps that the default scheduler tried, and why they were refused.
    """

    kernel: str
    before: UOp
    steps: tuple[Planned, ...]
    after: UOp
    decisions: tuple[Decision, ...] = ()
    refused: tuple[Planned, ...] = ()


def arrange(
    kernel: str,
    body: UOp,
    machine: Machine,
    own: Schedule | None = None,
    planner: type[Planner] = Planner,
) -> Arranged:
    """The body after its own schedule, or the default one; kinds that a program asks for are gone.

    Raises:
        ScheduleError: a step of its own schedule is refused.
    """
    body = _without_kinds(body)
    if own is None:
        plan = planner(body, machine).run()
        after = tidied(plan.body)
        told = tuple(plan.steps), after, tuple(plan.decisions), tuple(plan.refused)
        return Arranged(kernel, body, *told)
    try:
        after = apply(body, own)
    except ScheduleError as refusal:
        raise ScheduleError(f"kernel {kernel}: {refusal}") from refusal
    return Arranged(kernel, body, tuple(Planned(s, "") for s in own), tidied(after))


def _without_kinds(body: UOp) -> UOp:
    done: dict[UOp, UOp] = {}
    for node in toposort((body,)):
        new = node.with_src(tuple([done[s] for s in node.src]))
        done[node] = make(RANGE, new.src, replace(new.arg, kind=None)) if node.op is RANGE else new
    return done[body]


def tidied(body: UOp) -> UOp:
    """A scheduled body without TILEs, its indices simplified."""
    return rewrite(plain_tiles(body), RULES_OF_LOOPS)


def scheduled(
    machine: Machine,
    given: Mapping[str, Schedule] = NONE,
    tell: Callable[[Arranged], None] = lambda done: None,
    planner: type[Planner] = Planner,
) -> PassFunction:
    """The pass that schedules every kernel.

    Args:
        machine: what the default schedule is made for.
        given: schedules by the name of their kernel; "*" stands for all others.
        tell: is told of every kernel.
        planner: the default scheduler.

    Raises:
        ScheduleError: (by the pass) a step is refused, or a kernel's name is unknown.
    """

    def run(program: UOp, trace: Trace) -> UOp:
        names = kernel_names(program)
        if unknown := sorted(given.keys() - {*names.values(), "*"}):
            known = ", ".join(names.values())
            raise ScheduleError(f"expected the name of a kernel ({known}), got {unknown[0]}")

        def one(body: UOp, trace: Trace) -> UOp:
            name = names[body]
            done = arrange(name, body, machine, given.get(name, given.get("*")), planner)
            trace.fired.update(show(item.step) for item in done.steps)
            for item in done.refused:
                trace.decline(show(item.step), item.because, body)
            tell(done)
            return done.after

        return on_kernels(one)(program, trace)

    return run


def unrolled(body: UOp, trace: Trace) -> UOp:
    """The body with copies for what is unrolled, simplified."""
    return rewrite(expand(body, trace), RULES_OF_LOOPS, trace=trace)
