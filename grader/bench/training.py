"""Training steps next to PyTorch's: the same losses, time, memory, and time until the first step.

    python -m grader.bench.training [--model gpt] [--threads 1] [--json FILE]

Both sides begin with the same weights and get the same batches, bytes of the course's own pages.
A step is forward, backward and AdamW. PyTorch's AdamW is the fused one.

The losses of all steps are compared first. Steps are then timed by turns, eager, torch.compile and
ours, with a pause before each; a ratio is the median over rounds of the ratio within a round.
Memory is the largest resident set within three steps, in a process of its own that compiles
nothing (ours reads what was compiled before), less what it is before there is a model. Until the
first step: a process with empty caches, and one with what that left behind; the time of an
ordinary step is taken off, imports are left out.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from grader.bench import torch_models
from grader.bench.kernel_times import kernel_times
from grader.weeks import ROOT
from week09_10_autodiff import Tensor, jit, optim
from week09_10_autodiff.compiled import compiled
from week09_10_autodiff.data import windows
from week09_10_autodiff.models.gpt2 import GPT2, GPT2Config
from week09_10_autodiff.models.llama import Llama, LlamaConfig
from week09_10_autodiff.nn import functional as F  # noqa: N812 - as everybody calls it

Tokens = NDArray[np.int64]
Step = Callable[[Tokens, Tokens], float]
"""step(tokens, targets): one step of training, and the loss before it."""

RATES: dict[str, Any] = {"lr": 3e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
PAUSE = 0.06
"""Seconds in which the threads of the other side fall asleep."""
CLOSE = 1e-3
"""By how much losses may differ."""
MEMORY_STEPS = 3


class Case(NamedTuple):
    """A model, its batches, and how PyTorch computes its loss."""

    make: Callable[[], GPT2 | Llama]
    loss: Callable[[Any], torch_models.Loss]
    batch: int
    length: int


GPT_CONFIG = GPT2Config(vocab_size=512, n_positions=128, n_embd=256, n_layer=4, n_head=8)
LLAMA_CONFIG = LlamaConfig(
    vocab_size=2048,
    hidden_size=512,
    intermediate_size=1376,
    num_hidden_layers=8,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=64,
    max_position_embeddings=256,
)
CASES = {
    "gpt": Case(
        lambda: GPT2.from_config(GPT_CONFIG, seed=1),
        lambda torch: torch_models.gpt2(torch, GPT_CONFIG),
        8,
        128,
    ),
    "llama": Case(
        lambda: Llama.from_config(LLAMA_CONFIG, seed=1),
        lambda torch: torch_models.llama(torch, LLAMA_CONFIG),
        4,
        256,
    ),
}


def batch(case: Case, number: int) -> tuple[Tokens, Tokens]:
    """Windows of the pages' bytes at random places, and the bytes that follow."""
    pages = b"".join(path.read_bytes() for path in sorted((ROOT / "syllabus").glob("*.md")))
    text = np.frombuffer(pages, np.uint8)
    starts = np.random.default_rng(number).integers(0, len(text) - case.length - 1, case.batch)
    return windows(text, starts, case.length)


def our_step(case: Case) -> tuple[Step, Any]:
    """A step of this compiler, and the captured function."""
    model = case.make()
    optimizer = optim.AdamW(model.parameters(), **RATES)

    @jit
    def step(tokens: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        logits = model(tokens)
        loss: Tensor = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.detach()

    return lambda tokens, targets: float(step(Tensor(tokens), Tensor(targets)).item()), step


def torch_step(case: Case, *, compiled: bool) -> Step:
    """A step of PyTorch, from the weights of our model."""
    torch = importlib.import_module("torch")
    arrays = {name: value.numpy() for name, value in case.make().state_dict().items()}
    tied = "transformer.wte.weight" in arrays
    tensors = {
        name: torch.tensor(array, requires_grad=True)
        for name, array in arrays.items()
        if not (tied and name == "lm_head.weight")
    }
    loss_of = case.loss(torch)
    if compiled:
        loss_of = torch.compile(loss_of, dynamic=False)
    optimizer = torch.optim.AdamW(tensors.values(), fused=True, **RATES)

    def step(tokens: Tokens, targets: Tokens) -> float:
        optimizer.zero_grad()
        loss = loss_of(tensors, torch.from_numpy(tokens), torch.from_numpy(targets))
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


SIDES: Mapping[str, Callable[[Case], Step]] = {
    "ours": lambda case: our_step(case)[0],
    "eager": functools.partial(torch_step, compiled=False),
    "compile": functools.partial(torch_step, compiled=True),
}


def losses(case: Case, steps: int) -> dict[str, list[float]]:
    """The losses of this compiler and of PyTorch, step by step."""
    sides = {name: SIDES[name](case) for name in ("ours", "eager")}
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(steps):
        for name, step in sides.items():
            found[name].append(step(*batch(case, number)))
    return found


def times(case: Case, rounds: int, sides: Sequence[str]) -> dict[str, list[float]]:
    """Seconds a step, round by round."""
    steps = {name: SIDES[name](case) for name in sides}
    for step in steps.values():
        for number in range(2):
            step(*batch(case, number))
    found: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds):
        names = list(steps)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            given = batch(case, number)
            time.sleep(PAUSE)
            steps[name](*given)
            start = time.perf_counter()
            steps[name](*given)
            found[name].append(time.perf_counter() - start)
    return found


def memory(case: Case, side: str) -> dict[str, float]:
    """Bytes of the largest resident set within steps beyond what there is without a model."""
    importlib.import_module("torch")
    before = _resident("VmRSS")
    step = SIDES[side](case)
    for number in range(MEMORY_STEPS):
        step(*batch(case, number))
    return {"bytes": _resident("VmHWM") - before}


def _resident(key: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def first(case: Case, side: str) -> dict[str, float]:
    """Seconds until the first step is done, less those of a later one."""
    if side == "compile":
        importlib.import_module("torch._inductor.compile_fx")
    step = SIDES[side](case)
    found = []
    for number in range(3):
        given = batch(case, number)
        start = time.perf_counter()
        step(*given)
        found.append(time.perf_counter() - start)
    return {"seconds": found[0] - min(found[1:])}


def kernels(case: Case) -> list[dict[str, Any]]:
    """Our kernels by the time that they take: {"name", "calls", "seconds"}."""
    step, captured = our_step(case)
    step(*batch(case, 0))
    program = captured.programs()[-1]
    return kernel_times(compiled(program).source, program)


def apart(arguments: Sequence[str], environment: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    """What a process of its own says.

    Raises:
        RuntimeError: it failed; its last words.
    """
    done = subprocess.run(
        [sys.executable, "-m", "grader.bench.training", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no word"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def threads_of(count: int) -> dict[str, str]:
    """The environment of a process that computes with so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict.fromkeys(names, str(count))


def measure(name: str, threads: int, rounds: int, steps: int) -> dict[str, Any]:
    """All of it, as JSON."""
    environment = threads_of(threads)

    def asked(what: str, *more: str, **also: str) -> Any:  # noqa: ANN401 - JSON
        click.echo(f"{name}, {threads} thread(s): {' '.join((what, *more))}", err=True)
        return apart(["--model", name, "--only", what, *more], {**environment, **also})

    found: dict[str, Any] = {"case": name, "threads": threads}
    if steps:
        ours, theirs = (np.array(v) for v in asked("losses", "--steps", str(steps)).values())
        found["losses"] = {
            "steps": steps,
            "largest difference": float(np.abs(ours - theirs).max()),
            "first": float(ours[0]),
            "last": float(ours[-1]),
        }
    seconds = asked("times", "--rounds", str(rounds))
    found["ours_s"] = statistics.median(seconds["ours"])
    found["ratio"] = {
        side: statistics.median(a / b for a, b in zip(seconds["ours"], seconds[side], strict=True))
        for side in seconds
        if side != "ours"
    }
    found["memory"] = {s: asked("memory", "--side", s)["bytes"] for s in ("ours", "eager")}
    found["first"] = {}
    for side in ("ours", "compile"):
        with tempfile.TemporaryDirectory(prefix="first-") as folder:
            caches = {"UOPS_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
            cold, warm = (asked("first", "--side", side, **caches)["seconds"] for _ in range(2))
            found["first"][side] = {"cold": cold, "warm": warm}
    found["kernels"] = asked("kernels")
    return found


def say(what: str, text: str) -> None:
    """One line of what was measured."""
    click.echo(f"  {what:34}{text}")


def show(found: Mapping[str, Any]) -> None:
    """Print what was measured, as ratios."""
    click.echo(f"{found['case']}, {found['threads']} thread(s)")
    if told := found.get("losses"):
        text = f"differ by at most {told['largest difference']:.1e} in {told['steps']} steps"
        verdict = "as they should" if told["largest difference"] <= CLOSE else f"more than {CLOSE}"
        say("losses", f"{text}: {verdict} ({told['first']:.3f} to {told['last']:.3f})")
    for side, ratio in found["ratio"].items():
        say(f"time of a step over {side}'s", f"{ratio:.2f}")
    own, theirs = found["memory"]["ours"], found["memory"]["eager"]
    say("memory over eager's", f"{own / theirs:.2f} ({own / 2**20:.0f} MiB)")
    for kind in ("cold", "warm"):
        ours, compile_ = (found["first"][side][kind] for side in ("ours", "compile"))
        say(f"until the first step, {kind}", f"{ours / compile_:.3f} of torch.compile's")
    total = sum(k["seconds"] for k in found["kernels"])
    count = sum(k["calls"] for k in found["kernels"])
    say("kernels", f"{count} calls of {len(found['kernels'])}")
    for item in found["kernels"][:8]:
        part = item["seconds"] / total
        say("", f"{part:5.1%}  {item['calls']:3} × {item['name']}")


@click.command()
@click.option("--model", type=click.Choice(list(CASES)), multiple=True, default=("gpt",))
@click.option("--threads", type=click.IntRange(1), multiple=True, default=(1,), show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=9, show_default=True)
@click.option("--steps", type=click.IntRange(0), default=200, show_default=True, help="Losses.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--side", type=click.Choice(list(SIDES)), default="ours", hidden=True)
@click.option("--only", type=click.Choice(["losses", "times", "memory", "first", "kernels"]))
def main(
    model: tuple[str, ...],
    threads: tuple[int, ...],
    rounds: int,
    steps: int,
    json_file: Path | None,
    side: str,
    only: str | None,
) -> None:
    """Compare training steps with PyTorch's."""
    if only is not None:
        parts: Mapping[str, Callable[[Case], Any]] = {
            "losses": lambda case: losses(case, steps),
            "times": lambda case: times(case, rounds, list(SIDES)),
            "memory": lambda case: memory(case, side),
            "first": lambda case: first(case, side),
            "kernels": kernels,
        }
        click.echo(json.dumps(parts[only](CASES[model[0]])))
        return
    rows = []
    for name in model:
        for count in threads:
            rows.append(measure(name, count, rounds, steps if count == threads[0] else 0))
            show(rows[-1])
    if json_file is not None:
        json_file.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
