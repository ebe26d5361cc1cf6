"""Producers taken into the kernels whose loops go with them.

    m[n, v] = [i[n] ≠ v];   y[n] = Σ_v WHERE(m[n, v], 0, x[v])   →   y[n] = x[i[n]], and no m

When kernels were chosen, each element of the mask was wanted in a whole loop, and holding it
seemed to pay. A kernel that becomes an indexed load or a scatter loop with a mask in it takes the
mask, and then any elementwise producer of which it reads no element twice.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from week01_uops.calls import substitute
from week01_uops.node import UOp, make
from week01_uops.ops import CALL, PARAM, WHERE
from week01_uops.passes import PassFunction, top_nodes
from week01_uops.rewrite import Rules, Trace, rewrite
from week02_render.linearize import linearize
from week02_render.ops import AFTER, END, INDEX, LOAD, RANGE, STORE, storage_of
from week03_loops.ops import REDUCE
from week03_loops.reduction import accumulate
from week05_06_memory.onehot import at, masked
from week05_06_memory.scatter import bodies, called, filling, find_scatter, param_at


@dataclass(frozen=True)
class Kernels:
    """Which kernels of a program write what, and how often each storage is an argument."""

    writers: Mapping[UOp, set[UOp]]
    users: Mapping[UOp, int]

    @classmethod
    def of(cls, program: UOp) -> Kernels:
        """Look at all CALLs, and at what is returned."""
        writers: dict[UOp, set[UOp]] = defaultdict(set)
        users = Counter(storage_of(output) for output in program.src)
        for call in top_nodes(program):
            if call.op is CALL:
                users.update(storage_of(a) for a in call.src[1:])
                for place in _written(call):
                    writers[place].add(call)
        return cls(writers, users)

    def producer(self, argument: UOp) -> UOp | None:
        """The one kernel that writes what an argument names."""
        found = self.writers.get(storage_of(argument), set())
        return next(iter(found)) if len(found) == 1 and found <= {*argument.src} else None

    def may_run_later(self, call: UOp) -> bool:
        """Whether what a kernel reads stays as it is: all writes to it come before."""
        before = set(top_nodes(call))
        return all(self.writers.get(storage_of(a), set()) <= before for a in call.src[1:])


def _written(call: UOp) -> Iterator[UOp]:
    for node in call.src[0].toposort():
        base = storage_of(node.src[0]) if node.op is STORE else None
        if base is not None and base.op is PARAM:
            yield storage_of(call.src[1 + base.arg.slot])


def _is_elementwise(body: UOp) -> bool:
    store = filling(body)
    return store is not None and all(
        n.op not in (REDUCE, AFTER, STORE) for n in store.src[1].toposort()
    )


def _is_mask(body: UOp) -> bool:
    """Whether what is stored is a condition, or 0 where one does not hold."""
    store = filling(body)
    return store is not None and bool(masked(store.src[1]).conditions)


@dataclass(frozen=True)
class _Consumer:
    """A kernel that takes producers in: its body, and the argument of each slot.

    Attributes:
        old: the arguments in the program as it was, which `Kernels` knows.
        new: those that a new CALL is given.
        free: a slot such that it and all past it are free.
        taken: the CALLs taken in.
    """

    body: UOp
    old: Mapping[int, UOp]
    new: Mapping[int, UOp]
    free: int
    taken: tuple[UOp, ...] = ()

    def with_producer(self, slot: int, producer: UOp, new: UOp) -> _Consumer | None:
        """The producer's value in place of the loads at a slot, and its arguments behind ours."""
        store = filling(_shifted(new.src[0], self.free))
        body = _loading(self.body, slot, store) if store is not None else None
        if body is None:
            return None
        given = dict(enumerate(new.src[1:], self.free))
        before = {storage_of(a): a for a in producer.src[1:]}  # `called` may have moved them
        old = {k: before.get(storage_of(a), a) for k, a in given.items()}
        kept = {k: a for k, a in self.old.items() if k != slot}
        free = self.free + len(new.src) - 1
        return _Consumer(body, kept | old, {**self.new, **given}, free, (*self.taken, new))


def _shifted(body: UOp, by: int) -> UOp:
    """The body with its PARAMs numbered from `by` on."""
    moved = {n: param_at(n, n.arg.slot + by) for n in body.toposort() if n.op is PARAM}
    return substitute(body, moved)


def _loading(body: UOp, slot: int, store: UOp) -> UOp | None:
    """The body that computes what it loaded of a PARAM; None if it does more than load it."""
    counters = store.src[0].src[1:]
    replaced: dict[UOp, UOp] = {}
    order = body.toposort()
    places = {n for n in order if n.op in (PARAM, INDEX) and _slot(n) == slot}
    for node in order:
        if node.op is LOAD and node.src[0] in places:
            element = _element(node, counters, store.src[1])
            if element is None:
                return None
            replaced[node] = element
        elif node not in places and places.intersection(node.src):
            return None
    return substitute(body, replaced)


Pays = Callable[[_Consumer, int, UOp], _Consumer | None]
"""The consumer with the producer of a slot taken in, or None if that does not pay."""


def _slot(place: UOp) -> int | None:
    base = storage_of(place)
    return base.arg.slot if base.op is PARAM else None


def _element(loaded: UOp, counters: tuple[UOp, ...], value: UOp) -> UOp | None:
    place, *rest = loaded.src
    indices = place.src[1:] if place.op is INDEX else ()
    given = {c: i for c, i in zip(counters, indices, strict=True) if c.op is RANGE}
    found = at(value, given, rest[0] if rest else None)
    return make(WHERE, (rest[0], found, rest[1])) if found is not None and rest else found


def absorb(rules: Rules) -> PassFunction:
    """The pass: rules on every kernel body, and producers taken in where that ends loops."""

    def run(program: UOp, trace: Trace) -> UOp:
        kernels = Kernels.of(program)
        done: dict[UOp, UOp] = {}
        for node in top_nodes(program):
            new = node.with_src(tuple([done.get(s, s) for s in node.src]))
            done[node] = (
                _Absorb(kernels, done, rules, trace).run(node, new) if node.op is CALL else new
            )
        return done[program]

    return run


@dataclass
class _Absorb:
    """The pass at one kernel.

    Attributes:
        kernels: those of the program as it was.
        done: new CALLs by old ones.
    """

    kernels: Kernels
    done: Mapping[UOp, UOp]
    rules: Rules
    trace: Trace

    def run(self, old: UOp, new: UOp) -> UOp:
        """The new CALL with all that is worth it taken in."""
        body = rewrite(new.src[0], self.rules, trace=self.trace)
        olds, news = (dict(enumerate(call.src[1:])) for call in (old, new))
        first = _Consumer(body, olds, news, len(new.src) - 1)
        final = self._take(first, self._ends_loops) if _loops(body) else first
        if final is not first or _loops(body) < _loops(new.src[0]) or _scatters(body):
            final = self._take(final, self._reads_once)
        return called(final.body, final.new, new.arg.name if new.arg else None, final.taken)

    def _take(self, consumer: _Consumer, pays: Pays) -> _Consumer:
        """The consumer with each producer that pays, also those that come with one."""
        seen: set[int] = set()
        while untried := sorted(consumer.old.keys() - seen):
            slot = untried[0]
            seen.add(slot)
            producer = self._producer(consumer, slot)
            consumer = (producer and pays(consumer, slot, producer)) or consumer
        return consumer

    def _producer(self, consumer: _Consumer, slot: int) -> UOp | None:
        """The elementwise kernel that fills what a slot reads."""
        found = self.kernels.producer(consumer.old[slot])
        return found if found and _is_elementwise(self.done[found].src[0]) else None

    def _ends_loops(self, consumer: _Consumer, slot: int, producer: UOp) -> _Consumer | None:
        """With a mask taken in, and the masks that it is made of, if that ends loops."""
        found: _Consumer | None = consumer
        masks = [(slot, producer)]
        while masks and found:
            number, mask = masks.pop()
            if _is_mask(self.done[mask].src[0]) and self.kernels.may_run_later(mask):
                first = found.free
                found = found.with_producer(number, mask, self.done[mask])
                more = [k for k in found.old if k >= first] if found else []
                masks += [(k, p) for k in more if found and (p := self._producer(found, k))]
        if found is None or found is consumer:
            return None
        found = self._rewritten(found)
        if _loops(found.body) < _loops(consumer.body) or _scatters(found.body):
            self.trace.fired["absorb mask"] += 1
            return found
        reason = "with the mask in it, the kernel still visits all elements"
        self.trace.decline("absorb", reason, producer)
        return None

    def _reads_once(self, consumer: _Consumer, slot: int, producer: UOp) -> _Consumer | None:
        """With a producer taken in that has no other reader, if it computes no element twice."""
        place = storage_of(consumer.old[slot])
        if self.kernels.users[place] != 2 or not self.kernels.may_run_later(producer):
            return None
        if _reads(consumer.body)[slot] > place.size:
            return None
        found = consumer.with_producer(slot, producer, self.done[producer])
        self.trace.fired["absorb"] += found is not None
        return found and self._rewritten(found)

    def _rewritten(self, consumer: _Consumer) -> _Consumer:
        return replace(consumer, body=rewrite(consumer.body, self.rules))


def _loops(body: UOp) -> int:
    """Iterations of reductions, each counted once."""
    return sum(
        math.prod(r.arg.size for r in node.src[1:]) for node in body.toposort() if node.op is REDUCE
    )


def _scatters(body: UOp) -> bool:
    return find_scatter(body, Trace()) is not None


def _reads(body: UOp) -> Counter[int]:
    """How often each slot is loaded from in a call, as the kernel will be carried out."""
    found = find_scatter(body, Trace())
    reads: Counter[int] = Counter()
    for part in bodies(body, found) if found else [body]:
        opened: list[int] = []
        for node in linearize(accumulate(part, Trace()), Trace()).src:
            if node.op is RANGE:
                opened.append(node.arg.size)
            elif node.op is END:
                del opened[len(opened) - len(node.src) + 1 :]
            elif node.op is LOAD and storage_of(node.src[0]).op is PARAM:
                reads[storage_of(node.src[0]).arg.slot] += math.prod(opened)
    return reads
