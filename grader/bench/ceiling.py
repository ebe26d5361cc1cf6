"""The roofline as a contender: work that takes as long as a workload must, timed in its turn.

    time ≥ max(operations / peak, bytes / bandwidth)                  (Williams et al., 2009)

A call does what the larger of the two asks for, with all threads: so many multiply-adds on vectors
in registers, or as many bytes read and written as the workload has inputs and outputs, in the same
memory as what is measured: where the pages of an array lie makes a fifth of the time. What fits a
cache stays there for both. Since it takes turns with what is measured, a machine that is slower for
a while is so for both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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

/* Vectors of the first arrays read, and of the others written, in blocks by turns, so that all end
   together. */
static void move_once(long inputs, long arrays, V *const *at, const long *size, int aside) {
  long most = 0;
  for (long k = 0; k < arrays; k++) most = size[k] > most ? size[k] : most;
  long blocks = most / 64 + 1;
  #pragma omp parallel for schedule(static)
  for (long b = 0; b < blocks; b++) {
    V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (long k = 0; k < inputs; k++) {
      const V *p = at[k] + size[k] * b / blocks, *end = at[k] + size[k] * (b + 1) / blocks;
      for (; p + 4 <= end; p += 4) { s0 += p[0]; s1 += p[1]; s2 += p[2]; s3 += p[3]; }
      for (; p < end; p++) s0 += *p;
    }
    s0 += s1 + (s2 + s3);
    for (long k = inputs; k < arrays; k++) {
      V *q = at[k] + size[k] * b / blocks, *last = at[k] + size[k] * (b + 1) / blocks;
      if (aside) for (; q < last; q++) ASIDE(q, s0);
      else for (; q < last; q++) { *q = s0; __asm__ volatile("" ::: "memory"); }
    }
    if (s0[0] == 1) sink = s0[0];
  }
}

void move(long calls, long inputs, long arrays, V *const *at, const long *size, int aside) {
  while (calls-- > 0) move_once(inputs, arrays, at, size, aside);
}
"""


class Ceiling(Here):
    """What bounds a workload, done by itself.

    Attributes:
        computes: whether that is arithmetic.
        outs: what is written, if it is not.
    """

    def __init__(self, workload: Workload, inputs: Sequence[Array], outs: Sequence[Array]) -> None:
        """Compile it; AbsentError says why it cannot be. What it leaves in `outs` is arbitrary."""
        self.outs = list(outs)
        machine = detect()
        moving = workload.bytes / machine.bandwidth
        self.computes = workload.flops / machine.peak_flops >= moving
        self._calls: Callable[[int], Any]
        self._library = library = _library(machine.vector_bytes)
        if self.computes:
            steps = round(workload.flops / threads() / step_flops(machine.vector_bytes))
            compute = library.symbol("compute_everywhere", "void (*)(long)")
            self._calls = lambda calls: compute(calls * steps)
            return
        read = workload.bytes - sum(out.nbytes for out in outs)
        ins = _first(read, inputs)
        arrays = [*ins, *outs]
        self._places = ffi.new("void *[]", [ffi.cast("void *", address(a)) for a in arrays])
        self._sizes = ffi.new("long[]", [a.nbytes // machine.vector_bytes for a in arrays])
        move = library.symbol("move", "void (*)(long, long, long, void **, long *, int)")
        given = (len(ins), len(arrays), self._places, self._sizes)
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


def _first(size: int, arrays: Sequence[Array]) -> list[Array]:
    """So many bytes of the arrays, and of another where they are not enough."""
    found = []
    for array in arrays:
        found.append(array.reshape(-1).view(np.uint8)[: max(size, 0)])
        size -= array.nbytes
    if size > 0:
        found.append(aligned_empty((size,), uint8))
        found[-1].fill(0)
    return found


def _library(vector_bytes: int) -> Library:
    text = computing(vector_bytes) + SOURCE
    try:
        return Library(build(text, ObjectCache(), find_toolchain()))
    except (BuildError, OSError) as error:
        raise AbsentError(str(error)) from error


def _seconds(calls: Callable[[int], Any]) -> float:
    """Of the fastest of a few rounds of calls, which find in the caches what these calls leave."""
    calls(2)
    found = []
    for _ in range(5):
        start = time.perf_counter()
        calls(4)
        found.append(time.perf_counter() - start)
    return min(found)
