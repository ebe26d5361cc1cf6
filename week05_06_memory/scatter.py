"""Scattering: a one-hot sum whose mask moves with a loop over the results adds where it hits.

    END(STORE(p[v, d], f(Σ_n [e(n) = v]·x(n, v, d))), v, d)
      →   END(STORE(p[v, d], 0), v, d)
          END(STORE(p[e(n), d], p[e(n), d] + x(n, e(n), d)), n, t < [0 ≤ e(n) < size], d)
          END(STORE(p[v, d], f(p[v, d])), v, d)                          unless f is nothing

So the backward pass of an embedding costs as much as its forward pass. Each element's terms are
added in the order of n, whatever the machine: the results are always the same. The loop t, of one
iteration or none, is the test that keeps positions out of range away.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from week01_uops.calls import substitute
from week01_uops.dtypes import int64
from week01_uops.node import CONST, UOp, const, make
from week01_uops.ops import ADD, CALL, CAST, PARAM, WHERE, CallArg, parameters
from week01_uops.passes import top_nodes
from week01_uops.rewrite import Trace
from week02_render.ops import (
    AFTER,
    END,
    INDEX,
    LOAD,
    RANGE,
    STORE,
    loop,
    open_ranges,
    storage_of,
    zero,
)
from week03_loops.ops import REDUCE
from week03_loops.reduction import accumulator_dtype
from week04_fusion.fuse import ACCESS
from week05_06_memory.onehot import Masked, Selection, both, conditions, select, term


class Scatter(NamedTuple):
    """A body that can scatter.

    Attributes:
        total: the one-hot sum in it.
        v: the loop over the results that the mask moves with.
        selection: the term at its one v.
    """

    total: UOp
    v: UOp
    selection: Selection


def find_scatter(body: UOp, trace: Trace) -> Scatter | None:
    """The first sum of a body that pays as a scatter loop; says why one does not."""
    store = filling(body)
    if store is None:
        return None
    place, value = store.src
    for node in value.toposort():
        if node.op is not REDUCE or node.arg.op is not ADD:
            continue
        found = _scatter_of(node, term(node), body.src[1:])
        if found is None:
            continue
        reason = _refusal(found, place)
        if reason is None:
            return found
        trace.decline("scatter", reason, node)
    return None


def filling(body: UOp) -> UOp | None:
    """The one STORE of a body that fills its storage, each element once, and reads none of it."""
    store, *ranges = body.src if body.op is END else (body,)
    if store.op is not STORE or len(store.src) != 2:
        return None
    place, value = store.src
    base, *indices = place.src if place.op is INDEX else (place,)
    counters = [i for i in indices if i.op is not CONST]
    if base.op is not PARAM or sorted(counters, key=id) != sorted(ranges, key=id):
        return None
    read = any(n.op is LOAD and storage_of(n.src[0]) is base for n in value.toposort())
    return None if read or any(r.src for r in counters) else store


def _scatter_of(node: UOp, found: Masked, ranges: tuple[UOp, ...]) -> Scatter | None:
    closed = frozenset(node.src[1:])
    if not open_ranges(node) <= frozenset(ranges) or any(r.src for r in closed):
        return None
    for v in ranges:
        selection = select(found, v)
        if selection is not None and open_ranges(selection.e) & closed:
            return Scatter(node, v, selection)
    return None


def _refusal(found: Scatter, place: UOp) -> str | None:
    dtype = found.total.dtype
    if dtype is not place.dtype or accumulator_dtype(dtype) is not dtype:
        return f"expected storage that sums of {dtype} can be held in, got {place.dtype}"
    terms = math.prod(r.arg.size for r in found.total.src[1:])
    results = found.v.arg.size
    summed, scattered = terms * results, ACCESS * (3 * results + 2 * terms)
    if summed <= scattered:
        return (
            f"{summed:.3g} operations a column for {terms} terms of each of {results} results "
            f"cost less than clearing, reading and writing them, {scattered:.3g}"
        )
    return None


def bodies(body: UOp, found: Scatter) -> list[UOp]:
    """The bodies that clear, add and, if more is done with the sums, finish."""
    store, *ranges = body.src
    place, value = store.src
    cleared = make(STORE, (place, const(zero(place.dtype), place.dtype)))
    result = [make(END, (cleared, *ranges)), _adding(place, ranges, found, _free_number(body))]
    if value is not found.total:
        final = substitute(value, {found.total: make(LOAD, (place,))})
        result.append(make(END, (make(STORE, (place, final)), *ranges)))
    return result


def _free_number(body: UOp) -> int:
    return 1 + max(int(node.arg.id) for node in body.toposort() if node.op is RANGE)


def _adding(filled: UOp, ranges: list[UOp], found: Scatter, number: int) -> UOp:
    """The loops outside v, those of the sum, the test, and those inside v.

    What has to hold and depends on the loops inside selects the term or 0.
    """
    base, *indices = filled.src
    e, gate, value = found.selection
    inside = [r for r in ranges[ranges.index(found.v) + 1 :] if r not in open_ranges(e)]
    order = [r for r in ranges if r is not found.v and r not in inside] + [*found.total.src[1:]]
    parts = conditions(gate)
    selects = [part for part in parts if not open_ranges(part).isdisjoint(inside)]
    test = both([part for part in parts if part not in selects])
    if selects:
        value = make(WHERE, (both(selects), value, const(zero(value.dtype), value.dtype)))
    if test.interval != (1, 1):
        order.append(loop(number, 1, make(CAST, (test,), int64)))
    order += inside
    moved = [e if i is found.v else i for i in indices]
    place = make(INDEX, (make(AFTER, (base, *order)), *moved))
    return make(END, (make(STORE, (place, make(ADD, (make(LOAD, (place,)), value)))), *order))


def scatter(program: UOp, trace: Trace) -> UOp:
    """Each kernel that pays as a scatter loop → the kernels that clear, add and finish."""
    done: dict[UOp, UOp] = {}
    for node in top_nodes(program):
        new = node.with_src(tuple([done.get(s, s) for s in node.src]))
        found = find_scatter(new.src[0], trace) if new.op is CALL else None
        if found is not None:
            trace.fired["scatter"] += 1
            new = _calls(new, bodies(new.src[0], found))
        done[node] = new
    return done[program]


def _calls(call: UOp, parts: list[UOp]) -> UOp:
    """The parts of a kernel one after the other, all after what the kernel waited for."""
    body, *arguments = call.src
    slot = storage_of(body.src[0].src[0]).arg.slot
    written = storage_of(arguments[slot])
    name = (call.arg.name if call.arg is not None else None) or "kernel"
    names = [f"{name}_clear", f"{name}_scatter", name]
    given = dict(enumerate(arguments))
    for part, part_name in zip(parts, names, strict=False):
        call = called(part, given, part_name)
        given[slot] = make(AFTER, (written, call))
    return call


def called(
    body: UOp, arguments: Mapping[int, UOp], name: str | None, gone: Collection[UOp] = ()
) -> UOp:
    """CALL of a body whose PARAMs are given by slot: those that it has, one for each storage.

    It waits for all that any of the arguments waits for, but for the kernels that are gone.
    """
    needed = [param for _, param in sorted(parameters(body).items())]
    waits: dict[UOp, dict[UOp, None]] = {storage_of(arguments[p.arg.slot]): {} for p in needed}
    slots = {storage: slot for slot, storage in enumerate(waits)}
    for _, argument in sorted(arguments.items()):
        storage = storage_of(argument)
        deps = [d for d in argument.src[1:] if d not in gone] if argument.op is AFTER else []
        waits[storage if storage in waits else next(iter(waits))].update(dict.fromkeys(deps))
    moved = {p: param_at(p, slots[storage_of(arguments[p.arg.slot])]) for p in needed}
    given = [make(AFTER, (place, *deps)) if deps else place for place, deps in waits.items()]
    return make(CALL, (substitute(body, moved), *given), CallArg(name))


def param_at(node: UOp, slot: int) -> UOp:
    """The PARAM at another slot."""
    return make(PARAM, (), replace(node.arg, slot=slot))
