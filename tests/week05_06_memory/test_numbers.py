"""Maxima that may lose a NaN, because the result is NaN all the same."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.week05_06_memory.loops import agree, before, kernels
from tests.week05_06_memory.test_bounds import LOWEST, NOTHING, I, J, K, S, T, X, at, by_hand, total
from week01_uops.dtypes import float16, float32, float64, int32
from week01_uops.node import UOp, const
from week01_uops.ops import (
    ADD,
    CAST,
    CMPLT,
    EXP2,
    LOG2,
    MAX,
    MUL,
    NEG,
    RECIP,
    WHERE,
    param,
    program,
)
from week01_uops.passes import on_kernels
from week01_uops.rewrite import Trace
from week02_render.ops import INDEX, LOAD, loop
from week02_render.runtime import load
from week03_loops.library import attention, softmax
from week04_fusion.ops import stage
from week05_06_memory.compiler import REFERENCE
from week05_06_memory.evaluate import MEANING, evaluate
from week05_06_memory.numbers import larger, numbers
from week05_06_memory.ops import LARGER, NUMBER

SHORTER = loop(9, 11)
ONE = const(1.0, float32)
M = total(at(I, T), T, op=MAX)
NANS = (0.0, 1.0, -3.0, math.inf, -math.inf, math.nan)


def power(r: UOp, m: UOp = M) -> UOp:
    return EXP2(ADD(at(I, r), NEG(m)))


def marks(value: UOp, *ranges: UOp) -> int:
    trace = Trace()
    on_kernels(numbers)(by_hand(value, *ranges), trace)
    return trace.fired["number"]


def masked(r: UOp) -> UOp:
    return WHERE(CMPLT(r, I), at(I, r), LOWEST)


HELD = stage(power(S), S)
SUM = total(power(K), K)

LOST = {
    "softmax": MUL(power(J), RECIP(SUM)),
    "of a row that is held": MUL(LOAD(INDEX(HELD, J)), RECIP(total(LOAD(INDEX(HELD, K)), K))),
    "log of the sum": ADD(M, LOG2(SUM)),
    "weights of other values": total(MUL(power(K), at(K, J)), K),
    "a sum of half the terms' own": MUL(power(J), RECIP(total(MUL(power(K), 0.5), K))),
    "cast and back": total(CAST(CAST(power(K), arg=float16), arg=float32), K),
    "sums of sums": total(MUL(power(J), SUM), J),
    "masked alike": total(EXP2(ADD(masked(K), NEG(total(masked(T), T, op=MAX)))), K),
}


@pytest.mark.parametrize("name", LOST)
def test_what_a_sum_takes_in_need_not_be_seen(name):
    value = LOST[name]
    ranges = [r for r in (I, J) if r in value.toposort()]
    assert marks(value, *ranges) == 1


@pytest.mark.parametrize(
    "value",
    [
        M,
        power(J),
        MUL(power(J), RECIP(total(power(SHORTER), SHORTER))),
        ADD(M, total(EXP2(at(I, K)), K, op=MAX)),
        WHERE(CMPLT(at(I, J), NOTHING), SUM, NOTHING),
        ADD(M, total(EXP2(at(K, I)), K)),
        total(WHERE(CMPLT(at(I, K), M), ONE, NOTHING), K),
        total(WHERE(CMPLT(K, I), power(K), NOTHING), K),
        CAST(total(power(K), K), arg=int32),
        MAX(SUM, 0.0),
        total(EXP2(ADD(masked(K), NEG(M))), K),
    ],
)
def test_what_may_be_seen_stays(value):
    ranges = [r for r in (I, J) if r in value.toposort()]
    assert marks(value, *ranges) == 0


def test_a_row_that_is_held_is_not_another_row():
    """The sum of row J says nothing of the maximum of row I."""
    rows = stage(total(power(K), K), I)
    assert marks(ADD(LOAD(INDEX(rows, J)), M), I, J) == 0
    assert marks(LOAD(INDEX(rows, J)), J) == 0


def blind(value: float):
    """The interpreter with another maximum wherever a NaN may be lost."""

    def number(scope, node):
        x = scope.value(node.src[0])
        return np.where(np.isnan(x), x.dtype.type(value), x)

    return {**MEANING, NUMBER: number}


@pytest.mark.parametrize("value", [0.0, 7.5, -math.inf, math.inf])
@pytest.mark.parametrize("name", LOST)
def test_no_value_of_the_maximum_changes_the_result(name, value):
    ranges = [r for r in (I, J) if r in LOST[name].toposort()]
    whole = by_hand(LOST[name], *ranges)
    marked = on_kernels(numbers)(whole, Trace())
    rng = np.random.default_rng(5)
    x = rng.choice(np.float32(NANS), (12, 12), p=(0.3, 0.3, 0.3, 0.02, 0.04, 0.04))
    with np.errstate(all="ignore"):
        (expected,) = evaluate(whole, {1: x}, state={})
        (got,) = evaluate(marked, {1: x}, blind(value), state={})
    assert np.isnan(expected).any()
    np.testing.assert_array_equal(got, expected)


LEAVES = [at(I, K), at(K, I), M, power(K), const(2.0, float32), total(at(I, S), S)]
UNARY = [NEG, EXP2, RECIP, lambda x: LOG2(EXP2(x)), lambda x: WHERE(CMPLT(x, ONE), x, ONE)]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_random_values(data):
    """Whatever is marked: the results are those of any maximum."""
    values = st.recursive(
        st.sampled_from(LEAVES),
        lambda inner: st.one_of(
            st.builds(lambda f, x: f(x), st.sampled_from(UNARY), inner),
            st.builds(lambda f, x, y: f(x, y), st.sampled_from([ADD, MUL, MAX]), inner, inner),
        ),
        max_leaves=6,
    )
    terms = data.draw(values)
    outer = substituted_free(data.draw(values))
    sums = data.draw(st.sampled_from([ADD, MUL]))
    value = sums(total(terms, K), outer)
    assume(X in value.toposort())
    whole = by_hand(value, I)
    marked = on_kernels(numbers)(whole, Trace())
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    array = rng.choice(np.float32(NANS), (12, 12), p=(0.3, 0.35, 0.3, 0.01, 0.02, 0.02))
    with np.errstate(all="ignore"):
        (expected,) = evaluate(whole, {1: array}, state={})
        (got,) = evaluate(marked, {1: array}, blind(3.0), state={})
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))


def substituted_free(value: UOp) -> UOp:
    """A value that needs no open loop but I: a sum over K if it does."""
    return total(value, K) if K in value.toposort() else value


def body_after(value: UOp, *ranges: UOp) -> UOp:
    whole = by_hand(value, *ranges)
    return on_kernels(larger)(on_kernels(numbers)(whole, Trace()), Trace())


def ops_of(whole: UOp) -> list:
    return [n.op for call in kernels(whole) for n in call.src[0].toposort()]


@pytest.mark.parametrize("value", [MAX(at(I, J), 0.0), MAX(0.0, at(I, J))])
def test_a_constant_is_a_number(value):
    after = body_after(value, I, J)
    assert LARGER in ops_of(after)
    agree(by_hand(value, I, J), after, inputs={1: np.resize(np.float32(NANS), (12, 12))})


@pytest.mark.parametrize("value", [MAX(at(I, J), at(J, I)), MAX(at(I, J), math.nan)])
def test_other_maxima_look_for_nan(value):
    after = body_after(value, I, J)
    assert LARGER not in ops_of(after)


def compiled(whole: UOp, *arrays):
    artifact = REFERENCE.compile(whole, "c")
    with np.errstate(all="ignore"):
        wanted = evaluate(whole, dict(enumerate(arrays)))
    return artifact.source, load(artifact, whole).run(dict(enumerate(arrays))), wanted


@pytest.mark.parametrize("dtype", [float16, float32, float64])
@pytest.mark.parametrize("size", [1, 3, 16, 64, 100, 1000, 5000])
def test_softmax_with_nan(size, dtype):
    x = param(0, dtype, (12, size))
    array = np.random.default_rng(1).standard_normal((12, size)).astype(dtype.numpy)
    for row, value in enumerate(NANS):
        array[row, size // 2] = array[row, size - 1] = value
    array[6, 0], array[7] = math.nan, -math.inf
    source, (got,), (wanted,) = compiled(program(softmax(x, 1)), array)
    if size > 16:
        assert "larger_" in source
        assert "max_f" not in source
    np.testing.assert_allclose(got, wanted, rtol=1e-2 if dtype is float16 else 1e-5, atol=1e-7)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_nan(causal):
    shape = (1, 2, 40, 16)
    q, k, v = (param(slot, float32, shape) for slot in range(3))
    whole = program(attention(q, k, v, causal=causal))
    arrays = [np.random.default_rng(s).standard_normal(shape).astype(np.float32) for s in range(3)]
    arrays[0][0, 0, 3, 5] = arrays[1][0, 1, 20, 2] = math.nan
    source, (got,), (wanted,) = compiled(whole, *arrays)
    assert "larger_" in source
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


def test_the_passes_stand_in_order():
    x = param(0, float32, (12, 64))
    marked = before("stages", program(softmax(x, 1)))
    assert NUMBER in ops_of(marked)
    assert LARGER in ops_of(before("linearize", program(softmax(x, 1))))
