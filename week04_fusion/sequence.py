"""The order of kernels: of those that may run next, the one that leaves the least memory in use.

A kernel needs room for the temporaries that it is the first to be given, and frees those that it is
the last to use. Derivatives of weights are done as soon as they can be, so that what they are made
of does not wait for them until the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from week01_uops.node import UOp, toposort
from week01_uops.ops import CALL
from week02_render.ops import ALLOC, storage_of


def frugal_order(calls: Sequence[UOp], kept: Iterable[UOp]) -> Sequence[UOp]:
    """The kernels in an order that needs less memory at once, if one is found.

    Args:
        calls: in an order in which they may run.
        kept: storage that is wanted afterwards.
    """
    used = {call: _temporaries(call) for call in calls}
    users = Counter(place for places in used.values() for place in places)
    users.update(kept)
    found = list(_greedy(calls, used, users))
    return found if _peak(found, used, users) < _peak(calls, used, users) else calls


def _temporaries(call: UOp) -> frozenset[UOp]:
    return frozenset(place for a in call.src[1:] if (place := storage_of(a)).op is ALLOC)


def _waits(call: UOp) -> set[UOp]:
    """The kernels that a kernel itself waits for."""
    below = toposort(call.src[1:], lambda n: () if n.op is CALL else n.src)
    return {n for n in below if n.op is CALL}


def _greedy(
    calls: Sequence[UOp], used: Mapping[UOp, frozenset[UOp]], users: Counter[UOp]
) -> Iterable[UOp]:
    position = {call: k for k, call in enumerate(calls)}
    waits = {call: _waits(call) for call in calls}
    left, live = Counter(users), set[UOp]()

    def grows(call: UOp) -> tuple[int, int]:
        """By how many bytes memory grows with a kernel; of equals, the first."""
        more = sum(_bytes(p) for p in used[call] if p not in live)
        return more - sum(_bytes(p) for p in used[call] if left[p] == 1), position[call]

    ready = {call for call in calls if not waits[call]}
    readers: dict[UOp, list[UOp]] = {call: [] for call in calls}
    for call in calls:
        for other in waits[call]:
            readers[other].append(call)
    while ready:
        call = min(ready, key=grows)
        ready.remove(call)
        live |= used[call]
        left.subtract(used[call])
        for reader in readers[call]:
            waits[reader].remove(call)
            if not waits[reader]:
                ready.add(reader)
        yield call


def _peak(calls: Iterable[UOp], used: Mapping[UOp, frozenset[UOp]], users: Counter[UOp]) -> int:
    """The most bytes in use by one kernel and those after it."""
    left, live = Counter(users), set[UOp]()
    most = now = 0
    for call in calls:
        now += sum(_bytes(p) for p in used[call] - live)
        live |= used[call]
        most = max(most, now)
        left.subtract(used[call])
        now -= sum(_bytes(p) for p in used[call] if not left[p])
    return most


def _bytes(place: UOp) -> int:
    return place.size * place.dtype.bits // 8
