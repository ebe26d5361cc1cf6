"""How fast one core computes and moves data, measured once by a C program and then remembered."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from week02_render.cache import ObjectCache, cache_directory, content_key
from week02_render.library import Library, ffi
from week02_render.runtime import build
from week02_render.toolchain import BuildError, find_toolchain, processor

COMPUTE = """\
typedef float V __attribute__((vector_size(VECTOR_BYTES)));

#define CHAINS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define OPEN(n) V a##n = {n};
#define STEP(n) a##n = a##n * factor + term;
#define CLOSE(n) total += a##n;

volatile float one = 1, half = 0.5f, sink;

/* So many multiply-adds on twelve independent vectors. */
static void compute(long steps) {
  V zero = {0}, factor = zero + half, term = zero + one, total = zero;
  CHAINS(OPEN)
  for (long n = 0; n < steps; n++) { CHAINS(STEP) }
  CHAINS(CLOSE)
  sink = total[0];
}
"""

SOURCE = """\
#include <time.h>

typedef int I __attribute__((vector_size(VECTOR_BYTES)));

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Float operations a second. */
double probe_peak(void) {
  double start = now();
  compute(STEPS);
  return (double)STEPS * STEP_FLOPS / (now() - start);
}

/* Bytes read a second, in four streams. */
double probe_read(char *data, long size) {
  long quarter = size / 4;
  I s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  double start = now();
  for (char *p = data; p < data + quarter; p += VECTOR_BYTES) {
    s0 += *(I *)p;
    s1 += *(I *)(p + quarter);
    s2 += *(I *)(p + 2 * quarter);
    s3 += *(I *)(p + 3 * quarter);
  }
  double seconds = now() - start;
  sink = (s0 + s1 + s2 + s3)[0];
  return size / seconds;
}

/* Bytes read and written a second by the C library's memcpy. */
double probe_copy(char *data, long size) {
  double start = now();
  __builtin_memcpy(data, data + size / 2, size / 2);
  return size / (now() - start);
}
"""

STEPS = 100_000
"""Multiply-adds of each vector in one window: under a millisecond."""

WINDOWS = 24
PASSES = 6
LARGEST = 512 << 20
"""Bytes of the memory read at most, where caches are larger than it is worth to fill twice."""


@dataclass(frozen=True)
class Speed:
    """What one core does in a second.

    Attributes:
        peak_flops: float32 operations, where a multiply-add is two.
        bandwidth: bytes read from memory.
        copy_bandwidth: bytes read from memory and written to it in copying, together.
        source: "measured", "given" or "estimated".
    """

    peak_flops: float
    bandwidth: float
    copy_bandwidth: float
    source: str


def source_for(vector_bytes: int) -> str:
    """The probe for vectors of a size: a translation unit."""
    sizes = f"#define STEPS {STEPS}\n#define STEP_FLOPS {step_flops(vector_bytes)}\n"
    return sizes + computing(vector_bytes) + SOURCE


def computing(vector_bytes: int) -> str:
    """The C function `compute`, a number of steps of `step_flops` operations each."""
    return f"#define VECTOR_BYTES {vector_bytes}\n{COMPUTE}"


def step_flops(vector_bytes: int) -> int:
    """Float operations of a multiply-add on each of the twelve vectors."""
    return 2 * 12 * vector_bytes // 4


def measured_speed(vector_bytes: int, cache_bytes: int) -> Speed | None:
    """The speed of this processor, the best of short windows; None if there is no C compiler.

    It takes a tenth of a second, once: what it found is kept in the cache's folder `machine`,
    under a name made of the processor and the probe. Remove the file to measure again.

    Args:
        vector_bytes: of the vectors used.
        cache_bytes: of the largest cache; twice as much is read.
    """
    size = min(2 * cache_bytes, LARGEST) // 4096 * 4096
    text = source_for(vector_bytes)
    path = cache_directory() / "machine" / f"{content_key(processor(), text, str(size))}.json"
    known = _read(path)
    if known is None:
        try:
            known = _measure(text, size)
        except (BuildError, OSError):
            return None
        _write(path, known)
    return known


def _measure(text: str, size: int) -> Speed:
    library = Library(build(text, ObjectCache(), find_toolchain()))
    peak = library.symbol("probe_peak", "double (*)(void)")
    read = library.symbol("probe_read", "double (*)(char *, long)")
    copy = library.symbol("probe_copy", "double (*)(char *, long)")
    room = np.ones(size + 4096, np.uint8)
    data = ffi.cast("char *", -(-room.ctypes.data // 4096) * 4096)
    return Speed(
        max(peak() for _ in range(WINDOWS)),
        max(read(data, size) for _ in range(PASSES)),
        max(copy(data, size) for _ in range(PASSES)),
        "measured",
    )


def _read(path: Path) -> Speed | None:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        speed = Speed(**facts)
    except (OSError, ValueError, TypeError):
        return None
    return speed if _plausible(asdict(speed)) else None


def _plausible(facts: Mapping[str, object]) -> bool:
    values = [value for name, value in facts.items() if name != "source"]
    return all(isinstance(value, float) and value > 0 for value in values)


def _write(path: Path, speed: Speed) -> None:
    """Put the file in place at once; where nothing can be written, nothing is kept."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(speed), file)
        os.replace(name, path)
