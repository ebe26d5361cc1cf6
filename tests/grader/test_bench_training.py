"""Training next to PyTorch: the same losses; what is measured, and how it is told."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from grader.bench import torch_models, training
from grader.bench.kernel_times import kernel_times, with_clock
from week01_uops.dtypes import float32
from week01_uops.ops import EXP2, param, program
from week03_loops.library import matmul
from week09_10_autodiff.compiler import REFERENCE
from week09_10_autodiff.models.gpt2 import GPT2, GPT2Config
from week09_10_autodiff.models.llama import Llama, LlamaConfig

pytest.importorskip("torch")

GPT = GPT2Config(vocab_size=256, n_positions=16, n_embd=32, n_layer=1, n_head=2)
LLAMA = LlamaConfig(
    vocab_size=256,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=1,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=16,
)
SMALL = {
    "gpt": training.Case(
        lambda: GPT2.from_config(GPT), lambda torch: torch_models.gpt2(torch, GPT), 2, 16
    ),
    "llama": training.Case(
        lambda: Llama.from_config(LLAMA), lambda torch: torch_models.llama(torch, LLAMA), 2, 16
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_losses_are_those_of_pytorch(name):
    found = training.losses(SMALL[name], 5)
    assert len(found["ours"]) == 5
    np.testing.assert_allclose(found["ours"], found["eager"], atol=1e-4)
    assert found["ours"][-1] != found["ours"][0]


def test_batches_follow_from_their_number():
    (a, b), (c, _) = (training.batch(SMALL["gpt"], number) for number in (3, 4))
    assert (a.shape, b.shape) == ((2, 16), (2, 16))
    assert np.array_equal(a[:, 1:], b[:, :-1])
    assert np.array_equal(a, training.batch(SMALL["gpt"], 3)[0])
    assert not np.array_equal(a, c)


def test_the_clock_of_kernels():
    x, y = param(0, float32, (32, 32)), param(1, float32, (32, 32))
    whole = program(matmul(EXP2(matmul(x, y)), y))
    source = REFERENCE.compile(whole, "c").source
    text, names = with_clock(source)
    assert len(names) == text.count("+= seconds_now()") > 0
    found = kernel_times(source, whole)
    assert sum(item["calls"] for item in found) == len(names)
    assert all(0 <= item["seconds"] < 1 for item in found)


def test_what_is_measured_apart_and_told(monkeypatch):
    given = {
        "losses": {"ours": [3.0, 2.0], "eager": [3.0, 2.5]},
        "times": {"ours": [1.0, 3.0, 2.0], "eager": [2.0, 2.0, 2.0], "compile": [1.0, 1.0, 1.0]},
        "memory": {"bytes": 1 << 20},
        "first": {"seconds": 5.0},
        "kernels": [{"name": "k0_add", "calls": 3, "seconds": 0.5}],
    }
    asked = []

    def apart(arguments, environment):
        what = arguments[arguments.index("--only") + 1]
        asked.append((what, environment["OMP_NUM_THREADS"]))
        return given[what]

    monkeypatch.setattr(training, "apart", apart)
    found = training.measure("gpt", 2, 3, 2)
    assert found["losses"]["largest difference"] == 0.5
    assert found["ratio"] == {"eager": 1.0, "compile": 2.0}
    assert {count for _, count in asked} == {"2"}
    assert json.loads(json.dumps(found)) == found
    result = CliRunner().invoke(training.main, ["--steps", "2", "--rounds", "3"])
    assert "more than 0.001" in result.output
    assert "100.0%    3 × k0_add" in result.output
