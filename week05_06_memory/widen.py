"""The step `widen`: what is filled in each iteration of a loop is filled for all of them before it.

    AFTER(t, END(STORE(INDEX(t, s), x), s)), where x depends on r
      →   AFTER(t, END(STORE(INDEX(t, q, s), x[r := q]), q, s)), read at INDEX(t, r, s)

A temporary that is filled in a loop is in the way of doing its iterations at once: all of them fill
one place. Widened, each has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from week01_uops.calls import substitute
from week01_uops.dtypes import void
from week01_uops.node import UOp, make, toposort
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, open_ranges, storage_of
from week05_06_memory.dependence import lasting, reads
from week05_06_memory.nests import ScheduleError, find_range, fresh_numbers, renamed


def widen(body: UOp, name: int) -> UOp:
    """Each temporary that is filled anew in every iteration of loop `name` gets an axis for it.

    Raises:
        ScheduleError: no temporary is filled in that loop, or one from what the kernel changes.
    """
    item = find_range(body, name)
    inside = filled_in(body, item)
    if not inside:
        raise ScheduleError(f"expected a temporary that is filled in the loop of range {name}")
    if carries_temporary(body, item):
        raise ScheduleError(
            f"expected temporaries that are filled once in each iteration of range {name}, "
            "but one is brought up to date in some loop"
        )
    for _, fill in _fills(body, item):
        if ended := [r for r in open_ranges(fill) - {item} if item in open_ranges(r)]:
            raise ScheduleError(f"expected no bound by range {name} of range {ended[0].arg.id}")
    changed = lasting(body)
    from_changed = any(reads(fill, changed) for _, fill in _fills(body, item))
    if from_changed or not changed.isdisjoint(inside):
        raise ScheduleError(
            f"expected temporaries that can be filled before the loop of range {name}, "
            "but the kernel changes what they are filled from"
        )
    return _Widening(item, inside, fresh_numbers(body)).run(body)


def filled_in(body: UOp, item: UOp) -> list[UOp]:
    """The temporaries whose filling depends on the range."""
    return list(dict.fromkeys(storage for storage, _ in _fills(body, item)))


def _fills(body: UOp, item: UOp) -> Iterator[tuple[UOp, UOp]]:
    """Each temporary with an effect that fills it and depends on the range."""
    for node in toposort((body,)):
        if node.op is AFTER and node.place is not None and storage_of(node).op is ALLOC:
            for effect in node.src[1:]:
                if effect.dtype is void and item in open_ranges(effect):
                    yield storage_of(node), effect


def copied(value: UOp, ranges: Mapping[UOp, UOp], slots: Iterator[int]) -> UOp:
    """A value in other loops, with temporaries of its own where they are filled in these."""
    filled = dict.fromkeys(storage for item in ranges for storage in filled_in(value, item))
    own = {a: make(ALLOC, (), replace(a.arg, slot=next(slots))) for a in filled}
    return substitute(value, {**ranges, **own})


def carries_temporary(body: UOp, item: UOp) -> bool:
    """Whether a temporary is carried from one iteration to the next: of the loop, or in its fill.

    The first is so if some access to it does not depend on the loop, the second if what fills it
    stands in a loop that another filling closes, and reads what was there before.
    """
    fills = list(_fills(body, item))
    storages = {storage for storage, _ in fills}
    accesses = [n for n in toposort((body,)) if n.op in (LOAD, STORE)]
    own = [n.src[0] for n in accesses if storage_of(n.src[0]) in storages]
    if any(item not in open_ranges(place) for place in own):
        return True
    closed = {r for _, fill in fills if fill.op is END for r in fill.src[1:]}
    return any(
        not closed.isdisjoint(open_ranges(fill)) and reads(fill, (storage,))
        for storage, fill in fills
    )


class _Widening:
    """Some temporaries that get an axis for a RANGE."""

    def __init__(self, item: UOp, inside: Iterable[UOp], names: Iterator[int]) -> None:
        self.item = item
        self.counters = {a: renamed(item, next(names)) for a in inside}

    def run(self, body: UOp) -> UOp:
        """The body with the axes."""
        done: dict[UOp, UOp] = {}
        for node in toposort((body,)):
            done[node] = self._changed(node, tuple([done[s] for s in node.src]))
        return done[body]

    def _changed(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        """A node over its new sources."""
        if node in self.counters:
            shape = (self.item.arg.size, *node.shape)
            return make(ALLOC, (), replace(node.arg, shape=shape, addrspace="LOCAL"))
        place = node.src[0] if node.op in (LOAD, STORE) else node
        if place.place is None or storage_of(place) not in self.counters:
            return node.with_src(src)
        if node.op is AFTER:
            counter = self.counters[storage_of(node)]
            src = tuple([self._looped(s, counter) for s in src])
        elif node.op is INDEX:
            src = (src[0], self.item, *src[1:])
        elif place.op is not INDEX:
            src = (make(INDEX, (src[0], self.item)), *src[1:])
        return node.with_src(src)

    def _looped(self, source: UOp, counter: UOp) -> UOp:
        """A source of AFTER: if it fills, with a loop of its own in place of the RANGE."""
        if source.dtype is not void or self.item not in open_ranges(source):
            return source
        if source.op is AFTER:
            return source.with_src(tuple([self._looped(s, counter) for s in source.src]))
        effect = substitute(source, {self.item: counter})
        inside, *ranges = effect.src if effect.op is END else (effect,)
        return make(END, (inside, counter, *ranges))
