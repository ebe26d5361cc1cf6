"""Random programs where any work is worth threads: as interpreted, on any number of them."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from projects.uopc.checking import Checker
from tests.programs.inputs import inputs_for
from tests.programs.strategy import Case, cases
from tests.programs.test_random import wrong
from tests.programs.workloads import plain_inputs, workloads
from tests.week05_06_memory.random_steps import draw_steps
from tests.week07_08_gpu.threaded import MACHINE, run_serially, run_with, same, source
from week01_uops.interchange import write
from week01_uops.node import UOp
from week01_uops.passes import verifier
from week05_06_memory.nests import ScheduleError, ranges_of
from week05_06_memory.schedule import Kind, Schedule, show
from week05_06_memory.scheduling import kernel_names
from week07_08_gpu import threads
from week07_08_gpu.compiler import pipeline_for

COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
}
MOST_STEPS = 6
MANY = int(os.environ.get("RANDOM_PROGRAMS", "2000"))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small programs, too, have reductions in parts and loops in blocks."""
    monkeypatch.setattr(threads, "PARTS", 2)
    monkeypatch.setattr(threads, "ENOUGH", 3)
    monkeypatch.setattr(threads, "REPEATED", 10.0)


def check(case: Case, draw=inputs_for) -> None:
    """Compile, run and compare; a failure of any kind carries the program's text and its seed."""
    try:
        compare(case, draw(case.program, case.seed))
    except BaseException as error:
        error.add_note(f"{write(case.program)}# inputs: seed {case.seed}")
        raise


def compare(case: Case, inputs) -> None:
    text = source(case.program)
    first, second = run_with((1, 3), text, case.program, inputs)
    assert not wrong(case.program, inputs, first)
    assert same(first, second), text
    if "omp" in text:
        assert same(first, run_serially(text, case.program, inputs)), text


@settings(max_examples=30, derandomize=True, **COMMON)
@given(cases())
def test_threads_change_nothing(case):
    check(case)


@settings(max_examples=15, derandomize=True, **COMMON)
@given(workloads())
def test_threads_change_nothing_of_workloads(case):
    check(case, plain_inputs)


def check_schedules(data: st.DataObject) -> None:
    """Draw a program and schedules with parallel loops; compare. A failure carries both."""
    special = data.draw(st.booleans())
    case = data.draw(cases(8) if special else workloads())
    schedules: dict[str, Schedule] = {}
    try:
        passes = pipeline_for(MACHINE)
        start = replace(passes, passes=passes.passes[: passes.index("schedule")]).run(case.program)
        for body, name in kernel_names(start).items():
            schedules[name] = divided(*draw_steps(body, data.draw, MOST_STEPS), data.draw)
        inputs = (inputs_for if special else plain_inputs)(case.program, case.seed)
        text = source(case.program, **schedules)
        first, second = run_with((1, 3), text, case.program, inputs)
        assert not wrong(case.program, inputs, first)
        assert same(first, second), text
    except BaseException as error:
        lines = [f"{name}: {show(s)}" for name, steps in schedules.items() for s in steps]
        error.add_note("\n".join([write(case.program), f"# inputs: seed {case.seed}", *lines]))
        raise


def divided(steps: Schedule, body: UOp, draw: Callable) -> Schedule:
    """The steps, and then those loops of the body parallel that may be."""
    names = sorted(ranges_of(body))
    for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if names else ():
        step = Kind(name, "parallel")
        with contextlib.suppress(ScheduleError):
            body = step.apply(body)
            steps = (*steps, step)
    return steps


@settings(max_examples=25, derandomize=True, **COMMON)
@given(st.data())
def test_random_schedules_on_threads(data):
    check_schedules(data)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_threads_change_nothing_of_many_programs():
    """2,000 programs a run, other ones each time; `RANDOM_PROGRAMS` asks for more or fewer."""

    @settings(max_examples=MANY // 3, **COMMON)
    @given(cases())
    def run(case):
        check(case)

    @settings(max_examples=MANY // 3, **COMMON)
    @given(workloads())
    def run_workloads(case):
        check(case, plain_inputs)

    @settings(max_examples=MANY // 3, **COMMON)
    @given(st.data())
    def run_schedules(data):
        check_schedules(data)

    run()
    run_workloads()
    run_schedules()


@settings(max_examples=60, derandomize=True, **COMMON)
@given(cases())
def test_every_pass_keeps_the_meaning(case):
    pipeline_for(MACHINE).run(case.program, [verifier, Checker(case.program, case.seed)])
