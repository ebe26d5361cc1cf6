"""Values read from storage that is written later keep what they were.

A value may be computed wherever it is used, but a LOAD has to happen before the storage is
overwritten. What has to come before what is said by the graph alone: a LOAD that a write depends
on, in whatever way, is done before it. When it is known which kernels there will be, a write waits
for all kernels that do such a LOAD:

    v = LOAD b; s = STORE b (v + x); u = STORE c (v · y)   →   s = STORE AFTER(b, u) (v + x)

Where a kernel cannot come before the write, because it needs what is written, or because the write
itself reads other elements than the one it is about to replace, the value is stored first:

    v = LOAD b; s = STORE b f(v)   →   t = ALLOC; u = STORE t v; w = AFTER(t, u); s = STORE b f(w)

Likewise AFTER(x, v), for a value v: what v reads is read before x, and not again after it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from week01_uops.node import Op, UOp, make, toposort
from week01_uops.rewrite import Trace
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    INDEX,
    LOAD,
    RANGE,
    STORE,
    AllocArg,
    in_each,
    open_ranges,
    storage_of,
)
from week02_render.precedence import Graph, value_deps


def fresh_alloc(slots: Iterator[int], value: UOp) -> UOp:
    """A new ALLOC that holds a value."""
    return make(ALLOC, (), AllocArg(next(slots), value.dtype, value.shape))


def free_slots(program: UOp) -> Iterator[int]:
    """The ALLOC slots that a program does not use yet."""
    used = [node.arg.slot for node in program.toposort() if node.op is ALLOC]
    return itertools.count(max(used, default=-1) + 1)


def await_reads(moves: frozenset[Op]) -> Callable[[UOp, Trace], UOp]:
    """The pass that makes a write depend on each value that others read before it.

        v = LOAD b; s = STORE b max(v, 7)   →   s = STORE AFTER(b, v) max(v, 7)

    It stays so even if rules find that what is written does not depend on the value.
    """

    def run(program: UOp, trace: Trace) -> UOp:
        changing = _changing(program)
        if not changing:
            return program
        program = _repeated(_explicit(program, moves, changing), changing)
        awaited = Graph(program, changing).awaited()
        trace.fired["wait for a value that was read"] += sum(map(len, awaited.values()))
        done: dict[UOp, UOp] = {}
        for node in program.toposort():
            src = [done[s] for s in node.src]
            if node in awaited:
                place = src[0].src if src[0].op is AFTER else src[:1]
                reads = [done[read] for read in awaited[node]]
                src[0] = make(AFTER, tuple(dict.fromkeys([*place, *reads])))
            done[node] = node.with_src(tuple(src))
        return done[program]

    return run


def _repeated(program: UOp, changing: frozenset[UOp]) -> UOp:
    """LOAD(p) in a loop r  →  LOAD(AFTER(p, r)), where r is no index and rules might lose it."""
    done: dict[UOp, UOp] = {}
    for node in program.toposort():
        src = [done[s] for s in node.src]
        if node.op is LOAD and storage_of(node.src[0]) in changing:
            named = _ranges_named(node.src[0])
            lost = [r for r in open_ranges(node.src[0]) if r not in named]
            src[0] = in_each(src[0], [done[r] for r in lost])
        done[node] = node.with_src(tuple(src))
    return done[program]


def _ranges_named(place: UOp) -> set[UOp]:
    """The RANGEs that are an index of a place, or that it is named after."""
    found: set[UOp] = set()
    while place.src:
        found |= {s for s in place.src[1:] if s.op is RANGE}
        place = place.src[0]
    return found


def settle_reads(moves: frozenset[Op]) -> Callable[[UOp, Trace], UOp]:
    """The pass that makes each write wait for the kernels that read before it.

    A value that some kernel would read too late is stored first.

    Args:
        moves: ops that give a place where they take one, of the weeks so far.
    """

    def run(program: UOp, trace: Trace) -> UOp:
        changing = _changing(program)
        if not changing and not any(map(value_deps, program.toposort())):
            return program
        program = _explicit(program, moves, changing)
        graph = Graph(program, changing)
        stored, waits = graph.settled()
        trace.fired["store a value that was read"] += len(stored)
        trace.fired["write after the last read"] += sum(map(len, waits.values()))
        return _Rebuilt(graph, stored, waits).program()

    return run


def _changing(program: UOp) -> frozenset[UOp]:
    """Storage that is read and written more than once: BUFFERs, and ALLOCs with several STOREs."""
    writes = Counter(storage_of(n.src[0]) for n in program.toposort() if n.op is STORE)
    return frozenset(s for s, n in writes.items() if s.op is BUFFER or (s.op is ALLOC and n > 1))


def _explicit(program: UOp, moves: frozenset[Op], changing: frozenset[UOp]) -> UOp:
    """Changing storage that is used as a value → a LOAD of it."""
    places = moves | {INDEX, LOAD, AFTER}

    def loaded(old: UOp, new: UOp) -> UOp:
        return make(LOAD, (new,)) if old.place is not None and storage_of(old) in changing else new

    done: dict[UOp, UOp] = {}
    for node in program.toposort():
        src = [done[s] for s in node.src]
        first = len(src) if node.op is AFTER else 1 if node.op in places or node.op is STORE else 0
        src[first:] = map(loaded, node.src[first:], src[first:])
        done[node] = node.with_src(tuple(src))
    return done[program]


@dataclass
class _Rebuilt:
    """The program with values stored, and with writes that wait.

    Attributes:
        graph: the program as it was.
        stored: LOADs that are stored first.
        waits: STOREs → kernels.
    """

    graph: Graph
    stored: set[UOp]
    waits: Mapping[UOp, list[UOp]]

    def program(self) -> UOp:
        """Build it, sources first."""
        root = self.graph.program
        slots, late = free_slots(root), self._copies()
        copies: dict[UOp, UOp] = {}
        done: dict[UOp, UOp] = {}
        for node in toposort((root,), lambda n: self._sources(n, late)):
            src = self._awaiting(node, done) if value_deps(node) else [done[s] for s in node.src]
            deps = [copies[read] for read in late.get(node, ())]
            deps += [done[kernel] for kernel in self.waits.get(node, ())]
            if deps:
                src[0] = make(AFTER, (src[0], *dict.fromkeys(deps)))
            new = src[0] if node.op is AFTER and len(src) == 1 else node.with_src(tuple(src))
            if node in self.stored:
                place = fresh_alloc(slots, new)
                copies[node] = make(STORE, (place, new))
                new = make(AFTER, (place, copies[node]))
            done[node] = new
        return done[root]

    def _copies(self) -> Mapping[UOp, list[UOp]]:
        """STOREs → the stored LOADs that come before them."""
        graph = self.graph
        bits = sum(graph.bit[read] for read in self.stored)
        found = {s: list(graph.of(graph.read_before(k, s) & bits)) for k, s in graph.writes}
        return {store: reads for store, reads in found.items() if reads}

    def _sources(self, node: UOp, late: Mapping[UOp, list[UOp]]) -> tuple[UOp, ...]:
        src = node.src
        if deps := value_deps(node):
            src = (*[s for s in src if s not in deps], *self._kernels_of(deps))
        return (*src, *late.get(node, ()), *self.waits.get(node, ()))

    def _kernels_of(self, values: list[UOp]) -> list[UOp]:
        """The kernels that values are made of, instead of the values."""
        below = toposort(values, lambda n: () if self.graph.is_kernel(n) else n.src)
        return [n for n in below if self.graph.is_kernel(n)]

    def _awaiting(self, node: UOp, done: Mapping[UOp, UOp]) -> list[UOp]:
        deps = value_deps(node)
        kept = [done[s] for s in node.src[1:] if s not in deps]
        kept += [done[kernel] for kernel in self._kernels_of(deps)]
        return [done[node.src[0]], *dict.fromkeys(kept)]
