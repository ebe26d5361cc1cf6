"""Buffer planning: temporaries whose lifetimes do not overlap share memory.

The kernels run in the order of `sequence`. A temporary lives from the first kernel that is given it
to the last. Temporaries are placed from the largest to the smallest, each
at the lowest offset that is free for the whole of its life (Pisarchyk and Lee, "Efficient Memory
Management for Deep Neural Net Inference", 2020, greedy by size).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from week01_uops.node import UOp, make
from week01_uops.ops import CALL
from week01_uops.passes import top_nodes
from week01_uops.rewrite import Trace
from week02_render.kernels import aligned
from week02_render.ops import AFTER, ALLOC, WORKSPACE, WorkspaceArg, storage_of
from week04_fusion.sequence import frugal_order


@dataclass
class Lifetime:
    """A temporary: the kernels that use it, as positions in the order, and where it lies."""

    alloc: UOp
    users: list[int]
    offset: int = 0

    @property
    def size(self) -> int:
        """Bytes, rounded up to the alignment."""
        return aligned(self.alloc.size * self.alloc.dtype.bits // 8)

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.offset + self.size

    def lives_with(self, other: Lifetime) -> bool:
        """Whether some kernel runs in the lifetimes of both."""
        return self.users[0] <= other.users[-1] and other.users[0] <= self.users[-1]


def lifetimes(calls: Sequence[UOp]) -> list[Lifetime]:
    """The temporaries of a program, by the kernels that use them."""
    found: dict[UOp, Lifetime] = {}
    for position, call in enumerate(calls):
        for argument in call.src[1:]:
            place = storage_of(argument)
            if place.op is ALLOC:
                users = found.setdefault(place, Lifetime(place, [])).users
                if not users or users[-1] != position:
                    users.append(position)
    return list(found.values())


def place_all(temporaries: list[Lifetime]) -> None:
    """Give each an offset: greedy by size, lowest fit."""
    placed: list[Lifetime] = []
    for item in sorted(temporaries, key=lambda t: -t.size):
        busy = sorted((p for p in placed if p.lives_with(item)), key=lambda p: p.offset)
        for other in busy:
            if item.offset + item.size <= other.offset:
                break
            item.offset = max(item.offset, other.end)
        placed.append(item)


def plan_buffers(program: UOp, trace: Trace) -> UOp:
    """Each ALLOC → WORKSPACE; the first kernel to use reused memory waits for its last users."""
    returned = [storage_of(output) for output in program.src]
    calls = frugal_order([n for n in top_nodes(program) if n.op is CALL], set(returned))
    nodes = top_nodes(*calls, program)
    temporaries = lifetimes(calls)
    for item in temporaries:
        if item.alloc in returned:
            item.users.append(len(calls))
    place_all(temporaries)
    done: dict[UOp, UOp] = {}
    by_alloc = {item.alloc: item for item in temporaries}
    for node in nodes:
        src = [done.get(s, s) for s in node.src]
        if node.op is ALLOC:
            offset = by_alloc[node].offset if node in by_alloc else 0
            done[node] = make(WORKSPACE, (), WorkspaceArg(offset, node.dtype, node.shape))
            continue
        if node.op is CALL:
            for slot, argument in enumerate(node.src[1:], 1):
                tenant = by_alloc.get(storage_of(argument))
                if tenant is not None and not _waits_for_user(argument, tenant, calls):
                    waits = [done[calls[k]] for k in _previous_tenants(tenant, temporaries)]
                    trace.fired["reuse"] += bool(waits)
                    src[slot] = _after(src[slot], waits)
        done[node] = node.with_src(tuple(src))
    return done[program]


def _waits_for_user(argument: UOp, item: Lifetime, calls: Sequence[UOp]) -> bool:
    users = {calls[k] for k in item.users if k < len(calls)}
    return any(dep in users for dep in argument.src)


def _after(place: UOp, waits: list[UOp]) -> UOp:
    if not waits:
        return place
    return make(AFTER, (*(place.src if place.op is AFTER else (place,)), *waits))


def _previous_tenants(item: Lifetime, temporaries: list[Lifetime]) -> list[int]:
    """The kernels that used this memory before, in order."""
    return sorted(
        {
            user
            for other in temporaries
            if other.users[-1] < item.users[0]
            and other.offset < item.end
            and item.offset < other.end
            for user in other.users
        }
    )
