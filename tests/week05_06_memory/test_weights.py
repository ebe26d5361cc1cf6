"""Rows of weights that become the output: in blocks where they are longer than the first cache."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.week05_06_memory.loops import SMALL, inputs_of, kernels
from tests.week05_06_memory.test_online import block_loops, expect_right, given, joined
from week01_uops.dtypes import float16, float64
from week01_uops.ops import program
from week01_uops.passes import verifier
from week02_render.ops import ALLOC
from week02_render.runtime import load
from week03_loops.library import add, log_softmax, mul, softmax, where
from week03_loops.library.attention import lower_triangle
from week05_06_memory.compiler import compiler_for

MEDIUM = replace(SMALL, l1=2 << 10, l2=64 << 10)
"""Rows of 513 to 8192 floats are longer than the first cache, and half of the second."""

X = given(0, 3, 2048)
WEIGHTS = softmax(X, 1)

CASES = {
    "softmax": WEIGHTS,
    "one row": softmax(given(0, 2048), 0),
    "in batches": softmax(given(0, 2, 3, 1024), 2),
    "scaled": mul(WEIGHTS, given(1, 2048)),
    "and more": add(WEIGHTS, given(1, 3, 2048)),
    "squared": mul(WEIGHTS, WEIGHTS),
    "no power of two": softmax(given(0, 2, 5 * 7 * 16), 1),
    "float64": softmax(given(0, 3, 1024, dtype=float64), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_blocks_hold_a_maximum_and_no_weights(name):
    after, trace = joined(program(CASES[name]), MEDIUM)
    assert trace.fired["online"] == 1
    (call,) = kernels(after)
    held = [n.size for n in call.src[0].toposort() if n.op is ALLOC]
    assert max(held) <= 64
    assert block_loops(after)


@pytest.mark.parametrize(
    "value",
    [
        softmax(given(0, 3, 512), 1),
        softmax(given(0, 3, 2039), 1),
        log_softmax(X),
        softmax(given(0, 3, 2048, dtype=float16), 1),
        softmax(where(lower_triangle(1024, 1024), given(0, 1024, 1024), -math.inf), 1),
    ],
    ids=["short", "prime", "logarithms", "halves", "causal"],
)
def test_others_stay_whole(value):
    _, trace = joined(program(value), MEDIUM)
    assert not trace.fired


SPECIAL = (math.nan, math.inf, -math.inf, 1e38, -1e38)


@pytest.mark.parametrize("name", CASES)
def test_compiled_with_special_values(name):
    whole = program(CASES[name])
    inputs = inputs_of(whole)
    rows = inputs[0].reshape(-1, inputs[0].shape[-1])
    compiled = load(compiler_for(MEDIUM).compile(whole, "c", [verifier]), whole)
    expect_right(whole, inputs, compiled.run(inputs))
    for number, value in enumerate(SPECIAL):
        for at in (0, 700 % rows.shape[1], rows.shape[1] - 1):
            changed = rows.copy()
            changed[number % len(rows), at] = value
            changed[number % len(rows) - 1, :at] *= 30.0
            given_ = inputs | {0: changed.reshape(inputs[0].shape)}
            with np.errstate(all="ignore"):
                expect_right(whole, given_, compiled.run(given_))


def test_rows_that_rise_and_rows_of_nothing():
    """The maximum changes with every block, or is −∞ in the first ones, or in all."""
    whole = program(WEIGHTS)
    rows = np.linspace(-300, 300, 2048, dtype=np.float32) * np.float32([[1], [-1], [1]])
    rows[1, :1500] = -math.inf
    rows[2] = -math.inf
    compiled = load(compiler_for(MEDIUM).compile(whole, "c", [verifier]), whole)
    with np.errstate(all="ignore"):
        expect_right(whole, {0: rows}, compiled.run({0: rows}))
