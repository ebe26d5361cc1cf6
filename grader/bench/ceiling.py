"""The roofline as a contender: work that takes as long as a workload must, timed in its turn.

    time ≥ max(operations / peak, bytes / bandwidth)                  (Williams et al., 2009)

A call does what the larger of the two asks for, with all threads: so many multiply-adds on vectors
in registers, or as many bytes read and written as the workload has inputs and outputs, in memory
of its own. What fits a cache stays there, as the workload's arrays do. Since it takes turns with
what is measured, a machine that is slower for a while is so for both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from grader.bench.contenders import AbsentError, Here, threads
from grader.bench.workload import Answer, Answers, Array, Workload
from week01_uops.dtypes import uint8
from week02_render.buffers import address, aligned_empty
from week02_render.cache import ObjectCache
from week02_render.library import Library, ffi
from week02_render.runtime import build
from week02_render.toolchain import BuildError, find_toolchain
from week05_06_memory.machine import detect
from week05_06_memory.probe import computing, step_flops

SOURCE = """
#if defined(__AVX__)
#define ASIDE(q, x) __asm__("vmovntps %1, %0" : "=m"(*(q)) : "v"(x))
#else
#define ASIDE(q, x) (*(volatile V *)(q) = (x))
#endif

void compute_everywhere(long steps) {
  #pragma omp parallel
  compute(steps);
}

/* Vectors read, and vectors written, in blocks by turns, so that both end together. */
static void move_once(const V *in, long read, V *out, long written, int aside) {
  long blocks = (read > written ? read : written) / 64 + 1;
  #pragma omp parallel for schedule(static)
  for (long b = 0; b < blocks; b++) {
    V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    const V *p = in + read * b / blocks, *end = in + read * (b + 1) / blocks;
    for (; p + 4 <= end; p += 4) { s0 += p[0]; s1 += p[1]; s2 += p[2]; s3 += p[3]; }
    for (; p < end; p++) s0 += *p;
    s0 += s1 + (s2 + s3);
    V *q = out + written * b / blocks, *last = out + written * (b + 1) / blocks;
    if (aside) for (; q < last; q++) ASIDE(q, s0);
    else for (; q < last; q++) { *q = s0; __asm__ volatile("" ::: "memory"); }
    if (s0[0] == 1) sink = s0[0];
  }
}

void move(long calls, const V *in, long read, V *out, long written, int aside) {
  while (calls-- > 0) move_once(in, read, out, written, aside);
}
"""


class Ceiling(Here):
    """What bounds a workload, done by itself.

    Attributes:
        computes: whether that is arithmetic.
        memory: what is read, and what is written, if it is not.
    """

    def __init__(self, workload: Workload) -> None:
        """Compile it; AbsentError says why it cannot be."""
        super().__init__(workload)
        machine = detect()
        moving = workload.bytes / machine.bandwidth
        self.computes = workload.flops / machine.peak_flops >= moving
        self.memory: list[Array] = []
        self._calls: Callable[[int], Any]
        self._library = library = _library(machine.vector_bytes)
        if self.computes:
            steps = round(workload.flops / threads() / step_flops(machine.vector_bytes))
            compute = library.symbol("compute_everywhere", "void (*)(long)")
            self._calls = lambda calls: compute(calls * steps)
            return
        written = sum(out.nbytes for out in self.outs)
        sizes = [-(-n // machine.vector_bytes) for n in (workload.bytes - written, written)]
        self.memory = [aligned_empty((n * machine.vector_bytes,), uint8) for n in sizes]
        for array in self.memory:
            array.fill(0)
        places = [ffi.cast("void *", address(array)) for array in self.memory]
        move = library.symbol("move", "void (*)(long, void *, long, void *, long, int)")
        given = [word for pair in zip(places, sizes, strict=True) for word in pair]
        ways = [lambda calls, aside=aside: move(calls, *given, aside) for aside in (0, 1)]
        self._calls = min(ways, key=_seconds)

    def take(self) -> None:
        """It has no results."""

    def run(self, calls: int) -> None:
        """Do the work."""
        self._calls(calls)

    def fault(self, answer: Answer | Answers) -> str:
        """Nothing can be wrong with it."""
        return ""


def _library(vector_bytes: int) -> Library:
    text = computing(vector_bytes) + SOURCE
    try:
        return Library(build(text, ObjectCache(), find_toolchain()))
    except (BuildError, OSError) as error:
        raise AbsentError(str(error)) from error


def _seconds(calls: Callable[[int], Any]) -> float:
    """Of the fastest of three calls."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        calls(1)
        found.append(time.perf_counter() - start)
    return min(found)
