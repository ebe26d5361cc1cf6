"""Maxima that need not look for NaN: where one is lost, and the result is NaN all the same.

    m = REDUCE(MAX, x(j), j);  2^(x(i) − m) / Σₖ 2^(x(k) − m)

If some x(j) is NaN, so is its term of the sum and with it every result, whatever m is. A maximum
that looks for NaN takes three instructions on most machines, another one takes one.

**Theorem.** Fix the ranges around m, and let x(j) be NaN for some j. A value *carries* x over a
range k if it is x(k), or an operation that is NaN wherever an operand is (+, ·, −, 2^, log₂, 1/, √,
rounding) on a value that carries it, or an element at k of what was held as such. It is *lost* if
it is a sum over k of what carries x over k, with as many terms as m has, or such an operation, a
sum, or an element of what was held, of something lost. Then it is NaN, whatever m is.
**Proof**, by induction: the term k = j of the sum is NaN, and a sum of NaN and anything is NaN. ∎

So if every value stored by a kernel is lost or does not depend on m, and no index or bound depends
on it, m may be any number: `numbers` marks its terms. Several may: the proof uses no maximum.

    REDUCE(x, k) by MAX   →   REDUCE(NUMBER(x), k)

`larger` makes use of it, and of all else that is never NaN:

    MAX(x, y)   →   LARGER(x, y)      x a number;   y if it is NaN
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from week01_uops.calls import substitute
from week01_uops.node import CONST, UOp, make
from week01_uops.ops import ADD, CAST, EXP2, LOG2, MAX, MUL, NEG, RECIP, WHERE
from week01_uops.rewrite import Trace
from week02_render.access import access, in_registers
from week02_render.ops import AFTER, INDEX, KEEP, LOAD, RANGE, STORE, open_ranges
from week03_loops.ops import REDUCE
from week04_fusion.ops import STAGE
from week05_06_memory.masks import is_staged_plainly
from week05_06_memory.ops import LARGER, NUMBER, SQRT

STRICT = frozenset({ADD, MUL, NEG, EXP2, LOG2, RECIP, SQRT, KEEP})
"""NaN wherever an operand is; so is a CAST between floats."""

Ranges = frozenset[UOp]
NONE: Ranges = frozenset()


def numbers(body: UOp, trace: Trace) -> UOp:
    """Mark the terms of maxima of which a NaN may be lost."""
    order = body.toposort()
    maxima = [n for n in order if n.op is REDUCE and n.arg.op is MAX and n.dtype.is_float]
    found = {
        m: m.with_src((make(NUMBER, m.src[:1]), *m.src[1:])) for m in maxima if is_free(m, order)
    }
    trace.fired["number"] += len(found)
    return substitute(body, found)


def is_free(m: UOp, order: Sequence[UOp]) -> bool:
    """Whether every store is NaN if a term of the maximum is, or does not depend on it."""
    if len(m.src) != 2:
        return False
    terms, around = _terms(m, order), open_ranges(m)
    behind, lost = {m}, set[UOp]()
    carried: dict[UOp, Ranges] = {}
    for node in order:
        if not behind.isdisjoint(node.src):
            behind.add(node)
        closed = frozenset(node.src[1:]) if node.op in (REDUCE, STAGE) else NONE
        over = _carried(node, carried, around) | terms.get(node, NONE)
        moved = node.op is STAGE and not closed.isdisjoint(around)
        summed = node.op is REDUCE and not closed.isdisjoint(over)
        if _passes_on(node) and not moved and (summed or not lost.isdisjoint(node.src)):
            lost.add(node)
        carried[node] = over - closed
        if node in behind and _is_seen(node, behind, lost):
            return False
    return True


def _terms(m: UOp, order: Iterable[UOp]) -> Mapping[UOp, Ranges]:
    """x(k) for the ranges k with as many iterations as the maximum's own, j."""
    x, j = m.src
    alike = [k for k in order if k.op is RANGE and _are_alike(j, k)]
    return {substitute(x, {j: k}): frozenset({k}) for k in alike}


def _are_alike(r: UOp, k: UOp) -> bool:
    return r.arg.size == k.arg.size and r.src == k.src


def _carried(node: UOp, carried: Mapping[UOp, Ranges], around: Ranges) -> Ranges:
    """The ranges over which a node carries the terms, by its sources."""
    held = _held(node)
    if held is not None:
        (value, *ranges), at = held.src, node.src[0].src[1:]
        if around.intersection(ranges):
            return NONE
        pairs = zip(ranges, at, strict=True)
        over = carried[value]
        return frozenset(k for r, k in pairs if r in over and k.op is RANGE and _are_alike(r, k))
    if _is_strict(node) or (node.op is REDUCE and node.arg.op is ADD):
        return NONE.union(*(carried[source] for source in node.src))
    return NONE


def _held(node: UOp) -> UOp | None:
    """The STAGE that a LOAD without a gate is from."""
    return node.src[0].src[0] if is_staged_plainly(node) else None


def _is_strict(node: UOp) -> bool:
    if node.op is CAST:
        return node.dtype.is_float and node.src[0].dtype.is_float
    return node.op in STRICT


def _passes_on(node: UOp) -> bool:
    """Whether a node is NaN wherever one of its sources is, in all iterations."""
    if node.op is REDUCE:
        return bool(node.arg.op is ADD)
    return _is_strict(node) or node.op in (INDEX, STAGE) or _held(node) is not None


def _is_seen(node: UOp, behind: set[UOp], lost: set[UOp]) -> bool:
    """Whether something may tell which number the maximum is."""
    if node.op is STORE:
        place, value, *more = node.src
        return not behind.isdisjoint((place, *more)) or (value in behind and value not in lost)
    return node.op is RANGE or (node.op is INDEX and not behind.isdisjoint(node.src[1:]))


def larger(body: UOp, trace: Trace) -> UOp:
    """Make maxima of what is never NaN one comparison each."""
    order = body.toposort()
    if not any(node.op is MAX and node.dtype.is_float for node in order):
        return body
    never = _never_nan(order)
    done: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([done[s] for s in node.src])
        if node.op is NUMBER:
            done[node] = src[0]
        elif node.op is MAX and not never.isdisjoint(node.src):
            # A running maximum is the first source, and stands second: its chain is short.
            done[node] = make(LARGER, src[::-1] if node.src[1] in never else src)
            trace.fired["larger"] += 1
        else:
            done[node] = node.with_src(src)
    return done[body]


def _never_nan(order: Sequence[UOp]) -> set[UOp]:
    """Floats that are no NaN or need not be; so is what registers hold to which only such go."""
    stores = [(access(n.src[0]).storage, n.src[1]) for n in order if n.op is STORE]
    registers = {storage for storage, _ in stores if in_registers(storage)}
    while True:
        found: set[UOp] = set()
        for node in order:
            if node.dtype.is_float and _is_number(node, found, registers):
                found.add(node)
        other = {storage for storage, value in stores if value not in found}
        if registers.isdisjoint(other):
            return found
        registers -= other


def _is_number(node: UOp, found: set[UOp], registers: set[UOp]) -> bool:
    if node.op is CONST:
        return not math.isnan(node.arg.value)
    if node.op is LOAD:
        return len(node.src) == 1 and access(node.src[0]).storage in registers
    if node.op is CAST and not node.src[0].dtype.is_float:
        return True
    if node.op is AFTER and node.place is None:
        return node.src[0] in found
    values = node.src[1:] if node.op is WHERE else node.src
    return node.op is NUMBER or (node.op in (MAX, NEG, CAST, WHERE) and found.issuperset(values))
