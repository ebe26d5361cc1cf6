"""Greedy text of a Llama, token by token beside PyTorch's.

    python -m grader.bench.greedy                  TinyLlama's shape: 1.1 G parameters in bfloat16
    python -m grader.bench.greedy --layers 4       fewer layers

Weights are random. Both sides compute in float32 from the same weights, the transformers library's
model after it has widened them; at each token its scores are compared with ours, and the token
that it would write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from grader.bench.language import (
    JSON,
    TOLERANCES,
    Ours,
    Torch,
    WrongError,
    expect_alike,
    random_weights,
    shaped,
    tell,
)
from week01_uops.dtypes import BY_NAME
from week09_10_autodiff.models.llama import Llama, LlamaConfig
from week09_10_autodiff.models.loading import adopt


def greedy(config: LlamaConfig, dtype: str, prompt: int, count: int) -> dict[str, Any]:
    """Write so many tokens on both sides.

    Raises:
        WrongError: a token, or scores beyond float32's tolerance, differ.
    """
    model = Llama(config)
    arrays = random_weights(model, BY_NAME[dtype])
    adopt(model, arrays)
    tokens = np.random.default_rng(1).integers(0, config.vocab_size, prompt).tolist()
    ours = Ours(model, tokens, count)
    wide = {name: array.astype(np.float32) for name, array in arrays.items()}
    theirs = Torch(config, wide, tokens, count)
    theirs.past = None
    scores, others = ours.scores, theirs.step(theirs.prompt)
    written: list[int] = []
    for position in range(prompt, prompt + count):
        expect_alike(scores, others.numpy(), TOLERANCES["float32"])
        token, other = int(np.argmax(scores)), int(others.argmax())
        if token != other:
            raise WrongError(f"token {len(written)}: expected {other} as PyTorch, got {token}")
        written.append(token)
        scores = ours.steps.next(token, position)
        others = theirs.step(theirs.torch.tensor([[token]]))
    return {
        "parameters": sum(array.size for array in arrays.values()),
        "dtype": dtype,
        "tokens": written,
        "different_tokens": len(set(written)),
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@shaped(layers=22, prompt=32, tokens=64)
@JSON
def main(config: LlamaConfig, dtype: str, prompt: int, tokens: int, json_file: Path | None) -> None:
    """Compare greedy texts of a model with random weights."""
    tell(greedy(config, dtype, prompt, tokens), json_file)


if __name__ == "__main__":
    main()
