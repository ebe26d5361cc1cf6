"""Random programs where any work is worth threads: as interpreted, on any number of them."""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from projects.uopc.checking import Checker
from tests.programs.inputs import inputs_for
from tests.programs.strategy import Case, cases
from tests.programs.test_random import wrong
from tests.week07_08_gpu.threaded import MACHINE, run_serially, run_with, same, source
from week01_uops.interchange import write
from week01_uops.passes import verifier
from week07_08_gpu import threads
from week07_08_gpu.compiler import pipeline_for

COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
}
MANY = int(os.environ.get("RANDOM_PROGRAMS", "2000"))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small programs, too, have reductions in parts and loops in blocks."""
    monkeypatch.setattr(threads, "PARTS", 2)
    monkeypatch.setattr(threads, "ENOUGH", 3)
    monkeypatch.setattr(threads, "REPEATED", 10.0)


def check(case: Case) -> None:
    """Compile, run and compare; a failure of any kind carries the program's text and its seed."""
    try:
        compare(case)
    except BaseException as error:
        error.add_note(f"{write(case.program)}# inputs: seed {case.seed}")
        raise


def compare(case: Case) -> None:
    inputs = inputs_for(case.program, case.seed)
    text = source(case.program)
    first, second = run_with((1, 3), text, case.program, inputs)
    assert not wrong(case.program, inputs, first)
    assert same(first, second), text
    if "omp" in text:
        assert same(first, run_serially(text, case.program, inputs)), text


@settings(max_examples=80, derandomize=True, **COMMON)
@given(cases())
def test_threads_change_nothing(case):
    check(case)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_threads_change_nothing_of_many_programs():
    """2,000 programs a run, other ones each time; `RANDOM_PROGRAMS` asks for more or fewer."""

    @settings(max_examples=MANY, **COMMON)
    @given(cases())
    def run(case):
        check(case)

    run()


@settings(max_examples=60, derandomize=True, **COMMON)
@given(cases())
def test_every_pass_keeps_the_meaning(case):
    pipeline_for(MACHINE).run(case.program, [verifier, Checker(case.program, case.seed)])
