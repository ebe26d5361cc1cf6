"""Language models against PyTorch: tokens a second of a Llama, and vectors of sentences.

    python -m grader.bench.language decode                       a TinyLlama's shape, a few layers
    python -m grader.bench.language decode --layers 22           all of it: 1.1 G parameters
    python -m grader.bench.language embed --model DIR            sentences of the standard library

Weights are random, and the same memory on both sides. A step reads every weight once (of the table
of embeddings a row, unless it is the last map as well), so what a step reads, over its time, over
the bandwidth of a core (`Machine.bandwidth`) is how much of the memory's speed it gets. The sides
take turns; a ratio is our time over PyTorch's (the transformers library, eager), the median over
the rounds. PyTorch computes in the dtype of the weights, we in float32.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import json
import os
import pydoc
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from grader.bench.contenders import threads
from week01_uops.dtypes import BY_NAME, DType
from week02_render.buffers import Array, aligned_empty
from week05_06_memory.machine import detect
from week09_10_autodiff.embedding import BATCH, Embedder
from week09_10_autodiff.generation import Steps, rounded
from week09_10_autodiff.models.llama import Llama, LlamaConfig
from week09_10_autodiff.models.loading import adopt
from week09_10_autodiff.sampling import Scores

PAUSE = 0.06
"""Seconds between the sides, in which the threads of one fall asleep."""

BLOCK = 1 << 20
"""Random numbers that weights repeat."""

Side = Callable[[], float]
"""Seconds of one measurement."""


class WrongError(Exception):
    """The sides do not agree."""


def alternate(sides: Mapping[str, Side], rounds: int) -> list[dict[str, float]]:
    """The seconds of each side in each round, in an order that turns round."""
    found = []
    for number in range(rounds):
        order = list(sides)[:: -1 if number % 2 else 1]
        seconds = {}
        for name in order:
            time.sleep(PAUSE)
            seconds[name] = sides[name]()
        found.append(seconds)
    return found


def summary(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each side, and the median of the ratios."""
    sides = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    if "torch" in sides:
        sides["ratio"] = statistics.median(r["ours"] / r["torch"] for r in rounds)
    return sides


def random_weights(model: Llama, dtype: DType) -> dict[str, Array]:
    """Arrays for the parameters, by name, as alike as they can be without taking long."""
    block = np.random.default_rng(0).standard_normal(BLOCK, np.float32)
    found = {}
    for number, (name, parameter) in enumerate(model.named_parameters()):
        if parameter.ndim < 2:
            found[name] = np.ones(parameter.shape, np.float32)
            continue
        array = aligned_empty(parameter.shape, dtype)
        source = (np.roll(block, 7919 * number) / parameter.shape[1] ** 0.5).astype(dtype.numpy)
        rows = array.reshape(-1)
        for start in range(0, rows.size, BLOCK):
            rows[start : start + BLOCK] = source[: rows.size - start]
        found[name] = array
    return found


def read_in_a_step(arrays: Mapping[str, Array], config: LlamaConfig) -> int:
    """Bytes of the weights that a token needs."""
    table = "model.embed_tokens.weight"
    skipped = () if config.tie_word_embeddings else (table,)
    return sum(array.nbytes for name, array in arrays.items() if name not in skipped)


class Ours:
    """Our model with a cache."""

    def __init__(self, model: Llama, prompt: Sequence[int], count: int) -> None:
        capacity = rounded(len(prompt) + count, 1, model.context)
        self.prompt, self.count = prompt, count
        self.steps = Steps(model, capacity)
        self.scores: Scores = self.steps.read(prompt)
        self.second: Scores = self.steps.next(prompt[-1], len(prompt))

    def reading(self) -> float:
        """Seconds of reading the prompt."""
        start = time.perf_counter()
        self.steps.read(self.prompt)
        return time.perf_counter() - start

    def writing(self) -> float:
        """Seconds a token of those behind it."""
        start = time.perf_counter()
        token = self.prompt[-1]
        for position in range(len(self.prompt), len(self.prompt) + self.count):
            token = int(np.argmax(self.steps.next(token, position)))
        return (time.perf_counter() - start) / self.count


class Torch:
    """The transformers library's model over the same weights."""

    def __init__(
        self, config: LlamaConfig, arrays: Mapping[str, Array], prompt: Sequence[int], count: int
    ) -> None:
        self.torch = torch = importlib.import_module("torch")
        transformers = importlib.import_module("transformers")
        torch.set_num_threads(threads())
        self.prompt, self.count = torch.tensor([list(prompt)]), count
        settings = transformers.LlamaConfig(
            **{
                key: getattr(config, key)
                for key in ("vocab_size", "hidden_size", "intermediate_size", "rms_norm_eps")
            },
            num_hidden_layers=config.num_hidden_layers,
            num_attention_heads=config.num_attention_heads,
            num_key_value_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            max_position_embeddings=config.max_position_embeddings,
            tie_word_embeddings=config.tie_word_embeddings,
        )
        with torch.device("meta"):
            self.model = transformers.LlamaForCausalLM(settings)
        state = {name: self._shared(array) for name, array in arrays.items()}
        matrix = next(tensor.dtype for tensor in state.values() if tensor.ndim > 1)
        state = {name: t if t.ndim > 1 else t.to(matrix) for name, t in state.items()}
        self.model.load_state_dict(state, assign=True, strict=False)
        rotary = type(self.model.model.rotary_emb)
        self.model.model.rotary_emb = rotary(settings)  # its tables are no parameters
        self.model.tie_weights()
        self.model.eval()
        names = inspect.signature(self.model.forward).parameters
        self._cache = "cache" if "cache" in names else "past_key_values"  # the older name
        self.past: Any = None
        self.reading()
        self.scores = self.step(self.prompt[:, -1:])

    def _shared(self, array: Array) -> Any:  # noqa: ANN401 - a torch.Tensor
        if array.dtype == BY_NAME["bfloat16"].numpy:
            return self.torch.from_numpy(array.view(np.int16)).view(self.torch.bfloat16)
        return self.torch.from_numpy(array)

    def step(self, tokens: Any) -> Any:  # noqa: ANN401 - torch.Tensors
        """The scores behind tokens that follow what was read."""
        given = {self._cache: self.past, "use_cache": True, "logits_to_keep": 1}
        with self.torch.inference_mode():
            made = self.model(tokens, **given)
        self.past = made[self._cache]
        return made.logits[0, -1]

    def reading(self) -> float:
        """Seconds of reading the prompt."""
        start = time.perf_counter()
        self.past = None
        self.step(self.prompt)
        return time.perf_counter() - start

    def writing(self) -> float:
        """Seconds a token of those behind it."""
        self.reading()
        token = self.prompt[:, -1:]
        start = time.perf_counter()
        for _ in range(self.count):
            token = self.step(token).argmax().reshape(1, 1)
        return (time.perf_counter() - start) / self.count


def expect_alike(ours: Scores, theirs: Array, tolerance: float) -> None:
    """WrongError unless two rows of scores agree."""
    gap = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    if not gap <= tolerance:
        raise WrongError(f"expected scores within {tolerance:.1e} of PyTorch's, got {gap:.1e}")


TOLERANCES = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""What PyTorch's rounding of everything between the layers to the weights' dtype may come to."""


def decode(
    config: LlamaConfig, dtype: str, prompt: int, count: int, rounds: int, against: bool
) -> dict[str, Any]:
    """Measure reading a prompt and writing tokens behind it."""
    model = Llama(config)
    arrays = random_weights(model, BY_NAME[dtype])
    adopt(model, arrays)
    tokens = np.random.default_rng(1).integers(0, config.vocab_size, prompt).tolist()
    ours = Ours(model, tokens, count)
    sides: dict[str, Any] = {"ours": ours}
    if against:
        theirs = Torch(config, arrays, tokens, count)
        expect_alike(ours.second, theirs.scores.float().numpy(), TOLERANCES[dtype])
        sides["torch"] = theirs
    writing = summary(alternate({n: s.writing for n, s in sides.items()}, rounds))
    reading = summary(alternate({n: s.reading for n, s in sides.items()}, rounds))
    step = read_in_a_step(arrays, config)
    bandwidth = detect().bandwidth
    return {
        "parameters": sum(array.size for array in arrays.values()),
        "bytes_a_step": step,
        "bandwidth_of_a_core": bandwidth,
        "fraction_of_bandwidth": step / writing["ours"] / bandwidth,
        "seconds_a_token": writing,
        "seconds_of_the_prompt": reading,
    }


def sentences(count: int) -> list[str]:
    """First sentences of what the standard library says of itself."""
    found: dict[str, None] = {}
    for name in sorted(sys.stdlib_module_names):
        path = Path(os.__file__).parent / f"{name}.py"
        if path.is_file():
            with open(path, encoding="utf-8", errors="replace") as file:
                text = pydoc.source_synopsis(file)
            if text and len(text.split()) > 2:
                found[text] = None
    several = list(found)
    while len(several) < count:
        several += [f"{a} {b}" for a, b in itertools.pairwise(several)]
    return several[:count]


def embed(folder: Path, count: int, rounds: int, against: bool) -> dict[str, Any]:
    """Measure texts to vectors, tokens included."""
    texts = sentences(count)
    embedder = Embedder.from_folder(folder)
    vectors = embedder.embed(texts)

    def timed(function: Callable[[], object]) -> Side:
        def side() -> float:
            start = time.perf_counter()
            function()
            return time.perf_counter() - start

        return side

    sides = {"ours": timed(lambda: embedder.embed(texts))}
    found: dict[str, Any] = {"texts": count}
    if against:
        reference = torch_embedder(folder)
        gap = float((vectors * reference(texts)).sum(1).min())
        if gap < 0.9999:
            raise WrongError(f"expected cosines of 0.9999 or more with PyTorch's, got {gap}")
        found["least_cosine"] = gap
        sides["torch"] = timed(lambda: reference(texts))
    return {**found, "seconds": summary(alternate(sides, rounds))}


def torch_embedder(folder: Path) -> Callable[[list[str]], Array]:
    """What the sentence-transformers library does: batches of texts of about one length."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    torch.set_num_threads(threads())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()

    def run(texts: list[str]) -> Array:
        order = sorted(range(len(texts)), key=lambda k: len(texts[k]))
        result = np.empty((len(texts), model.config.hidden_size), np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), BATCH):
                chosen = order[start : start + BATCH]
                batch = tokenizer(
                    [texts[k] for k in chosen], padding=True, truncation=True, return_tensors="pt"
                )
                stream = model(**batch).last_hidden_state
                mask = batch["attention_mask"].unsqueeze(-1).float()
                mean = (stream * mask).sum(1) / mask.sum(1)
                result[chosen] = torch.nn.functional.normalize(mean, dim=-1).numpy()
        return result

    return run


def tell(found: Mapping[str, Any], json_file: Path | None) -> None:
    """Print what was found, and write it down."""
    told = {"threads": threads(), **found}
    for name, value in told.items():
        click.echo(f"{name}: {json.dumps(value)}")
    if json_file is not None:
        json_file.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


@click.group()
def main() -> None:
    """Measure language models next to PyTorch; $OMP_NUM_THREADS is the number of threads."""


ROUNDS = click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True)
ALONE = click.option("--alone", is_flag=True, help="Leave PyTorch out.")
JSON = click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))


def shaped(**defaults: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options for a Llama's shape, its dtype, and tokens; the command gets a LlamaConfig."""
    sizes = {"width": 2048, "inner": 5632, "heads": 32, "groups": 4, "vocabulary": 32000}

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**given: Any) -> None:  # noqa: ANN401 - as click passes them
            layers, *shape = (given.pop(name) for name in ("layers", *sizes))
            width, inner, heads, groups, vocabulary = shape
            config = LlamaConfig(
                vocab_size=vocabulary,
                hidden_size=width,
                intermediate_size=inner,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                num_key_value_heads=groups,
                head_dim=width // heads,
            )
            command(config, **given)

        kind = click.Choice(list(TOLERANCES))
        call = click.option("--dtype", type=kind, default="bfloat16", show_default=True)(call)
        for name, default in reversed((sizes | defaults).items()):
            number = click.IntRange(min=1)
            call = click.option(f"--{name}", type=number, default=default, show_default=True)(call)
        return call

    return add


@main.command("decode")
@shaped(layers=4, prompt=64, tokens=16)
@ROUNDS
@ALONE
@JSON
def decode_command(
    config: LlamaConfig,
    dtype: str,
    prompt: int,
    tokens: int,
    rounds: int,
    alone: bool,
    json_file: Path | None,
) -> None:
    """Read a prompt, and write tokens one after the other."""
    tell(decode(config, dtype, prompt, tokens, rounds, not alone), json_file)


@main.command("embed")
@click.option("--model", "folder", required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--texts", type=click.IntRange(min=1), default=100, show_default=True)
@ROUNDS
@ALONE
@JSON
def embed_command(
    folder: Path, texts: int, rounds: int, alone: bool, json_file: Path | None
) -> None:
    """Make a vector of each of some sentences."""
    tell(embed(folder, texts, rounds, not alone), json_file)


if __name__ == "__main__":
    main()
