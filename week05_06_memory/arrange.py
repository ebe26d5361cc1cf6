"""Steps that change how loops are carried out, and in which order: kind, reorder, join.

kind      RANGE r          →   RANGE r : {"kind": …}
reorder   END(e, a, b, c)  →   END(e, b, c, a)
join      END(e, a, b)     →   END(e[a := r // B, b := r mod B], r)          B = size of b
"""

from __future__ import annotations

from dataclasses import replace

from week01_uops.calls import substitute
from week01_uops.linear import linear
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import FLOORDIV, FLOORMOD
from week01_uops.rewrite import rewrite
from week02_render.ops import END, INDEX, KINDS, RANGE, loop, open_ranges
from week03_loops.compiler import RULES_OF_LOOPS
from week05_06_memory.dependence import carried, carries
from week05_06_memory.flat import flat
from week05_06_memory.nests import (
    ScheduleError,
    closes,
    expect_fresh,
    find_range,
    find_ranges,
    map_closers,
    number,
)
from week05_06_memory.ops import kind_of
from week05_06_memory.widen import filled_in

WIDEST = 64
"""Lanes of a vector, or copies of what is unrolled, at most."""


def set_kind(body: UOp, name: int, kind: str) -> UOp:
    """RANGE `name` carried out as `kind` says.

    Raises:
        ScheduleError: its iterations depend on one another, or have temporaries in common; a
            bounded loop cannot be unrolled or be a vector, nor a loop that bounds another; a
            vector's size is a power of two of at most 64, and no vector stands in another.
    """
    if kind not in KINDS:
        raise ScheduleError(f"expected a kind of {', '.join(KINDS)}, got {kind}")
    items = find_ranges(body, name)
    for item in items if kind != "loop" else ():
        _expect_independent(body, item, kind)
        if kind != "parallel":
            _expect_copies(body, item, kind)
    kinds = {item: make(RANGE, item.src, replace(item.arg, kind=kind)) for item in items}
    found = substitute(body, kinds)
    if kind == "vector":
        _expect_one_vector(found, name)
    return found


def _expect_independent(body: UOp, item: UOp, kind: str) -> None:
    name = item.arg.id
    for node in toposort((body,)):
        if item not in node.src[1:] or not closes(node):
            continue
        if node.op is not END and kind == "parallel":
            raise ScheduleError(f"expected a loop over stores for threads, but {name} reduces")
        if node.op is END and item in node.src[1:] and carries(node, item):
            raise ScheduleError(
                f"expected iterations of range {name} that can be done in any order for {kind}, "
                "but one may store an element that another loads or stores"
            )


def _expect_copies(body: UOp, item: UOp, kind: str) -> None:
    """All iterations can be done at once by one copy of the loops around."""
    name, size = item.arg.id, item.arg.size
    if item.src:
        raise ScheduleError(f"expected a range without a bound to {kind}, but {name} has one")
    if kind == "vector" and (size & (size - 1) or not 1 < size <= WIDEST):
        raise ScheduleError(f"expected 2 to {WIDEST} lanes, a power of two, got {size} of {name}")
    if kind == "unroll" and not 0 < size <= WIDEST:
        raise ScheduleError(f"expected 1 to {WIDEST} iterations to unroll, got {size} of {name}")
    if any(item in open_ranges(b) for r in toposort((body,)) if r.op is RANGE for b in r.src):
        raise ScheduleError(f"expected a range that bounds no other to {kind}, but {name} does")
    if filled_in(body, item):
        raise ScheduleError(
            f"expected no temporary that is filled in the loop of range {name} to {kind}; "
            "widen it before"
        )


def _expect_one_vector(body: UOp, name: int) -> None:
    for node in toposort((body,)):
        if closes(node):
            lanes = {r for r in (*node.src[1:], *open_ranges(node)) if kind_of(r) == "vector"}
            if len(lanes) > 1 and any(r in lanes for r in node.src[1:]):
                raise ScheduleError(f"expected one vector range in a nest, but {name} is a second")


def reorder(body: UOp, order: tuple[int, ...]) -> UOp:
    """The RANGEs of `order` in this order, outermost first, at the positions that they had.

    Raises:
        ScheduleError: no nest closes all of them, a bound would come before what it needs, or
            iterations that depend on one another would change places.
    """
    for name in order:
        find_ranges(body, name)
    if len(set(order)) != len(order):
        raise ScheduleError(f"expected each range once, got {list(order)}")
    changed = 0

    def change(node: UOp) -> UOp:
        nonlocal changed
        by_name = {r.arg.id: r for r in node.src[1:]}
        if not by_name.keys() >= set(order):
            return node
        changed += 1
        rest = iter(order)
        new = [by_name[next(rest)] if r.arg.id in order else r for r in node.src[1:]]
        _expect_order(node, new)
        return node.with_src((node.src[0], *new))

    result = map_closers(body, change)
    if not changed:
        raise ScheduleError(f"expected the ranges {list(order)} to be loops of one nest")
    return result


def _expect_order(node: UOp, new: list[UOp]) -> None:
    for position, item in enumerate(new):
        later = set(new[position:])
        if any(later & open_ranges(bound) for bound in item.src):
            raise ScheduleError(f"expected range {item.arg.id} inside the loops of its bound")
    kept = carried(node) if node.op is END else ()
    before, after = ([r for r in ranges if r in kept] for ranges in (node.src[1:], new))
    if before != after:
        names = [r.arg.id for r in before]
        raise ScheduleError(
            f"expected the ranges {names} in this order, for an iteration may store an element "
            "that another loads or stores"
        )


def join(body: UOp, outer: int, inner: int, into: int) -> UOp:
    """Two neighbouring loops as one: its index is taken apart where they were used.

    Raises:
        ScheduleError: they are not neighbours in every nest that closes one of them, or bounded, or
            some index is no function of the joint one.
    """
    a, b = find_range(body, outer), find_range(body, inner)
    expect_fresh(body, (into,))
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
        return node.with_src(tuple(substitute(s, parts) for s in (node.src[0], *ranges)))

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
        apart += [t for t in form.terms if t.op is not RANGE]
    return not any(item in open_ranges(n) for n in apart)
