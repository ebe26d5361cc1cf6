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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from week01_uops.dtypes import void
from week01_uops.node import Op, UOp, make, toposort
from week01_uops.ops import ELEMENTWISE, RETURN
from week01_uops.rewrite import Trace
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    END,
    INDEX,
    KEEP,
    LOAD,
    RANGE,
    STORE,
    AllocArg,
    open_ranges,
    storage_of,
)

Bits = int
"""A set of the items of a `_Graph`: bit k stands for the k-th."""


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
        program = _explicit(program, moves, changing)
        awaited = _Graph(program, changing).awaited()
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


def settle_reads(moves: frozenset[Op]) -> Callable[[UOp, Trace], UOp]:
    """The pass that makes each write wait for the kernels that read before it.

    A value that some kernel would read too late is stored first.

    Args:
        moves: ops that give a place where they take one, of the weeks so far.
    """

    def run(program: UOp, trace: Trace) -> UOp:
        changing = _changing(program)
        if not changing and not any(map(_value_deps, program.toposort())):
            return program
        program = _explicit(program, moves, changing)
        graph = _Graph(program, changing)
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


def _value_deps(node: UOp) -> list[UOp]:
    """The values that an AFTER outside of loops waits for."""
    if node.op is not AFTER:
        return []
    deps = (dep for dep in node.src[1:] if dep.dtype is not void and dep.op is not RANGE)
    return [dep for dep in deps if not open_ranges(dep)]


def _inner(order: list[UOp]) -> set[UOp]:
    """The effects that an END closes loops around, directly or through AFTER."""
    inner: set[UOp] = set()
    stack = [node.src[0] for node in order if node.op is END]
    while stack:
        effect = stack.pop()
        if effect not in inner:
            inner.add(effect)
            stack += [s for s in effect.src if s.dtype is void] if effect.op is AFTER else []
    return inner


@dataclass
class _Graph:
    """A program with what comes before what.

    The items are its kernels (effects with no loop around them, and RETURN) and the LOADs of
    changing storage, sources first.
    """

    program: UOp
    changing: frozenset[UOp]
    order: list[UOp] = field(init=False)
    items: list[UOp] = field(init=False)
    bit: dict[UOp, Bits] = field(init=False)
    kernels: Bits = 0

    def __post_init__(self) -> None:
        self.order = self.program.toposort()
        inner = _inner(self.order)
        self.items, self.bit = [], {}
        for node in self.order:
            effect = node.op in (STORE, END, RETURN) and node not in inner
            read = node.op is LOAD and storage_of(node.src[0]) in self.changing
            if (effect or read) and not open_ranges(node):
                self.bit[node] = 1 << len(self.items)
                self.kernels |= self.bit[node] if effect else 0
                self.items.append(node)

    def of(self, bits: Bits) -> Iterator[UOp]:
        """The items of a set, first to last."""
        while bits:
            low = bits & -bits
            yield self.items[low.bit_length() - 1]
            bits ^= low

    def is_kernel(self, node: UOp) -> bool:
        """Whether a node is one of the kernels."""
        return bool(self.bit.get(node, 0) & self.kernels)

    @cached_property
    def below(self) -> Mapping[UOp, Bits]:
        """Each node → the items that it depends on, in whatever way, and itself."""
        found: dict[UOp, Bits] = {}
        for node in self.order:
            bits = self.bit.get(node, 0)
            for source in node.src:
                bits |= found[source]
            found[node] = bits
        return found

    @cached_property
    def users(self) -> Mapping[UOp, Bits]:
        """Each node → the kernels that it is computed in; no kernel is computed in another."""
        found: dict[UOp, Bits] = defaultdict(int)
        for node in reversed(self.order):
            bits = self.bit[node] if self.is_kernel(node) else found[node]
            waited = _value_deps(node)
            for source in node.src:
                if source not in waited:
                    found[source] |= bits
        return found

    @cached_property
    def reads(self) -> Mapping[UOp, Bits]:
        """Changing storage → the LOADs of it."""
        found: dict[UOp, Bits] = defaultdict(int)
        for node, bit in self.bit.items():
            if node.op is LOAD:
                found[storage_of(node.src[0])] |= bit
        return found

    @cached_property
    def writes(self) -> list[tuple[UOp, UOp]]:
        """The kernels that write changing storage, each with a STORE to every such storage."""
        found: dict[tuple[UOp, UOp], UOp] = {}
        for node in self.order:
            if node.op is STORE and storage_of(node.src[0]) in self.changing:
                own = self.bit[node] if self.is_kernel(node) else self.users[node] & self.kernels
                for kernel in self.of(own):
                    found.setdefault((kernel, storage_of(node.src[0])), node)
        return [(kernel, store) for (kernel, _), store in found.items()]

    def read_before(self, kernel: UOp, store: UOp) -> Bits:
        """The LOADs of what a kernel stores to that are to be done before it."""
        return self.below[kernel] & self.reads[storage_of(store.src[0])]

    def awaited(self) -> Mapping[UOp, list[UOp]]:
        """STOREs → the LOADs before them that something else does too, and no earlier write saw."""
        found: dict[UOp, list[UOp]] = {}
        seen: dict[UOp, list[tuple[Bits, Bits]]] = defaultdict(list)
        for kernel, store in self.writes:
            if kernel is store:
                before = self.read_before(kernel, store)
                fresh = before
                for earlier, known in seen[storage_of(store.src[0])]:
                    fresh &= ~known if self.below[kernel] & earlier else -1
                seen[storage_of(store.src[0])].append((self.bit[kernel], before))
                others = [r for r in self.of(fresh) if self.users[r] & ~self.bit[kernel]]
                if others:
                    found[store] = others
        return found

    def settled(self) -> tuple[set[UOp], Mapping[UOp, list[UOp]]]:
        """The LOADs to be stored first; and STOREs → the kernels that each has to wait for."""
        stored = {
            read
            for kernel, store in self.writes
            for read in self.of(self.read_before(kernel, store))
            if self._is_late(kernel, store, read)
        }
        while (circle := self._circle(self._waits(stored))) is not None:
            stored |= circle
        waits = {s: list(self.of(bits)) for (_, s), bits in self._waits(stored).items() if bits}
        return stored, waits

    def _is_late(self, kernel: UOp, store: UOp, read: UOp) -> bool:
        """Whether a read is done in a kernel that needs this one, or here after a part of it."""
        bit, users = self.bit[kernel], self.users[read]
        if users & bit and not (kernel is store and self._in_place(store, read)):
            return True
        return any(self.below[user] & bit for user in self.of(users & self.kernels & ~bit))

    def _waits(self, stored: set[UOp]) -> dict[tuple[UOp, UOp], Bits]:
        """Kernels with their STOREs → the kernels to wait for that they do not need anyway."""
        gone = sum(self.bit[read] for read in stored)
        found: dict[tuple[UOp, UOp], Bits] = {}
        for kernel, store in self.writes:
            users = 0
            for read in self.of(self.read_before(kernel, store) & ~gone):
                users |= self.users[read]
            found[kernel, store] = users & self.kernels & ~self.below[kernel]
        return found

    def _circle(self, waits: Mapping[tuple[UOp, UOp], Bits]) -> set[UOp] | None:
        """If the waits go round in circles, LOADs whose storing opens one."""
        needs = {k: self.below[k] & self.kernels & ~self.bit[k] for k in self.of(self.kernels)}
        for (kernel, _), bits in waits.items():
            needs[kernel] |= bits
        done, left = 0, list(needs)
        while left:
            rest = []
            for kernel in left:
                if needs[kernel] & ~done:
                    rest.append(kernel)
                else:
                    done |= self.bit[kernel]
            if len(rest) == len(left):
                return self._opened(rest[0], waits, done)
            left = rest
        return None

    def _opened(self, stuck: UOp, waits: Mapping[tuple[UOp, UOp], Bits], done: Bits) -> set[UOp]:
        """The LOADs for whose sake a kernel waits for others that are not done."""
        return {
            read
            for (kernel, store), bits in waits.items()
            if kernel is stuck
            for read in self.of(self.read_before(kernel, store))
            if self.users[read] & bits & ~done
        }

    def _in_place(self, store: UOp, read: UOp) -> bool:
        """Whether a STORE needs of the storage, for each element, only that element as it was."""
        place, *values = store.src
        if not place.shape:
            return True
        view = _view(place)
        if view is None or _view(read.src[0]) != view or len(read.src) > 1:
            return False
        depends = {read}
        for node in toposort(values, lambda n: () if n is read or self.is_kernel(n) else n.src):
            if node is not read and not self.is_kernel(node) and not depends.isdisjoint(node.src):
                if node.op not in ELEMENTWISE and node.op is not KEEP:
                    return False
                depends.add(node)
        return True


def _view(place: UOp) -> tuple[object, ...] | None:
    """The storage of a place and how it is moved, whatever it waits for; None behind an INDEX."""
    found: list[object] = []
    while place.src:
        if place.op is INDEX:
            return None
        if place.op is not AFTER:
            found.append((place.op, place.arg))
        place = place.src[0]
    return (*found, place)


@dataclass
class _Rebuilt:
    """The program with values stored, and with writes that wait.

    Attributes:
        graph: the program as it was.
        stored: LOADs that are stored first.
        waits: STOREs → kernels.
    """

    graph: _Graph
    stored: set[UOp]
    waits: Mapping[UOp, list[UOp]]

    def program(self) -> UOp:
        """Build it, sources first."""
        root = self.graph.program
        slots, late = free_slots(root), self._copies()
        copies: dict[UOp, UOp] = {}
        done: dict[UOp, UOp] = {}
        for node in toposort((root,), lambda n: self._sources(n, late)):
            src = self._awaiting(node, done) if _value_deps(node) else [done[s] for s in node.src]
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
        if deps := _value_deps(node):
            src = (*[s for s in src if s not in deps], *self._kernels_of(deps))
        return (*src, *late.get(node, ()), *self.waits.get(node, ()))

    def _kernels_of(self, values: list[UOp]) -> list[UOp]:
        """The kernels that values are made of, instead of the values."""
        below = toposort(values, lambda n: () if self.graph.is_kernel(n) else n.src)
        return [n for n in below if self.graph.is_kernel(n)]

    def _awaiting(self, node: UOp, done: Mapping[UOp, UOp]) -> list[UOp]:
        deps = _value_deps(node)
        kept = [done[s] for s in node.src[1:] if s not in deps]
        kept += [done[kernel] for kernel in self._kernels_of(deps)]
        return [done[node.src[0]], *dict.fromkeys(kept)]
