"""The step `stage`: what is read again and again is held close, in the order in which it is read.

    LOAD(INDEX(p, e…)), inside loop r   →   LOAD(INDEX(t, u…))
    t = AFTER(ALLOC, END(STORE(INDEX(ALLOC, s…), LOAD(INDEX(p, o + s…))), s…)), filled in r

An index e of the place is a sum of an outer part o, which depends on r and the loops around it, and
an inner part u + low. The inner parts of all axes span the temporary, in the order of axes that
`layout` asks for. Where the access has a gate, the temporary holds the value beside it, as a padded
copy of an image holds its zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from week01_uops.calls import substitute
from week01_uops.dtypes import int64
from week01_uops.linear import ZERO, Linear, bounds, build, value_of
from week01_uops.node import Shape, UOp, make, toposort
from week01_uops.ops import CAST, FLOORDIV, FLOORMOD, PARAM
from week02_render.lower import both
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    INDEX,
    LOAD,
    RANGE,
    STORE,
    AllocArg,
    index,
    load,
    loop,
    open_ranges,
    storage_of,
)
from week02_render.reads import free_slots
from week05_06_memory.dependence import lasting
from week05_06_memory.flat import put_together
from week05_06_memory.nests import (
    ScheduleError,
    closes,
    find_range,
    fresh_numbers,
    less,
    number,
    plus,
)
from week05_06_memory.ops import kind_of

MARGIN = 64
"""Elements beside an axis that a temporary may hold, besides as many as the axis has."""


def stage(body: UOp, slot: int, at: int | None, layout: tuple[int, ...] | None = None) -> UOp:
    """The loads of PARAM `slot` read a temporary that is filled in loop `at` (None: before all).

    Args:
        body: a kernel's body.
        slot: the PARAM whose loads are staged.
        at: the number of the loop.
        layout: the PARAM's axes in the order that the temporary has them, innermost last; by
            default as the PARAM has them.

    Raises:
        ScheduleError: there is no such load, the PARAM is written, a gate is no function of the
            indices, or the temporary would have to be filled in a vector or a copy.
    """
    loads = [n for n in toposort((body,)) if n.op is LOAD and _reads(n, slot)]
    if not loads:
        raise ScheduleError(f"expected a PARAM that is loaded with indices, got slot {slot}")
    if storage_of(loads[0].src[0]) in lasting(body):
        raise ScheduleError(f"expected a PARAM that the kernel does not write, got slot {slot}")
    outer = frozenset() if at is None else _around(body, at)
    slots, names = free_slots(body), fresh_numbers(body)
    return substitute(body, {old: _staged(old, outer, layout, next(slots), names) for old in loads})


def _reads(load: UOp, slot: int) -> bool:
    place = load.src[0]
    storage = storage_of(place)
    return place.op is INDEX and storage.op is PARAM and storage.arg.slot == slot


def _staged(
    old: UOp, outer: frozenset[UOp], layout: tuple[int, ...] | None, slot: int, names: Iterator[int]
) -> UOp:
    """A LOAD from a new temporary."""
    window, place = _Window.of(old, outer), old.src[0].src[0]
    count = len(place.shape)
    order = tuple(range(count)) if layout is None else layout
    if sorted(order) != list(range(count)):
        raise ScheduleError(f"expected the axes 0 to {count - 1} in some order, got {list(order)}")
    axes = {a: window.axes[a] for a in order if a in window.axes and window.axes[a].near.terms}
    counters = {a: loop(next(names), axis.size) for a, axis in axes.items()}
    value = window.filled(counters)
    deps = open_ranges(value).difference(counters.values())
    _expect_around(deps, outer)
    shape = tuple(axis.size for axis in axes.values())
    place = make(ALLOC, (), AllocArg(slot, old.dtype, shape, "LOCAL"))
    begin = make(AFTER, (place, *sorted(deps, key=lambda r: int(r.arg.id))))
    ranges = counters.values()
    fill = make(STORE, (index(begin, *ranges), value))
    full = make(AFTER, (place, make(END, (fill, *ranges)) if ranges else fill))
    return make(LOAD, (index(full, *(axis.read for axis in axes.values())),))


def _expect_around(deps: frozenset[UOp], outer: frozenset[UOp]) -> None:
    """What fills a temporary may depend on these ranges."""
    if inner := sorted(int(r.arg.id) for r in deps - outer):
        raise ScheduleError(f"expected gates over the indices of the loads, got ranges {inner}")
    for item in deps:
        if kind_of(item) in ("vector", "unroll"):
            raise ScheduleError(
                f"expected a temporary for all iterations of range {item.arg.id}, "
                f"which is of kind {kind_of(item)}"
            )


def _around(body: UOp, at: int) -> frozenset[UOp]:
    """The loop of a number and the loops around it."""
    item = find_range(body, at)
    found = {item}
    for node in reversed(toposort((body,))):
        if closes(node) and found & set(node.src[1:]):
            ranges = node.src[1:]
            last = max(i for i, r in enumerate(ranges) if r in found)
            found |= {*ranges[: last + 1], *open_ranges(node)}
    return frozenset(found)


class _Axis(NamedTuple):
    """An axis of what a load reads while the outer loops stand still.

    Axes whose indices are the quotient and remainder of one number are one axis here.

    Attributes:
        sizes: the sizes of the axes that it stands for.
        far: the part of the index that the outer loops decide.
        near: the rest.
        low: the least value of the rest.
        size: one more than by how much it varies.
    """

    sizes: tuple[int, ...]
    far: Linear
    near: Linear
    low: int
    size: int

    @staticmethod
    def of(sizes: tuple[int, ...], form: Linear, around: frozenset[UOp], gated: bool) -> _Axis:
        far = {t: c for t, c in form.terms.items() if open_ranges(t) <= around}
        near = Linear({t: c for t, c in form.terms.items() if t not in far}, 0)
        low, high = bounds(near)
        size, whole = high - low + 1, math.prod(sizes)
        if size > whole and not gated:
            return _Axis(sizes, ZERO, form, 0, whole)
        if size > 2 * whole + MARGIN:
            raise ScheduleError(f"expected indices within {whole} elements, got {size}")
        return _Axis(sizes, Linear(far, form.constant), near, low, size)

    @property
    def read(self) -> UOp:
        """The index into the temporary."""
        return build(self.near.plus(Linear({}, -self.low)), number(0))

    def whole(self, counter: UOp | None) -> UOp:
        """The index from the index into the temporary."""
        far = build(self.far, number(0))
        return far if counter is None else plus(plus(far, counter), number(self.low))

    def guards(self, at: UOp) -> list[UOp]:
        """What has to hold for an index to be in range."""
        (low, high), size = at.interval, math.prod(self.sizes)
        above = [less(number(-1), at)] if low < 0 else []
        return [*above, less(at, number(size))] if high >= size else above


@dataclass(frozen=True)
class _Window:
    """What a load reads while the outer loops stand still: axis → its part."""

    old: UOp
    around: frozenset[UOp]
    axes: Mapping[int, _Axis]

    @staticmethod
    def of(old: UOp, around: frozenset[UOp]) -> _Window:
        place, *indices = old.src[0].src
        joint = _joint_axes(place.shape, [value_of(_widened(at)) for at in indices])
        gated = len(old.src) > 1
        axes = {axis: _Axis.of(sizes, form, around, gated) for axis, sizes, form in joint}
        return _Window(old, around, axes)

    def filled(self, counters: Mapping[int, UOp]) -> UOp:
        """The load at the temporary's own indices."""
        indices: list[UOp] = []
        conditions: list[UOp] = []
        for number_, axis in self.axes.items():
            at = axis.whole(counters.get(number_))
            conditions += axis.guards(at)
            indices += _apart(at, axis.sizes)
        place = make(INDEX, (self.old.src[0].src[0], *indices))
        gate: UOp | None = None
        given = [self._expressed(node, counters) for node in self.old.src[1:]]
        for condition in (*given[:1], *conditions):
            gate = both(gate, condition)
        return make(LOAD, (place, gate, *given[1:])) if gate and given[1:] else load(place, gate)

    def _expressed(self, node: UOp, counters: Mapping[int, UOp]) -> UOp:
        """A gate (or an alternative) with the near parts of its sums written by the counters."""
        done: dict[UOp, UOp | None] = {}
        for item in toposort((node,)):
            found = self._sum(item, counters) if _is_integer(item) else None
            src = [done[s] for s in item.src]
            if found is None and item.op is not RANGE and None not in src:
                found = item.with_src(tuple([s for s in src if s is not None]))
            done[item] = found
        if (result := done[node]) is None:
            raise ScheduleError("expected gates that follow from the indices of their loads")
        return result

    def _sum(self, item: UOp, counters: Mapping[int, UOp]) -> UOp | None:
        form = value_of(item)
        for number_, counter in counters.items():
            near, low = self.axes[number_].near, self.axes[number_].low
            lead, factor = next(iter(near.terms.items()))
            times, rest = divmod(form.terms.get(lead, 0), factor)
            if times and not rest:
                form = form.plus(near, -times).plus(Linear({counter: 1}, low), times)
        known = self.around.union(counters.values())
        return build(form, item) if all(open_ranges(t) <= known for t in form.terms) else None


def _widened(at: UOp) -> UOp:
    return at if at.dtype is int64 else make(CAST, (at,), int64)


def _is_integer(node: UOp) -> bool:
    return node.dtype is int64 and node.place is None and not node.shape


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
