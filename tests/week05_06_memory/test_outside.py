"""A factor that all terms of a sum have: the reciprocal of a softmax behind its products."""

import math

import numpy as np
import pytest

from tests.week05_06_memory.loops import inputs_of, kernels
from tests.week05_06_memory.test_online import LARGE, expect_right
from week01_uops.dtypes import float32
from week01_uops.node import Op, UOp
from week01_uops.ops import EXP2, RECIP, param, program
from week01_uops.passes import Pipeline, on_kernels, verifier
from week01_uops.rewrite import Trace
from week02_render.ops import open_ranges
from week02_render.runtime import load
from week03_loops.library import attention, matmul, mul, softmax
from week04_fusion.ops import STAGE
from week05_06_memory.compiler import compiler_for, pipeline_for
from week05_06_memory.evaluate import evaluate
from week05_06_memory.outside import take_outside


def given(slot: int, *shape: int, dtype=float32) -> UOp:
    return param(slot, dtype, shape)


def heads(queries=128, keys=192, width=64, **options) -> UOp:
    q, k, v = given(0, 2, queries, width), given(1, 2, keys, width), given(2, 2, keys, width)
    return attention(q, k, v, **options)


def run(value: UOp) -> tuple[UOp, int]:
    """The program after the pass, and how often it did something."""
    whole = program(value)
    pipeline = pipeline_for(LARGE)
    passes = pipeline.passes[: pipeline.index("outside")]
    earlier = Pipeline("test", pipeline.accepts, passes).run(whole, [verifier])
    trace = Trace()
    after = on_kernels(take_outside)(earlier, trace)
    inputs = inputs_of(whole)
    expect_right(whole, inputs, evaluate(after, inputs, state={}))
    return after, trace.fired["outside"]


def is_held(op: Op, whole: UOp) -> bool:
    """Whether what a STAGE holds needs such an op."""
    nodes = [n for call in kernels(whole) for n in call.src[0].toposort()]
    return any(op in {below.op for below in n.toposort()} for n in nodes if n.op is STAGE)


@pytest.mark.parametrize(
    "value",
    [heads(), heads(causal=True), heads(mask=given(3, 128, 192)), heads(keys=500, width=16)],
    ids=["full", "causal", "mask", "long"],
)
def test_weights_are_not_held_beside_their_exponentials(value):
    after, fired = run(value)
    assert fired == 1
    assert not is_held(RECIP, after)
    assert is_held(EXP2, after)
    (call,) = kernels(after)
    (factor,) = [n for n in call.src[0].toposort() if n.op is RECIP]
    assert not [r for r in open_ranges(factor) if r.arg.size in (192, 500, 64, 16)]


@pytest.mark.parametrize(
    "value",
    [
        softmax(given(0, 5, 24), 1),
        matmul(mul(given(0, 5, 24), 0.5), given(1, 24, 8)),
        heads(queries=512, keys=48),
    ],
    ids=["no sum", "no weights", "few terms"],
)
def test_others_stay(value):
    assert run(value)[1] == 0


def test_special_values():
    whole = program(heads(20, 24, mask=given(3, 20, 24)))
    inputs = inputs_of(whole)
    inputs[3][3], inputs[3][4, 5:], inputs[3][5, 7] = -math.inf, -math.inf, math.nan
    inputs[2][0, 3, 4], inputs[0][1, 6, 2] = math.inf, 1e30
    with np.errstate(all="ignore"):
        got = load(compiler_for(LARGE).compile(whole, "c", [verifier]), whole).run(inputs)
        expect_right(whole, inputs, got)
