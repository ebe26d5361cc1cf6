"""Dependence: which loops of a nest have to be carried out in order.

Two iterations depend on one another if one stores an element that the other loads or stores. A loop
is **carried** if dependent iterations may differ in it:

    END(STORE(p[i, j], x[i, j] + 1), i, j)        no loop
    END(STORE(p[j], p[j] + x[k, j]), k, j)        k
    END(STORE(p[i], p[i − 1] + x[i]), i)          i
    END(STORE(p[e(n), d], x[n, d]), n, d)         n, for e(n) may be the same twice

The other loops may change places, be cut, or have their iterations done at once. Tiles that overlap
(TILE) are no dependence: the iterations that they have in common are one, done twice. Neither is a
temporary that is filled anew before it is read: it belongs to the iteration that fills it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from week01_uops.dtypes import void
from week01_uops.linear import Linear, value_of
from week01_uops.node import UOp, toposort
from week02_render.ops import AFTER, ALLOC, INDEX, LOAD, RANGE, STORE, open_ranges, storage_of
from week05_06_memory.flat import flat
from week05_06_memory.nests import closes
from week05_06_memory.ops import TILE


def carried(end: UOp) -> frozenset[UOp]:
    """The loops that an END closes in which the order of iterations counts."""
    return _Nest(end).carried()


def carries(end: UOp, item: UOp) -> bool:
    """Whether the order of a loop's iterations counts while the loops around it stand still."""
    around = frozenset(end.src[1 : end.src.index(item, 1)])
    return item in _Nest(end).carried(around)


def combines(end: UOp) -> bool:
    """Whether iterations of an END read storage that others of its iterations may write."""
    return _Nest(end).combines


def lasting(body: UOp) -> frozenset[UOp]:
    """The storage that a body writes, but for temporaries."""
    return frozenset(_changed(n for n in toposort((body,)) if n.op in (LOAD, STORE)))


def _changed(
    accesses: Iterable[UOp],
    loops: frozenset[UOp] = frozenset(),
    kept: Container[UOp] = (),
) -> Mapping[UOp, list[UOp]]:
    """Storage that is written and no temporary of one iteration of the loops → the accesses.

    What is kept is read after the loops, and no temporary.
    """
    found: dict[UOp, list[UOp]] = defaultdict(list)
    for access in accesses:
        found[storage_of(access.src[0])].append(access)
    return {
        storage: users
        for storage, users in found.items()
        if any(a.op is STORE for a in users)
        and (storage in kept or not is_temporary(storage, users, loops))
    }


def reads(value: UOp, storages: Iterable[UOp]) -> bool:
    """Whether a value is computed from what lies in one of these."""
    found = frozenset(storages)
    return any(n.op is LOAD and storage_of(n.src[0]) in found for n in toposort((value,)))


def waits(place: UOp) -> list[UOp]:
    """The effects that a place is named after."""
    found: list[UOp] = []
    while place.src:
        if place.op is AFTER:
            found += [s for s in place.src[1:] if s.dtype is void]
        place = place.src[0]
    return found


def is_temporary(
    storage: UOp, accesses: Iterable[UOp], loops: frozenset[UOp] = frozenset()
) -> bool:
    """Whether, in each iteration of the loops, storage is filled before any other access to it.

    What changes it later depends on the same loops, so that it happens as often.
    """
    users = list(accesses)
    turns = {open_ranges(user) & loops for user in users if user.op is STORE}
    if storage.op is not ALLOC or len(turns) > 1:
        return False
    before = {user: frozenset(toposort(waits(user.src[0]))) for user in users}
    return any(
        user.op is STORE
        and _fills(user, storage, loops)
        and all(user in before[other] for other in users if other is not user)
        for user in users
    )


def _fills(store: UOp, storage: UOp, loops: frozenset[UOp]) -> bool:
    indices = _indices(store.src[0])
    if len(store.src) > 2 or len(indices) != len(storage.shape):
        return False
    return all(
        i.interval == (0, size - 1) and loops.isdisjoint(_counters(i))
        for i, size in zip(indices, storage.shape, strict=True)
    )


def _counters(index: UOp) -> list[UOp]:
    """What an index is computed from; a bound only says how far a row is filled."""
    return toposort((index,), lambda n: () if n.op is RANGE else n.src)


def _indices(place: UOp) -> tuple[UOp, ...]:
    found: tuple[UOp, ...] = ()
    while place.src:
        if place.op is INDEX:
            found = (*place.src[1:], *found)
        place = place.src[0]
    return found


@dataclass(frozen=True)
class _Nest:
    """An END, and the accesses in its loops."""

    end: UOp

    @cached_property
    def ranges(self) -> frozenset[UOp]:
        """The loops that it closes."""
        return frozenset(self.end.src[1:])

    @cached_property
    def nodes(self) -> list[UOp]:
        """What it needs, but for loops outside of its own."""
        return toposort((self.end.src[0],), lambda n: () if self._is_outside(n) else n.src)

    def _is_outside(self, node: UOp) -> bool:
        if not closes(node) or node in self._direct:
            return False
        return open_ranges(node).isdisjoint(self.ranges)

    @cached_property
    def _direct(self) -> frozenset[UOp]:
        """Its effect and those joined to it, which are repeated whatever they depend on."""
        joined = lambda n: tuple(s for s in n.src if s.dtype is void) if n.op is AFTER else ()
        return frozenset(toposort((self.end.src[0],), joined))

    @property
    def _shadows(self) -> bool:
        """Whether one of its RANGEs counts a loop in it too."""
        return any(closes(n) and not self.ranges.isdisjoint(n.src[1:]) for n in self.nodes)

    @cached_property
    def inner(self) -> frozenset[UOp]:
        """Its loops and those in them."""
        inside = [n.src[1:] for n in self.nodes if closes(n) and not self._is_outside(n)]
        return self.ranges.union(*inside)

    @cached_property
    def changed(self) -> Mapping[UOp, list[UOp]]:
        """Storage written in the loops that outlives an iteration → the accesses in the loops."""
        accesses = (n for n in self.nodes if n.op in (LOAD, STORE))
        inside = [a for a in accesses if a in self._direct or open_ranges(a) & self.inner]
        kept = {storage_of(a.src[0]) for a in inside if a in self._direct}
        return _changed(inside, self.ranges, kept)

    @property
    def combines(self) -> bool:
        """Whether such storage is read in the loops."""
        return any(a.op is LOAD for accesses in self.changed.values() for a in accesses)

    def carried(self, still: frozenset[UOp] = frozenset()) -> frozenset[UOp]:
        """The loops in which dependent iterations may differ, while some loops stand still."""
        found: frozenset[UOp] = frozenset()
        if self.combines and self._shadows:
            return self.ranges
        for accesses in self.changed.values():
            if any(a.op is LOAD and not self.ranges <= open_ranges(a) for a in accesses):
                return self.ranges  # the order of loops decides where such a LOAD stands
            for store in (a for a in accesses if a.op is STORE):
                found = found.union(*[self.ranges - self._same(store, a, still) for a in accesses])
        return found

    def _same(self, a: UOp, b: UOp, still: frozenset[UOp]) -> frozenset[UOp]:
        """The loops in which iterations that access one element with a and b are the same."""
        pairs = list(zip(self._offsets(a), self._offsets(b), strict=True))
        known = still.union(r for r in self.ranges if r.arg.size <= 1)
        while new := [
            loops
            for one, other in pairs
            for term, loops in one.loops.items()
            if not loops <= known and self._tells(term, one, other, known)
        ]:
            known = known.union(*new)
        apart = any(not low <= 0 <= high for low, high in (self._between(*p, known) for p in pairs))
        return self.ranges if apart else known & self.ranges

    def _offsets(self, access: UOp) -> list[_Offset]:
        found = [_Offset.of(form) for form in _forms(access)]
        return found if not self.combines else [o for o in found if not o.overlaps(self.ranges)]

    def _tells(self, term: UOp, a: _Offset, b: _Offset, known: frozenset[UOp]) -> bool:
        """Whether a and b are one element only where a term of both is the same.

        That is so if it has one coefficient in both, and the rest varies by less than that.
        """
        step = a.terms[term]
        if b.terms.get(term) != step or b.loops.get(term) != a.loops[term]:
            return False
        low, high = self._between(a, b, known, {term})
        return -abs(step) < low and high < abs(step)

    def _between(
        self, a: _Offset, b: _Offset, known: frozenset[UOp], without: AbstractSet[UOp] = frozenset()
    ) -> tuple[int, int]:
        """Bounds of a − b where the known loops stand still, some terms left out."""
        common = [t for t, c in a.terms.items() if b.terms.get(t) == c]
        same = without | {t for t in common if self._is_fixed(t, a, known)}
        (low, high), (other_low, other_high) = a.bounds(same), b.bounds(same)
        return low - other_high, high - other_low

    def _is_fixed(self, term: UOp, a: _Offset, known: frozenset[UOp]) -> bool:
        """Whether a term has one value in all iterations that are the same in the known loops."""
        loops = a.loops.get(term, open_ranges(term))
        return loops.isdisjoint(self.inner - known) and not reads(term, self.changed)


def _forms(access: UOp) -> Iterator[Linear]:
    """The index of each axis as a sum, and the offset from the start of the storage."""
    axes = [value_of(i) for i in _indices(access.src[0])]
    yield from axes
    yield flat(storage_of(access.src[0]).shape[: len(axes)], axes)


@dataclass(frozen=True)
class _Offset:
    """An index or offset as a sum Σ c·t + constant.

    Attributes:
        terms: t → c; a TILE stands for itself and for what is added to it within the tile.
        loops: each RANGE and each TILE of the terms → the loops that it counts.
        constant: the rest.
    """

    terms: Mapping[UOp, int]
    loops: Mapping[UOp, frozenset[UOp]]
    constant: int

    @staticmethod
    def of(form: Linear) -> _Offset:
        terms = dict(form.terms)
        loops = {t: frozenset({t}) for t in terms if t.op is RANGE}
        for tile in sorted((t for t in terms if t.op is TILE), key=lambda t: int(t.arg.size)):
            step, room = terms[tile], tile.arg.by - 1
            parts = [
                t for t in loops if not terms[t] % step and 0 <= terms[t] // step * _most(t) <= room
            ]
            if sum(terms[t] // step * _most(t) for t in parts) == room:
                own = frozenset(open_ranges(tile)).union(*[loops.pop(t) for t in parts])
                loops[tile] = own
                terms = {t: c for t, c in terms.items() if t not in parts}
        return _Offset(terms, loops, form.constant)

    def overlaps(self, ranges: frozenset[UOp]) -> bool:
        """Whether one element has several iterations, for it lies in several tiles."""
        return any(t.op is TILE and open_ranges(t) & ranges for t in self.terms)

    def bounds(self, without: AbstractSet[UOp]) -> tuple[int, int]:
        """The least and the largest value of the sum, some terms left out."""
        low = high = self.constant
        for t, c in self.terms.items():
            if t not in without:
                first, last = (0, _most(t)) if t in self.loops else t.interval
                low += c * (first if c > 0 else last)
                high += c * (last if c > 0 else first)
        return low, high


def _most(counter: UOp) -> int:
    """The largest number of a RANGE, or of an element of a TILE."""
    return counter.arg.size - 1 if counter.op is TILE else counter.interval[1]
