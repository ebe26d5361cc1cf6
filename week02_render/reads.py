"""Values read from storage that is written later keep what they were.

A value may be computed wherever it is used, but a LOAD has to happen before the storage is
overwritten. Where that is not certain, the value is stored in a temporary first, and everybody
reads that:

    v = LOAD b; s = STORE b (v + x); return AFTER(b, s), v
      →   t = ALLOC; u = STORE t v; w = AFTER(t, u); s = STORE b (w + x); return AFTER(b, s), w

Likewise AFTER(x, v), for a value v: v has to be computed before x, and not again after it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from week01_uops.dtypes import void
from week01_uops.node import Op, UOp, make, toposort
from week01_uops.ops import ELEMENTWISE
from week01_uops.rewrite import Trace
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    INDEX,
    KEEP,
    LOAD,
    RANGE,
    STORE,
    AllocArg,
    open_ranges,
    storage_of,
)

CHANGING = frozenset({BUFFER, ALLOC})
"""Storage that a program writes and reads."""


def fresh_alloc(slots: Iterator[int], value: UOp) -> UOp:
    """A new ALLOC that holds a value."""
    return make(ALLOC, (), AllocArg(next(slots), value.dtype, value.shape))


def free_slots(program: UOp) -> Iterator[int]:
    """The ALLOC slots that a program does not use yet."""
    used = [node.arg.slot for node in program.toposort() if node.op is ALLOC]
    return itertools.count(max(used, default=-1) + 1)


def await_reads(moves: frozenset[Op]) -> Callable[[UOp, Trace], UOp]:
    """The pass that makes a write wait for each value which it would come too early for.

        v = LOAD b; s = STORE b max(v, 7)   →   s = STORE AFTER(b, v) max(v, 7)

    It waits even if rules find that what is written does not depend on the value.
    """

    def run(program: UOp, trace: Trace) -> UOp:
        if not any(node.op in CHANGING for node in program.toposort()):
            return program
        program = _explicit(program, moves)
        overtaken = _overtaken(program)
        trace.fired["wait for a value that was read"] += len(overtaken)
        done: dict[UOp, UOp] = {}
        for node in program.toposort():
            src = [done[s] for s in node.src]
            if node in overtaken:
                src[0] = make(AFTER, (src[0], *[done[read] for read in overtaken[node]]))
            done[node] = node.with_src(tuple(src))
        return done[program]

    return run


def settle_reads(moves: frozenset[Op]) -> Callable[[UOp, Trace], UOp]:
    """The pass that stores each value which a later write, or an AFTER, would come too late for.

    Args:
        moves: ops that give a place where they take one, of the weeks so far.
    """

    def run(program: UOp, trace: Trace) -> UOp:
        program = _explicit(program, moves)
        stored = _awaited(program).union(*_overtaken(program).values())
        trace.fired["store a value that was read"] += len(stored)
        return _stored_first(program, stored) if stored else program

    return run


def _explicit(program: UOp, moves: frozenset[Op]) -> UOp:
    """Changing storage that is used as a value → a LOAD of it."""
    places = moves | {INDEX, LOAD, AFTER}
    done: dict[UOp, UOp] = {}
    for node in program.toposort():
        src = [done[s] for s in node.src]
        if node.op not in places:
            first = 1 if node.op is STORE else 0
            src[first:] = [_loaded(s) for s in src[first:]]
        elif node.op is not AFTER:
            src[1:] = [_loaded(s) for s in src[1:]]
        done[node] = node.with_src(tuple(src))
    return done[program]


def _loaded(node: UOp) -> UOp:
    changing = node.place is not None and storage_of(node).op in CHANGING
    return make(LOAD, (node,)) if changing else node


def _awaited(program: UOp) -> set[UOp]:
    """The values that an AFTER outside of loops waits for."""
    return {
        dep
        for node in program.toposort()
        if node.op is AFTER
        for dep in node.src[1:]
        if dep.dtype is not void and dep.op is not RANGE and not open_ranges(dep)
    }


def _overtaken(program: UOp) -> Mapping[UOp, list[UOp]]:
    """Writes → the LOADs of their storage that they depend on, and that may be done after them."""
    effects = [n for n in program.toposort() if n.dtype is void and not open_ranges(n)]
    writes = [n for n in effects if n.op is STORE and storage_of(n.src[0]).op in CHANGING]
    if not writes:
        return {}
    users = _users([*effects, program])
    found: dict[UOp, list[UOp]] = defaultdict(list)
    for write in writes:
        before = set(write.toposort())
        storage = storage_of(write.src[0])
        for read, kernels in users.items():
            if read in before and storage_of(read.src[0]) is storage:
                late = any(k is not write and k not in before for k in kernels)
                if late or (write in kernels and not _in_place(write, read)):
                    found[write].append(read)
    return found


def _users(effects: list[UOp]) -> dict[UOp, set[UOp]]:
    """The effects in which each closed LOAD of changing storage is done, if it is not stored."""
    closed = set(effects)
    users: dict[UOp, set[UOp]] = defaultdict(set)
    for effect in effects:
        for node in toposort(
            (effect,),
            lambda n, top=effect: n.src if n is top or n not in closed else (),  # type: ignore[misc]
        ):
            if node.op is LOAD and storage_of(node.src[0]).op in CHANGING and not open_ranges(node):
                users[node].add(effect)
    return users


def _in_place(write: UOp, read: UOp) -> bool:
    """Whether a write needs of the storage, for each element, only that element as it was."""
    place, value = write.src[:2]
    if not place.shape:
        return True
    if place.op is INDEX or read.shape != place.shape or read.src[0].op not in (*CHANGING, AFTER):
        return False
    depends = {read}
    for node in toposort((value,), lambda n: () if n is read else n.src):
        if any(source in depends for source in node.src) and node is not read:
            if node.op not in ELEMENTWISE and node.op is not KEEP:
                return False
            depends.add(node)
    return True


def _stored_first(program: UOp, values: set[UOp]) -> UOp:
    slots = free_slots(program)
    done: dict[UOp, UOp] = {}
    stores: dict[UOp, UOp] = {}
    for node in program.toposort():
        src = [done[s] for s in node.src]
        if node.op is AFTER:
            src[1:] = [stores.get(old, new) for old, new in zip(node.src[1:], src[1:], strict=True)]
        new = node.with_src(tuple(src))
        if node in values:
            place = fresh_alloc(slots, new)
            stores[node] = make(STORE, (place, new))
            new = make(AFTER, (place, stores[node]))
        done[node] = new
    return done[program]
