"""Kernels that read the same storage over the same loops become one kernel.

    CALL(END(e, r…), …), CALL(END(f, r…), …)   →   CALL(END(AFTER(f, e), r…), …)

It is done where neither waits for the other and one reads nothing that the other does not: mean
and variance of one array, not three products of one matrix with three others.
"""

from __future__ import annotations

from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import CALL, PARAM, CallArg, ParamArg
from week01_uops.passes import top_nodes
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, END, STORE, storage_of


@dataclass(frozen=True)
class _Kernel:
    """What decides whether two CALLs may be one."""

    call: UOp
    loops: tuple[UOp, ...]
    read: frozenset[UOp]
    written: frozenset[UOp]
    waits: int


def merge_kernels(program: UOp, trace: Trace) -> UOp:
    """Merge pairs until none is left that may be."""
    while (pair := _find_pair(program, trace)) is not None:
        first, second = pair
        program = _replace(program, first, second)
        trace.fired["merge"] += 1
    return program


def _find_pair(program: UOp, trace: Trace) -> tuple[UOp, UOp] | None:
    kernels = _kernels(program)
    for j, later in enumerate(kernels):
        for i, earlier in enumerate(kernels[:j]):
            if earlier.loops != later.loops or not (earlier.read & later.read):
                continue
            if later.waits >> i & 1:
                continue
            if earlier.read <= later.read or later.read <= earlier.read:
                return earlier.call, later.call
            reason = "each reads storage that the other does not"
            trace.decline("merge", reason, later.call)
    return None


def _kernels(program: UOp) -> list[_Kernel]:
    """The CALLs in order; bit i of `waits` is set where kernel i has to run before."""
    found: list[_Kernel] = []
    waits: dict[UOp, int] = {}
    for node in top_nodes(program):
        below = 0
        for source in node.src[1:] if node.op is CALL else node.src:
            below |= waits[source]
        if node.op is CALL and node.src[0].op is END:
            found.append(_describe(node, below))
            below |= 1 << len(found) - 1
        waits[node] = below
    return found


def _describe(call: UOp, waits: int) -> _Kernel:
    body, *arguments = call.src
    stores = [n for n in body.toposort() if n.op is STORE]
    written = {storage_of(n.src[0]).arg.slot for n in stores if storage_of(n.src[0]).op is PARAM}
    places = [storage_of(a) for a in arguments]
    return _Kernel(
        call,
        body.src[1:],
        frozenset(p for slot, p in enumerate(places) if slot not in written),
        frozenset(p for slot, p in enumerate(places) if slot in written),
        waits,
    )


def _replace(program: UOp, first: UOp, second: UOp) -> UOp:
    """The program with one CALL in place of two."""
    merged = _merged(first, second)
    done: dict[UOp, UOp] = {}
    pending = {first: merged, second: merged}
    for node in _order_for(program, pending):
        target = pending.get(node, node)
        src = tuple([done.get(s, s) for s in target.src])
        done[node] = target.with_src(src)
    return done[program]


def _order_for(program: UOp, pending: dict[UOp, UOp]) -> list[UOp]:
    """Sources first, where a merged CALL stands for both and needs what both needed."""
    def sources(node: UOp) -> tuple[UOp, ...]:
        target = pending.get(node, node)
        return target.src[1:] if target.op is CALL else target.src

    return toposort((program,), sources)


def _merged(first: UOp, second: UOp) -> UOp:
    """One CALL that does both: equal storage is one PARAM, written storage first."""
    storages: dict[UOp, dict[UOp, None]] = {}
    for call in (first, second):
        for argument in call.src[1:]:
            storages.setdefault(storage_of(argument), {})[argument] = None
    written = _describe(first, 0).written | _describe(second, 0).written
    places = sorted(storages, key=lambda place: place not in written)
    slots = {place: slot for slot, place in enumerate(places)}
    bodies = [_renumbered(call, slots) for call in (first, second)]
    effect = make(AFTER, (bodies[1].src[0], bodies[0].src[0]))
    body = make(END, (effect, *bodies[0].src[1:]))
    names = [call.arg.name or "kernel" for call in (first, second)]
    return make(CALL, (body, *[_waiting(p, storages[p]) for p in places]), CallArg("_".join(names)))


def _waiting(place: UOp, arguments: dict[UOp, None]) -> UOp:
    """The storage, after all that any of the arguments waits for."""
    deps = dict.fromkeys(dep for a in arguments if a.op is AFTER for dep in a.src[1:])
    return make(AFTER, (place, *deps)) if deps else place


def _renumbered(call: UOp, slots: dict[UOp, int]) -> UOp:
    """The body with its PARAMs numbered by storage."""
    body, *arguments = call.src
    replacements = {}
    for node in body.toposort():
        if node.op is PARAM:
            arg: ParamArg = node.arg
            slot = slots[storage_of(arguments[arg.slot])]
            replacements[node] = make(PARAM, (), ParamArg(slot, arg.dtype, arg.shape, arg.range))
    return substitute(body, replacements)
