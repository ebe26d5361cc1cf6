"""From shaped values to loops: what one element of a value is, given its indices.

A STORE of a shaped value becomes a nest of loops over its elements,

    STORE(p, v)   →   END(STORE(INDEX(p, i, j), v[i, j]), i, j)

and v[i, j] is found by asking each op for one element: an elementwise op asks its sources for
theirs, storage is loaded, and a movement op asks its source at other indices. How each op
does it is a row of a table keyed by op, and a week adds rows. A row is a generator: it yields
the elements that it needs and is sent their values, so that nothing recurses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from week01_uops.dtypes import int64, void
from week01_uops.errors import CompilerError
from week01_uops.node import CONST, Op, Shape, UOp, const, make, toposort
from week01_uops.ops import CAST, ELEMENTWISE, MUL, PARAM, WHERE
from week01_uops.rewrite import Trace
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    END,
    INDEX,
    KEEP,
    LOAD,
    OUTPUT,
    RANGE,
    STORE,
    WORKSPACE,
    index,
    load,
    loop,
    zero,
)

Indices = tuple[UOp, ...]


class Element(NamedTuple):
    """One element of a node: where, and under which condition it is wanted.

    With `place` set, the place of the element is wanted, not its value.
    """

    node: UOp
    at: Indices
    gate: UOp | None = None
    place: bool = False


Row = Callable[["Lowering", Element], Generator[Element, UOp, UOp]]
IndexMap = Callable[[UOp, Indices], tuple[Indices, UOp | None]]


@dataclass
class Lowering:
    """The lowering of one kernel: the table of rows, and what was found so far.

    Attributes:
        rows: how each op finds an element.
        effects: lowered effects, for the AFTERs that wait for them.
        numbers: numbers for new RANGEs.
        own: the numbers of the RANGEs that the kernel had before.
        pool: RANGEs of reductions by level and size.
    """

    rows: Mapping[Op, Row]
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    own: dict[UOp, int] = field(default_factory=dict)
    effects: dict[UOp, UOp] = field(default_factory=dict)
    pool: dict[tuple[int, int], list[UOp]] = field(default_factory=dict)
    found: dict[Element, UOp] = field(default_factory=dict)

    def element(self, wanted: Element) -> UOp:
        """The scalar UOp of an element (or its place).

        An empty value has no elements, and what stands for one must not load anything: a load
        may be moved out of a loop that never runs.
        """
        stack: list[tuple[Element, Generator[Element, UOp, UOp]]] = []
        answer: UOp | None = self._start(wanted, stack)
        while stack:
            request, row = stack[-1]
            try:
                need = row.send(answer) if answer is not None else next(row)
                answer = self._start(need, stack)
            except StopIteration as stop:
                stack.pop()
                answer = self.found[request] = stop.value
        assert answer is not None
        return answer

    def _start(
        self, wanted: Element, stack: list[tuple[Element, Generator[Element, UOp, UOp]]]
    ) -> UOp | None:
        if 0 in wanted.node.shape and not wanted.place:
            return const(zero(wanted.node.dtype), wanted.node.dtype)
        known = self.found.get(wanted)
        if known is None:
            row = self.rows.get(wanted.node.op)
            if row is None:
                raise CompilerError(f"no row tells how to find an element of {wanted.node!r}")
            stack.append((wanted, row(self, wanted)))
        return known

    def ranges(self, shape: Shape) -> Indices:
        """New loops over a shape; an axis of size 1 needs none."""
        return tuple([self._new_range(size) for size in shape])

    def number_of(self, item: UOp) -> int:
        """The number of a RANGE of the kernel, a new one if another RANGE has it."""
        if item not in self.own:
            taken = item.arg.id in self.own.values()
            self.own[item] = next(self.numbers) if taken else item.arg.id
        return self.own[item]

    def _new_range(self, size: int) -> UOp:
        return loop(next(self.numbers), size) if size != 1 else const(0, int64)

    def shared_ranges(self, shape: Shape, level: int) -> Indices:
        """Loops over a shape, for a reduction of some level.

        Reductions of one level, of which none can stand inside another, get the same RANGEs for
        equal sizes, so that what their bodies have in common is one node, and their loops can
        be one loop.
        """
        chosen: list[UOp] = []
        for size in shape:
            pool = self.pool.setdefault((level, size), [])
            free = next((r for r in pool if r not in chosen), None)
            if free is None:
                free = self._new_range(size)
                if free.op is RANGE:
                    pool.append(free)
            chosen.append(free)
        return tuple(chosen)

    def effect(self, node: UOp) -> UOp:
        """A lowered STORE, END, or AFTER of effects."""
        if node.op is STORE:
            return self._store(node)
        if node.op is AFTER:
            return make(AFTER, tuple([self.effects[s] for s in node.src]))
        ranges = [self.element(Element(r, ())) for r in node.src[1:]]
        return node.with_src((self.effects[node.src[0]], *ranges))

    def _store(self, node: UOp) -> UOp:
        place, value, *gate = node.src
        at = self.ranges(place.shape)
        gates = [self.element(Element(g, at if g.shape else ())) for g in gate]
        store = make(
            STORE,
            (
                self.element(Element(place, at, None, place=True)),
                self.element(Element(value, at, gates[0] if gates else None)),
                *gates,
            ),
        )
        loops = [r for r in at if r.op is RANGE]
        return make(END, (store, *loops)) if loops else store


def lower_with(rows: Mapping[Op, Row]) -> Callable[[UOp, Trace], UOp]:
    """The pass that lowers a kernel body by a table of rows."""

    def run(body: UOp, trace: Trace) -> UOp:
        first = max((n.arg.id for n in body.toposort() if n.op is RANGE), default=-1) + 1
        lowering = Lowering(rows, itertools.count(first))
        for node in toposort((body,)):
            if node.dtype is void:
                lowering.effects[node] = lowering.effect(node)
        return lowering.effects[body]

    return run


def both(a: UOp | None, b: UOp | None) -> UOp | None:
    """A and b, where None is true."""
    if a is None or b is None:
        return b if a is None else a
    return a if a is b else make(MUL, (a, b))


def broadcast_indices(at: Indices, shape: Shape, whole: Shape) -> Indices:
    """The indices of a source of this shape that broadcasts to `whole`."""
    aligned = at[len(at) - len(shape) :]
    sizes = whole[len(whole) - len(shape) :]
    return tuple(
        [
            i if size == full else const(0, int64)
            for i, size, full in zip(aligned, shape, sizes, strict=True)
        ]
    )


def _elementwise(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
    node = e.node
    values = []
    for source in node.src:
        same = source.shape == node.shape
        at = e.at if same else broadcast_indices(e.at, source.shape, node.shape)
        values.append((yield Element(source, at, e.gate)))
    return make(node.op, tuple(values), node.arg)


def _leaf(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
    yield from ()
    return e.node


def _range(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
    bounds = []
    for bound in e.node.src:
        bounds.append((yield Element(bound, ())))
    return make(RANGE, tuple(bounds), replace(e.node.arg, id=state.number_of(e.node)))


def _storage(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
    yield from ()
    place = index(e.node, *e.at)
    return place if e.place else _load_gated(place, e.gate)


def _load_gated(place: UOp, gate: UOp | None) -> UOp:
    """LOAD, with the gate only if an index might be outside where the gate is false."""
    if gate is not None and place.op is INDEX:
        bounds = zip(place.src[1:], place.src[0].shape, strict=True)
        if not all(i.interval[0] >= 0 and i.interval[1] < size for i, size in bounds):
            return load(place, gate)
    return load(place)


def _after(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
    """The place or value of the source, with the lowered deps around the storage."""
    source, *deps = e.node.src
    waits = []
    for dep in deps:
        waits.append(state.effects[dep] if dep.dtype is void else (yield Element(dep, (), None)))
    if e.node.place is None:
        value = yield Element(source, e.at, e.gate)
        return make(AFTER, (value, *waits))
    place = yield Element(source, e.at, e.gate, place=True)
    indices: tuple[UOp, ...] = ()
    if place.op is INDEX:
        place, *rest = place.src
        indices = tuple(rest)
    after = index(make(AFTER, (place, *waits)), *indices)
    return after if e.place else _load_gated(after, e.gate)


def _index(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
    """An index that is an array takes the next index of the result; a scalar takes none."""
    place, *indices = e.node.src
    rest = list(e.at)
    at: list[UOp] = []
    for item in indices:
        inner = (rest.pop(0),) if item.shape else ()
        value = yield Element(item, inner, e.gate)
        at.append(value if value.dtype is int64 else _widen(value))
    return (yield Element(place, (*at, *rest), e.gate, e.place))


def _widen(value: UOp) -> UOp:
    return make(CAST, (value,), int64)


def _load(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
    place, *rest = e.node.src
    if not rest:
        return (yield Element(place, e.at, e.gate))
    own = yield Element(rest[0], e.at if rest[0].shape else (), e.gate)
    value = yield Element(place, e.at, both(e.gate, own))
    if len(rest) == 1:
        other = const(zero(value.dtype), value.dtype)
    else:
        at = broadcast_indices(e.at, rest[1].shape, place.shape)
        other = yield Element(rest[1], at, e.gate)
    return make(WHERE, (own, value, other))


def moved(index_map: IndexMap) -> Row:
    """The row of an op that only moves elements: the source's element at mapped indices.

    Where the map also gives a condition, the element is 0 outside it.
    """

    def row(state: Lowering, e: Element) -> Generator[Element, UOp, UOp]:
        at, valid = index_map(e.node, e.at)
        value = yield Element(e.node.src[0], at, both(e.gate, valid), e.place)
        if valid is None or e.place:
            return value
        return make(WHERE, (valid, value, const(zero(value.dtype), value.dtype)))

    return row


ROWS: Mapping[Op, Row] = {
    **dict.fromkeys(ELEMENTWISE | {KEEP}, _elementwise),
    CONST: _leaf,
    RANGE: _range,
    **dict.fromkeys((PARAM, BUFFER, ALLOC, OUTPUT, WORKSPACE), _storage),
    AFTER: _after,
    INDEX: _index,
    LOAD: _load,
}
