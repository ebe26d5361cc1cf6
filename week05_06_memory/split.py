"""Split a loop: r of size n becomes r0 of ⌈n/f⌉ tiles and r1 within a tile of f.

    r   →   r0·f + r1                                              f divides n
    r   →   min(r0·f, n − f) + r1         the last tile overlaps:  END of stores, REDUCE of MAX
    REDUCE(x, r)   →   REDUCE(x, r0, r1) ⊕ REDUCE(x where n − f + r1 is new, r1)     ADD, MUL

Every tile is whole, so that it can be unrolled or become a vector. What an overlap computes twice
is the same value; where an element is combined with what is stored already (`p ← p + x`), the rest
gets a nest of its own instead.

A bounded loop (n = min(size, e)) gets ⌈e/f⌉ tiles; what the last one computes past e counts as the
identity in a REDUCE, and is not stored in memory that outlives the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.dtypes import void
from week01_uops.node import UOp, const, make, toposort
from week01_uops.ops import FLOORDIV, MAX, MUL, PARAM, WHERE
from week02_render.ops import END, INDEX, LOAD, STORE, loop, storage_of
from week03_loops.ops import REDUCE, identity
from week05_06_memory.nests import (
    ScheduleError,
    find_range,
    fresh_numbers,
    joined,
    less,
    map_closers,
    minimum,
    number,
    plus,
    times,
)


def split(body: UOp, name: int, by: int, into: tuple[int, int] | None = None) -> UOp:
    """The body with RANGE `name` split into tiles of `by`, its RANGEs numbered `into`.

    Raises:
        ScheduleError: `by` is larger than the loop, or a bounded loop cannot be rounded up.
    """
    item = find_range(body, name)
    size: int = item.arg.size
    if not 1 <= by <= size:
        raise ScheduleError(f"expected a tile of 1 to {size} for range {name}, got {by}")
    fresh = fresh_numbers(body)
    outer, inner = into or (next(fresh), next(fresh))
    if item.src and not reads_within(body, item):
        raise ScheduleError(
            f"expected loads in bounds for all {size} iterations of range {name}, which has a bound"
        )
    maker = _Split(item, by, outer, inner, fresh)
    return map_closers(body, lambda node: maker.closer(node) if item in node.src[1:] else node)


def reads_within(body: UOp, item: UOp) -> bool:
    """Whether every access whose index depends on the range stays within its storage."""
    whole = loop(item.arg.id, item.arg.size)
    for node in toposort((body,)):
        if node.op is INDEX and item in toposort(node.src[1:]):
            for at, size in zip(node.src[1:], node.src[0].shape, strict=False):
                low, high = substitute(at, {item: whole}).interval
                if low < 0 or high >= size:
                    return False
    return True


@dataclass
class _Split:
    """One RANGE, and what it becomes."""

    item: UOp
    by: int
    outer: int
    inner: int
    fresh: Iterator[int]

    def __post_init__(self) -> None:
        size: int = self.item.arg.size
        self.size = size
        self.tile = loop(self.inner, self.by)
        self.bound = self.item.src[0] if self.item.src else None

    def tiles(self, count: int) -> UOp:
        """The RANGE over `count` tiles, fewer where the loop has a bound."""
        if self.bound is None:
            return loop(self.outer, count)
        ahead = plus(self.bound, number(self.by - 1))
        return loop(self.outer, count, make(FLOORDIV, (ahead, number(self.by))))

    def closer(self, node: UOp) -> UOp:
        """A closer of the RANGE with tiles in its place."""
        exact = self.size % self.by == 0
        if node.op is REDUCE:
            if not exact and self.bound is None and node.arg.op is not MAX:
                return self._peeled(node)
            return self._reduced(node)
        if not exact and combines(node):
            return self._cut(node)
        return self._tiled(node)

    def _over(self, node: UOp, inside: UOp, count: int) -> UOp:
        """The closer around `inside`, with both new RANGEs."""
        new: list[UOp] = []
        for item in node.src[1:]:
            new += [self.tiles(count), self.tile] if item is self.item else [item]
        return node.with_src((inside, *new))

    def _index(self, count: int) -> tuple[UOp, UOp, UOp]:
        """The element's number, the first of its tile, and the first that is new in its tile."""
        begin = times(self.tiles(count), self.by)
        first = minimum(begin, self.size - self.by)
        return plus(first, self.tile), first, begin

    def _tiled(self, node: UOp) -> UOp:
        count = -(-self.size // self.by)
        at, _, _ = self._index(count)
        inside = substitute(node.src[0], {self.item: at})
        if self.bound is not None:
            inside = gated(inside, less(at, self.bound))
        return self._over(node, inside, count)

    def _reduced(self, node: UOp) -> UOp:
        """All tiles in one nest; what is not new or past the bound counts as the identity."""
        count = -(-self.size // self.by)
        at, first, begin = self._index(count)
        value = substitute(node.src[0], {self.item: at})
        if self.bound is not None:
            value = _where(less(at, self.bound), value, node)
        if first is not begin and node.arg.op is not MAX:
            value = _where(less(plus(begin, number(-1)), at), value, node)
        return self._over(node, value, count)

    def _peeled(self, node: UOp) -> UOp:
        count, rest = divmod(self.size, self.by)
        main = substitute(
            node.src[0], {self.item: plus(times(self.tiles(count), self.by), self.tile)}
        )
        last = substitute(node.src[0], {self.item: plus(self.tile, number(self.size - self.by))})
        last = _where(less(number(self.by - rest - 1), self.tile), last, node)
        others = tuple([self.tile if r is self.item else r for r in node.src[1:]])
        parts = self._over(node, main, count), node.with_src((last, *others))
        return make(node.arg.op, parts)

    def _whole_tiles(self, inside: UOp, count: int) -> UOp:
        at = plus(times(self.tiles(count), self.by), self.tile)
        return substitute(inside, {self.item: at})

    def _cut(self, node: UOp) -> UOp:
        count, rest = divmod(self.size, self.by)
        main = substitute(
            node.src[0], {self.item: plus(times(self.tiles(count), self.by), self.tile)}
        )
        tail = loop(next(self.fresh), rest)
        last = substitute(node.src[0], {self.item: plus(tail, number(count * self.by))})
        others = tuple([tail if r is self.item else r for r in node.src[1:]])
        return joined([self._over(node, main, count), node.with_src((last, *others))])


def _where(condition: UOp, value: UOp, reduce: UOp) -> UOp:
    """The value where the condition holds, elsewhere the identity of the reduction."""
    other = const(identity(reduce.arg.op, value.dtype), value.dtype)
    return make(WHERE, (condition, value, other))


def combines(end: UOp) -> bool:
    """Whether a nest reads storage that it writes."""
    nodes = toposort((end.src[0],), lambda n: () if n.op is END else n.src)
    written = {storage_of(n.src[0]) for n in nodes if n.op is STORE}
    return any(n.op is LOAD and storage_of(n.src[0]) in written for n in nodes)


def gated(effect: UOp, gate: UOp) -> UOp:
    """The effect with the gate on each STORE of it to memory that outlives the kernel."""

    def gated(node: UOp) -> UOp:
        if node.op is not STORE or storage_of(node.src[0]).op is not PARAM:
            return node
        own = node.src[2:]
        both = make(MUL, (own[0], gate)) if own else gate
        return make(STORE, (*node.src[:2], both))

    done: dict[UOp, UOp] = {}
    for node in toposort((effect,), lambda n: n.src if n.dtype is void else ()):
        new = node.with_src(tuple([done.get(s, s) for s in node.src]))
        done[node] = gated(new)
    return done[effect]
