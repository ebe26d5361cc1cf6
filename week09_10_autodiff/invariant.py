"""Maxima that a value does not depend on: those subtracted for safety alone have no derivative.

    softmax x = 2^(x − m) / Σ 2^(x − m),   m = max x

is the same whatever m is. Reverse mode alone would find ∂/∂m = 0 as a sum of rounding errors, and
spread it over the elements that are equal to m: reductions and kernels for nothing.

**Theorem.** Fix a node m, and let every value of the program be a function of m and of everything
else, m varying freely. Walk from m along its users. With m′ for m moved and repeated to the shape
of a value v, and v₀ for something that does not depend on m, let v be

    a shift   v = v₀ + k·m′      or a scale   v = v₀·2^(k·m′),

as the rows below say: m itself is a shift by 1·m, and each row is an identity of real numbers, as
2^(v₀ + k·m′) = 2^v₀·2^(k·m′), Σ v₀·2^(k·m′) = (Σ v₀)·2^(k·m′) if m′ is constant along the sum, or
(v₀ + k·m′) + (w₀ − k·m′) = v₀ + w₀. A shift may be ±∞ and a scale 0 or ∞ where it does not depend
on m: ∞ + k·m′ = ∞, 0·2^(k·m′) = 0. If all walks end, every value behind their ends, the output
among them, does not depend on m: its partial derivative by m is 0, so what reverse mode would hand
to m, and by it to the sources of m, is 0.
**Proof**, by induction along the walk: a node's row needs the forms of its sources alone. ∎

Steps (comparisons, casts to integers) count as ends: nothing is handed back through them in any
case. Factors k are made of constants that were rounded, log₂ e·ln 2 is not quite 1; those that
differ by a few roundings count as equal, and what is dropped for that is of the size of those
roundings.

The walk is linear in the nodes between m and the ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from week01_uops.node import UOp
from week01_uops.ops import MAX
from week03_loops.ops import REDUCE
from week09_10_autodiff.alignment import whole
from week09_10_autodiff.tracks import Lost, Track, follow


def invariant_maxima(order: Sequence[UOp]) -> set[UOp]:
    """The maxima, REDUCE MAX of floats, that the last node does not depend on.

    Args:
        order: the last node and all that it depends on, sources first.
    """
    maxima = [n for n in order if n.op is REDUCE and n.arg.op is MAX and n.dtype.is_float]
    if not maxima:
        return set()
    numbers = {node: number for number, node in enumerate(order)}
    users: list[list[int]] = [[] for _ in order]
    for number, node in enumerate(order):
        for source in set(node.src):
            users[numbers[source]].append(number)
    return {m for m in maxima if _vanishes(m, order, numbers[m], users)}


def _vanishes(m: UOp, order: Sequence[UOp], start: int, users: Sequence[Sequence[int]]) -> bool:
    """Whether all walks from m end before the last node."""
    tracks = {m: Track(False, 1.0, whole(m.shape))}
    waiting = [start]
    while waiting:
        number = heapq.heappop(waiting)
        node = order[number]
        if node is not m:
            try:
                found = follow(node, [tracks.get(source) for source in node.src])
            except Lost:
                return False
            if found is None:
                continue
            tracks[node] = found
        if not users[number]:
            return False
        for user in users[number]:
            if user not in waiting:
                heapq.heappush(waiting, user)
    return True
