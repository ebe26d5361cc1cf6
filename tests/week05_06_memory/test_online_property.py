"""The form in blocks is right for all rows: masked, large, NaN, infinite, of any length."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.programs.isolated import isolated
from tests.week05_06_memory.loops import SMALL, before, kernels
from week01_uops.closeness import within
from week01_uops.dtypes import float32
from week01_uops.node import UOp
from week01_uops.ops import RECIP, param, program
from week01_uops.rewrite import Trace
from week02_render.runtime import load
from week03_loops.error_model import evaluate_with_error
from week03_loops.library import add, exp, log, matmul, mul, reduce_max, reduce_sum, sub, where
from week03_loops.library.scan import lower_triangle
from week04_fusion.merge import replace_calls
from week05_06_memory.compiler import compiler_for
from week05_06_memory.evaluate import evaluate
from week05_06_memory.online import BlockShape, in_blocks, rows_first
from week05_06_memory.running import find_running
from week05_06_memory.strips import hold_strips

COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
}

FACTOR = 4.0
"""The format allows a running softmax four times the error that holds for the plain one."""


@dataclass(frozen=True)
class Case:
    """Scores of some rows, values of their elements, and how they are combined."""

    scores: np.ndarray
    values: np.ndarray
    scale: float
    causal: bool

    def program(self, make: Callable[[UOp, UOp], list[UOp]]) -> UOp:
        scores = mul(param(0, float32, self.scores.shape), self.scale)
        if self.causal:
            rows, length = self.scores.shape
            scores = where(lower_triangle(rows, length, length - rows), scores, -np.inf)
        return program(*make(scores, param(1, float32, self.values.shape)))

    @property
    def inputs(self) -> dict[int, np.ndarray]:
        return {0: self.scores, 1: self.values}

    def weights(self) -> np.ndarray:
        """In float64: exp(s − max s)."""
        scores = self.scores.astype(np.float64) * np.float64(np.float32(self.scale))
        if self.causal:
            rows, length = scores.shape
            hidden = np.arange(length) > np.arange(rows)[:, None] + length - rows
            scores = np.where(hidden, -np.inf, scores)
        return np.exp(scores - scores.max(-1, keepdims=True))


def weighted(scores: UOp, values: UOp) -> list[UOp]:
    """softmax(scores)·values."""
    powers = exp(sub(scores, reduce_max(scores, -1, keepdim=True)))
    return [matmul(mul(powers, RECIP(reduce_sum(powers, -1, keepdim=True))), values)]


def log_sum(scores: UOp, values: UOp) -> list[UOp]:
    """m + log Σ exp(scores − m)."""
    top = reduce_max(scores, -1, keepdim=True)
    return [add(top, log(reduce_sum(exp(sub(scores, top)), -1, keepdim=True)))]


def moments(scores: UOp, values: UOp) -> list[UOp]:
    """Two sums that differ in their factor."""
    powers = exp(sub(scores, reduce_max(scores, -1, keepdim=True)))
    return [add(matmul(powers, values), reduce_sum(mul(powers, scores), -1, keepdim=True))]


FORMS = {"weighted": weighted, "log-sum-exp": log_sum, "moments": moments}

MAGNITUDES = (0.0, 1.0, 30.0, 1e4)
SPECIAL = (-np.inf, -np.inf, -np.inf, np.inf, np.nan)


@st.composite
def cases(draw) -> Case:
    rows, width = draw(st.integers(2, 7)), draw(st.integers(1, 4))
    length = draw(st.integers(2, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = generator.standard_normal((rows, length)) * draw(st.sampled_from(MAGNITUDES))
    for value in draw(st.lists(st.sampled_from(SPECIAL), max_size=2)):
        scores[generator.random(scores.shape) < draw(st.sampled_from((0.05, 0.5, 0.9)))] = value
    for row in draw(st.lists(st.integers(0, rows - 1), max_size=2)):
        scores[row] = draw(st.sampled_from((-np.inf, -np.inf, 0.0, -1e4)))
    if draw(st.booleans()):
        scores.sort()  # the maximum grows in every block
    values = generator.standard_normal((length, width))
    if draw(st.integers(0, 4)) == 0:
        values[generator.integers(length)] = draw(st.sampled_from((np.nan, np.inf, -np.inf)))
    scale = draw(st.sampled_from((1.0, 0.125, 3.0)))
    return Case(scores.astype(np.float32), values.astype(np.float32), scale, draw(st.booleans()))


def in_blocks_of(whole: UOp, rows: int, size: int) -> UOp:
    """The program with its rows in such blocks."""
    loops = hold_strips(SMALL, lambda join, place, machine: None)(before("online", whole), Trace())
    (call,) = kernels(loops)
    body = rows_first(call.src[0])
    running = find_running(body)
    row = next((r for r in body.src[1:] if r in running.loops), None)
    shape = BlockShape(
        row,
        min(rows, row.arg.size) if row is not None else 1,
        min(size, running.counter.arg.size),
    )
    blocked = in_blocks(body, shape)
    return replace_calls(loops, {call: call.with_src((blocked, *call.src[1:]))})


def expect_right(whole: UOp, case: Case, results: list[np.ndarray]) -> None:
    bounds = evaluate_with_error(whole, case.inputs)
    for output, bound, got in zip(whole.src, bounds, results, strict=True):
        assert within(bound, got, output.dtype, FACTOR) is None


@settings(max_examples=300, derandomize=True, **COMMON)
@given(cases(), st.sampled_from(list(FORMS)), st.integers(1, 7), st.integers(1, 40))
def test_blocks_of_any_shape_are_right(case, form, rows, size):
    whole = case.program(FORMS[form])
    found = in_blocks_of(whole, rows, size)
    expect_right(whole, case, evaluate(found, case.inputs, state={}))


@settings(max_examples=50, derandomize=True, **COMMON)
@given(cases(), st.integers(1, 7), st.integers(1, 40))
def test_blocks_are_near_float64(case, rows, size):
    """The relative error of a weight is u·|x|·log₂ e for its exponent, and some u for the rest."""
    found = in_blocks_of(case.program(weighted), rows, size)
    (got,) = evaluate(found, case.inputs, state={})
    with np.errstate(all="ignore"):
        weights = case.weights()
        expected = (weights / weights.sum(-1, keepdims=True)) @ case.values.astype(np.float64)
        largest = np.nanmax(np.abs(np.where(np.isfinite(case.scores), case.scores, 0)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    tolerance = 2.0**-24 * (8 * largest * case.scale + 4 * case.scores.shape[-1] + 32)
    scale = np.nanmax(np.abs(case.values), initial=1.0)
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * scale)


SEEDS = {"weighted": (1, 2, 3), "log-sum-exp": (4, 5), "moments": (6,)}
PAIRS = [(form, seed) for form, seeds in SEEDS.items() for seed in seeds]


@pytest.mark.parametrize(("form", "seed"), PAIRS)
def test_compiled_blocks_are_right(form, seed):
    """Rows of 150 to 600 scores; every other program is causal."""
    generator = np.random.default_rng(seed)
    rows, length = (int(n) for n in generator.integers((17, 150), (40, 600)))
    scores = generator.standard_normal((rows, length)) * MAGNITUDES[1 + seed % 3]
    scores[generator.random(scores.shape) < 0.3] = -np.inf
    scores[1] = -np.inf
    scores[2, :100] = -np.inf
    scores[3, generator.integers(length)] = np.nan
    scores[4, generator.integers(length)] = np.inf
    scores[5].sort()
    values = generator.standard_normal((length, 5))
    case = Case(scores.astype(np.float32), values.astype(np.float32), 0.5, seed % 2 == 0)
    whole = case.program(FORMS[form])
    tiny = replace(SMALL, l1=512, l2=1 << 10)
    online: dict[str, int] = {}
    observe = lambda step: online.update(step.trace.fired) if step.of.name == "online" else None
    artifact = compiler_for(tiny).compile(whole, "c", [observe])
    assert online == {"online": 1}
    loaded = load(artifact, whole)
    expect_right(whole, case, isolated(lambda: loaded.run(case.inputs)))
