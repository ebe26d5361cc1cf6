"""Steps that hold values closer: stage, widen.

    stage    LOAD(INDEX(p, e…)), inside loop r    →    LOAD(INDEX(t, u…))
             t = AFTER(ALLOC, END(STORE(INDEX(ALLOC, s…), LOAD(INDEX(p, o + s…))), s…)), filled in r
    widen    t filled once for each iteration of r    →    t with an axis for r, filled before r

An index e of the place is a sum of an outer part o, which depends on r and the loops around it, and
an inner part u − low. The inner parts of all axes span the temporary: what is read again and again
is contiguous in it, in the order of axes that `layout` asks for. Where the access has a gate, the
temporary holds the value beside it, as a padded copy of an image holds its zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.linear import ZERO, Linear, bounds, build, linear
from week01_uops.node import Shape, UOp, make, toposort
from week01_uops.ops import FLOORDIV, FLOORMOD, PARAM
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    INDEX,
    LOAD,
    RANGE,
    STORE,
    AllocArg,
    loop,
    open_ranges,
    storage_of,
)
from week02_render.reads import free_slots
from week05_06_memory.flat import put_together
from week05_06_memory.nests import ScheduleError, find_range, fresh_numbers, number, plus


def stage(body: UOp, slot: int, at: int | None, layout: tuple[int, ...] | None = None) -> UOp:
    """The loads of PARAM `slot` read a temporary that is filled in loop `at` (None: before all).

    Args:
        body: a kernel's body.
        slot: the PARAM whose loads are staged.
        at: the number of the loop.
        layout: the PARAM's axes in the order that the temporary has them, innermost last; by
            default as the PARAM has them.

    Raises:
        ScheduleError: there is no such load, or its gate is no function of its indices.
    """
    loads = [n for n in toposort((body,)) if n.op is LOAD and _reads(n, slot)]
    if not loads:
        raise ScheduleError(f"expected a PARAM that is loaded with indices, got slot {slot}")
    outer = frozenset() if at is None else _around(body, at)
    slots, names = free_slots(body), fresh_numbers(body)
    replaced: dict[UOp, UOp] = {}
    for load in loads:
        window = _Window.of(load, outer)
        order = layout if layout is not None else tuple(range(len(window.place.shape)))
        if sorted(order) != list(range(len(window.place.shape))):
            raise ScheduleError(
                f"expected the axes 0 to {len(window.place.shape) - 1} in some order, got {order}"
            )
        axes = [a for a in order if a in window.inner]
        counters = {a: loop(next(names), window.size(a)) for a in axes}
        arg = AllocArg(next(slots), load.dtype, tuple(window.size(a) for a in axes), "LOCAL")
        place = make(ALLOC, (), arg)
        filled = window.filled(load, counters)
        begin = make(AFTER, (place, *_deps(filled, counters)))
        ranges = [counters[a] for a in axes]
        fill = make(STORE, (make(INDEX, (begin, *ranges)), filled))
        full = make(AFTER, (place, make(END, (fill, *ranges))))
        replaced[load] = make(LOAD, (make(INDEX, (full, *(window.read(a) for a in axes))),))
    return substitute(body, replaced)


def _reads(load: UOp, slot: int) -> bool:
    place = load.src[0]
    storage = storage_of(place)
    return place.op is INDEX and storage.op is PARAM and storage.arg.slot == slot


def _deps(value: UOp, counters: dict[int, UOp]) -> list[UOp]:
    outer = open_ranges(value).difference(counters.values())
    return sorted(outer, key=lambda r: int(r.arg.id))


def _around(body: UOp, at: int) -> frozenset[UOp]:
    """The loop of a number and the loops around it."""
    item = find_range(body, at)
    found: set[UOp] = {item}
    waiting = {item}
    for node in reversed(toposort((body,))):
        if node.op is END and waiting & set(node.src[1:]):
            ranges = node.src[1:]
            last = max(i for i, r in enumerate(ranges) if r in waiting)
            found.update(ranges[: last + 1])
            waiting |= open_ranges(node)
            found |= open_ranges(node)
    return frozenset(found)


@dataclass(frozen=True)
class _Window:
    """The part of a place that a load reads while the outer loops stand still.

    Axes whose indices are the quotient and remainder of one number are one axis here, under the
    number of the last of them.

    Attributes:
        place: the storage (behind AFTER).
        sizes: axis → the sizes of the axes that it stands for.
        outer: axis → the part of its index that the outer loops decide.
        inner: axis → the rest, for the axes that have one.
    """

    place: UOp
    sizes: dict[int, tuple[int, ...]]
    outer: dict[int, Linear]
    inner: dict[int, Linear]

    @staticmethod
    def of(load: UOp, around: frozenset[UOp]) -> _Window:
        place, *indices = load.src[0].src
        found = _Window(place, {}, {}, {})
        for axis, sizes, form in _joint_axes(place.shape, [linear(at) for at in indices]):
            far = {t: c for t, c in form.terms.items() if open_ranges(t) <= around}
            near = {t: c for t, c in form.terms.items() if t not in far}
            found.sizes[axis] = sizes
            found.outer[axis] = Linear(far, form.constant)
            if near:
                found.inner[axis] = Linear(near, 0)
        return found

    def size(self, axis: int) -> int:
        low, high = bounds(self.inner[axis])
        return high - low + 1

    def low(self, axis: int) -> int:
        return bounds(self.inner[axis])[0]

    def read(self, axis: int) -> UOp:
        """The index into the temporary."""
        form = self.inner[axis]
        return build(form._replace(constant=-self.low(axis)), number(0))

    def filled(self, load: UOp, counters: dict[int, UOp]) -> UOp:
        """The load at the temporary's own indices."""
        indices: list[UOp] = []
        for axis, far in self.outer.items():
            at = build(far, number(0))
            if axis in counters:
                at = plus(plus(at, counters[axis]), number(self.low(axis)))
            indices += _apart(at, self.sizes[axis])
        place = make(INDEX, (self.place, *indices))
        rest = [self._expressed(gate, counters) for gate in load.src[1:]]
        return make(LOAD, (place, *rest))

    def _expressed(self, node: UOp, counters: dict[int, UOp]) -> UOp:
        """A gate (or an alternative) with the inner parts of its sums written by the counters."""
        done: dict[UOp, UOp] = {}

        def below(n: UOp) -> tuple[UOp, ...]:
            return () if n.dtype.is_int and not n.shape and n.op is not RANGE else n.src

        for item in toposort((node,), below):
            if item.dtype.is_int:
                done[item] = self._sum(item, counters)
            else:
                done[item] = item.with_src(tuple([done[s] for s in item.src]))
        return done[node]

    def _sum(self, item: UOp, counters: dict[int, UOp]) -> UOp:
        form = linear(item)
        for axis, near in self.inner.items():
            lead, factor = next(iter(near.terms.items()))
            if lead in form.terms and form.terms[lead] % factor == 0:
                ratio = form.terms[lead] // factor
                form = form.plus(near, -ratio)
                own = Linear({counters[axis]: ratio}, ratio * self.low(axis))
                form = form.plus(own)
        inner = {t for near in self.inner.values() for t in near.terms}
        if inner & form.terms.keys():
            raise ScheduleError(f"expected a gate over the indices of the load, got {item!r}")
        return build(form, item)


def _joint_axes(shape: Shape, forms: list[Linear]) -> Iterator[tuple[int, tuple[int, ...], Linear]]:
    """Each axis, or neighbours as one: its last number, their sizes, the form of the index."""
    sizes: tuple[int, ...] = ()
    whole = ZERO
    for axis, (size, form) in enumerate(zip(shape, forms, strict=True)):
        joint = whole.times(size).plus(form)
        if sizes and (together := put_together(joint)) != joint:
            sizes, whole = (*sizes, size), together
            continue
        if sizes:
            yield axis - 1, sizes, whole
        sizes, whole = (size,), form
    if sizes:
        yield len(shape) - 1, sizes, whole


def _apart(at: UOp, sizes: tuple[int, ...]) -> list[UOp]:
    """The indices of neighbouring axes from their joint one."""
    indices: list[UOp] = []
    for size in reversed(sizes[1:]):
        indices.insert(0, make(FLOORMOD, (at, number(size))))
        at = make(FLOORDIV, (at, number(size)))
    return [at, *indices]


def widen(body: UOp, name: int) -> UOp:
    """Each temporary that is filled anew in every iteration of loop `name` gets an axis for it.

    Raises:
        ScheduleError: no temporary is filled in that loop.
    """
    item = find_range(body, name)
    inside = filled_in(body, item)
    if not inside:
        raise ScheduleError(f"expected a temporary that is filled in the loop of range {name}")
    names = fresh_numbers(body)
    counter = {a: loop(next(names), item.arg.size) for a in inside}
    wide = {
        a: make(ALLOC, (), AllocArg(a.arg.slot, a.dtype, (item.arg.size, *a.shape), "LOCAL"))
        for a in inside
    }
    done: dict[UOp, UOp] = {}
    for node in toposort((body,)):
        src = tuple([done[s] for s in node.src])
        base = storage_of(node) if node.place is not None else None
        if node.op is ALLOC and node in wide:
            done[node] = wide[node]
        elif node.op is INDEX and base in wide:
            done[node] = make(INDEX, (src[0], item, *src[1:]))
        elif node.op is AFTER and base in wide and node.src[1].op is END:
            assert base is not None
            fill, mine = src[1], counter[base]
            inner = substitute(fill, {item: mine})
            done[node] = make(AFTER, (src[0], inner.with_src((inner.src[0], mine, *inner.src[1:]))))
        else:
            done[node] = node.with_src(src)
    return done[body]


def filled_in(body: UOp, item: UOp) -> list[UOp]:
    """The LOCAL arrays whose filling nest depends on the range."""
    found: dict[UOp, None] = {}
    for node in toposort((body,)):
        if node.op is AFTER and node.place is not None and len(node.src) == 2:
            fill = node.src[1]
            if fill.op is END and item in open_ranges(fill) and node.src[0].op is ALLOC:
                found[node.src[0]] = None
    return list(found)
