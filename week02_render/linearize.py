"""From the graph of a kernel to its nodes in order: which loop each one stands in.

Placement follows from dependence. A node stands in the innermost of the loops that it depends
on, and a loop is opened as late as possible, where its END stands:

    END(STORE(p[i, j], MUL(f(i), g(j))), i, j)   →   RANGE i, f(i), RANGE j, g(j), MUL, STORE, END

What an END closes its loops around (through AFTER, all effects joined by it) stands in the
innermost loop even if it does not depend on it. Several ENDs may close the same RANGE: each is a
loop of its own, and what depends on the RANGE is computed in each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from week01_uops.dtypes import void
from week01_uops.errors import CompilerError
from week01_uops.node import UOp, make, toposort
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, ALLOC, END, LINEAR, RANGE, STORE, open_ranges


@dataclass(frozen=True)
class Nest:
    """The loops that one END closes, and what stands in them.

    Attributes:
        ranges: the loops, outermost first.
        levels: for each loop, the nodes that stand in it and no deeper, in order.
        inputs: the nodes outside that the nest needs.
    """

    ranges: tuple[UOp, ...]
    levels: tuple[tuple[UOp, ...], ...]
    inputs: tuple[UOp, ...]


def linearize(body: UOp, trace: Trace) -> UOp:
    """The LINEAR of a kernel's body: RANGE opens a loop, END closes its loops."""
    if body.op is LINEAR:
        return body
    scopes = alloc_scopes(body)
    nests: dict[UOp, Nest] = {}
    for node in toposort((body,)):
        if node.op is END:
            nests[node] = _nest(node, nests, scopes)
    order: list[UOp] = []
    for node in toposort((body,), lambda n: nests[n].inputs if n.op is END else n.src):
        _emit(node, nests, order)
    return make(LINEAR, tuple(order))


def alloc_scopes(body: UOp) -> Mapping[UOp, frozenset[UOp]]:
    """The loops that each ALLOC stands in: those that every access names by AFTER(alloc, …).

    It may stand in a loop only if nothing is carried from one iteration to the next: one STORE,
    of the whole of it and without a gate, comes before all other accesses.
    """
    accesses: dict[UOp, list[UOp]] = defaultdict(list)
    starts: dict[UOp, list[UOp]] = defaultdict(list)
    at: dict[UOp, int] = {}
    for node in toposort((body,)):
        at[node] = len(at)
        if node.op is STORE and len(node.src) == 2:
            starts[node.src[0]].append(node)
        for source in node.src:
            if source.op is ALLOC:
                accesses[source].append(node)
    return {
        alloc: frozenset.intersection(*map(open_ranges, users))
        if all(user.op is AFTER for user in users) and _starts_afresh(users, starts, at)
        else frozenset()
        for alloc, users in accesses.items()
    }


def _starts_afresh(
    users: list[UOp], starts: Mapping[UOp, list[UOp]], at: Mapping[UOp, int]
) -> bool:
    """Whether all accesses but one depend on a store to that one."""
    return any(
        all(_depends(other, first, at) for other in users if other is not user)
        for user in users
        for first in starts.get(user, ())
    )


def _depends(node: UOp, on: UOp, at: Mapping[UOp, int]) -> bool:
    """Whether a node depends on another, with the places of all nodes, sources first."""
    return on in toposort((node,), lambda n: n.src if at[n] > at[on] else ())


def _direct_effects(effect: UOp) -> frozenset[UOp]:
    """The effect and those joined to it by AFTER."""

    def joined(node: UOp) -> tuple[UOp, ...]:
        return tuple([s for s in node.src if s.dtype is void]) if node.op is AFTER else ()

    return frozenset(toposort((effect,), joined))


def _nest(end: UOp, nests: Mapping[UOp, Nest], scopes: Mapping[UOp, frozenset[UOp]]) -> Nest:
    """Divide what an END needs into the nodes of its loops and those outside."""
    effect, *ranges = end.src
    depth = {item: level for level, item in enumerate(ranges)}
    direct = _direct_effects(effect)

    def sources(node: UOp) -> tuple[UOp, ...]:
        return nests[node].inputs if node.op is END else node.src

    def closed(node: UOp) -> frozenset[UOp]:
        return scopes.get(node, open_ranges(node)).intersection(ranges)

    # What waits for a direct effect stands in the loop too. Where all of them depend on the
    # innermost range, so does what waits, and there is no need to look at what does not.
    certain = all(ranges[-1] in open_ranges(item) for item in direct)
    levels: dict[UOp, int] = {}
    inputs: list[UOp] = []
    for node in toposort(
        (*ranges, effect),
        lambda n: sources(n) if not certain or n in direct or closed(n) else (),
    ):
        own = [depth[item] for item in closed(node)] + [len(ranges) - 1] * (node in direct)
        inherited = [levels[s] for s in sources(node) if s in levels]
        if own or inherited:
            levels[node] = max(own + inherited)
        else:
            inputs.append(node)
    _check_bounds(ranges, levels)
    placed: list[list[UOp]] = [[] for _ in ranges]
    for node, level in levels.items():
        if node not in depth:
            placed[level].append(node)
    return Nest(tuple(ranges), tuple(map(tuple, placed)), tuple(inputs))


def _check_bounds(ranges: list[UOp], levels: Mapping[UOp, int]) -> None:
    for level, item in enumerate(ranges):
        for bound in item.src:
            if levels.get(bound, -1) >= level:
                raise CompilerError(
                    f"expected the bound of {item!r} to depend on loops outside it, "
                    f"but {bound!r} is computed inside"
                )


def _emit(node: UOp, nests: Mapping[UOp, Nest], order: list[UOp]) -> None:
    """Append a node; for an END, its loops first."""
    if node.op is END:
        nest = nests[node]
        for item, level in zip(nest.ranges, nest.levels, strict=True):
            order.append(item)
            for inner in level:
                _emit(inner, nests, order)
        order.append(node)
    elif node.op is not RANGE:
        order.append(node)
    else:
        raise CompilerError(f"expected every RANGE to be closed by an END, but {node!r} is open")
