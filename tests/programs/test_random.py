"""Random programs: compiled by week 4 and run, they equal the interpreter."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings

from projects.uopc.checking import Checker
from tests.programs.inputs import inputs_for, same
from tests.programs.isolated import isolated
from tests.programs.strategy import Case, cases
from week01_uops.passes import verifier
from week02_render.runtime import load
from week04_fusion.compiler import COMPILER, REFERENCE
from week04_fusion.evaluate import evaluate

COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
}


def check(case: Case) -> None:
    inputs = inputs_for(case.program, case.seed)
    expected = evaluate(case.program, inputs, state={})
    artifact = REFERENCE.compile(case.program, "c")
    loaded = load(artifact, case.program)
    got = isolated(lambda: loaded.run(inputs))
    for output, a, b in zip(case.program.src, expected, got, strict=True):
        assert same(output.dtype, a, b) is None


@settings(max_examples=500, derandomize=True, **COMMON)
@given(cases())
def test_compiled_programs_equal_the_interpreter(case):
    check(case)


@pytest.mark.nightly
@settings(max_examples=int(os.environ.get("RANDOM_PROGRAMS", "20000")), **COMMON)
@given(cases())
def test_many_compiled_programs_equal_the_interpreter(case):
    check(case)


@settings(max_examples=150, derandomize=True, **COMMON)
@given(cases())
def test_every_pass_keeps_the_meaning(case):
    COMPILER.run(case.program, [verifier, Checker(case.program, case.seed)])


def test_shrinking_finds_a_small_program():
    """A fault that any FLIP shows is shrunk to little more than a FLIP."""

    def has_flip(case):
        return any(node.op.name == "FLIP" for node in case.program.toposort())

    smallest = find(cases(), has_flip, settings=settings(max_examples=2000, **COMMON))
    assert len(smallest.program.toposort()) <= 4
    assert np.prod(smallest.program.src[0].shape) <= 1
