"""Masks end work instead of undoing it: conditions on a range become its bound.

    REDUCE(MAX, WHERE(k < e, x, −inf), k)   →   REDUCE(MAX, x, k')      k' a RANGE with bound e
    STAGE(v, s), read only where s < e      →   STAGE(v, s')
    LOAD(INDEX(STAGE(v, s), j))             →   WHERE(j < e, LOAD(INDEX(STAGE(v, s'), j)), z)
                                                where v is the constant z for all s ≥ e

A condition ends a reduction if the term is the reduction's identity wherever it does not hold (see
`masks`): a causal softmax neither computes nor reads what lies beyond the diagonal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from week01_uops.calls import substitute
from week01_uops.node import UOp, const, make
from week01_uops.ops import CMPLT, WHERE
from week01_uops.rewrite import Trace, rewrite
from week01_uops.simplify import SIMPLIFY
from week02_render.ops import INDEX, RANGE, loop, open_ranges
from week03_loops.ops import REDUCE, identity
from week05_06_memory.masks import (
    BOUNDED,
    at_least_one,
    closes,
    cuts,
    is_below,
    is_staged,
    least,
    uppers,
)
from week05_06_memory.nests import fresh_numbers

RULES = SIMPLIFY + BOUNDED


def bound_masks(body: UOp, trace: Trace) -> UOp:
    """Bound the ranges of reductions, then those of what is held for them, while any mask can."""
    if all(node.op is not CMPLT for node in body.toposort()):
        return body
    before, after = None, body
    while after is not before:
        before = after
        for name, step in STEPS.items():
            while (found := step(after)) is not None:
                after = found
                trace.fired[name] += 1
    return after if after is body else rewrite(after, RULES)


def _bound_reductions(body: UOp) -> UOp | None:
    """All reductions that a mask ends; those over one range go on sharing it."""
    numbers = fresh_numbers(body)
    names: dict[tuple[UOp, UOp], UOp] = {}
    ended: dict[UOp, dict[UOp, UOp]] = defaultdict(dict)
    for node in body.toposort():
        if node.op is REDUCE:
            neutral = identity(node.arg.op, node.dtype)
            for item in _free(node):
                for cut in cuts(node.src[0], item, open_ranges(node)):
                    if cut.constant == neutral:
                        if (item, cut.edge) not in names:
                            names[item, cut.edge] = _bounded(item, cut.edge, next(numbers))
                        ended[node].setdefault(item, names[item, cut.edge])
    return _replaced(body, ended) if ended else None


def _free(node: UOp) -> list[UOp]:
    """The ranges that a node alone closes, and nothing inside it."""
    return [item for item in node.src[1:] if not closes(node.src[0], item)]


def _bounded(item: UOp, edge: UOp, number: int) -> UOp:
    """A new RANGE that ends at the edge too."""
    for old in item.src:
        edge = least(old, edge)
    return loop(number, item.arg.size, edge, item.arg.kind)


def _replaced(body: UOp, ranges: Mapping[UOp, Mapping[UOp, UOp]]) -> UOp:
    """The body with other RANGEs inside the nodes that close them."""
    done: dict[UOp, UOp] = {}
    for node in body.toposort():
        new = node.with_src(tuple([done[s] for s in node.src]))
        done[node] = substitute(new, ranges[node]) if node in ranges else new
    return done[body]


def _stages(body: UOp) -> Iterator[tuple[UOp, list[UOp]]]:
    """The STAGEs of which single elements are loaded, and no other use is made, with the LOADs."""
    loads: dict[UOp, list[UOp]] = defaultdict(list)
    other: set[UOp] = set()
    for node in body.toposort():
        if is_staged(node):
            loads[node.src[0].src[0]].append(node)
        elif node.op is not INDEX:
            other.update(s.src[0] if s.op is INDEX else s for s in node.src)
        else:
            other.update(node.src[1:])
    return ((held, users) for held, users in loads.items() if held not in other)


def _with_edge(body: UOp, held: UOp, item: UOp, edge: UOp) -> UOp:
    number = next(fresh_numbers(body))
    return _replaced(body, {held: {item: _bounded(item, edge, number)}})


def _bound_stage(body: UOp) -> UOp | None:
    """A STAGE of which all that is read lies below an edge."""
    for held, loads in _stages(body):
        for item in _free(held):
            axis = held.src.index(item)
            indices = [load.src[0].src[axis] for load in loads]
            edges = {e for i in indices if i.op is RANGE for u in uppers(i) for e in _implied(u)}
            for edge in sorted(edges, key=lambda e: len(e.toposort())):
                known = open_ranges(edge) <= open_ranges(held)
                if known and not is_below(item, edge) and all(is_below(i, edge) for i in indices):
                    return _with_edge(body, held, item, edge)
    return None


def _implied(edge: UOp) -> tuple[UOp, UOp]:
    return edge, at_least_one(edge)


def _select(body: UOp) -> UOp | None:
    """A STAGE that is constant from an edge on; who reads beyond it takes the constant."""
    for held, loads in _stages(body):
        for item in _free(held):
            axis = held.src.index(item)
            for cut in cuts(held.src[0], item, open_ranges(held)):
                if cut.certain:
                    nothing = const(cut.constant, held.dtype)
                    selected = {
                        load: make(
                            WHERE, (make(CMPLT, (load.src[0].src[axis], cut.edge)), load, nothing)
                        )
                        for load in loads
                        if not is_below(load.src[0].src[axis], cut.edge)
                    }
                    wrapped = substitute(body, selected)
                    return _with_edge(wrapped, held, item, cut.edge)
    return None


STEPS: dict[str, Callable[[UOp], UOp | None]] = {
    "bound reductions": _bound_reductions,
    "bound stage": _bound_stage,
    "select": _select,
}
