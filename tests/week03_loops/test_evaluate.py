"""Movement and reduction, interpreted: against NumPy, exact sums, and loops."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.week02_render.sequential import Program, run
from week01_uops import dtypes
from week01_uops.dtypes import DType, bool_, float32, int64
from week01_uops.node import const
from week01_uops.ops import ADD, MAX, MUL, param, program
from week02_render.ops import (
    AFTER,
    BUFFER,
    END,
    INDEX,
    LOAD,
    OUTPUT,
    STORE,
    StorageArg,
    index,
    load,
    loop,
)
from week03_loops.evaluate import evaluate
from week03_loops.ops import (
    EXPAND,
    FLIP,
    PAD,
    PERMUTE,
    REDUCE,
    RESHAPE,
    SHRINK,
    ReduceArg,
    expand,
    flip,
    pad,
    permute,
    reduce,
    reshape,
    shrink,
)

INT4 = DType("int4", "int", 4, np.dtype(np.int8))
FLOAT8 = DType("float8_e5m2", "float", 8, np.dtype(dtypes.ml_dtypes.float8_e5m2), 3, 15)


def value(node, *inputs):
    (result,) = evaluate(program(node), inputs)
    assert result.dtype == node.dtype.numpy
    assert result.shape == node.shape
    return result


def samples(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        return rng.uniform(-3, 3, shape).astype(dtype.numpy)
    return rng.integers(
        dtype.min, dtype.max, shape, np.uint64 if dtype.kind == "uint" else np.int64, endpoint=True
    ).astype(dtype.numpy)


MOVES = [
    (RESHAPE, (4, 6), lambda x: x.reshape(4, 6)),
    (RESHAPE, (2, 1, 3, 4, 1), lambda x: x.reshape(2, 1, 3, 4, 1)),
    (EXPAND, (5, 2, 3, 4), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
    (PERMUTE, (2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    (FLIP, (0, 2), lambda x: x[::-1, :, ::-1]),
    (FLIP, (), lambda x: x),
    (PAD, ((1, 0), (0, 2), (3, 1)), lambda x: np.pad(x, ((1, 0), (0, 2), (3, 1)))),
    (SHRINK, ((1, 2), (0, 3), (1, 3)), lambda x: x[1:2, :, 1:3]),
    (SHRINK, ((0, 0), (0, 3), (4, 4)), lambda x: x[0:0, :, 4:4]),
]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize(("op", "arg", "numpy"), MOVES)
def test_movement_of_values_and_of_places(op, arg, numpy, dtype):
    x = samples(dtype, (2, 3, 4))
    want = numpy(x)
    p = param(0, dtype, (2, 3, 4))
    assert np.array_equal(value(op(p, arg=arg), x), want)
    held = BUFFER(arg=StorageArg(0, dtype, (2, 3, 4)))
    assert np.array_equal(value(op(AFTER(held, STORE(held, p)), arg=arg), x), want)
    assert np.array_equal(value(LOAD(INDEX(op(p, arg=arg))), x), want)


def test_chains_of_moves():
    x = np.arange(24.0).reshape(2, 3, 4).astype(np.float32)
    p = param(0, float32, (2, 3, 4))
    node = reshape(pad(flip(permute(p, (1, 0, 2)), (1,)), ((1, 0), (0, 0), (0, 1))), (8, 5))
    want = np.pad(x.transpose(1, 0, 2)[:, ::-1], ((1, 0), (0, 0), (0, 1))).reshape(8, 5)
    assert np.array_equal(value(shrink(node, ((2, 8), (0, 4))), x), want[2:8, :4])
    scalar = expand(reshape(const(2.5, float32), (1, 1)), (3, 2))
    assert np.array_equal(value(scalar), np.full((3, 2), 2.5))


def test_writing_through_moves():
    out = OUTPUT(arg=StorageArg(0, int64, (3, 4)))
    clear = STORE(out, param(1, int64, (3, 4)))
    inner = shrink(AFTER(out, clear), ((1, 3), (0, 2)))
    target = reshape(flip(permute(inner, (1, 0)), (0,)), (4,))
    got = value(
        AFTER(out, STORE(target, param(0, int64, (4,)))),
        np.arange(1, 5),
        np.zeros((3, 4), np.int64),
    )
    want = np.zeros((3, 4), np.int64)
    want[1:3, 0:2].T[::-1].flat[:] = 0
    want[1:3, 0:2] = np.arange(1, 5).reshape(2, 2)[::-1].T
    assert np.array_equal(got, want)


def test_indexing_a_padded_place_reads_its_zeros():
    x = np.arange(1, 4)
    padded = pad(param(0, int64, (3,)), ((2, 1),))
    got = value(LOAD(INDEX(padded, param(1, int64, (6,)))), x, np.arange(6))
    assert got.tolist() == [0, 0, 1, 2, 3, 0]
    out, i = OUTPUT(arg=StorageArg(0, int64, (6,))), loop(0, 6)
    store = END(STORE(index(out, i), load(index(padded, i))), i)
    assert value(AFTER(out, store), x).tolist() == [0, 0, 1, 2, 3, 0]


def test_moves_of_values_inside_loops():
    x = np.arange(24).reshape(2, 3, 4)
    out, i = OUTPUT(arg=StorageArg(0, int64, (2, 5, 3))), loop(0, 2)
    row = LOAD(INDEX(param(0, int64, (2, 3, 4)), i))
    moved = pad(flip(permute(row, (1, 0)), (0,)), ((0, 1), (0, 0)))
    store = END(STORE(INDEX(out, i), ADD(moved, i)), i)
    want = [np.pad(x[k].T[::-1], ((0, 1), (0, 0))) + k for k in range(2)]
    assert np.array_equal(value(AFTER(out, store), x), np.stack(want))
    grown = expand(reshape(reduce(ADD, permute(row, (1, 0)), 1), (1, 3)), (5, 3))
    store = END(STORE(INDEX(out, i), grown), i)
    want = [np.broadcast_to(x[k].sum(1), (5, 3)) for k in range(2)]
    assert np.array_equal(value(AFTER(out, store), x), np.stack(want))


# Reductions


def exact_reduce(op, dtype, column):
    """One reduction in exact arithmetic; float results as Fractions."""
    if dtype.kind == "bool":
        return all(column) if op is MUL else any(column)
    if dtype.is_int:
        column = [int(v) for v in column]
        exact = {ADD: sum, MUL: math.prod, MAX: lambda c: max(c, default=dtype.min)}[op](column)
        return dtype.wrap(exact)
    column = [Fraction(float(v)) for v in column]
    return {ADD: sum, MUL: math.prod, MAX: max}[op](column)


@pytest.mark.parametrize("axes", [0, 1, 2, 3])
@pytest.mark.parametrize("op", [ADD, MUL, MAX], ids=str)
@pytest.mark.parametrize("dtype", [*dtypes.ALL, INT4, FLOAT8], ids=str)
def test_reductions_against_exact_arithmetic(dtype, op, axes):
    if dtype is bool_ and op is ADD:
        return
    x = samples(dtype, (3, 4, 5), seed=axes)
    got = value(reduce(op, param(0, dtype, x.shape), axes), x)
    count = math.prod(x.shape[:axes])
    columns = x.reshape(count, -1)
    for at, result in enumerate(got.reshape(-1)):
        want = exact_reduce(op, dtype, columns[:, at])
        if dtype.is_float:
            scale = sum(abs(float(v)) for v in columns[:, at]) if op is ADD else abs(float(want))
            steps = count if dtype is dtypes.float64 else 1
            assert abs(float(result) - float(want)) <= steps * scale * 2.0**-dtype.precision
        else:
            assert result == want


@pytest.mark.parametrize("op", [ADD, MUL, MAX], ids=str)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_empty_reductions_give_the_identity(dtype, op):
    if dtype is bool_ and op is ADD:
        return
    want = {ADD: 0, MUL: 1, MAX: -np.inf if dtype.is_float else dtype.min}[op]
    empty = np.zeros((0, 3), dtype.numpy)
    got = value(reduce(op, param(0, dtype, (0, 3)), 1), empty)
    assert got.astype(float).tolist() == [float(want)] * 3
    assert value(reduce(op, param(0, dtype, (3, 0)), 1), empty.reshape(3, 0)).shape == (0,)
    k = loop(0, 0)
    looped = reduce(op, load(index(param(0, dtype, (3,)), k)), 0, k)
    assert float(value(looped, np.zeros(3, dtype.numpy))) == float(want)


def test_maximum_propagates_nan_and_sums_overflow_late():
    x = np.array([1, np.nan, 3], np.float32)
    assert np.isnan(value(reduce(MAX, param(0, float32, (3,)), 1), x))
    for dtype in (dtypes.float16, dtypes.bfloat16, float32):
        top = np.finfo(np.float32).max if dtype is float32 else dtype.round(2.0**dtype.max_exponent)
        x = np.array([top, top, -top, -top]).astype(dtype.numpy)
        assert value(reduce(ADD, param(0, dtype, (4,)), 1), x) == 0


def test_long_sums_of_narrow_floats_are_rounded_once():
    for dtype in (dtypes.float16, dtypes.bfloat16):
        x = np.ones(5000, dtype.numpy)
        assert float(value(reduce(ADD, param(0, dtype, (5000,)), 1), x)) == dtype.round(5000)


def test_matrix_products_at_both_levels():
    rng = np.random.default_rng(0)
    for m, k, n in ((2, 3, 4), (1, 7, 1), (3, 0, 2), (40, 50, 60)):
        x = rng.integers(-4, 5, (m, k)).astype(np.float32)
        y = rng.integers(-4, 5, (k, n)).astype(np.float32)
        a, b = param(0, float32, (m, k)), param(1, float32, (k, n))
        columns = reshape(permute(a, (1, 0)), (k, m, 1))
        assert np.array_equal(
            value(reduce(ADD, MUL(columns, reshape(b, (k, 1, n))), 1), x, y), x @ y
        )
        out, i, j, c = (
            OUTPUT(arg=StorageArg(0, float32, (m, n))),
            loop(0, m),
            loop(1, n),
            loop(2, k),
        )
        total = reduce(ADD, MUL(load(index(a, i, c)), load(index(b, c, j))), 0, c)
        assert np.array_equal(
            value(AFTER(out, END(STORE(index(out, i, j), total), i, j)), x, y), x @ y
        )


def test_reductions_over_several_bounded_loops():
    i, j = loop(0, 5), loop(1, 9, ADD(loop(0, 5), const(1, int64)))
    for op, want in ((ADD, 70), (MAX, 8), (MUL, 0)):
        assert value(reduce(op, ADD(i, j), 0, i, j)) == (
            want if op is not ADD else sum(a + b for a in range(5) for b in range(a + 1))
        )
    assert value(reduce(ADD, const(3, int64), 0, i, j)) == 45  # once for each iteration
    empty = loop(2, 4, const(0, int64))
    assert value(reduce(MAX, i, 0, empty, i)) == int64.min


def test_a_reduction_over_a_bound_in_a_loop():
    x, out, i = np.arange(1, 7), OUTPUT(arg=StorageArg(0, int64, (6,))), loop(0, 6)
    k = loop(1, 6, i)
    total = reduce(ADD, load(index(param(0, int64, (6,)), k)), 0, k)
    got = value(AFTER(out, END(STORE(index(out, i), total), i)), x)
    assert got.tolist() == [0, 1, 3, 6, 10, 15]


def test_a_reduction_of_shaped_values_over_a_loop():
    x = np.arange(24).reshape(4, 2, 3)
    k = loop(0, 4)
    total = REDUCE(LOAD(INDEX(param(0, int64, (4, 2, 3)), k)), k, arg=ReduceArg(ADD, 0))
    assert np.array_equal(value(total, x), x.sum(0))


def test_shared_ranges_are_separate_loops():
    x, k = param(0, float32, (5,)), loop(0, 5)
    item = load(index(x, k))
    largest = reduce(MAX, item, 0, k)
    spread = reduce(ADD, ADD(item, MUL(largest, const(-1.0, float32))), 0, k)
    values = np.arange(5, dtype=np.float32)
    assert value(spread, values) == (values - values.max()).sum()


def test_deep_chains_of_moves():
    node = param(0, int64, (2, 3))
    held = BUFFER(arg=StorageArg(0, int64, (2, 3)))
    place = AFTER(held, STORE(held, node))
    for _ in range(10_000):
        node, place = (reshape(permute(reshape(n, (3, 2)), (1, 0)), (2, 3)) for n in (node, place))
    x = np.arange(6).reshape(2, 3)
    assert np.array_equal(value(node, x), value(place, x))


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_random_programs_with_reductions(seed):
    random = Program(seed, reduce)
    outputs = [AFTER(place, random.effect) for place in random.outputs]
    got = [result.tolist() for result in evaluate(program(*outputs), [])]
    assert got == run(random.effect, random.outputs)


def test_all_small_shapes_of_reduce_then_expand():
    for m, n in product(range(4), range(4)):
        x = np.arange(m * n).reshape(m, n)
        total = reduce(ADD, param(0, int64, (m, n)), 1)
        assert np.array_equal(
            value(expand(reshape(total, (1, n)), (m, n)), x), np.broadcast_to(x.sum(0), (m, n))
        )
