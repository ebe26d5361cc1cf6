"""A kernel is taken into the one kernel that reads what it writes, and a strip of it is held there.

    CALL(END(STORE(INDEX(t, r, c), v), r, c)), CALL(END(STORE(p, f(LOAD(INDEX(t, i, e)))), j, i))
      →   CALL(END(STORE(p, f(LOAD(INDEX(STAGE(v[r := i], c), e)))), i, j))

An axis of the temporary t is shared if all loads index it in one way, by the reader's own loops.
Those loops come first, and in each of their iterations the elements along the other axes are held
in a STAGE: every element is computed once, as before, but only a row of them is held at a time.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from week01_uops.calls import substitute
from week01_uops.dtypes import int64
from week01_uops.linear import linear
from week01_uops.node import CONST, UOp, const, make, toposort
from week01_uops.ops import ADD, CALL, MUL, PARAM, WHERE, CallArg
from week01_uops.passes import PassFunction, top_nodes
from week01_uops.rewrite import Trace, rewrite
from week01_uops.simplify import SIMPLIFY
from week02_render.kernels import kernel_name
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    INDEX,
    LOAD,
    RANGE,
    STORE,
    index,
    open_ranges,
    storage_of,
    zero,
)
from week04_fusion.merge import describe, kernels_of, renumbered, replace_calls, waiting
from week04_fusion.ops import STAGE, stage
from week05_06_memory.machine import Machine
from week05_06_memory.traffic import HIDDEN, Strip, byte_cost, bytes_of, has_stage


class Refusal(Exception):  # noqa: N818 - a decision, no error
    """Why a kernel stays by itself."""


Price = Callable[["Join", UOp, Machine], None]
"""Raises Refusal where holding strips of a place costs more than it saves."""

Refused = dict[tuple[object, ...], tuple[str, UOp]]
"""Why two kernels stay apart, and the first of them, by what that depends on."""


def hold_strips(
    machine: Machine, price: Price | None = None, into: frozenset[UOp] | None = None
) -> PassFunction:
    """The pass that takes kernels into their readers, the last ones first, where that pays.

    Args:
        machine: what it has to pay on.
        price: refuses what does not pay; `check_price` if it is not given.
        into: take kernels only into those that write one of these places.
    """
    rules = _Rules(machine, price or check_price, into)

    def run(program: UOp, trace: Trace) -> UOp:
        refused: Refused = {}
        while (found := _next(program, rules, refused)) is not None:
            program = replace_calls(program, found)
            trace.fired["strips"] += 1
        for reason, producer in refused.values():
            trace.decline("strips", reason, producer)
        return program

    return run


class _Rules(NamedTuple):
    """Which kernels may become one."""

    machine: Machine
    price: Price
    into: frozenset[UOp] | None


def _next(program: UOp, rules: _Rules, refused: Refused) -> dict[UOp, UOp | None] | None:
    """The last two kernels that become one, and what takes their place."""
    kernels = [kernel for kernel in kernels_of(program) if kernel.loops]
    users = Counter(storage_of(a) for n in top_nodes(program) if n.op is CALL for a in n.src[1:])
    users.update(storage_of(output) for output in program.src)
    writers = {place: k.call for k in kernels for place in k.written}
    for consumer in reversed(kernels):
        if rules.into is not None and rules.into.isdisjoint(consumer.written):
            continue
        for slot, place in enumerate(map(storage_of, consumer.call.src[1:])):
            producer = writers.get(place, consumer.call)
            if producer is not consumer.call and place.op is ALLOC and users[place] == 2:
                joined = _try(producer, consumer.call, slot, rules, refused)
                if joined is not None:
                    return {consumer.call: joined, producer: None}
    return None


def _try(first: UOp, second: UOp, slot: int, rules: _Rules, refused: Refused) -> UOp | None:
    """The two as one CALL; None, with the reason noted, if they stay apart."""
    pair, bodies = (first, second), (first.src[0], second.src[0], slot)
    if pair in refused or bodies in refused:
        return None
    key: tuple[object, ...] = pair
    try:
        _check_order(first, second)
        key = bodies
        return _joined(first, second, storage_of(second.src[1 + slot]), rules)
    except Refusal as refusal:
        refused[key] = str(refusal), first
        return None


def _joined(first: UOp, second: UOp, place: UOp, rules: _Rules) -> UOp:
    """The second CALL with the first one in it, which fills `place`."""
    arguments = _arguments(first, second, place)
    slots = {storage: slot for slot, storage in enumerate((*arguments, place))}
    later = renumbered(second, slots)
    earlier = _fresh_ranges(renumbered(first, slots), later)
    join = Join.of(earlier, later, slots[place], place.shape)
    rules.price(join, place, rules.machine)
    body = join.body()
    done, _, _ = kernel_name(body).rpartition("_")
    stored = (second.arg.name or "") if second.arg else ""
    name = f"{done}_{stored.rpartition('_')[2]}"
    return make(CALL, (body, *arguments.values()), CallArg(name))


def _check_order(first: UOp, second: UOp) -> None:
    """The first does one thing, and nothing happens before the second that has to wait for it."""
    if len(describe(first, 0).written) > 1:
        raise Refusal("it writes more than its reader reads")
    if any(n.op is ALLOC for n in toposort((first.src[0], second.src[0]))):
        raise Refusal("one of the two is computed in blocks")
    deps = [d for a in second.src[1:] if a.op is AFTER for d in a.src[1:] if d is not first]
    if first in toposort(deps, lambda n: n.src[1:] if n.op is CALL else n.src):
        raise Refusal("a kernel stands between it and its reader")
    read = {storage_of(a) for a in first.src[1:]}
    if read & describe(second, 0).written:
        raise Refusal("its reader writes what it reads")


def _arguments(first: UOp, second: UOp, place: UOp) -> dict[UOp, UOp]:
    """The storages of both but `place`, what is written first, and how they are waited for."""
    storages: dict[UOp, dict[UOp, None]] = {}
    for call in (second, first):
        for argument in call.src[1:]:
            storages.setdefault(storage_of(argument), {})[argument] = None
    waits = storages.pop(place)
    written = describe(second, 0).written
    ordered = sorted(storages, key=lambda storage: storage not in written)
    storages[ordered[0]] |= {
        make(AFTER, (ordered[0], *a.src[1:])): None for a in waits if a.op is AFTER
    }
    return {s: waiting(s, storages[s], {first, second}) for s in ordered}


def _fresh_ranges(body: UOp, other: UOp) -> UOp:
    """The body with RANGEs of numbers that the other does not have."""
    used = [n.arg.id for n in other.toposort() if n.op is RANGE]
    numbers = itertools.count(max(used, default=-1) + 1)
    done: dict[UOp, UOp] = {}
    for node in toposort((body,)):
        src = tuple([done[s] for s in node.src])
        arg = replace(node.arg, id=next(numbers)) if node.op is RANGE else node.arg
        done[node] = make(node.op, src, arg)
    return done[body]


@dataclass(frozen=True)
class Join:
    """A body that stores each element of a temporary, and one that loads them.

    Attributes:
        later: the body that loads.
        loads: its loads.
        value: what the other body stores.
        axes: the loop of each axis of the temporary there; None if it has one element.
        shared: axes that all loads index in one way, and how.
        loops: the loops of `later` that these indices are made of, outermost first.
    """

    later: UOp
    loads: tuple[UOp, ...]
    value: UOp
    axes: tuple[UOp | None, ...]
    shared: Mapping[int, UOp]
    loops: tuple[UOp, ...]

    @classmethod
    def of(cls, earlier: UOp, later: UOp, slot: int, shape: tuple[int, ...]) -> Join:
        """The two bodies; says why they cannot be one."""
        axes = _axes(earlier)
        loads = _loads(later, slot)
        shared = _shared(loads, later.src[1:], shape)
        apart = _apart(shared, shape)
        loops = tuple([r for r in later.src[1:] if r in apart])
        if not loops:
            raise Refusal("no loop is shared: its reader wants all of it at once")
        if later.src[1 : 1 + len(loops)] != loops and not is_order_free(later):
            raise Refusal("the loops of its reader have to stay in order")
        held = [open_ranges(n) for n in toposort((later.src[0],)) if n.op is STAGE]
        if any(not (own <= apart or apart <= own) for own in held):
            raise Refusal("its reader holds strips of something else, in other loops")
        join = cls(later, loads, earlier.src[0].src[1], axes, shared, loops)
        if any(len(open_ranges(load.src[0].src[1 + a])) > 1 for load in loads for a in join.rest):
            raise Refusal("its reader wants overlapping windows of it")
        return join

    @property
    def rest(self) -> tuple[int, ...]:
        """The axes of the STAGE."""
        return tuple([a for a, r in enumerate(self.axes) if r is not None and a not in self.shared])

    def moved(self) -> UOp:
        """The value, in the loops of the reader."""
        inside = {r: self.shared[a] for a, r in enumerate(self.axes) if r and a in self.shared}
        return substitute(self.value, inside)

    def held(self) -> UOp:
        """The value, in a STAGE over the axes that are not shared."""
        ranges = [r for a in self.rest if (r := self.axes[a]) is not None]
        return stage(self.moved(), *ranges) if ranges else self.moved()

    def body(self) -> UOp:
        """One body, with the shared loops first."""
        held = self.held()
        found = substitute(self.later, {load: self._read(load, held) for load in self.loads})
        effect, *ranges = found.src
        order = [*self.loops, *(r for r in ranges if r not in self.loops)]
        return make(END, (effect, *order))

    def _read(self, load: UOp, held: UOp) -> UOp:
        place, *gate = load.src
        if self.rest:
            return make(LOAD, (index(held, *(place.src[1 + a] for a in self.rest)), *gate))
        if not gate:
            return held
        other = gate[1] if len(gate) > 1 else const(zero(load.dtype), load.dtype)
        return make(WHERE, (gate[0], held, other))


def _axes(body: UOp) -> tuple[UOp | None, ...]:
    """The loop of each axis of what a body stores, if it stores every element once."""
    store, *ranges = body.src
    place = store.src[0] if store.op is STORE and len(store.src) == 2 else store
    if place.op is not INDEX or place.src[0].op is not PARAM:
        raise Refusal("it is more than one store without a condition")
    axes: list[UOp | None] = []
    for item, size in zip(place.src[1:], place.src[0].shape, strict=True):
        whole = item.op is RANGE and item in ranges and item.arg.size == size and not item.src
        if not whole and (item.op is not CONST or size != 1):
            raise Refusal("it does not store each element in an iteration of its own")
        axes.append(item if whole else None)
    if sorted(r.arg.id for r in axes if r is not None) != sorted(r.arg.id for r in ranges):
        raise Refusal("it does not store each element once")
    return tuple(axes)


def _loads(body: UOp, slot: int) -> tuple[UOp, ...]:
    """The LOADs of single elements of a PARAM, which is used in no other way."""
    order = body.toposort()
    place = next((n for n in order if n.op is PARAM and n.arg.slot == slot), None)
    places = {n for n in order if n.op is INDEX and n.src[0] is place}
    users = [n for n in order if place in n.src or not places.isdisjoint(n.src)]
    if any(n not in places and (n.op is not LOAD or n.src[0] not in places) for n in users):
        raise Refusal("its reader wants it as a whole")
    return tuple([n for n in users if n.op is LOAD])


def _shared(
    loads: tuple[UOp, ...], loops: tuple[UOp, ...], shape: tuple[int, ...]
) -> Mapping[int, UOp]:
    """The axes that all loads index in one way, with different elements in different iterations."""
    indices = [load.src[0].src[1:] for load in loads]
    same = {
        axis: items[0]
        for axis, items in enumerate(zip(*indices, strict=True))
        if all(i is items[0] for i in items) and open_ranges(items[0]).issubset(loops)
    }
    if _apart(same, shape):
        return same
    plain = {axis: item for axis, item in same.items() if item.op is RANGE}
    first = {item: axis for axis, item in reversed(plain.items())}
    return {a: item for a, item in same.items() if item.op is CONST or first.get(item) == a}


def _apart(indices: Mapping[int, UOp], shape: tuple[int, ...]) -> frozenset[UOp]:
    """The loops of which each iteration indexes another element; empty if that is not seen."""
    flat = const(0, int64)
    for axis, item in indices.items():
        if item.dtype is not int64 or item.interval[0] < 0 or item.interval[1] >= shape[axis]:
            return frozenset()
        flat = make(ADD, (make(MUL, (flat, const(shape[axis], int64))), item))
    form = linear(rewrite(flat, SIMPLIFY))
    span = 0
    for term, factor in sorted(form.terms.items(), key=lambda item: item[1]):
        if term.op is not RANGE or term.src or factor <= span:
            return frozenset()
        span += factor * (term.arg.size - 1)
    return frozenset(form.terms)


def is_order_free(body: UOp) -> bool:
    """Whether the iterations of a body's loops may be carried out in any order.

    They may if each stores elements of its own, and none loads what another stores.
    """
    inside = body.src[0].toposort()
    if any(n.op in (END, ALLOC) for n in inside):
        return False
    places = [n.src[0] for n in inside if n.op is STORE]
    written = {storage_of(place) for place in places}
    if any(n.op is LOAD and storage_of(n.src[0]) in written for n in inside):
        return False
    return all(
        place.op is INDEX
        and place.src[0].op is PARAM
        and _apart(dict(enumerate(place.src[1:])), place.src[0].shape) == set(body.src[1:])
        for place in places
    )


def check_price(join: Join, place: UOp, machine: Machine) -> None:
    """Holding strips saves more than reading again what does not belong to them costs."""
    row = next((r for r in reversed(join.loops) if r.arg.size > 1), join.loops[-1])
    strip = Strip(row, frozenset(join.loops) - {row})
    parts = (join.later, join.held())
    held, size = strip.held(*parts), bytes_of(place)
    saved = 2 * size * (byte_cost(machine, size) - byte_cost(machine, held))
    if saved <= 0:
        raise Refusal(f"a strip of {held:.3g} bytes is no nearer than all {size:.3g}")
    again = sum(strip.read_again(p) for p in (join.later, join.moved()) if not has_stage(p))
    extra = strip.strips * again * byte_cost(machine, strip.read_again(*parts) + held) / HIDDEN
    if extra >= saved:
        raise Refusal(
            f"reading {again:.3g} bytes again for each of {strip.strips} strips costs more than "
            f"writing and reading {size:.3g} once"
        )
