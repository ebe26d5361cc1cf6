"""Steps that change how loops are carried out, and in which order: kind, reorder, join.

kind      RANGE r          →   RANGE r : {"kind": …}
reorder   END(e, a, b, c)  →   END(e, b, c, a)
join      END(e, a, b)     →   END(e[a := r // B, b := r mod B], r)          B = size of b
"""

from __future__ import annotations

from week01_uops.calls import substitute
from week01_uops.linear import linear
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import FLOORDIV, FLOORMOD
from week01_uops.rewrite import rewrite
from week02_render.ops import END, INDEX, KINDS, RANGE, STORE, loop, open_ranges
from week03_loops.compiler import RULES_OF_LOOPS
from week05_06_memory.flat import flat
from week05_06_memory.nests import ScheduleError, closes, find_range, map_closers, number
from week05_06_memory.split import combines

WIDEST = 64
"""Lanes of a vector at most."""


def set_kind(body: UOp, name: int, kind: str) -> UOp:
    """RANGE `name` carried out as `kind` says.

    Raises:
        ScheduleError: a bounded loop cannot be unrolled or be a vector; a vector's size is a power
            of two of at most 64; threads may not combine into one element.
    """
    item = find_range(body, name)
    size: int = item.arg.size
    if kind not in KINDS:
        raise ScheduleError(f"expected a kind of {', '.join(KINDS)}, got {kind}")
    if kind in ("vector", "unroll") and item.src:
        raise ScheduleError(f"expected a range without a bound to {kind}, but {name} has one")
    if kind == "vector" and (size & (size - 1) or not 1 < size <= WIDEST):
        raise ScheduleError(f"expected 2 to {WIDEST} lanes, a power of two, got {size} of {name}")
    for node in toposort((body,)):
        if closes(node) and item in node.src[1:]:
            _check_kind(node, item, kind)
    bound = item.src[0] if item.src else None
    return substitute(body, {item: loop(name, size, bound, kind)})


def _check_kind(closer: UOp, item: UOp, kind: str) -> None:
    name = item.arg.id
    if kind == "parallel":
        if closer.op is not END:
            raise ScheduleError(f"expected a loop over stores for threads, but {name} reduces")
        if not _writes_apart(closer, item):
            raise ScheduleError(
                f"expected iterations of {name} to store different elements, for threads"
            )
    if kind == "vector":
        lanes = [r for r in closer.src[1:] if r.op is RANGE and r.arg.kind == "vector"]
        if any(other is not item for other in lanes):
            raise ScheduleError(f"expected one vector range in a nest, but {name} is a second")


def _writes_apart(end: UOp, item: UOp) -> bool:
    """Whether each STORE's place depends on the range, in a nest that reads nothing it writes."""
    if combines(end):
        return False
    stores = [n for n in toposort((end.src[0],), _outside_ends) if n.op is STORE]
    return all(item in open_ranges(store.src[0]) for store in stores)


def _outside_ends(node: UOp) -> tuple[UOp, ...]:
    return () if node.op is END else node.src


def reorder(body: UOp, order: tuple[int, ...]) -> UOp:
    """The RANGEs of `order` in this order, outermost first, at the positions that they had.

    Raises:
        ScheduleError: no nest closes all of them, or a bound would come before what it needs.
    """
    wanted = [find_range(body, name) for name in order]
    if len(set(wanted)) != len(wanted):
        raise ScheduleError(f"expected each range once, got {list(order)}")
    changed = 0

    def change(node: UOp) -> UOp:
        nonlocal changed
        names = {r.arg.id for r in node.src[1:]}
        if not names.issuperset(order):
            return node
        changed += 1
        by_name = {r.arg.id: r for r in node.src[1:]}
        rest = iter(order)
        new = [by_name[next(rest)] if r.arg.id in order else r for r in node.src[1:]]
        for position, item in enumerate(new):
            later = set(new[position:])
            if any(later & open_ranges(bound) for bound in item.src):
                raise ScheduleError(f"expected range {item.arg.id} inside the loops of its bound")
        return node.with_src((node.src[0], *new))

    result = map_closers(body, change)
    if not changed:
        raise ScheduleError(f"expected the ranges {list(order)} to be loops of one nest")
    return result


def join(body: UOp, outer: int, inner: int, into: int) -> UOp:
    """Two neighbouring loops as one: its index is taken apart where they were used.

    Raises:
        ScheduleError: they are not neighbours in every nest that closes one of them, or bounded, or
            some index is no function of the joint one.
    """
    a, b = find_range(body, outer), find_range(body, inner)
    if a.src or b.src:
        raise ScheduleError(f"expected ranges without bounds to join, got {outer} and {inner}")
    size: int = b.arg.size
    item = loop(into, a.arg.size * size)
    parts = {a: make(FLOORDIV, (item, number(size))), b: make(FLOORMOD, (item, number(size)))}

    def change(node: UOp) -> UOp:
        ranges = list(node.src[1:])
        if a not in ranges and b not in ranges:
            return node
        at = ranges.index(a) if a in ranges else -1
        if at < 0 or ranges[at + 1 : at + 2] != [b]:
            raise ScheduleError(f"expected range {inner} right inside {outer}, to join them")
        ranges[at : at + 2] = [item]
        return node.with_src((substitute(node.src[0], parts), *ranges))

    joined = rewrite(map_closers(body, change), RULES_OF_LOOPS)
    if not _is_one(joined, item):
        raise ScheduleError(f"expected indices with one stride over {outer} and {inner}")
    return joined


def _is_one(body: UOp, item: UOp) -> bool:
    """Whether the quotients and remainders of a RANGE are put together again in every offset."""
    places = [n for n in toposort((body,)) if n.op is INDEX and item in open_ranges(n)]
    inside = lambda n: () if n.op is INDEX else n.src
    apart = [n for n in toposort((body,), inside) if n.op in (FLOORDIV, FLOORMOD)]
    for place in places:
        form = flat(place.src[0].shape, [linear(at) for at in place.src[1:]])
        apart += [t for t in form.terms if t is not item and item in open_ranges(t)]
    return not any(item in open_ranges(n) for n in apart)
