"""A factor that is the same in all terms of a sum is multiplied once: the weights of an attention.

    Σₖ (2^(a·x(k) − a·m) · 1/t)·v(k)   →   (Σₖ 2^(a·x(k) − a·m)·v(k)) · 1/t

with m = max x and t = Σ 2^(a·x − a·m), which is at least 1, or NaN: so nothing overflows that did
not, but within the sum, and what is NaN or infinite stays so. What held the weights for all columns
of v is not needed: the exponentials are held already.
"""

from __future__ import annotations

from week01_uops.calls import substitute
from week01_uops.node import UOp, make
from week01_uops.ops import MUL
from week01_uops.rewrite import Trace
from week02_render.ops import KEEP, LOAD, index
from week04_fusion.ops import stage
from week05_06_memory.masks import is_staged_plainly
from week05_06_memory.running import NoBlocks, find_running


def take_outside(body: UOp, trace: Trace) -> UOp:
    """The body with reciprocals of sums behind the sums that they are in every term of."""
    try:
        running = find_running(body)
    except NoBlocks:
        return body
    found: dict[UOp, UOp] = {}
    for total in running.totals:
        node = total.node
        if len(total.outer) != 1 or running.width(total) > running.counter.arg.size:
            continue
        (factor,) = total.outer
        term = _without(factor, node.src[0])
        if term is not None:
            found[node] = make(MUL, (node.with_src((term, *node.src[1:])), factor))
            trace.fired["outside"] += 1
    return substitute(body, found)


def _without(factor: UOp, value: UOp) -> UOp | None:
    """A product without one of its factors, also where a part of it was held; None if it has not.

    The depth is that of products in one term.
    """
    if value.op is MUL:
        for part, other in (value.src, value.src[::-1]):
            if part is factor:
                return other
            rest = _without(factor, part)
            if rest is not None:
                return make(MUL, (rest, other))
    if value.op is KEEP:
        rest = _without(factor, value.src[0])
        return rest if rest is None or rest.op is not MUL else make(KEEP, (rest,))
    if not is_staged_plainly(value):
        return None
    held, *at = value.src[0].src
    whole, *ranges = held.src
    rest = _without(factor, whole)
    if rest is None:
        return None
    return make(LOAD, (index(_held(rest, ranges), *at),))


def _held(value: UOp, ranges: list[UOp]) -> UOp:
    """Storage of a value over ranges: what it is read from, if that is the same."""
    if is_staged_plainly(value):
        held, *at = value.src[0].src
        if at == ranges:
            return held
    return stage(value, *ranges)
