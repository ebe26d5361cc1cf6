"""Split a loop: r of size n becomes r0 of ⌈n/f⌉ tiles and r1 within a tile of f.

    r   →   r0·f + r1                                              f divides n
    r   →   TILE(r0) + r1                 the last tile overlaps:  END of stores, REDUCE of MAX
    REDUCE(x, r)   →   REDUCE(x, r0, r1) ⊕ REDUCE(x where n − f + r1 is new, r1)     ADD, MUL

Every tile is whole, so that it can be unrolled or become a vector. What an overlap computes twice
is the same value; where an element is combined with what is stored already (`p ← p + x`), and where
the schedule asks for it, the rest gets a nest of its own instead.

A bounded loop (n = min(size, e)) gets ⌈e/f⌉ tiles; what the last one computes past e counts as the
identity in a REDUCE, and is stored at most in a temporary that nothing else is stored in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.dtypes import int64, void
from week01_uops.node import UOp, const, make, toposort
from week01_uops.ops import CAST, FLOORDIV, FLOORMOD, MAX, MUL, NEG, WHERE
from week01_uops.rewrite import rewrite
from week02_render.ops import ALLOC, INDEX, STORE, loop, open_ranges, storage_of
from week02_render.reads import free_slots
from week03_loops.compiler import RULES_OF_LOOPS
from week03_loops.ops import REDUCE, identity
from week05_06_memory.dependence import carried, combines
from week05_06_memory.nests import (
    ScheduleError,
    expect_fresh,
    find_ranges,
    fresh_numbers,
    joined,
    less,
    map_closers,
    number,
    plus,
    times,
)
from week05_06_memory.ops import TILE, TileArg
from week05_06_memory.widen import copied

RESTS = {name: name for name in ("overlap", "cut")}
"""What becomes of iterations that fill no tile."""


def split(
    body: UOp, name: int, by: int, into: tuple[int, int] | None = None, rest: str | None = None
) -> UOp:
    """The body with RANGE `name` split into tiles of `by`.

    Args:
        body: a kernel's body.
        name: the number of the RANGE.
        by: iterations of a tile.
        into: the numbers of the new RANGEs, by default the next ones.
        rest: "cut" asks for a nest for the rest in every case.

    Raises:
        ScheduleError: `by` is larger than the loop, a bounded loop cannot be rounded up, or a
            nest cannot be cut since its iterations have to stay in order.
    """
    items = find_ranges(body, name)
    size: int = items[0].arg.size
    if not 1 <= by <= size:
        raise ScheduleError(f"expected a tile of 1 to {size} for range {name}, got {by}")
    expect_fresh(body, into or ())
    fresh = fresh_numbers(body)
    outer, inner = into or (next(fresh), next(fresh))
    fresh = (number for number in fresh if number not in (outer, inner))
    once = _stored_once(body)
    slots = free_slots(body)
    cut = rest == "cut"
    makers = [_Split(item, by, outer, inner, cut, fresh, slots, once) for item in items]
    if any(item.src and not reads_within(body, item) for item in items):
        raise ScheduleError(
            f"expected loads in bounds for all {size} iterations of range {name}, which has a bound"
        )

    def change(node: UOp) -> UOp:
        for maker in makers:
            if maker.item in node.src[1:]:
                return maker.closer(node)
        return node

    apart = any(n.op in (FLOORDIV, FLOORMOD) and n.src[0] in items for n in toposort((body,)))
    after = map_closers(body, change)
    return rewrite(after, RULES_OF_LOOPS) if apart else after


def reads_within(body: UOp, item: UOp) -> bool:
    """Whether every access whose index depends on the range stays within its storage."""
    whole = {item: loop(item.arg.id, item.arg.size)}
    for node in toposort((body,)):
        if node.op is INDEX:
            for at, size in zip(node.src[1:], node.src[0].shape, strict=False):
                low, high = substitute(at, whole).interval
                if item in open_ranges(at) and not 0 <= low <= high < size:
                    return False
    return True


def _stored_once(body: UOp) -> frozenset[UOp]:
    """The temporaries that only one STORE writes: what it stores too much, nobody reads."""
    places = Counter(storage_of(n.src[0]) for n in toposort((body,)) if n.op is STORE)
    return frozenset(p for p, stores in places.items() if p.op is ALLOC and stores == 1)


def _bound(item: UOp) -> UOp | None:
    """Where a loop ends, as an int64 of at most its size; None if it has no bound."""
    if not item.src:
        return None
    (bound,), size = item.src, item.arg.size
    if bound.interval[1] > size:
        most = const(size, bound.dtype)
        bound = make(WHERE, (less(bound, most), bound, most))
    return bound if bound.dtype is int64 else make(CAST, (bound,), int64)


@dataclass
class _Split:
    """One RANGE, and what it becomes."""

    item: UOp
    by: int
    outer: int
    inner: int
    cut: bool
    fresh: Iterator[int]
    slots: Iterator[int]
    once: frozenset[UOp]

    def __post_init__(self) -> None:
        size: int = self.item.arg.size
        self.size = size
        self.tile = loop(self.inner, self.by)
        self.bound = _bound(self.item)

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
            if not exact and self.bound is None and (self.cut or node.arg.op is not MAX):
                return self._peeled(node)
            return self._reduced(node)
        if not exact and (self.cut or combines(node)):
            return self._cut(node)
        return self._tiled(node)

    def _over(self, node: UOp, at: UOp, count: int, change: Change = lambda inside: inside) -> UOp:
        """The closer with both new RANGEs, `at` in place of the old one, and its inside changed."""
        inside, *ranges = self._put(node, at, self.tiles(count), self.tile)
        return node.with_src((change(inside), *ranges))

    def _put(self, node: UOp, at: UOp, *new: UOp) -> Iterator[UOp]:
        """The sources of a closer with `at` in place of its RANGE, and new RANGEs."""
        yield substitute(node.src[0], {self.item: at})
        for item in node.src[1:]:
            yield from new if item is self.item else [substitute(item, {self.item: at})]

    def _index(self, count: int) -> tuple[UOp, UOp, UOp]:
        """The element's number, the first of its tile, and the first that is new in its tile."""
        begin = first = times(self.tiles(count), self.by)
        if self.size % self.by:
            first = make(TILE, (self.tiles(count),), TileArg(self.by, self.size))
        return plus(first, self.tile), first, begin

    def _tiled(self, node: UOp) -> UOp:
        count = -(-self.size // self.by)
        at, _, _ = self._index(count)
        if self.bound is None:
            return self._over(node, at, count)
        gate = less(at, self.bound)
        return self._over(node, at, count, lambda inside: gated(inside, gate, self.once))

    def _reduced(self, node: UOp) -> UOp:
        """All tiles in one nest; what is not new or past the bound counts as the identity."""
        count = -(-self.size // self.by)
        at, first, begin = self._index(count)

        def counted(value: UOp) -> UOp:
            if self.bound is not None:
                value = _where(less(at, self.bound), value, node)
            if first is not begin and node.arg.op is not MAX:
                value = _where(less(plus(begin, number(-1)), at), value, node)
            return value

        return self._over(node, at, count, counted)

    def _peeled(self, node: UOp) -> UOp:
        """Whole tiles, combined with one more, of which only the rest counts."""
        count, rest = divmod(self.size, self.by)
        is_new = less(number(self.by - rest - 1), self.tile)
        last = self._part(node, self.size - self.by, self.tile)
        last = last.with_src((_where(is_new, last.src[0], node), *last.src[1:]))
        return make(node.arg.op, (self._whole(node, count), last))

    def _cut(self, node: UOp) -> UOp:
        """A nest of whole tiles, and a nest of the rest."""
        ordered = carried(node)
        before = node.src[1 : node.src.index(self.item, 1)]
        name = self.item.arg.id
        if self.bound is not None:
            raise ScheduleError(f"expected a range without a bound to cut, but {name} has one")
        if self.item in ordered and not ordered.isdisjoint(before):
            raise ScheduleError(
                f"expected a tile that divides {self.size}, the size of range {name}, "
                f"for its iterations have to stay in order; got {self.by}"
            )
        count, rest = divmod(self.size, self.by)
        tail = self._part(node, count * self.by, loop(next(self.fresh), rest))
        return joined([self._whole(node, count), tail])

    def _whole(self, node: UOp, count: int) -> UOp:
        """The closer over whole tiles alone."""
        return self._over(node, plus(times(self.tiles(count), self.by), self.tile), count)

    def _part(self, node: UOp, start: int, counter: UOp) -> UOp:
        """The closer over some iterations alone, with temporaries of its own."""
        at = plus(counter, number(start))
        _, *ranges = self._put(node, at, counter)
        return node.with_src((copied(node.src[0], {self.item: at}, self.slots), *ranges))


Change = Callable[[UOp], UOp]


def gated(effect: UOp, gate: UOp, free: Collection[UOp] = ()) -> UOp:
    """The effect with one more gate on each STORE, but to storage that is free to take more.

    What waits for one of these waits for the one with the gate.
    """
    gates = {n for n in toposort((effect,), _effects) if n.op is STORE}
    done: dict[UOp, UOp] = {}
    for node in toposort((effect,)):
        new = node.with_src(tuple([done[s] for s in node.src]))
        if node in gates and storage_of(node.src[0]) not in free:
            both = make(MUL, (new.src[2], gate)) if len(new.src) > 2 else gate
            new = make(STORE, (*new.src[:2], both))
        done[node] = new
    return done[effect]


def _effects(effect: UOp) -> tuple[UOp, ...]:
    """The effects that an AFTER joins, or that an END repeats."""
    return tuple([s for s in effect.src if s.dtype is void]) if effect.op is not STORE else ()


def _where(condition: UOp, value: UOp, reduce: UOp) -> UOp:
    """The value where the condition holds, elsewhere the identity of the reduction."""
    other = const(identity(reduce.arg.op, value.dtype), value.dtype)
    return make(WHERE, (condition, value, other))


def plain_tiles(body: UOp) -> UOp:
    """TILE(r) → min(r·by, size − by), as −max(−r·by, by − size)."""
    done: dict[UOp, UOp] = {}
    for node in toposort((body,)):
        new = node.with_src(tuple([done[s] for s in node.src]))
        done[node] = _minimum(new) if new.op is TILE else new
    return done[body]


def _minimum(tile: UOp) -> UOp:
    by, size = tile.arg.by, tile.arg.size
    return make(NEG, (make(MAX, (times(tile.src[0], -by), number(by - size))),))
