"""The step `fetch`: while a row is read again, the next one comes from memory.

    LOAD(p[i, j])   →   LOAD(FETCH(p[i, j]))          asks for p[i + 1, j], and does not wait

A row that several nests read comes from memory in the first of them, which computes little; in the
others it comes from a cache, and memory has nothing to do. The last of them therefore asks for what
the first one will read in the next iteration. Nothing is computed otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

from week01_uops.calls import substitute
from week01_uops.node import UOp, make
from week01_uops.ops import PARAM
from week02_render.ops import open_ranges
from week05_06_memory.machine import Machine
from week05_06_memory.nests import ScheduleError, find_range
from week05_06_memory.ops import FETCH, FetchArg, kind_of
from week05_06_memory.roles import Access, Nest, nests_of
from week05_06_memory.traffic import bytes_of


def fetch(body: UOp, slot: int, number: int, line: int) -> UOp:
    """Each LOAD of a PARAM, in the last nest in a loop that reads it, with a FETCH.

    Args:
        body: the kernel's body.
        slot: of the PARAM.
        number: of the loop of which the next iteration is fetched.
        line: elements that come at once; one FETCH of so many is carried out.

    Raises:
        ScheduleError: nothing in the loop reads the PARAM, or no stride describes how it moves on.
    """
    item = find_range(body, number)
    found = next((loads for loads in _loads(body, slot, item) if loads), None)
    if found is None:
        raise ScheduleError(f"expected a loop that reads p{slot}, to fetch what it reads next")
    done = {}
    for access in found:
        ahead = access.stride(item)
        if ahead is None or ahead < 1:
            raise ScheduleError(f"expected a loop that moves on in p{slot} by a fixed stride")
        place, *rest = access.node.src
        if place.op is not FETCH:
            marked = make(FETCH, (place,), FetchArg(ahead, line))
            done[access.node] = access.node.with_src((marked, *rest))
    return substitute(body, done)


def _loads(body: UOp, slot: int, item: UOp) -> list[list[Access]]:
    """The loads of a PARAM that a loop decides, nest by nest, the last nest first."""
    return [
        [a for a in _read(nest) if a.storage.arg.slot == slot and item in a.depends]
        for nest in nests_of(body)
    ]


def _read(nest: Nest) -> list[Access]:
    """The loads of PARAMs in a nest."""
    return [a for a in nest.accesses if not a.writes and a.storage.op is PARAM]


class Ahead(NamedTuple):
    """What `fetch` takes."""

    slot: int
    loop: int
    line: int


def read_again(body: UOp, machine: Machine) -> list[Ahead]:
    """The PARAMs of which rows are worth fetching.

    They come from beyond the second cache, several nests in a loop over rows read them, and the
    last of these reads each element once: one that uses it often computes longer than memory takes.
    """
    passes: dict[UOp, list[tuple[Nest, Access]]] = {}
    nests = list(nests_of(body))
    for nest in nests:
        for access in _read(nest):
            passes.setdefault(access.storage, []).append((nest, access))
    arrays = {a.storage for nest in nests for a in nest.accesses if a.storage.op is PARAM}
    near = sum(map(bytes_of, arrays)) <= machine.l3
    found = []
    for storage, ((last, access), *others) in passes.items():
        once = access.depends.issuperset((*last.results, *last.summed))
        if once and storage.size * access.bytes > machine.l2:
            rows = [_row(access, earlier, nest) for nest, earlier in others if nest is not last]
            sizes = {r: (access.stride(r) or 0) * access.bytes for r in rows if r is not None}
            row = min(sizes, key=lambda r: sizes[r], default=None)
            written = any(a.writes and a.storage is storage for n in nests for a in n.accesses)
            unwritten = machine.ahead_near if near else machine.ahead
            least = machine.ahead_written if written else unwritten
            if row is not None and least <= sizes[row] <= machine.l2 // 2:
                found.append(Ahead(storage.arg.slot, row.arg.id, machine.line // access.bytes))
    return found


def _row(access: Access, earlier: Access, nest: Nest) -> UOp | None:
    """The loop around an earlier nest that moves both accesses on alike, the innermost one."""
    loops = [
        r
        for r in open_ranges(nest.root) & access.depends
        if kind_of(r) not in ("unroll", "vector") and access.stride(r) == earlier.stride(r)
    ]
    return min(loops, key=lambda r: access.stride(r) or 0, default=None)
