"""Every pass of the compilers of weeks 5 to 8 keeps the meaning of real programs."""

import pytest

from grader.weeks import ROOT, read, week_of
from projects.models import (
    ResidualBlock,
    Transformer,
    digits_classifier,
    resnet_block,
    transformer_block,
)
from projects.uopc.checking import Checker
from week01_uops.passes import verifier

PROGRAMS = {p.stem: p for p in sorted((ROOT / "week03_loops" / "programs").glob("*.uop"))}
SAMPLE = ("layernorm", "gemm_odd", "conv_stride_padding", "scatter_add", "gemm_float16", "tril")
MODELS = {
    "block": transformer_block(Transformer(1, 17, 48, heads=6, groups=2, hidden=40)),
    "residual": resnet_block(ResidualBlock(2, 6, 9, 10, stride=2)),
    "digits": digits_classifier(),
}
compilers = pytest.mark.parametrize("number", [5, 7], ids=lambda n: f"week {n}'s")


def check(program, number):
    checker = Checker(program)
    week_of(number).reference().compile(program, "c", [verifier, checker])
    assert checker.passed > 20


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample(name):
    check(read(PROGRAMS[name].read_text(), 4), 7)


@pytest.mark.nightly
@compilers
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, number):
    check(read(PROGRAMS[name].read_text(), 4), number)


@pytest.mark.nightly
@compilers
@pytest.mark.parametrize("name", MODELS)
def test_models(name, number):
    check(MODELS[name], number)
