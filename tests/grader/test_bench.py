"""The benchmarks' programs are what they say, and the benchmarks run."""

from click.testing import CliRunner

from grader.bench import compiling
from projects.models import transformer_block
from week01_uops.interchange import read
from week04_fusion.ops import OPS


def test_the_block_is_the_models_block():
    assert read(compiling.BLOCK.read_bytes(), ops=OPS) is transformer_block()


def test_our_side_compiles_the_block():
    assert 0 < compiling.ours() < 20


def test_what_cannot_be_compared_is_said(monkeypatch):
    monkeypatch.setattr(compiling, "tinygrad", lambda optimize: "there is none")
    assert "skipped: there is none" in CliRunner().invoke(compiling.main).output
