"""The time of every kernel of a program: its C text with a clock around each call."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from week01_uops.node import UOp
from week02_render.arguments import Signature
from week02_render.buffers import aligned_empty
from week02_render.runtime import load

CALL = re.compile(r"^    (k\d+_\w+)\(.*\);$")
CLOCK = """#include <time.h>
static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
"""
ROUNDS = 5


def with_clock(source: str) -> tuple[str, list[str]]:
    """The text of a program that notes the seconds of each kernel, and the kernels in order.

    They are exported as `double program_seconds[]`.
    """
    head, start, body = source.partition("void program(")
    lines: list[str] = []
    names: list[str] = []
    for line in (start + body).splitlines():
        if match := CALL.match(line):
            place = f"program_seconds[{len(names)}]"
            lines += [f"    {place} -= seconds_now();", line, f"    {place} += seconds_now();"]
            names.append(match[1])
        else:
            lines.append(line)
    noted = f"double program_seconds[{max(len(names), 1)}];\n"
    return CLOCK + head + noted + "\n".join(lines) + "\n", names


def kernel_times(
    source: str, program: UOp, inputs: Mapping[int, object] | None = None
) -> list[dict[str, Any]]:
    """The kernels of a program by the time that all calls of each take, in seconds, median of 5.

    Args:
        source: its C text.
        program: what it was compiled from.
        inputs: by slot; zeros and ones if none are given.
    """
    text, names = with_clock(source)
    loaded = load(text, program)
    seconds = loaded.exported("program_seconds", "double *")
    call = loaded.bind(_inputs(program) if inputs is None else inputs)
    call()
    rounds = []
    for _ in range(ROUNDS):
        for k in range(len(names)):
            seconds[k] = 0.0
        call()
        rounds.append([seconds[k] for k in range(len(names))])
    return _by_kernel(names, np.median(np.array(rounds), axis=0).tolist())


def _by_kernel(names: Sequence[str], seconds: Sequence[float]) -> list[dict[str, Any]]:
    total: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for name, each in zip(names, seconds, strict=True):
        total[name] += float(each)
        calls[name] += 1
    found = [{"name": n, "calls": calls[n], "seconds": total[n]} for n in total]
    return sorted(found, key=lambda item: -item["seconds"])


def _inputs(program: UOp) -> dict[int, np.ndarray[Any, Any]]:
    """Ones for floats, zeros for everything else."""
    found = {}
    for slot, kind in Signature.of(program).inputs.items():
        found[slot] = aligned_empty(kind.shape, kind.dtype)
        found[slot][...] = 1 if kind.dtype.is_float else 0
    return found
