"""Random programs: compiled by weeks 4 and 5 and run, they equal the interpreter."""

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings

from projects.uopc.checking import Checker
from tests.programs.inputs import inputs_for, same
from tests.programs.isolated import isolated
from tests.programs.strategy import Case, cases
from tests.programs.workloads import plain_inputs, workloads
from week01_uops.closeness import within
from week01_uops.dtypes import float16
from week01_uops.interchange import write
from week01_uops.node import UOp, make
from week01_uops.ops import MAX, RECIP, RETURN, param, program
from week01_uops.passes import verifier
from week01_uops.reference import Reference
from week02_render.ops import AFTER, BUFFER, LOAD, STORE, StorageArg
from week02_render.runtime import load
from week03_loops.error_model import MEANING as BOUNDED
from week03_loops.error_model import evaluate_with_error
from week04_fusion.compiler import REFERENCE as WEEK04
from week05_06_memory.compiler import REFERENCE as WEEK05
from week05_06_memory.compiler import compiler_for
from week05_06_memory.evaluate import MEANING, evaluate
from week05_06_memory.machine import BALANCE, detect

COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
}


CACHES = {"l1": 256, "l2": 1 << 10, "l3": 4 << 10}
"""Bytes: so few that small programs are large, for packing, splitting, streaming."""

SMALL = [compiler_for(replace(detect(), vector_bytes=width, **CACHES)) for width in BALANCE]
"""Week 5's compilers for machines with such caches and vectors of each width."""

WEEKS = {"week 4": [WEEK04], "weeks 5 and 6": [WEEK05, *SMALL]}


def check(case: Case, compilers: list[Reference], draw=inputs_for) -> None:
    """Compile, run and compare; a failure of any kind carries the program's text and its seed."""
    try:
        inputs = draw(case.program, case.seed)
        compare(case.program, inputs, compilers[case.seed % len(compilers)])
    except BaseException as error:
        error.add_note(f"{write(case.program)}# inputs: seed {case.seed}")
        raise


def compare(whole: UOp, inputs: dict, compiler: Reference) -> None:
    loaded = load(compiler.compile(whole, "c"), whole)
    got = isolated(lambda: loaded.run(inputs))
    assert not wrong(whole, inputs, got)


def wrong(whole: UOp, inputs: dict, got: list) -> list:
    """What differs from the interpreter: by more than the a-priori bound, where there is one."""
    if all(node.op in BOUNDED or node.op is RETURN for node in whole.toposort()):
        bounds = evaluate_with_error(whole, inputs)
        pairs = zip(whole.src, bounds, got, strict=True)
        return [found for out, a, b in pairs if (found := within(a, b, out.dtype))]
    tables = MEANING, *map(larger_of_zeros, (0.0, -0.0))
    found = (_differences(whole, evaluate(whole, inputs, t, state={}), got) for t in tables)
    first = next(found)
    return first if first and all(found) else []


def _differences(whole: UOp, expected: list, got: list) -> list:
    pairs = zip(whole.src, expected, got, strict=True)
    return [found for out, a, b in pairs if (found := same(out.dtype, a, b))]


def larger_of_zeros(zero: float) -> dict:
    """The interpreter with one of them as the larger of two zeros: MAX is either."""

    def maximum(scope, node):
        found, (a, b) = MEANING[MAX](scope, node), map(scope.value, node.src)
        return np.where((a == 0) & (b == 0), found.dtype.type(zero), found)

    return {**MEANING, MAX: maximum}


def test_a_maximum_of_zeros_is_either():
    x = param(0, float16, (2,))
    b = make(BUFFER, (), StorageArg(0, float16, (2,)))
    whole = program(RECIP(LOAD(AFTER(b, STORE(b, MAX(x, -0.0))))))
    zeros = {0: np.float16([0, 1])}
    for first in (np.inf, -np.inf):
        assert not wrong(whole, zeros, [np.float16([first, 1])])
        assert not wrong(program(RECIP(MAX(x, -0.0))), zeros, [np.float16([first, 1])])
    assert wrong(whole, zeros, [np.float16([np.nan, 1])])


@pytest.mark.parametrize("week", WEEKS)
def test_compiled_programs_equal_the_interpreter(week):
    @settings(max_examples=300, derandomize=True, **COMMON)
    @given(cases())
    def run(case):
        check(case, WEEKS[week])

    run()


@settings(max_examples=40, derandomize=True, **COMMON)
@given(workloads())
def test_compiled_workloads_equal_the_interpreter(case):
    check(case, SMALL, plain_inputs)


SHARDS = 4
MANY = int(os.environ.get("RANDOM_PROGRAMS", "20000"))


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("week", WEEKS)
def test_many_compiled_programs_equal_the_interpreter(week, shard):
    """20,000 programs a run, other ones each time; `RANDOM_PROGRAMS` asks for more or fewer."""

    @settings(max_examples=-(-MANY // SHARDS), **COMMON)
    @given(cases())
    def run(case):
        check(case, WEEKS[week])

    run()


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_many_compiled_workloads_equal_the_interpreter(shard):
    """Half as many as random programs."""

    @settings(max_examples=-(-MANY // (2 * SHARDS)), **COMMON)
    @given(workloads())
    def run(case):
        check(case, SMALL, plain_inputs)

    run()


@pytest.mark.parametrize("compiler", [WEEK04, SMALL[0]], ids=WEEKS)
def test_every_pass_keeps_the_meaning(compiler):
    @settings(max_examples=100, derandomize=True, **COMMON)
    @given(cases())
    def run(case):
        compiler.pipeline.run(case.program, [verifier, Checker(case.program, case.seed)])

    run()


def test_shrinking_finds_a_small_program():
    """A fault that any FLIP shows is shrunk to little more than a FLIP."""

    def has_flip(case):
        return any(node.op.name == "FLIP" for node in case.program.toposort())

    smallest = find(
        cases(), has_flip, settings=settings(max_examples=2000, derandomize=True, **COMMON)
    )
    assert len(smallest.program.toposort()) <= 4
    assert np.prod(smallest.program.src[0].shape) <= 1
