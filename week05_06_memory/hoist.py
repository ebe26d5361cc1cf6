"""The step `hoist`: a reduction's loop outside the loops over the results.

    END(STORE(p[i, j], f(REDUCE(x, k))), i, j)                one sum at a time
      →   t ← ALLOC[j];  END(STORE(t[j], 0), j);  END(STORE(t[j], t[j] ⊕ x), k, j);
          END(STORE(p[i, j], f(LOAD(t[j]))), i, j)            all sums at once

A matrix is then read row by row, as it lies in memory, while the sums stay in the cache. What is
left of the reduction's loops (k split into k and k1) stays inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from week01_uops.calls import substitute
from week01_uops.node import UOp, const, make, toposort
from week01_uops.ops import CAST
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, AllocArg, in_each, open_ranges
from week02_render.reads import free_slots
from week03_loops.ops import REDUCE, identity
from week03_loops.reduction import accumulator_dtype
from week05_06_memory.dependence import lasting, reads
from week05_06_memory.nests import ScheduleError, find_range, fresh_numbers, renamed
from week05_06_memory.ops import kind_of
from week05_06_memory.widen import carries_temporary, copied


def hoist(body: UOp, name: int, over: tuple[int, ...]) -> UOp:
    """Each REDUCE over RANGE `name` accumulates in memory, its loop outside those of `over`.

    Raises:
        ScheduleError: no REDUCE over the range depends on all of `over`, a loop is of a kind or has
            a bound that is in the way, or the REDUCE reads what the kernel changes.
    """
    item = find_range(body, name)
    loops = [find_range(body, n) for n in over]
    sums = [
        node
        for node in toposort((body,))
        if node.op is REDUCE and item in node.src[1:] and open_ranges(node).issuperset(loops)
    ]
    if not sums or not loops:
        raise ScheduleError(
            f"expected a reduction over range {name} that depends on the ranges {list(over)}"
        )
    for outer in loops:
        if carries_temporary(body, outer):
            raise ScheduleError(
                f"expected sums of the iterations of range {outer.arg.id} in any order, "
                "but a temporary is brought up to date in it"
            )
    changed = lasting(body)
    for node in sums:
        _expect_free(node, item, loops)
        if reads(node, changed):
            raise ScheduleError(
                f"expected a reduction over range {name} of what the kernel does not change"
            )
    maker = _Hoist(item, loops, fresh_numbers(body), free_slots(body))
    return substitute(body, {node: maker.total(node) for node in sums})


def _expect_free(node: UOp, item: UOp, loops: list[UOp]) -> None:
    """The loop can stand outside of the others, and their sums in one array."""
    ended = [b for r in {item} | open_ranges(node) for b in r.src]
    if any(r.src for r in loops) or any(open_ranges(b) & set(loops) for b in ended):
        raise ScheduleError(f"expected no bound of, or by, the ranges {_numbers(loops)}")
    fixed = [r for r in {item} | open_ranges(node).difference(loops) if kind_of(r) in AT_ONCE]
    if fixed:
        raise ScheduleError(f"expected the ranges {_numbers(fixed)} to be loops")


AT_ONCE = ("vector", "unroll")


def _numbers(ranges: Iterable[UOp]) -> list[int]:
    return sorted(int(r.arg.id) for r in ranges)


class _Hoist(NamedTuple):
    """A reduction's loop, and the loops that it goes outside of."""

    item: UOp
    loops: list[UOp]
    names: Iterator[int]
    slots: Iterator[int]

    def total(self, node: UOp) -> UOp:
        """What is loaded in place of a REDUCE."""
        dtype, op = accumulator_dtype(node.dtype), node.arg.op
        shape = tuple(r.arg.size for r in self.loops)
        place = make(ALLOC, (), AllocArg(next(self.slots), dtype, shape, "LOCAL"))
        starts, steps = ([renamed(r, next(self.names)) for r in self.loops] for _ in range(2))
        begin = in_each(place, open_ranges(node).difference(self.loops))
        zero = const(identity(op, dtype), dtype)
        cleared = make(END, (make(STORE, (make(INDEX, (begin, *starts)), zero)), *starts))
        inside = make(INDEX, (make(AFTER, (place, cleared, self.item)), *steps))
        value = self._value(node, dict(zip(self.loops, steps, strict=True)))
        added = make(STORE, (inside, make(op, (make(LOAD, (inside,)), value))))
        done = make(END, (added, self.item, *steps))
        total = make(LOAD, (make(INDEX, (make(AFTER, (place, done)), *self.loops)),))
        return total if dtype is node.dtype else make(CAST, (total,), node.dtype)

    def _value(self, node: UOp, steps: Mapping[UOp, UOp]) -> UOp:
        """What is added in one iteration: the rest of the reduction."""
        value = copied(node.src[0], steps, self.slots)
        rest = [substitute(r, steps) for r in node.src[1:] if r is not self.item]
        dtype = accumulator_dtype(node.dtype)
        value = value if value.dtype is dtype else make(CAST, (value,), dtype)
        return make(REDUCE, (value, *rest), node.arg) if rest else value
