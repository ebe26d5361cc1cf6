"""The suites: which workloads, at which sizes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from grader.bench import derivatives
from grader.bench.contractions import attention, conv, gemm, matmul
from grader.bench.rows import ELEMENTWISE, layernorm, reduction, rmsnorm, silu_mul, softmax
from grader.bench.workload import Workload

LLM = Path(__file__).parent / "llm84.json"
Suite = Callable[[], list[Workload]]


def week5() -> list[Workload]:
    """What weeks 5 and 6 are about: the kernels that vendor libraries tune by hand."""
    return [*_products(), *_rows(), *_convolutions(), *_attentions()]


def _products() -> Iterator[Workload]:
    for size in (256, 512, 1024, 2048):
        yield gemm(f"gemm.{size}", size, size, size)
    for m, n, k in ((1000, 777, 333), (128, 1024, 4096)):
        yield gemm(f"gemm.{m}x{n}x{k}", m, n, k)
    for m in (1024, 128, 16):
        yield gemm(f"gemm_nt.{m}x1024x1024", m, 1024, 1024, b_turned=True)
    yield gemm("gemm_tn.1024x1024x1024", 1024, 1024, 1024, a_turned=True)
    yield gemm("gemv.row.4096", 1, 4096, 4096)
    yield gemm("gemv.column.4096", 4096, 1, 4096)


def _rows() -> Iterator[Workload]:
    square = (4096, 4096)
    for name, axis in (("all", None), ("axis0", 0), ("axis1", 1)):
        yield reduction(f"sum.{name}.4096x4096", "sum", square, axis)
    for kind in ("max", "mean", "var"):
        yield reduction(f"{kind}.axis1.4096x4096", kind, square, 1)
    for size, shape in (("16M", (1 << 24,)), ("64K", (1 << 16,))):
        for name, family in ELEMENTWISE.items():
            yield family(f"{name}.{size}", shape)
    yield softmax("softmax.1024x4096", (1024, 4096))
    yield rmsnorm("rmsnorm.2048x2048", (2048, 2048))
    yield layernorm("layernorm.2048x2048", (2048, 2048))


def _convolutions() -> Iterator[Workload]:
    images = (16, 64, 56, 56)
    yield conv("conv3x3.16x64x56x56", images, 64, 3, padding=1)
    yield conv("conv1x1.16x64x56x56", images, 64, 1)
    yield conv("depthwise3x3.16x64x56x56", images, 64, 3, padding=1, groups=64)
    yield conv("conv7x7s2.8x3x224x224", (8, 3, 224, 224), 64, 7, stride=2, padding=3)


def _attentions() -> Iterator[Workload]:
    for queries in ((1, 8, 1024, 64), (4, 12, 512, 64)):
        for kind in ("causal", "full"):
            name = f"attention.{kind}.{'x'.join(map(str, queries))}"
            yield attention(name, queries, causal=kind == "causal")
    yield attention("attention.gqa.1x32x4x512x64", (1, 32, 512, 64), groups=4, causal=True)


def llm84() -> list[Workload]:
    """The layers of two language models at three lengths of the text."""
    table = json.loads(LLM.read_text(encoding="utf-8"))
    found = []
    for kind, projections in table["kinds"].items():
        for model, sizes in table["models"].items():
            for length in table["lengths"]:
                for projection in projections or [""]:
                    words = [kind, model, *filter(None, [projection]), f"s{length}"]
                    k, n = _extents(table, sizes, projection or "down_proj")
                    found.append(_layer(".".join(words), kind, length, sizes, k, n))
    return found


def _extents(table: Mapping[str, Any], sizes: Mapping[str, int], projection: str) -> list[int]:
    """How long the rows are that a projection takes and gives."""
    extents = table["projections"][projection]
    return [math.prod(sizes[word] for word in extent.split("*")) for extent in extents]


def _layer(name: str, kind: str, length: int, sizes: Mapping[str, int], k: int, n: int) -> Workload:
    heads, groups, width = (sizes[word] for word in ("heads", "groups", "width"))
    layers: dict[str, Callable[[], Workload]] = {
        "matmul": lambda: matmul(name, length, k, n),
        "matmul_add": lambda: matmul(name, length, k, n, add=True),
        "silu_mul_matmul": lambda: matmul(name, length, k, n, gated=True),
        "silu_mul": lambda: silu_mul(name, (1, length, sizes["inner"])),
        "rmsnorm": lambda: rmsnorm(name, (1, length, sizes["hidden"])),
        "softmax": lambda: softmax(name, (1, heads, length, length)),
        "sdpa": lambda: attention(name, (1, heads, length, width), groups=groups, causal=True),
        "naive_attn": lambda: attention(name, (1, heads, length, width), fused=False),
    }
    return layers[kind]()


def scaling() -> list[Workload]:
    """How cost grows with size."""
    sizes = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
    products = [gemm(f"gemm.{size}", size, size, size) for size in sizes]
    widths = (64, 256, 1024, 4096, 16384, 65536)
    # Arrays of 4 MiB: they stay in the last cache, whatever else runs, and rows alone grow.
    rows = [softmax(f"softmax.{width}", ((1 << 20) // width, width)) for width in widths]
    lengths = (64, 128, 256, 512, 1024, 2048)
    heads = [attention(f"attention.{n}", (1, 8, n, 64), causal=True) for n in lengths]
    return [*products, *rows, *heads]


def week9() -> list[Workload]:
    """What weeks 9 and 10 are about: derivatives, and a step of training."""
    attention = derivatives.attention("grad.attention.1x8x512x64", (1, 8, 512, 64))
    small = derivatives.Sizes(batch=2, length=128, width=256, heads=4, words=512)
    return [
        derivatives.cross_entropy("grad.cross_entropy.1024x4096", 1024, 4096),
        derivatives.layernorm("grad.layernorm.2048x2048", 2048, 2048),
        attention,
        derivatives.perceptron("grad.mlp.1024x256x1024", 1024, 256, 1024),
        derivatives.embedding("grad.embedding.2048x8192x256", 2048, 8192, 256),
        derivatives.stream("grad.gpt.2x128x256", small, layers=2),
        derivatives.training("train.gpt.2x128x256", small),
    ]


SUITES: dict[str, Suite] = {
    "week5": week5,
    "week9": week9,
    "llm84": llm84,
    "scaling": scaling,
}
