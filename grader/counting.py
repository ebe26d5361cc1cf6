"""Loads, stores and bytes that emitted C moves, counted: the same on every machine, busy or not.

gcc makes a call for every access to memory that is left when it has optimized, and `counting.c`
counts the calls. Variables in registers do not count, nor do stores that go past the caches by an
intrinsic function; what memcpy, memmove and memset move does. A store to what was just loaded
counts with that load.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grader import run_c
from grader.bench.worker import Job
from grader.bench.workload import Array, Workload, result_of
from grader.loop_nests import code_only, kernels
from grader.run_c import RunError
from grader.sandbox import Limits
from grader.verdict import Verdict
from week01_uops import ops
from week01_uops.dtypes import int64
from week01_uops.node import UOp, const

HOOKS = Path(__file__).parent / "counting.c"
FLAGS = (
    *("-fsanitize=kernel-address", "-U__SANITIZE_ADDRESS__"),
    *("--param", "asan-instrumentation-with-call-threshold=0"),
    *("--param", "asan-stack=0", "--param", "asan-globals=0"),
)
DECLARED = """#include <stddef.h>
void *counted_memset(void *, int, size_t);
void *counted_memcpy(void *, const void *, size_t);
void *counted_memmove(void *, const void *, size_t);
"""
COUNTED = re.compile(r"\b(program|memset|memcpy|memmove)\b")
EMPTY = "void program(void *const *in, void *const *out) { (void)in; (void)out; }"
LIMITS = Limits(seconds=60.0)


@dataclass(frozen=True)
class Counts:
    """What one call does; `nests` are loops that stand in no other loop."""

    loads: int
    stores: int
    bytes: int
    nests: int

    def __str__(self) -> str:
        return f"{self.loads} loads and {self.stores} stores in {self.nests} loop nest(s)"


class UncountableError(Exception):
    """Nothing can be counted here; says why."""


@functools.cache
def _why_not() -> str:
    try:
        _build(EMPTY, 0)
    except RunError as error:
        return f"not countable here: {error.sentence}"
    return ""


def moved(job: Job) -> tuple[float, Counts]:
    """Bytes that the job's one case moves, over those that it must, and all counts.

    Raises:
        UncountableError: this machine's compiler cannot count.
        RunError: there is no right program to count.
    """
    if why := _why_not():
        raise UncountableError(why)
    (workload,) = job.workloads()
    found = count(job.source(workload), workload, workload.program, job.seed)
    return found.bytes / workload.bytes, found


def _build(source: str, outputs: int) -> bytes:
    hooks = HOOKS.read_text(encoding="utf-8").replace("OUTPUTS", str(outputs))
    renamed = COUNTED.sub(r"counted_\1", source)
    return run_c.build(f"{DECLARED}#line 1\n{renamed}\n{hooks}", more=FLAGS)


def count(source: str, workload: Workload, program: UOp, seed: int = 0) -> Counts:
    """The counts of a workload's compiled program, which must also be right.

    Raises:
        RunError: it does not build or run, or its results are wrong.
    """
    number = const(0, int64)
    whole: UOp = ops.RETURN(*program.src, number, number, number)
    drawn: list[Array] = workload.draw(seed)
    library = _build(source, len(program.src))
    inputs = {slot: drawn[slot] for slot in ops.parameters(program)}
    ((*results, loads, stores, moved),) = run_c.run(library, whole, [inputs], LIMITS, threads=1)
    why = workload.answer(drawn).fault(result_of([np.asarray(array) for array in results]))
    if why:
        raise RunError(Verdict.WRONG, why)
    return Counts(int(loads), int(stores), int(moved), kernels(code_only(source)))
