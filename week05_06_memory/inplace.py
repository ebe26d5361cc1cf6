"""A row that a kernel holds lies in the row of the output that it becomes.

    t = STAGE(e(i, k), k)                        t = p[i, …], filled by e(i, k) for all k
    END(STORE(p[i, j], f(t[j], Σₖ t[k])), i, j)    →   the same, with p[i, j] for t[j]

Softmax holds the exponentials of a row to sum them, and each becomes its weight where it lies:
half of the cache is needed, and memory is first written while there is much to compute. It may be
done if each element of the row is stored once, from the element of the STAGE in its place, and
what reads others is done before. The loops within a row become an END of their own, so that what is
done before does not count as theirs. Rows that registers can hold stay apart.
"""

from __future__ import annotations

from typing import NamedTuple

from week01_uops.node import CONST, UOp, make, toposort
from week01_uops.ops import PARAM
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, END, INDEX, LOAD, RANGE, STORE, index, open_ranges, storage_of
from week04_fusion.ops import STAGE
from week05_06_memory.machine import Machine
from week05_06_memory.nests import closes
from week05_06_memory.traffic import bytes_of


def hold_in_output(body: UOp, machine: Machine, trace: Trace) -> UOp:
    """The body with one STAGE of rows laid into the output that it stores."""
    row = row_of(body)
    if row is None:
        return body
    for held in body.toposort():
        if (
            held.op is STAGE
            and bytes_of(held) > machine.row
            and (axes := _axes_in_place(held, row))
        ):
            trace.fired["inplace"] += 1
            return _laid(body, held, axes, row)
    return body


class Row(NamedTuple):
    """What a body stores: every element of its output once, in an iteration of its own.

    Attributes:
        value: an element of the output.
        place: where it is stored.
    """

    value: UOp
    place: UOp

    @property
    def indices(self) -> tuple[UOp, ...]:
        """Of the element."""
        return self.place.src[1:]

    def element(self, place: UOp, inner: dict[UOp, UOp]) -> UOp:
        """The same element of a place, but for some of the indices."""
        return index(place, *(inner.get(i, i) for i in self.indices))


def row_of(body: UOp) -> Row | None:
    """A body that is one nest of plain loops over one output that it does not read."""
    store = body.src[0]
    if body.op is not END or store.op is not STORE or len(store.src) > 2:
        return None
    place, value = store.src
    if place.op is not INDEX or place.src[0].op is not PARAM:
        return None
    param, *indices = place.src
    counters = [i for i in indices if i.op is RANGE]
    whole = all(
        (i.op is RANGE and i.arg.size == size and not i.src) or (i.op is CONST and size == 1)
        for i, size in zip(indices, param.shape, strict=True)
    )
    once = len(set(counters)) == len(counters) and set(counters) == set(body.src[1:])
    is_read = any(n.op is LOAD and storage_of(n.src[0]) is param for n in body.toposort())
    return Row(value, place) if whole and once and not is_read else None


def _axes_in_place(held: UOp, row: Row) -> tuple[UOp, ...]:
    """The loops of the output over a STAGE; none unless each element is read where it is stored."""
    axes = _axes(held, row) if held.dtype is row.value.dtype else ()
    alone = open_ranges(held) == open_ranges(row.place) - set(axes)
    return axes if axes and alone and _read_in_place(held, axes, row.value) else ()


def _axes(held: UOp, row: Row) -> tuple[UOp, ...]:
    """The loops of the output over the axes of a STAGE; none if it is not read along them."""
    loops = set(row.indices)
    for node in toposort((row.value,)):
        if node.op is INDEX and node.src[0] is held and loops.issuperset(node.src[1:]):
            axes = node.src[1:]
            plain = len(set(axes)) == len(axes) == len(held.shape)
            whole = all(
                not r.src and r.arg.size == n for r, n in zip(axes, held.shape, strict=True)
            )
            filled = not any(r.src for r in held.src[1:])
            return axes if plain and whole and filled else ()
    return ()


def _read_in_place(held: UOp, axes: tuple[UOp, ...], value: UOp) -> bool:
    """Whether what is computed in the loops over the axes reads no other element of the STAGE."""
    inside = toposort((value,), lambda n: () if open_ranges(n).isdisjoint(axes) else n.src)
    reads = [n for n in inside if n.op is INDEX and n.src[0] is held]
    apart = [n for n in inside if closes(n) and held in toposort((n,)) and n is not held]
    return all(n.src[1:] == axes for n in reads) and all(
        open_ranges(n).isdisjoint(axes) for n in apart
    )


def _laid(body: UOp, held: UOp, axes: tuple[UOp, ...], row: Row) -> UOp:
    """The body with a STAGE made part of the output."""
    ranges = held.src[1:]
    param = row.place.src[0]
    outer = sorted(open_ranges(held), key=lambda r: int(r.arg.id))
    begun = make(AFTER, (param, *outer)) if outer else param
    done: dict[UOp, UOp] = {}
    for node in body.toposort():
        src = tuple([done[s] for s in node.src])
        if node is held:
            first = row.element(begun, dict(zip(axes, ranges, strict=True)))
            filled = make(END, (make(STORE, (first, src[0])), *ranges))
            done[node] = make(AFTER, (param, filled))
        elif node.op is INDEX and node.src[0] is held:
            done[node] = row.element(src[0], dict(zip(axes, src[1:], strict=True)))
        else:
            done[node] = node.with_src(src)
    store, *loops = done[body].src
    inner = make(END, (store, *(r for r in loops if r in axes)))
    rows = [r for r in loops if r not in axes]
    return make(END, (inner, *rows)) if rows else inner
