"""The families of week 5 at odd sizes: primes, one, zero."""

from __future__ import annotations

from collections.abc import Iterator

from grader.bench.contractions import attention, conv, gemm, matmul
from grader.bench.rows import ELEMENTWISE, layernorm, reduction, rmsnorm, softmax
from grader.bench.workload import Workload


def odd() -> list[Workload]:
    """Small enough to be run by anybody: right results are all that counts."""
    return [*_products(), *_rows(), *_images(), *_heads()]


def _products() -> Iterator[Workload]:
    for m, n, k in ((37, 101, 67), (1, 1, 1), (1, 61, 67), (61, 1, 67), (0, 5, 3), (5, 3, 0)):
        yield gemm(f"gemm.{m}x{n}x{k}", m, n, k)
    yield gemm("gemm_nt.37x101x67", 37, 101, 67, b_turned=True)
    yield gemm("gemm_tn.37x101x67", 37, 101, 67, a_turned=True)
    yield matmul("matmul.gated.7x37x41", 7, 37, 41, gated=True, add=True)


def _rows() -> Iterator[Workload]:
    for rows, columns in ((37, 101), (1, 1)):
        for kind in ("sum", "max", "mean", "var"):
            for name, axis in (("all", None), ("axis0", 0), ("axis1", 1)):
                shape = (rows, columns)
                yield reduction(f"{kind}.{name}.{rows}x{columns}", kind, shape, axis)
    yield reduction("sum.axis0.0x5", "sum", (0, 5), 0)
    for name, family in ELEMENTWISE.items():
        for size in (0, 1, 1009):
            yield family(f"{name}.{size}", (size,))
    for family in (softmax, rmsnorm, layernorm):
        for rows, columns in ((37, 101), (3, 1), (0, 5)):
            yield family(f"{family.__name__}.{rows}x{columns}", (rows, columns))


def _images() -> Iterator[Workload]:
    yield conv("conv3x3.2x3x7x11", (2, 3, 7, 11), 5, 3, padding=1)
    yield conv("conv3x3.1x1x1x1", (1, 1, 1, 1), 1, 3, padding=1)
    yield conv("conv3x3.0x3x7x11", (0, 3, 7, 11), 5, 3, padding=1)
    yield conv("conv1x1.2x5x7x11", (2, 5, 7, 11), 5, 1)
    yield conv("depthwise3x3.2x5x7x11", (2, 5, 7, 11), 5, 3, padding=1, groups=5)
    yield conv("conv7x7s2.2x3x13x17", (2, 3, 13, 17), 5, 7, stride=2, padding=3)


def _heads() -> Iterator[Workload]:
    for queries in ((2, 3, 37, 5), (1, 1, 1, 1), (0, 2, 3, 5)):
        for causal in (False, True):
            kind = "causal" if causal else "full"
            yield attention(
                f"attention.{kind}.{'x'.join(map(str, queries))}", queries, causal=causal
            )
    yield attention("attention.gqa.1x6x2x37x5", (1, 6, 37, 5), groups=2, causal=True)
