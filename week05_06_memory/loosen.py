"""The step `loosen`: loops whose bounds differ within a tile get the bound of the whole tile.

    REDUCE(x, k < e(i))           →   REDUCE(x where k < e(i), k < max over i of e)
    END(STORE(t[s], v), s < e(i)) →   END(STORE(t[s], v where s < e(i)), s < max over i of e)

The rows of a triangle can then be computed together. What stands past a row's own end is the
identity of the reductions that read it (0 of a sum, −inf of a maximum): then these need no
condition of their own. As everywhere a masked element is taken not to matter: 0·x counts as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.linear import build, linear
from week01_uops.node import UOp, const, make, toposort
from week01_uops.ops import ADD, MUL, WHERE
from week02_render.ops import ALLOC, END, LOAD, RANGE, STORE, loop, open_ranges, storage_of
from week03_loops.ops import REDUCE, identity
from week05_06_memory.dependence import carries
from week05_06_memory.nests import ScheduleError, closes, find_range, less
from week05_06_memory.split import gated, reads_within


def loosen(body: UOp, name: int) -> UOp:
    """Each bound that depends on RANGE `name` becomes the largest that it takes.

    Raises:
        ScheduleError: no bound depends on the range, or not as a linear form; or a load might
            leave its storage.
    """
    item = find_range(body, name)
    tight = [n for n in toposort((body,)) if n.op is RANGE and item in open_ranges_of_bound(n)]
    if not tight:
        raise ScheduleError(f"expected a loop whose bound depends on range {name}")
    for loop_ in tight:
        if not reads_within(body, loop_):
            raise ScheduleError(f"expected loads in bounds for all of range {loop_.arg.id}")
    loose = {n: loop(n.arg.id, n.arg.size, _largest(n, item), n.arg.kind) for n in tight}
    return _Loosened(loose, _pads(body, loose)).body(body)


def open_ranges_of_bound(item: UOp) -> frozenset[UOp]:
    """The loops that a RANGE's bound depends on."""
    return open_ranges(item.src[0]) if item.src else frozenset()


def _largest(bounded: UOp, item: UOp) -> UOp:
    bound = bounded.src[0]
    step = linear(bound).terms.get(item)
    if step is None:
        raise ScheduleError(
            f"expected the bound of range {bounded.arg.id} to grow evenly with range {item.arg.id}"
        )
    last = item.arg.size - 1 if step > 0 else 0
    form = linear(bound)
    rest = {t: c for t, c in form.terms.items() if t is not item}
    if any(item in open_ranges(t) for t in rest):
        raise ScheduleError(f"expected one place of range {item.arg.id} in a bound")
    return build(form._replace(terms=rest, constant=form.constant + step * last), bound)


def _pads(body: UOp, loose: Mapping[UOp, UOp]) -> dict[UOp, object]:
    """What the local arrays that are filled by loosened loops hold past the ends of rows."""
    ends = [n for n in toposort((body,)) if n.op is END and n.src[0].op is STORE]
    loosened = [(n, loose.keys() & set(n.src[1:])) for n in ends]
    filled = {
        storage_of(n.src[0].src[0])
        for n, items in loosened
        if items and all(_filled_by(n, item) for item in items)
    }
    wanted: dict[UOp, set[object]] = {}
    for node in toposort((body,)):
        if node.op is REDUCE and not loose.keys().isdisjoint(node.src[1:]):
            for load in _vanishing(node):
                if storage_of(load.src[0]) in filled:
                    value = identity(node.arg.op, load.dtype)
                    wanted.setdefault(storage_of(load.src[0]), set()).add(value)
    return {storage: next(iter(values)) for storage, values in wanted.items() if len(values) == 1}


def _filled_by(end: UOp, item: UOp) -> UOp | None:
    """The local array of which each iteration of a loop fills elements of its own, if it does."""
    effect = end.src[0]
    storage = storage_of(effect.src[0]) if effect.op is STORE else None
    own = storage is not None and storage.op is ALLOC and not carries(end, item)
    return storage if own else None


def _vanishing(node: UOp) -> list[UOp]:
    """The LOADs of a REDUCE's term that make it the identity if they are."""
    term = node.src[0]
    if term.op is LOAD:
        return [term]
    if term.op is MUL and node.arg.op is ADD:
        return [s for s in term.src if s.op is LOAD]
    return []


@dataclass
class _Loosened:
    """The exchange of bounds.

    Attributes:
        loose: RANGE → the RANGE with the larger bound.
        pads: local array → what it holds past the ends of rows.
    """

    loose: Mapping[UOp, UOp]
    pads: Mapping[UOp, object]

    def body(self, body: UOp) -> UOp:
        """The whole body, bottom-up: conditions first, then the RANGEs."""
        done: dict[UOp, UOp] = {}
        for node in toposort((body,)):
            new = node.with_src(tuple([done[s] for s in node.src]))
            done[node] = self._closer(new) if closes(new) else new
        return substitute(done[body], self.loose)

    def _closer(self, node: UOp) -> UOp:
        for item in node.src[1:]:
            if item in self.loose:
                node = self._conditional(node, item)
        return node

    def _conditional(self, node: UOp, item: UOp) -> UOp:
        """The closer with a condition wherever what stands past the row's end would matter."""
        inside = less(item, item.src[0])
        if node.op is END:
            effect = self._filling(node.src[0], _filled_by(node, item), inside)
            return node.with_src((effect, *node.src[1:]))
        if any(storage_of(n.src[0]) in self.pads for n in _vanishing(node)):
            return node
        term = node.src[0]
        other = const(identity(node.arg.op, term.dtype), term.dtype)
        return node.with_src((make(WHERE, (inside, term, other)), *node.src[1:]))

    def _filling(self, effect: UOp, storage: UOp | None, inside: UOp) -> UOp:
        """An effect that leaves alone what stands past the row's end, or may write there."""
        if storage is None:
            return gated(effect, inside)
        if storage not in self.pads:
            return effect
        value = effect.src[1]
        pad = const(self.pads[storage], value.dtype)  # type: ignore[arg-type]
        return make(STORE, (effect.src[0], make(WHERE, (inside, value, pad)), *effect.src[2:]))
