"""Random legal schedules of random programs: at every level, and run, they mean the same."""

import json
import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.programs.inputs import inputs_for
from tests.programs.isolated import isolated
from tests.programs.strategy import cases
from tests.programs.test_random import wrong
from tests.programs.workloads import plain_inputs, workloads
from tests.week05_06_memory.random_steps import draw_steps
from week01_uops.interchange import write
from week01_uops.passes import verifier
from week02_render.runtime import load
from week05_06_memory.compiler import COMPILER, compiler_for
from week05_06_memory.evaluate import evaluate
from week05_06_memory.machine import detect
from week05_06_memory.schedule import from_json, to_json
from week05_06_memory.scheduling import kernel_names

COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
}

SMALL = replace(detect(), l1=256, l2=1 << 10, l3=4 << 10)
"""Caches so small that little programs are large."""

MOST_STEPS = 14
AT = COMPILER.index("schedule")


def check(data: st.DataObject) -> None:
    """Draw a program and schedules; compare. A failure carries both."""
    special = data.draw(st.sampled_from((False, False, True)))
    case = data.draw(cases(8) if special else workloads())
    schedules = {}
    try:
        compiler = compiler_for(SMALL)
        before = replace(compiler.pipeline, passes=compiler.pipeline.passes[:AT]).run(case.program)
        for body, name in kernel_names(before).items():
            schedules[name], _ = draw_steps(body, data.draw, MOST_STEPS)
        inputs = (inputs_for if special else plain_inputs)(case.program, case.seed)
        compare(case.program, inputs, schedules)
    except BaseException as error:
        text = json.dumps({name: to_json(steps) for name, steps in schedules.items()})
        drawn = f"# inputs: seed {case.seed}, special {special}"
        error.add_note(f"{write(case.program)}{drawn}\n{text}")
        raise


AFTERWARDS = ("schedule", "unroll", "accumulate", "larger", "forward", "linearize")


def compare(whole, inputs, schedules):
    """The levels behind the schedule, interpreted, and the compiled program."""
    given = {name: from_json(to_json(steps)) for name, steps in schedules.items()}
    compiler = compiler_for(SMALL, given)

    def interpret(step):
        verifier(step)
        if step.of.name in AFTERWARDS:
            found = evaluate(step.after, inputs, state={})
            assert not (w := wrong(whole, inputs, found)), f"{step.of.name}: {w}"

    loaded = load(compiler.compile(whole, "c", [interpret]), whole)
    assert not (w := wrong(whole, inputs, isolated(lambda: loaded.run(inputs)))), w


@settings(max_examples=100, derandomize=True, **COMMON)
@given(st.data())
def test_a_schedule_keeps_the_meaning(data):
    check(data)


SHARDS = 4
MANY = int(os.environ.get("RANDOM_SCHEDULES", "2000"))


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_many_schedules_keep_the_meaning(shard):
    """2,000 schedules a run, other ones each time; `RANDOM_SCHEDULES` asks for more or fewer."""

    @settings(max_examples=-(-MANY // SHARDS), **COMMON)
    @given(st.data())
    def run(data):
        check(data)

    run()
