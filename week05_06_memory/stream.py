"""The step `stream`: results are written past the caches.

    STORE(p, v)   →   STORE(STREAM(p), v)          for p in memory that outlives the kernel

Worth its while where the results are larger than the caches and read by nobody soon: the memory
is then not read before it is overwritten.
"""

from __future__ import annotations

from week01_uops.node import UOp, make, toposort
from week01_uops.ops import PARAM
from week02_render.ops import STORE, storage_of
from week05_06_memory.dependence import reads
from week05_06_memory.nests import ScheduleError
from week05_06_memory.ops import STREAM


def stream(body: UOp) -> UOp:
    """Each STORE to a PARAM past the caches.

    Raises:
        ScheduleError: the kernel reads what it writes.
    """
    stored = {storage_of(n.src[0]) for n in toposort((body,)) if n.op is STORE}
    if any(storage.op is PARAM and reads(body, (storage,)) for storage in stored):
        raise ScheduleError("expected a kernel that reads nothing of what it writes, to stream")
    done: dict[UOp, UOp] = {}
    for node in toposort((body,)):
        new = node.with_src(tuple([done[s] for s in node.src]))
        if new.op is STORE and new.src[0].op is not STREAM and storage_of(new.src[0]).op is PARAM:
            new = make(STORE, (make(STREAM, new.src[:1]), *new.src[1:]))
        done[node] = new
    return done[body]
