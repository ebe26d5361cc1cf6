"""How long a transformer block takes from its program to loaded code, next to torch.compile.

Both sides are cold: each measurement is a fresh process whose caches, ours and Inductor's, are
empty folders. Ours ends with the loaded library, gcc included. torch.compile's ends with the first
result, less the time of a second one, its C++ compiler included. Imports are left out on both
sides. Run it with `python -m grader.bench.cold`.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import click

from grader.bench.compiling import BATCH, BLOCK, HEADS, HIDDEN, LENGTH, WIDTH
from grader.weeks import ROOT, WEEKS, read
from week01_uops.ops import CALL
from week01_uops.passes import Step, top_nodes
from week02_render.runtime import load

ROUNDS = 3
SHOWN = 6
"""Passes in the profile."""


def ours() -> dict[str, Any]:
    """Seconds from the program to loaded code, and what they went to."""
    program = read(BLOCK.read_bytes(), WEEKS[-1].last)
    reference: Any = WEEKS[-1].reference()
    steps: list[Step] = []
    start = time.perf_counter()
    artifact = reference.compile(program, "c", [steps.append])
    python = time.perf_counter() - start
    load(artifact, program)
    seconds = time.perf_counter() - start
    kernels = sum(node.op is CALL for node in top_nodes(steps[-1].after))
    passes = {step.of.name: step.seconds for step in steps}
    return {"seconds": seconds, "python": python, "kernels": kernels, "passes": passes}


def torch_compile() -> dict[str, Any]:
    """Seconds of the first result, less those of another."""
    torch = importlib.import_module("torch")
    importlib.import_module("torch._inductor.compile_fx")
    compiled = torch.compile(torch_block(torch), dynamic=False)
    shapes = [(BATCH, LENGTH, WIDTH), *[(LENGTH, WIDTH // HEADS // 2)] * 2, (WIDTH,)]
    shapes += [*[(WIDTH, WIDTH)] * 4, (WIDTH,), *[(HIDDEN, WIDTH)] * 2, (WIDTH, HIDDEN)]
    tensors = [torch.rand(shape) for shape in shapes]
    times = []
    with torch.inference_mode():
        for _ in range(2):
            start = time.perf_counter()
            compiled(*tensors)
            times.append(time.perf_counter() - start)
    return {"seconds": times[0] - times[1]}


def torch_block(torch: Any) -> Callable[..., Any]:  # noqa: ANN401
    """The block in PyTorch's functions, over the same arrays in the order of the slots."""
    f = torch.nn.functional

    def block(x: Any, cosine: Any, sine: Any, *weights: Any) -> Any:  # noqa: ANN401
        norm1, wq, wk, wv, wo, norm2, gate, up, down = weights

        def heads(weight: Any) -> Any:  # noqa: ANN401
            return f.linear(normal, weight).unflatten(-1, (HEADS, -1)).transpose(1, 2)

        def rotate(y: Any) -> Any:  # noqa: ANN401
            first, second = y.chunk(2, -1)
            turned = (first * cosine - second * sine, first * sine + second * cosine)
            return torch.cat(turned, -1)

        normal = f.rms_norm(x, (WIDTH,), norm1, 1e-6)
        query, key, value = rotate(heads(wq)), rotate(heads(wk)), heads(wv)
        mixed = f.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + f.linear(mixed.transpose(1, 2).flatten(2), wo)
        normal = f.rms_norm(x, (WIDTH,), norm2, 1e-6)
        return x + f.linear(f.silu(f.linear(normal, gate)) * f.linear(normal, up), down)

    return block


SIDES: dict[str, Callable[[], dict[str, Any]]] = {"ours": ours, "torch": torch_compile}


def cold(side: str) -> dict[str, Any]:
    """One measurement, in a process of its own with empty caches.

    Raises:
        RuntimeError: the process failed; its last words.
    """
    with tempfile.TemporaryDirectory(prefix="cold-") as folder:
        caches = {"UOPS_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
        done = subprocess.run(
            [sys.executable, "-m", "grader.bench.cold", "--side", side],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, **caches, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
        )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no word"])[-1])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(rounds: int) -> None:
    """Print the ratio, and where our time goes."""
    pairs = []
    for number in range(rounds):
        sides = list(SIDES)[:: -1 if number % 2 else 1]
        pairs.append({side: cold(side) for side in sides})
    ratios = [pair["ours"]["seconds"] / pair["torch"]["seconds"] for pair in pairs]
    middle = statistics.median(ratios)
    click.echo(f"{'block to loaded code':28}{'ours s':>8}{'compile s':>10}{'ratio':>8}")
    for pair, ratio in zip(pairs, ratios, strict=True):
        own, theirs = pair["ours"]["seconds"], pair["torch"]["seconds"]
        click.echo(f"{'':28}{own:8.2f}{theirs:10.2f}{ratio:8.3f}")
    click.echo(f"{'median':28}{'':18}{middle:8.3f}")
    profile(pairs[-1]["ours"])


def profile(own: dict[str, Any]) -> None:
    """Print what the compiler's own time went to."""
    python, kernels = own["python"], own["kernels"]
    each = 1000 * python / max(kernels, 1)
    compiled = own["seconds"] - python
    click.echo(f"Python {python:.2f} s, {kernels} kernels, {each:.1f} ms each; C {compiled:.2f} s")
    slowest = sorted(own["passes"].items(), key=lambda item: -item[1])[:SHOWN]
    words = ", ".join(f"{name} {1000 * seconds:.0f}" for name, seconds in slowest)
    click.echo(f"ms by pass: {words}")


@click.command()
@click.option("--rounds", default=ROUNDS, show_default=True)
@click.option("--side", type=click.Choice(list(SIDES)), hidden=True)
def main(rounds: int, side: str | None) -> None:
    """Print our time over torch.compile's, both from nothing to loaded code."""
    if side is not None:
        click.echo(json.dumps(SIDES[side]()))
        return
    try:
        importlib.import_module("torch")
        compare(rounds)
    except (ImportError, RuntimeError) as error:
        click.echo(f"skipped: {error}")


if __name__ == "__main__":
    main()
