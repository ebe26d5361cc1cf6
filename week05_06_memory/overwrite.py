"""A store of what is there already need not be done: a mask on a place becomes where it is stored.

    END(STORE(p[i, r], WHERE([r = e]·c, x(i, r), p[i, r])), i, r)
      →   END(STORE(p[i, e], x(i, e)), i, t < [c, 0 ≤ e < size])

So a cache of keys and values to which a step adds one row is not written anew. The loop t, of one
iteration or none, is the test that keeps positions out of range away.
"""

from __future__ import annotations

from week01_uops.conditions import negation
from week01_uops.dtypes import int64
from week01_uops.node import UOp, make
from week01_uops.ops import CAST, WHERE
from week01_uops.rewrite import Trace
from week02_render.ops import END, INDEX, LOAD, STORE, loop, open_ranges, storage_of
from week05_06_memory.nests import fresh_numbers
from week05_06_memory.onehot import Masked, Selection, conditions, select


def overwrite(body: UOp, trace: Trace) -> UOp:
    """The body without the loops that leave all but one element of theirs as it was."""
    while (found := _selected(body)) is not None:
        trace.fired["overwrite"] += 1
        body = found
    return body


def _selected(body: UOp) -> UOp | None:
    """The body without one such loop; None if there is none."""
    store, *ranges = body.src if body.op is END else (body,)
    if store.op is not STORE or len(store.src) > 2 or store.src[0].op is not INDEX:
        return None
    place, value = store.src
    found = _changed(place, value)
    if found is None or not set(place.src[1:]) >= set(ranges):
        return None
    for r in ranges:
        selection = None if r.src else select(found, r)
        if selection is not None:
            return _stored(body, place, r, selection)
    return None


def _changed(place: UOp, value: UOp) -> Masked | None:
    """Where something new is stored, and what; None unless it is the old value elsewhere."""
    if value.op is not WHERE:
        return None
    condition, first, second = value.src
    old = make(LOAD, (place,))
    if second is old:
        found = Masked(conditions(condition), first)
    elif first is old:
        found = Masked(conditions(negation(condition)), second)
    else:
        return None
    new = [node for part in (*found.conditions, found.value) for node in part.toposort()]
    storage = storage_of(place)
    return None if any(n.op is LOAD and storage_of(n.src[0]) is storage for n in new) else found


def _stored(body: UOp, place: UOp, r: UOp, selection: Selection) -> UOp:
    """The body that stores at the one value of a loop."""
    base, *indices = place.src
    moved = make(INDEX, (base, *[selection.e if i is r else i for i in indices]))
    outer = [item for item in body.src[1:] if item is not r]
    loops = outer
    if selection.gate.interval != (1, 1):
        test = loop(next(fresh_numbers(body)), 1, make(CAST, (selection.gate,), int64))
        inside = [i for i in outer if i not in open_ranges(selection.gate)]
        loops = [*[i for i in outer if i not in inside], test, *inside]
    stored = make(STORE, (moved, selection.value))
    return make(END, (stored, *loops)) if loops else stored
