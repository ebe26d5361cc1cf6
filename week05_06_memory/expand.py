"""From loops of kind unroll to copies of what they repeat.

    END(e, u : unroll, i)        →   END(AFTER(e[u := 0], e[u := 1]), i)
    END(e, v : vector, i)        →   END(e, i, v)        what is in a vector differs in its lanes
    REDUCE(x, u : unroll, k)     →   REDUCE(x[u := 0], k) ⊕ REDUCE(x[u := 1], k)    two accumulators
    REDUCE(x, k, u : unroll)     →   in the loop over k:  a ← (a ⊕ x[u := 0]) ⊕ x[u := 1]        one
    REDUCE(x, v : vector, k)     →   REDUCE(REDUCE(x, k), v)    lanes are combined once, at the end

Nodes are hash-consed, so that what copies share is one node: of the operands of a tile of 6 × 4
products there are 10. Reductions of one loop become one nest (`week03_loops.reduction`).
"""

from __future__ import annotations

from week01_uops.calls import substitute
from week01_uops.linear import value_of
from week01_uops.node import UOp, make, toposort
from week01_uops.rewrite import Trace
from week02_render.access import access
from week02_render.ops import END, LOAD
from week03_loops.ops import REDUCE
from week03_loops.reduction import accumulate_with
from week05_06_memory.flat import flat
from week05_06_memory.nests import joined, map_closers, number, put
from week05_06_memory.ops import kind_of


def expand(body: UOp, trace: Trace) -> UOp:
    """The body without loops of kind unroll (but `terms`), each vector range of a REDUCE alone."""
    body = map_closers(body, _without_single)
    body = _chained(body)
    return map_closers(body, lambda node: _effect(node) if node.op is END else _sum(node))


def _without_single(node: UOp) -> UOp:
    """Loops of one iteration are none."""
    single = {r: number(0) for r in node.src[1:] if r.arg.size == 1 and not r.src}
    inside = substitute(node.src[0], single)
    rest = [substitute(r, single) for r in node.src[1:] if r not in single]
    return node.with_src((inside, *rest)) if rest else inside


def copies(x: UOp, *ranges: UOp) -> list[UOp]:
    """x for all values of the ranges, the last one changing fastest."""
    found = [x]
    for item in ranges:
        values = [number(k) for k in range(item.arg.size)]
        found = [put(c, item, value) for c in found for value in values]
    return found


def _effect(node: UOp) -> UOp:
    """Loops outside, then the lanes, then the copies."""
    effect, *ranges = node.src
    unrolled = [r for r in ranges if kind_of(r) == "unroll"]
    lanes = [r for r in ranges if kind_of(r) == "vector"]
    loops = [r for r in ranges if kind_of(r) not in ("unroll", "vector")]
    effect = joined(copies(effect, *unrolled)) if unrolled else effect
    return node.with_src((effect, *loops, *lanes)) if loops or lanes else effect


def _sum(node: UOp) -> UOp:
    """A nest for each group of loops, from the innermost on; copies between them."""
    if node.op is not REDUCE:
        return node
    value, *ranges = node.src
    loops: list[UOp] = []
    for depth, item in reversed(list(enumerate(ranges))):
        kind = kind_of(item)
        inside = any(kind_of(r) == "loop" for r in ranges[:depth])
        if kind == "loop" or (kind == "unroll" and inside and not _has_loops(loops)):
            loops.insert(0, item)
            continue
        value = _nested(node, value, loops)
        loops = []
        if kind == "unroll":
            value = _tree(node, copies(value, item))
        else:
            value = make(REDUCE, (value, item), node.arg)
    return _nested(node, value, loops)


def _has_loops(ranges: list[UOp]) -> bool:
    return any(kind_of(r) == "loop" for r in ranges)


def _all_unrolled(node: UOp) -> bool:
    return all(kind_of(r) == "unroll" for r in node.src[1:])


def _nested(node: UOp, value: UOp, ranges: list[UOp]) -> UOp:
    """REDUCE over loops, around one over the loops to unroll in them."""
    unrolled = [r for r in ranges if kind_of(r) == "unroll"]
    for group in (unrolled, [r for r in ranges if r not in unrolled]):
        if group:
            value = make(REDUCE, (value, *group), node.arg)
    return value


def _tree(node: UOp, values: list[UOp]) -> UOp:
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        rest = values[len(values) & ~1 :]
        values = [make(node.arg.op, pair) for pair in pairs] + rest
    return values[0]


def terms(node: UOp) -> tuple[UOp, ...]:
    """What a REDUCE adds to its accumulator in one iteration, one after the other."""
    value = node.src[0]
    chained = value.op is REDUCE and value.arg == node.arg and _all_unrolled(value)
    return tuple(copies(*value.src)) if chained else (value,)


def by_address(sums: list[UOp]) -> list[UOp]:
    """Sums that load different elements in the order of their addresses, as memory likes it."""
    loads = [load for s in sums if (load := _only_load(s)) is not None]
    if len(set(loads)) != len(sums):
        return sums
    where = dict(zip(sums, map(_offset, loads), strict=True))
    return sorted(sums, key=lambda s: where[s])


def _only_load(total: UOp) -> UOp | None:
    """The one LOAD that a sum depends on; None if there are more, or none."""
    found: UOp | None = None
    seen: set[UOp] = set()
    stack = [total.src[0]]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        if node.op is LOAD:
            if found is not None:
                return None
            found = node
        seen.add(node)
        stack += node.src
    return found


def _offset(load: UOp) -> int:
    where = access(load.src[0])
    return flat(where.storage.shape, [value_of(i) for i in where.indices]).constant


accumulate = accumulate_with(terms, by_address)
"""Each REDUCE → a register, its loops, and a LOAD; what is unrolled in a loop is a chain."""


def _chained(body: UOp) -> UOp:
    """LOAD(p) ⊕ REDUCE(x, u : unroll) → (LOAD(p) ⊕ x[u := 0]) ⊕ x[u := 1]."""
    done: dict[UOp, UOp] = {}
    for node in toposort((body,)):
        new = node.with_src(tuple([done[s] for s in node.src]))
        done[node] = _chain(new)
    return done[body]


def _chain(node: UOp) -> UOp:
    if len(node.src) != 2 or node.src[0].op is not LOAD or node.src[1].op is not REDUCE:
        return node
    total, added = node.src
    if added.arg.op is not node.op or not _all_unrolled(added):
        return node
    for value in copies(*added.src):
        total = make(node.op, (total, value))
    return total
