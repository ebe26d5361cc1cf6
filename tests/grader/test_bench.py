"""The benchmarks' programs are what they say, and the benchmarks run."""

import numpy as np
import pytest
from click.testing import CliRunner

from grader.bench import cold, compiling
from grader.weeks import evaluate
from projects.models import transformer_block
from week01_uops.interchange import read
from week01_uops.ops import parameters
from week04_fusion.ops import OPS


def test_the_block_is_the_models_block():
    assert read(compiling.BLOCK.read_bytes(), ops=OPS) is transformer_block()


def test_our_side_compiles_the_block():
    assert 0 < compiling.ours() < 20


def test_what_cannot_be_compared_is_said(monkeypatch):
    monkeypatch.setattr(compiling, "tinygrad", lambda optimize: "there is none")
    assert "skipped: there is none" in CliRunner().invoke(compiling.main).output


def test_pytorchs_block_is_the_models_block():
    torch = pytest.importorskip("torch")
    block = transformer_block()
    rng = np.random.default_rng(0)
    shapes = [node.shape for _, node in sorted(parameters(block).items())]
    inputs = [rng.standard_normal(shape, np.float32) / 8 for shape in shapes]
    (want,) = evaluate(block, dict(enumerate(inputs)))
    got = cold.torch_block(torch)(*map(torch.from_numpy, inputs)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_where_the_time_goes_is_said(capsys):
    passes = {"fuse": 0.2, "loops": 0.3}
    cold.profile({"seconds": 1.5, "python": 1.0, "kernels": 10, "passes": passes})
    said = capsys.readouterr().out
    assert "Python 1.00 s, 10 kernels, 100.0 ms each; C 0.50 s" in said
    assert "loops 300, fuse 200" in said
