"""The nests of a kernel's body: which node closes which RANGE, and what stands around what.

A closer is an END or a REDUCE: it carries out loops around its first source. A RANGE has one
number in a body, and may be closed more than once; where its bound is not the same everywhere,
several RANGEs have one number.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from week01_uops.dtypes import int64
from week01_uops.node import CONST, UOp, const, make, toposort
from week01_uops.ops import ADD, CMPLT, MUL
from week02_render.ops import AFTER, RANGE, RangeArg, open_ranges


class ScheduleError(ValueError):
    """A step that cannot be done; says why in a sentence."""


def closes(node: UOp) -> bool:
    """Whether the node carries out loops around its first source."""
    return node.op.closes and len(node.src) > 1


def ranges_of(body: UOp) -> Mapping[int, UOp]:
    """The RANGEs of a body by number; of several with one number, some one."""
    return {node.arg.id: node for node in toposort((body,)) if node.op is RANGE}


def find_ranges(body: UOp, number: int) -> list[UOp]:
    """The RANGEs of a number; ScheduleError names those that there are."""
    known = [node for node in toposort((body,)) if node.op is RANGE]
    found = [node for node in known if node.arg.id == number]
    if not found:
        listed = ", ".join(map(str, sorted({node.arg.id for node in known}))) or "none"
        raise ScheduleError(f"expected one of the ranges {listed}, got {number}")
    return found


def find_range(body: UOp, number: int) -> UOp:
    """The one RANGE of a number."""
    first, *others = find_ranges(body, number)
    if others:
        raise ScheduleError(f"expected one loop of range {number}, got some with other bounds")
    return first


def expect_fresh(body: UOp, numbers: Iterable[int]) -> None:
    """ScheduleError if a RANGE of the body has one of the numbers."""
    known = ranges_of(body)
    for number in numbers:
        if number in known:
            raise ScheduleError(f"expected a number that no range has, got {number}")


def fresh_numbers(body: UOp) -> Iterator[int]:
    """Numbers that no RANGE of the body has, in order."""
    return itertools.count(max(ranges_of(body), default=-1) + 1)


def fresh_pair(body: UOp) -> tuple[int, int]:
    """The first two numbers that no RANGE has."""
    fresh = fresh_numbers(body)
    return next(fresh), next(fresh)


def map_closers(body: UOp, change: Callable[[UOp], UOp]) -> UOp:
    """The body with each closer, innermost first, exchanged for what `change` makes of it."""
    done: dict[UOp, UOp] = {}
    for node in toposort((body,)):
        new = node.with_src(tuple([done[s] for s in node.src]))
        done[node] = change(new) if closes(new) else new
    return done[body]


def put(node: UOp, item: UOp, value: UOp) -> UOp:
    """The node with a value for a RANGE that is open in it; loops of its own over it stay."""
    done = {item: value}
    for n in toposort((node,), lambda n: n.src if item in open_ranges(n) and n is not item else ()):
        if n is not item:
            done[n] = n.with_src(tuple([done[s] for s in n.src])) if item in open_ranges(n) else n
    return done[node]


def number(value: int) -> UOp:
    """An int64 CONST."""
    return const(value, int64)


def plus(a: UOp, b: UOp) -> UOp:
    """A + b, without a 0."""
    if b.op is CONST and b.arg.value == 0:
        return a
    return b if a.op is CONST and a.arg.value == 0 else make(ADD, (a, b))


def times(a: UOp, factor: int) -> UOp:
    """a · factor, without a 1."""
    return a if factor == 1 else make(MUL, (a, number(factor)))


def less(a: UOp, b: UOp) -> UOp:
    """A < b."""
    return make(CMPLT, (a, b))


def renamed(item: UOp, number: int) -> UOp:
    """A RANGE of the same size and bound with another number, carried out one after the other."""
    return make(RANGE, item.src, RangeArg(number, item.arg.size))


def joined(effects: list[UOp]) -> UOp:
    """Effects that do not need one another, as one effect; carried out in this order."""
    return effects[0] if len(effects) == 1 else make(AFTER, tuple(effects))
