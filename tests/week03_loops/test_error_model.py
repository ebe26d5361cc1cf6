"""The a-priori bounds hold for every legal evaluation, and are no larger than they need to be."""

import numpy as np
import pytest

from week01_uops import dtypes, numerics
from week01_uops.closeness import within
from week01_uops.dtypes import bfloat16, bool_, float16, float32, float64, int32, int64
from week01_uops.node import const
from week01_uops.ops import (
    ADD,
    CALL,
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
from week03_loops.error_model import evaluate_with_error
from week03_loops.evaluate import MEANING, evaluate
from week03_loops.ops import REDUCE, expand, pad, permute, reduce, reshape, shrink

ULPS = {float16: 1, bfloat16: 1, float32: 2, float64: 4}


def bound(node, *inputs):
    (found,) = evaluate_with_error(program(node), inputs)
    return found


def legal(seed):
    """Meanings that go to the limits of what the format allows, at random."""
    rng = np.random.default_rng(seed)

    def function(op):
        def meaning(scope, node):
            x = numerics.wide(MEANING[op](scope, node))
            off = (
                rng.uniform(-1, 1, x.shape)
                * (ULPS[node.dtype] - 0.51)
                * 2.0 ** (1 - node.dtype.precision)
            )
            return numerics.round_to(x * (1 + off), node.dtype)

        return meaning

    def total(scope, node):
        x = scope.value(node.src[0])
        op, dtype, axes = node.arg.op, node.dtype, node.arg.axes
        if op is MAX or not dtype.is_float:
            return MEANING[REDUCE](scope, node)
        held = float32 if dtype in (float16, bfloat16) else dtype
        terms = numerics.cast(x.reshape(-1, *x.shape[axes:]), held)
        sums = numerics.constant(float(op is MUL), held)
        step = numerics.add if op is ADD else numerics.multiply
        for term in rng.permutation(len(terms)):
            sums = step(held, sums, terms[term])
        return numerics.cast(np.broadcast_to(sums, node.shape), dtype)

    return {**MEANING, **{op: function(op) for op in (EXP2, LOG2, RECIP)}, REDUCE: total}


def rows_of(op, x):
    m, n = x.shape
    return expand(reshape(reduce(op, permute(x, (1, 0)), 1), (m, 1)), (m, n))


def softmax(x):
    powers = EXP2(ADD(x, NEG(rows_of(MAX, x))))
    return MUL(powers, RECIP(rows_of(ADD, powers)))


def normalize(x):
    scale = const(1 / x.shape[1], x.dtype)
    centred = ADD(x, NEG(MUL(rows_of(ADD, x), scale)))
    variance = MUL(rows_of(ADD, MUL(centred, centred)), scale)
    half = const(-0.5, x.dtype)
    return MUL(centred, EXP2(MUL(half, LOG2(ADD(variance, const(0.01, x.dtype))))))


def product(x):
    k, m = x.shape
    return reduce(ADD, MUL(reshape(x, (k, m, 1)), reshape(NEG(x), (k, 1, m))), 1)


def mixed(x):
    y = MAX(MUL(x, x), const(0.5, x.dtype))
    z = WHERE(CMPLT(x, const(0.0, x.dtype)), RECIP(y), LOG2(y))
    return reduce(MUL, ADD(z, const(2.0, x.dtype)), 2)


def narrowed(x):
    other = float32 if x.dtype is not float32 else float16
    return CAST(ADD(CAST(MUL(x, x), arg=other), const(0.3, other)), arg=x.dtype)


PROGRAMS = [
    softmax,
    normalize,
    product,
    mixed,
    narrowed,
    lambda x: shrink(pad(x, ((1, 0), (0, 2))), ((0, 3), (1, 5))),
]


@pytest.mark.parametrize("dtype", dtypes.FLOATS, ids=str)
@pytest.mark.parametrize("function", PROGRAMS)
def test_legal_evaluations_are_within_the_bound(function, dtype):
    x = np.random.default_rng(0).normal(size=(6, 8)).astype(dtype.numpy)
    node = function(param(0, dtype, x.shape))
    found = bound(node, x)
    assert np.isfinite(found.error).all()
    for table in (MEANING, *map(legal, range(20))):
        (got,) = evaluate(program(node), [x], table)
        assert within(found, got, dtype) is None


@pytest.mark.parametrize("function", [softmax, normalize, product])
def test_lower_precision_is_refused(function):
    x = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    found = bound(function(param(0, float32, x.shape)), x)
    for narrow in (bfloat16, float16):
        node = CAST(function(CAST(param(0, float32, x.shape), arg=narrow)), arg=float32)
        (got,) = evaluate(program(node), [x])
        difference = within(found, got, float32, factor=4)
        assert difference is not None
        assert difference.count > x.size / 2


def test_bounds_are_not_much_larger_than_needed():
    x = np.random.default_rng(2).normal(size=(6, 8)).astype(np.float32)
    found = bound(softmax(param(0, float32, x.shape)), x)
    assert (found.error < 40 * 2.0**-24 * found.value).all()
    ones = np.ones(1000, np.float32)
    total = bound(reduce(ADD, param(0, float32, (1000,)), 1), ones)
    assert total.error <= 1.01 * 1000 * 1000 * 2.0**-24


def test_integers_are_exact_and_bools_too():
    x, n = param(0, int32, (5,)), param(1, int64)
    inputs = [np.arange(5, dtype=np.int32), np.int64(3)]
    for node in (
        MUL(x, x),
        reduce(ADD, x, 1),
        CAST(n, arg=int32),
        CMPLT(x, CAST(n, arg=int32)),
        NEG(x),
    ):
        found = bound(node, *inputs)
        assert np.array_equal(found.value, evaluate(program(node), inputs)[0])
        assert not found.error.any()


def test_what_rounding_may_decide_is_open():
    x = param(0, float32, (3,))
    third = MUL(x, const(1 / 3, float32))
    values = np.array([3, 4, -3], np.float32)
    less = bound(CMPLT(third, const(1.0, float32)), values)
    assert less.error.tolist() == [np.inf, 0, 0]
    whole = bound(CAST(third, arg=int32), values)
    assert whole.error.tolist() == [np.inf, 0, np.inf]
    chosen = bound(WHERE(CMPLT(third, const(1.0, float32)), x, NEG(x)), values)
    assert chosen.error[0] == pytest.approx(6)
    assert chosen.error[1:].tolist() == [0, 0]
    assert bound(CAST(third, arg=bool_), values).error.tolist() == [0, 0, 0]
    index = bound(ADD(CAST(third, arg=int32), const(1, int32)), values)
    assert index.error.tolist() == [np.inf, 0, np.inf]


def test_overflow_is_open_only_at_the_edge():
    x = param(0, float16, (4,))
    values = np.array([100, 250, 256, 300], np.float16)
    square = bound(MUL(ADD(x, const(0.0, float16)), x), values)
    assert np.isfinite(square.error[:2]).all()
    assert square.value[3] == np.inf
    assert square.error[3] == 0
    big = bound(MUL(EXP2(MUL(x, const(0.0, float16))), const(65504.0, float16)), values)
    assert np.isinf(big.error).all()
    total = bound(
        reduce(ADD, param(0, float32, (3,)), 1), np.array([3e38, 3e38, -3e38], np.float32)
    )
    assert total.error == np.inf


def test_infinities_of_a_mask_are_no_doubt():
    x = np.random.default_rng(3).normal(size=(4, 4)).astype(np.float32)
    mask = np.where(np.tri(4, dtype=bool), 0, -np.inf).astype(np.float32)
    scores = MUL(param(0, float32, (4, 4)), const(0.3, float32))
    node = softmax(ADD(scores, param(1, float32, (4, 4))))
    found = bound(node, x, mask)
    assert (found.error < 1e-5).all()
    (got,) = evaluate(program(node), [x, mask])
    assert within(found, got, float32) is None
    assert (got[mask < 0] == 0).all()


def test_nan_and_infinity_of_inputs_are_known():
    x = param(0, float32, (4,))
    values = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    for node in (
        *(op(x) for op in (NEG, EXP2, LOG2, RECIP)),
        *(op(x, const(2.0, float32)) for op in (ADD, MUL, MAX, CMPLT)),
        reduce(ADD, x, 1),
        reduce(MAX, x, 1),
        reduce(MUL, x, 1),
        ADD(MUL(x, const(0.1, float32)), x),
    ):
        found = bound(node, values)
        assert np.isfinite(found.error).all()
        assert within(found, evaluate(program(node), [values])[0], node.dtype) is None


def test_subnormal_results_of_functions_may_be_zero():
    x = param(0, float32, (2,))
    found = bound(EXP2(x), np.array([-130, -3], np.float32))
    assert within(found, np.array([0, 0.125], np.float32), float32) is None
    assert within(found, np.array([0, 0], np.float32), float32) is not None


def test_calls_are_entered():
    body = MUL(param(0, float32), param(1, float32))
    node = CALL(body, param(0, float32), const(0.1, float32))
    found = bound(node, np.float32(3))
    assert found.value == pytest.approx(0.3)
    assert 0 < found.error < 1e-7


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_zeros_either_is_a_maximum(swapped):
    """1/max(0, −0) is ∞ or −∞; of zeros of one sign it is known."""
    a, b = np.float32([0, -0.0, 0, -0.0, -1]), np.float32([-0.0, 0, 0, -0.0, -0.0])
    x, y = (param(slot, float32, (5,)) for slot in range(2))
    pairs = param(0, float32, (2, 5))
    given = {0: b, 1: a} if swapped else {0: a, 1: b}
    for whole, inputs in (
        (program(RECIP(MAX(x, y))), given),
        (program(RECIP(reduce(MAX, pairs, 1))), {0: np.stack([given[0], given[1]])}),
    ):
        with np.errstate(divide="ignore"):
            (bound,) = evaluate_with_error(whole, inputs)
        np.testing.assert_array_equal(np.isinf(bound.error), [True, True, False, False, False])
