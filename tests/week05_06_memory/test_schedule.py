"""Schedules as data: JSON, files, and the pass that applies them by kernel."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.week05_06_memory.bodies import agree, copy, product, text
from week01_uops.dtypes import float32
from week01_uops.ops import CALL, param, program
from week01_uops.passes import top_nodes
from week01_uops.rewrite import Trace
from week02_render.runtime import load
from week03_loops import library
from week05_06_memory.compiler import COMPILER, compiler_for
from week05_06_memory.machine import detect
from week05_06_memory.nests import ScheduleError
from week05_06_memory.schedule import (
    STEPS,
    Fetch,
    Hoist,
    Hold,
    Join,
    Kind,
    Loosen,
    Part,
    Reorder,
    Split,
    Stage,
    Stream,
    Widen,
    apply,
    from_json,
    read,
    show,
    to_json,
)
from week05_06_memory.scheduling import kernel_names, scheduled

EXAMPLES = {
    Split(1, 64, (5, 6)): "split range 1 by 64 into [5, 6]",
    Split(1, 64): "split range 1 by 64",
    Split(1, 64, rest="cut"): 'split range 1 by 64 rest "cut"',
    Kind(6, "vector"): 'kind range 6 kind "vector"',
    Reorder((2, 0, 1)): "reorder order [2, 0, 1]",
    Join(0, 1, 4): "join outer 0 inner 1 into 4",
    Stage(2, 5, (1, 0)): "stage slot 2 at 5 layout [1, 0]",
    Stage(2): "stage slot 2",
    Widen(4): "widen range 4",
    Loosen(3): "loosen range 3",
    Hold((2, 5)): "hold sums [2, 5]",
    Hoist(2, (0, 1)): "hoist range 2 over [0, 1]",
    Part(2, 4): "part range 2 parts 4",
    Stream(): "stream",
    Fetch(1, 0, 16): "fetch slot 1 range 0 line 16",
}


@pytest.mark.parametrize("step", EXAMPLES, ids=EXAMPLES.get)
def test_a_step_is_data(step):
    rows = json.loads(json.dumps(to_json([step])))
    assert from_json(rows) == (step,)
    assert show(step) == EXAMPLES[step]


def test_there_is_an_example_of_every_step():
    assert {type(step) for step in EXAMPLES} == set(STEPS.values())


SPLIT = {"step": "split", "range": 1, "by": 4}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, r"expected a list of steps, got \{\}"),
        (["split"], 'step 1: expected {"step": one of split, kind, reorder, .*}, got "split"'),
        ([{"range": 1}], 'step 1: expected {"step": one of split, kind'),
        ([{"step": 3}], 'step 1: expected {"step": one of split, kind'),
        ([SPLIT, {"step": "tile"}], 'step 2: expected {"step": one of split, kind'),
        ([{**SPLIT, "to": 3}], "step 1: split: expected the keys range, by, into, rest"),
        ([{"step": "split", "range": 1}], "step 1: split: expected an object .*; by is missing"),
        ([{**SPLIT, "by": 0}], "step 1: split: expected a size of a tile ≥ 1, got 0"),
        ([{**SPLIT, "by": 2.5}], "step 1: split: expected a size of a tile ≥ 1, got 2.5"),
        ([{**SPLIT, "by": True}], "step 1: split: expected a size of a tile ≥ 1, got true"),
        ([{**SPLIT, "range": -1}], "step 1: split: expected the number of a range, ≥ 0, got -1"),
        ([{**SPLIT, "range": "i"}], 'step 1: split: expected the number of a range, ≥ 0, got "i"'),
        ([{**SPLIT, "into": [3]}], r"step 1: split: expected two numbers of ranges, got \[3\]"),
        ([{**SPLIT, "into": [3, 3]}], "step 1: split: expected a list of numbers of ranges"),
        ([{"step": "kind", "range": 1, "kind": "grid"}], "step 1: kind: expected a kind"),
        ([{"step": "reorder", "order": 1}], "step 1: reorder: expected a list of numbers of"),
        ([{"step": "part", "range": 1, "parts": 1}], "step 1: part: expected a number of parts"),
        ([{"step": "stream", "range": 1}], "step 1: stream: expected"),
    ],
)
def test_rows_that_are_refused(rows, message):
    with pytest.raises(ScheduleError, match=message):
        from_json(rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected JSON: Expecting value: line 1 column 1"),
        ("[]", r'expected an object {"kernel": \[step, …\]}, got \[\]'),
        ('{"k": [{"step": "tile"}]}', 'kernel k: step 1: expected {"step": one of split'),
        ('{"k": {}}', r"kernel k: expected a list of steps, got \{\}"),
        ('{"k": [], "k": []}', 'expected each key of an object once, got "k" again'),
        ('{"k": [{"step": "widen", "range": 1, "range": 2}]}', 'once, got "range" again'),
        ("[" * 100_000, "hold no lists in lists"),
    ],
)
def test_files_that_are_refused(content, message):
    with pytest.raises(ScheduleError, match=message):
        read(content)


def test_a_file():
    found = read('{"add_4": [{"step": "stream"}], "*": []}')
    assert found == {"add_4": (Stream(),), "*": ()}


def test_steps_are_done_in_order_and_told():
    body = product(4, 3, 8)
    steps = (Split(1, 4, (3, 4)), Reorder((3, 0, 4)), Kind(4, "vector"))
    told = []
    after = apply(body, steps, told.append)
    assert [done.step for done in told] == list(steps)
    assert told[0].before is body
    assert told[-1].after is after
    assert "for i3 in 0..2:\n  for i0 in 0..4:\n    vector i4 in 0..4:" in text(after)
    agree(body, after)


def test_the_step_that_is_refused_is_named():
    steps = (Split(0, 2), Split(0, 2))
    with pytest.raises(ScheduleError, match="step 2, split range 0 by 2: expected one of the rang"):
        apply(copy(4), steps)


def whole():
    """Two kernels over one shape, and another one."""
    x = param(0, float32, (6, 8))
    sums = library.reduce_sum(x, (0,), keepdim=True)
    largest = library.reduce_sum(library.mul(x, sums), (0,), keepdim=True)
    return program(library.add(library.reduce_max(x), largest))


def before_schedule(source):
    at = COMPILER.index("schedule")
    return replace(COMPILER, passes=COMPILER.passes[:at]).run(source)


def test_kernels_of_one_name_are_numbered():
    loops = before_schedule(whole())
    names = kernel_names(loops)
    calls = [n for n in top_nodes(loops) if n.op is CALL]
    assert len(set(names.values())) == len({c.src[0] for c in calls})
    shared = [c.arg.name for c in calls]
    assert set(shared) <= set(names.values())


def test_a_schedule_by_the_name_of_its_kernel():
    """What is given is done, the others get the default; "*" stands for all others."""
    source = whole()
    names = list(kernel_names(before_schedule(source)).values())
    values = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    expected = load(compiler_for(detect()).compile(source), source).run([values])[0]
    for given in ({names[0]: ()}, {"*": ()}, {names[-1]: (), "*": ()}):
        done = []
        scheduled(detect(), given, done.append)(before_schedule(source), Trace())
        assert [d.kernel for d in done] == names
        left = [bool(d.steps) for d in done if d.kernel in given or "*" in given]
        assert not any(left)
        got = load(compiler_for(detect(), given).compile(source), source).run([values])[0]
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_a_kernel_that_is_not_there():
    with pytest.raises(ScheduleError, match=r"expected the name of a kernel \(.+\), got nobody"):
        compiler_for(detect(), {"nobody": ()}).compile(whole())


def test_the_kernel_of_a_refused_step_is_named():
    (name, *_) = kernel_names(before_schedule(whole())).values()
    message = f"kernel {name}: step 1, widen range 99: expected one of the ranges"
    with pytest.raises(ScheduleError, match=message):
        compiler_for(detect(), {name: (Widen(99),)}).compile(whole())
