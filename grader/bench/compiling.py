"""How fast a transformer block becomes C text, next to tinygrad: a table of ratios.

Both sides start from nothing, we from the text of the program and tinygrad from its Tensors, and
end with source; gcc and clang are left out (tinygrad's compiler is replaced by one that returns
nothing). Every round starts without the other rounds' results: tinygrad's caches of
schedules and programs are emptied, and we keep none. The two sides take turns; a ratio is our time
over tinygrad's, the median over the rounds: below 1, this compiler is faster. Run it with
`python -m grader.bench.compiling`.
"""

from __future__ import annotations

import gc
import importlib
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from week01_uops.interchange import read
from week01_uops.ops import CALL
from week01_uops.passes import top_nodes
from week02_render.render import render_c
from week04_fusion.compiler import COMPILER
from week04_fusion.ops import OPS

BLOCK = Path(__file__).parent / "programs" / "transformer_block.uop"
BATCH, LENGTH, WIDTH, HEADS, HIDDEN = 2, 64, 256, 8, 688
ROUNDS = 7
Contender = Callable[[], int]
"""Builds and compiles the block; the number of kernels."""


def ours() -> int:
    """The reference."""
    lowered = COMPILER.run(read(BLOCK.read_bytes(), ops=OPS))
    render_c(lowered)
    return sum(node.op is CALL for node in top_nodes(lowered))


def tinygrad(*, optimize: bool) -> Contender | str:
    """How tinygrad does it, or why it cannot be compared with.

    Without `optimize` it leaves out its vectors and unrolled loops (NOOPT=1), which week 4 has not
    either, so that both sides do the same work.
    """
    os.environ.setdefault("DEV", "CPU")
    try:
        tiny = importlib.import_module("tinygrad")
        codegen, helpers, schedule = (
            importlib.import_module(f"tinygrad.{name}")
            for name in ("codegen", "helpers", "schedule")
        )
        renderer = tiny.Device["CPU"].renderer
    except ImportError as error:
        return f"tinygrad is not installed ({error})"
    except Exception as error:  # it raises what it likes where it finds no clang
        return f"tinygrad finds no way to run on the CPU here ({error}); it wants clang"
    renderer.compiler.compile_cached = lambda source: b""

    def compile_block() -> int:
        codegen.to_program_cache.clear()
        schedule.schedule_cache.clear()
        with helpers.Context(NOOPT=int(not optimize)):
            calls = tiny_block().schedule_linear().src
            for call in calls:
                codegen.to_program(call.src[0], renderer)
        return len(calls)

    return compile_block


def tiny_block() -> Any:  # noqa: ANN401 - a tinygrad Tensor
    """The block in tinygrad's Tensors, over the same arrays."""
    Tensor = importlib.import_module("tinygrad").Tensor  # noqa: N806 - a class

    x = Tensor.empty(BATCH, LENGTH, WIDTH)
    cosine, sine = (Tensor.empty(LENGTH, WIDTH // HEADS // 2) for _ in range(2))
    norm1, norm2 = (Tensor.empty(WIDTH) for _ in range(2))
    wq, wk, wv, wo = (Tensor.empty(WIDTH, WIDTH) for _ in range(4))
    gate, up = (Tensor.empty(HIDDEN, WIDTH) for _ in range(2))
    down = Tensor.empty(WIDTH, HIDDEN)

    def norm(y: Any, weight: Any) -> Any:  # noqa: ANN401
        return y * ((y * y).mean(-1, keepdim=True) + 1e-6).rsqrt() * weight

    def heads(weight: Any) -> Any:  # noqa: ANN401
        y = normal @ weight.T
        return y.reshape(*y.shape[:-1], HEADS, WIDTH // HEADS).transpose(1, 2)

    def rotate(y: Any) -> Any:  # noqa: ANN401
        first, second = y.chunk(2, dim=-1)
        return (first * cosine - second * sine).cat(first * sine + second * cosine, dim=-1)

    normal = norm(x, norm1)
    query, key = rotate(heads(wq)), rotate(heads(wk))
    mixed = query.scaled_dot_product_attention(key, heads(wv), is_causal=True)
    x = x + mixed.transpose(1, 2).reshape(*x.shape) @ wo.T
    normal = norm(x, norm2)
    gated = (normal @ gate.T).silu() * (normal @ up.T)
    return x + gated @ down.T


def seconds(run: Contender) -> tuple[float, int]:
    """The time of one run, with the garbage of earlier ones collected first."""
    gc.collect()
    start = time.perf_counter()
    kernels = run()
    return time.perf_counter() - start, kernels


def ratios(theirs: Contender, rounds: int) -> tuple[list[float], int, int]:
    """Our time over theirs in each round; our kernels and theirs."""
    found: list[float] = []
    kernels = their_kernels = 0
    for number in range(rounds + 1):
        (a, kernels), (b, their_kernels) = seconds(ours), seconds(theirs)
        if number:  # the first round pays for imports and rule tables on both sides
            found.append(a / b)
        click.echo(f"\rround {number}/{rounds}", nl=False, err=True)
    click.echo(err=True)
    return found, kernels, their_kernels


@click.command()
@click.option("--rounds", default=ROUNDS, show_default=True)
def main(rounds: int) -> None:
    """Print our time over tinygrad's, from nothing to C text."""
    click.echo(f"{'ours/tinygrad':36}{'median':>8}{'lowest':>8}{'highest':>8}{'kernels':>10}")
    for name, optimize in (("block to source, NOOPT=1", False), ("block to source", True)):
        theirs = tinygrad(optimize=optimize)
        if isinstance(theirs, str):
            click.echo(f"{name}: skipped: {theirs}")
            continue
        found, kernels, their_kernels = ratios(theirs, rounds)
        click.echo(
            f"{name:36}{statistics.median(found):8.3f}{min(found):8.3f}{max(found):8.3f}"
            f"{kernels:>6}/{their_kernels}"
        )


if __name__ == "__main__":
    main()
