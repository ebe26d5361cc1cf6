"""The C renderer with threads: OpenMP.

A nest whose outermost loops are of kind parallel is a region of its own:

    #pragma omp parallel
    {
        float t0[64];                                             one for each thread
        #pragma omp for collapse(2) schedule(dynamic, 1) nowait
        for (…) for (…) { … }
    }

Storage that is used in regions alone, and filled in each iteration of their loops, is declared in
each of them, so that every thread has its own; where it is large, it is a part of the workspace,
which has room for as many threads as there are when its size is first asked for. Without -fopenmp
the same text runs on one thread.

A loop over what the cores' own caches keep from one region to the next, with iterations that are
alike, is divided by number (`schedule(static)`): each core then finds its part where it left it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from week01_uops.node import CONST, Op, UOp, toposort
from week01_uops.ops import ELEMENTWISE
from week02_render.c_kernel import Statement, Tables
from week02_render.kernels import aligned
from week02_render.ops import (
    ALLOC,
    INDEX,
    LARGEST_LOCAL,
    LOAD,
    RANGE,
    STORE,
    open_ranges,
    storage_of,
)
from week02_render.render import render_c
from week05_06_memory.c_vector import C as VECTORS
from week05_06_memory.c_vector_access import VECTOR_STATEMENTS
from week05_06_memory.c_vector_kernel import VectorKernel
from week05_06_memory.ops import kind_of

CHUNKS = 16
"""Parts of a loop for each thread: the last one to finish is not waited for long."""


class Region(NamedTuple):
    """A nest carried out by threads: where it begins and ends, and its parallel loops."""

    begin: int
    end: int
    loops: tuple[UOp, ...]


def _regions(nodes: Sequence[UOp]) -> Iterator[Region]:
    """The outermost nests with parallel loops, and those of their loops that are divided.

    Between these, nothing but values is computed, which do not depend on memory.
    """
    begin: int | None = None
    for position, node in enumerate(nodes):
        if begin is None and node.op is RANGE and kind_of(node) == "parallel":
            begin = position
        elif begin is not None and node.op.closes and nodes[begin] in node.src[1:]:
            yield Region(begin, position, tuple(_divided(nodes[begin:position], node)))
            begin = None


def _divided(nodes: Sequence[UOp], end: UOp) -> Iterator[UOp]:
    yield nodes[0]
    for node in nodes[1:]:
        if node in end.src and kind_of(node) == "parallel" and not node.src:
            yield node
        elif node.op not in ELEMENTWISE and node.op is not CONST:
            return


def _adjoining(nodes: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """The nodes with the divided loops of each region one right in the other."""
    found = list(nodes)
    for region in _regions(nodes):
        last = max(k for k in range(region.begin, region.end) if nodes[k] in region.loops)
        between = [n for n in nodes[region.begin : last + 1] if n not in region.loops]
        found[region.begin : last + 1] = [*region.loops, *between]
    return tuple(found)


@dataclass(frozen=True)
class ThreadTables(Tables["ThreadedKernel"]):
    """How a program is written for threads.

    Attributes:
        near: bytes that the cores' own caches keep from one region to the next.
    """

    near: int = 0


@dataclass
class ThreadedKernel(VectorKernel):
    """A function with loops that are divided among threads.

    Attributes:
        region: the one that is open.
        taken: bytes that it takes of each thread's scratch memory.
    """

    tables: ThreadTables
    region: Region | None = None
    taken: int = 0
    _header: int = 0

    def write(self) -> list[str]:
        """The statements of the body."""
        self.nodes = _adjoining(self.nodes)
        return super().write()

    @cached_property
    def regions(self) -> Mapping[int, Region]:
        """Those of the function, by where they begin."""
        return {region.begin: region for region in _regions(self.nodes)}

    @cached_property
    def owned(self) -> Mapping[int, tuple[Region, ...]]:
        """ALLOC, by where it stands → the regions that alone use it, each filling it anew."""
        found: dict[int, tuple[Region, ...]] = {}
        for position, node in enumerate(self.nodes):
            if node.op is ALLOC:
                owners = self._owners(position, node)
                if owners:
                    found[position] = owners
        return found

    def _owners(self, position: int, node: UOp) -> tuple[Region, ...]:
        stores, users = self.uses.stores[node], [*self.uses.stores[node], *self.uses.loads[node]]
        regions = [r for r in self.regions.values() if any(r.begin < u < r.end for u in users)]
        if any(not any(r.begin < u < r.end for r in regions) for u in users):
            return ()
        if any(r.begin < position for r in regions):
            return ()
        filled = [[s for s in stores if r.begin < s < r.end] for r in regions]
        shared = any(
            not inside or any(self._divides(region, s) for s in inside)
            for region, inside in zip(regions, filled, strict=True)
        )
        return () if len(regions) > 1 and shared else tuple(regions)

    def _divides(self, region: Region, store: int) -> bool:
        """Whether different iterations of a region's loops store different elements."""
        indices = [
            i for n in toposort((self.nodes[store].src[0],)) if n.op is INDEX for i in n.src[1:]
        ]
        return any(not open_ranges(i).isdisjoint(region.loops) for i in indices)

    def open_region(self, region: Region) -> None:
        """Begin what each thread does, up to the loop."""
        self._header, self.taken = len(self.lines), 0
        self._depth += 1
        self.region = region
        here = self.position
        for position in [p for p, owners in self.owned.items() if region in owners]:
            self.position = position
            _declare_here(self, self.nodes[position])
        self.position = here

    def share_loop(self, region: Region) -> None:
        """Divide the loop that was just opened; a thread takes some iterations at once."""
        count = len(region.loops)
        total = math.prod(item.arg.size for item in region.loops)
        chunk = "1" if total < 2 * CHUNKS else f"{total} / ({CHUNKS} * omp_get_max_threads()) + 1"
        how = "static" if self._stays_near(region) else f"dynamic, {chunk}"
        collapse = f" collapse({count})" if count > 1 else ""
        around = "    " * (self._depth - 1)
        pragma = f"{around}#pragma omp for{collapse} schedule({how}) nowait"
        self.lines.insert(len(self.lines) - 1, pragma)

    def _stays_near(self, region: Region) -> bool:
        """Whether all that a region accesses fits caches, and its iterations are alike."""
        inside = self.nodes[region.begin : region.end]
        used = {storage_of(n.src[0]) for n in inside if n.op in (LOAD, STORE)}
        size = sum(storage.size * storage.dtype.bits // 8 for storage in used)
        return size <= self.tables.near and not any(n.op is RANGE and n.src for n in inside)

    def leave(self, ranges: tuple[UOp, ...]) -> None:
        """Close ranges, and the region that they are the loops of."""
        super().leave(ranges)
        if self.region is not None and self.region.end == self.position:
            if self.streams:
                self.line("stream_fence();")
                self.streams = False
            self.close_block()
            self.region = None
            self.own = max(self.own, self.taken)
            self.lines[self._header : self._header] = self._begun()

    def _begun(self) -> Iterator[str]:
        around = "    " * self._depth
        if not self.taken:
            yield f"{around}#pragma omp parallel"
            yield f"{around}{{"
            return
        yield f"{around}#pragma omp parallel num_threads(program_threads())"
        yield f"{around}{{"
        yield f"{around}    char *own = owned + omp_get_thread_num() * (int64_t){self.taken};"


def _open(kernel: ThreadedKernel, node: UOp) -> None:
    """A loop; before it, the region that it is the first loop of."""
    region = kernel.regions.get(kernel.position)
    if region is not None:
        kernel.open_region(region)
    VECTOR_STATEMENTS[RANGE](kernel, node)
    if region is not None:
        kernel.share_loop(region)


def _declare(kernel: ThreadedKernel, node: UOp) -> None:
    """What regions alone use is declared there."""
    if kernel.position not in kernel.owned:
        _declare_here(kernel, node)


def _declare_here(kernel: ThreadedKernel, node: UOp) -> None:
    c_type, size = kernel.element_type(node)
    if kernel.region is None or node.size * size <= LARGEST_LOCAL:
        VECTOR_STATEMENTS[ALLOC](kernel, node)
        return
    name = kernel.names[node] = kernel.fresh("t")
    kernel.line(f"{c_type} *restrict {name} = ({c_type} *)(own + {kernel.taken});")
    kernel.taken += aligned(node.size * size)


STATEMENTS: Mapping[Op, Statement[ThreadedKernel]] = {
    **VECTOR_STATEMENTS,
    RANGE: _open,
    ALLOC: _declare,
}

PRELUDE: Mapping[str, str] = {
    "omp_get_max_threads": """\
#ifdef _OPENMP
int omp_get_max_threads(void);
#else
static inline int omp_get_max_threads(void) { return 1; }
#endif
""",
    "omp_get_thread_num": """\
#ifdef _OPENMP
int omp_get_thread_num(void);
#else
static inline int omp_get_thread_num(void) { return 0; }
#endif
""",
    # The workspace has room for those that there are when its size is first asked for.
    "program_threads": """\
static int program_threads(void) {
    static int most;
    int now = omp_get_max_threads();
    if (!most) most = now;
    return now < most ? now : most;
}
""",
}


C = ThreadTables(VECTORS.text, STATEMENTS, {**VECTORS.prelude, **PRELUDE}, ThreadedKernel)
"""The renderer of week 7."""


def render_threaded_c(program: UOp, *, checked: bool = False, near: int = 0) -> str:
    """The translation unit of a program of kernels in which loops may be of kind parallel."""
    return render_c(program, checked=checked, tables=replace(C, near=near))
