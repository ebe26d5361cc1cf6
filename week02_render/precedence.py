"""What comes before what in a program: kernels, and the reads of storage that changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from week01_uops.dtypes import void
from week01_uops.node import UOp, toposort
from week01_uops.ops import ELEMENTWISE, RETURN
from week02_render.ops import AFTER, END, INDEX, KEEP, LOAD, RANGE, STORE, open_ranges, storage_of

Bits = int
"""A set of the items of a `Graph`: bit k stands for the k-th."""


def value_deps(node: UOp) -> list[UOp]:
    """The values that an AFTER outside of loops waits for."""
    if node.op is not AFTER:
        return []
    deps = (dep for dep in node.src[1:] if dep.dtype is not void and dep.op is not RANGE)
    return [dep for dep in deps if not open_ranges(dep)]


def inner_effects(order: list[UOp]) -> set[UOp]:
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
class Graph:
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
        inner = inner_effects(self.order)
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
            waited = value_deps(node)
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
