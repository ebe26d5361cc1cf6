"""What each loop is to each access of a nest: the facts that schedules are chosen by.

A nest is an END. Its **results** are the loops that it closes; a REDUCE under it that differs
for each result is **joint** with it, any other REDUCE is computed in some outer loop once (a row's
maximum) and is a nest of its own. For an access and a loop, the stride is how many elements further
the access lies in the next iteration: 0 is reuse, 1 contiguity, None that no stride describes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from week01_uops.dtypes import void
from week01_uops.linear import linear
from week01_uops.node import UOp, toposort
from week01_uops.ops import ELEMENTWISE, PARAM
from week02_render.access import value_of
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, RANGE, STORE, open_ranges
from week03_loops.ops import REDUCE
from week04_fusion.work import WEIGHTS
from week05_06_memory.flat import flat


@dataclass(frozen=True)
class Access:
    """A LOAD or STORE of one element.

    Attributes:
        node: the LOAD or STORE.
        storage: what it lies in.
        strides: elements between iterations, of each RANGE that it depends on; None: irregular.
        steps: by how much the index of its axis grows with a RANGE that stands in one axis alone.
        depends: the RANGEs that decide the element or what it holds.
    """

    node: UOp
    storage: UOp
    strides: Mapping[UOp, int | None]
    steps: Mapping[UOp, int]
    depends: frozenset[UOp]

    @property
    def writes(self) -> bool:
        """Whether it is a STORE."""
        return self.node.op is STORE

    @property
    def bytes(self) -> int:
        """Of one element."""
        return max(self.storage.dtype.bits // 8, 1)

    @property
    def in_memory(self) -> bool:
        """Whether the storage is no register."""
        return self.storage.op is not ALLOC or bool(self.storage.shape)

    def stride(self, item: UOp) -> int | None:
        """Of a loop; 0 if the access does not depend on it."""
        if item in self.strides:
            return self.strides[item]
        if item not in self.depends:
            return 0
        # What is filled anew in each iteration of a loop will get an axis for it.
        return self.storage.size if self.storage.op is ALLOC else None


def describe_access(node: UOp) -> Access:
    """The strides of a LOAD or STORE."""
    place = node.src[0]
    indices: tuple[UOp, ...] = ()
    base = place
    while base.src and base.op is not ALLOC and base.op is not PARAM:
        if base.op is INDEX:
            indices = (*base.src[1:], *indices)
        base = base.src[0]
    strides: dict[UOp, int | None] = {}
    whole = flat(base.shape, [linear(value_of(at)) for at in indices])
    for term, step in whole.terms.items():
        _add_strides(strides, term, step)
    steps = {r: 1 for r, step in strides.items() if step == 1}
    for at in indices:
        steps |= {t: c for t, c in linear(value_of(at)).terms.items() if t.op is RANGE}
    return Access(node, base, strides, steps, _deciding(place))


def _deciding(place: UOp) -> frozenset[UOp]:
    """The RANGEs that a place depends on other than by the bound of a loop."""
    found: set[UOp] = set()
    waiting = [place]
    while waiting:
        node = waiting.pop()
        if node.op is RANGE:
            found.add(node)
        elif node.op is AFTER and node.place is not None:
            waiting.append(node.src[0])
            found |= frozenset().union(*map(open_ranges, node.src[1:]))
        else:
            waiting += node.src
    return frozenset(found)


def _add_strides(strides: dict[UOp, int | None], term: UOp, step: int) -> None:
    if term.op is RANGE:
        known = strides.get(term, 0)
        strides[term] = None if known is None else known + step
        return
    for item in open_ranges(term):
        strides[item] = None


@dataclass(frozen=True)
class Nest:
    """An END, or a REDUCE that is a row, and what is computed in its innermost loop.

    Attributes:
        root: the END or REDUCE.
        results: the loops over results, outermost first.
        sums: the REDUCEs that are joint with it.
        rows: the other REDUCEs, each computed once in some outer loop.
        around: the loops of other nests that it stands in, outermost first.
        touched: what nests before it in these loops have read and written: caches may hold it.
    """

    root: UOp
    results: tuple[UOp, ...]
    sums: tuple[UOp, ...]
    rows: tuple[UOp, ...] = ()
    around: tuple[UOp, ...] = ()
    touched: frozenset[UOp] = frozenset()

    @cached_property
    def summed(self) -> tuple[UOp, ...]:
        """The loops of its joint sums."""
        return tuple(dict.fromkeys(r for s in self.sums for r in s.src[1:]))

    @cached_property
    def outer(self) -> frozenset[UOp]:
        """The loops in an iteration of which other nests are carried out, too."""
        return open_ranges(self.root).union(*map(open_ranges, self.rows))

    @cached_property
    def nodes(self) -> list[UOp]:
        """What stands under the END and no other END or row."""
        return toposort((self.root.src[0],), self._below)

    def _below(self, node: UOp) -> tuple[UOp, ...]:
        return () if node in self.rows else _inside(node)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """Its loads and stores of memory."""
        found = (describe_access(n) for n in self.nodes if n.op in (LOAD, STORE))
        return tuple(a for a in found if a.in_memory)

    @cached_property
    def inner_accesses(self) -> tuple[Access, ...]:
        """Those within the joint sums; all, if there are none."""
        if not self.sums:
            return self.accesses
        inside = set(toposort([s.src[0] for s in self.sums], self._below))
        return tuple(a for a in self.accesses if a.node in inside)

    @cached_property
    def operations(self) -> Mapping[UOp, float]:
        """The weight of each arithmetic node of its innermost loop, indices left out."""
        roots = [s.src[0] for s in self.sums] or [self.root.src[0]]
        inside = toposort(roots, lambda n: () if n.op in (INDEX, LOAD) else self._below(n))
        found = {n: WEIGHTS.get(n.op, 1.0) for n in inside if n.op in ELEMENTWISE}
        return found | dict.fromkeys(self.sums, 1.0)

    @property
    def iterations(self) -> int:
        """Of its innermost loop."""
        loops = (*self.results, *self.summed)
        return math.prod(max(r.arg.size, 1) for r in loops)


def nests_of(body: UOp) -> Iterator[Nest]:
    """The nests of a body, those first that need others: the whole, what fills, and rows."""
    order = toposort((body,))
    if body.op is not END:
        yield from _rows_of(describe_nest(body, ()))
    for node in reversed(order):
        if node.op is END:
            nest = describe_nest(node.src[0], node.src[1:], node)
            yield nest
            yield from _rows_of(nest)


def touched_before(nests: Sequence[Nest], number: int) -> frozenset[UOp]:
    """The storages that nests after one in such a list, in the same loops, have accessed."""
    outer = nests[number].outer
    earlier = [n for n in nests[number + 1 :] if not outer.isdisjoint(n.outer)]
    return frozenset(access.storage for nest in earlier for access in nest.accesses)


def _rows_of(nest: Nest) -> Iterator[Nest]:
    for row in (*nest.rows, *(() if nest.results else nest.sums)):
        yield Nest(row, (), (row,))


def _inside(node: UOp) -> tuple[UOp, ...]:
    """What a node is computed from in its own loops: not what fills storage that it reads."""
    if node.op is END:
        return ()
    return node.src[:1] if node.op is AFTER and node.place is not None else node.src


def describe_nest(effect: UOp, results: tuple[UOp, ...], end: UOp | None = None) -> Nest:
    """The sums under an effect, sorted into joint ones and rows."""
    stores = [n for n in toposort((effect,), _effects) if n.op is STORE]
    found = [n for n in toposort([v for s in stores for v in s.src], _inside) if n.op is REDUCE]
    own = set(results)
    wanted = frozenset().union(*[open_ranges(v) for s in stores for v in s.src]) & own
    nested = {n for n in found if any(open_ranges(n) & set(s.src[1:]) for s in found)}
    outer = [n for n in found if n not in nested]
    first = {n for s in outer for n in toposort((s.src[0],), _inside)}.intersection(outer)
    joint = tuple(n for n in outer if open_ranges(n) & own == wanted and n not in first)
    return Nest(end or effect, results, joint, tuple(n for n in outer if n not in joint))


def _effects(node: UOp) -> tuple[UOp, ...]:
    return tuple(s for s in node.src if s.dtype is void) if node.op is AFTER else ()
