"""The interpreter of week 1 on whole programs."""

import numpy as np
import pytest

from week01_uops import dtypes
from week01_uops.dtypes import DType
from week01_uops.errors import CompilerError
from week01_uops.evaluate import MEANING, evaluate
from week01_uops.node import const, make
from week01_uops.ops import (
    ADD,
    BINARY,
    CALL,
    CAST,
    CMPLT,
    CMPNE,
    EXP2,
    FLOORDIV,
    FLOORMOD,
    LOG2,
    MAX,
    MUL,
    NEG,
    RECIP,
    WHERE,
    param,
    program,
)

INT4 = DType("int4", "int", 4, np.dtype(np.int8))


def samples(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        return rng.uniform(-3, 3, shape).astype(dtype.numpy)
    return rng.integers(
        dtype.min, dtype.max, shape, np.int64 if dtype.kind != "uint" else np.uint64, endpoint=True
    ).astype(dtype.numpy)


def run(node, *inputs):
    (result,) = evaluate(program(node), inputs)
    assert result.dtype == node.dtype.numpy
    assert result.shape == node.shape
    return result


def reference(op, dtype, x, y):
    """One element by Python's arithmetic, from exact values."""
    wrap = dtype.wrap if not dtype.is_float else dtype.round
    if dtype.kind == "bool":
        return {MUL: x and y, MAX: x or y, CMPNE: x != y}[op]
    if op is FLOORDIV:
        return wrap(x // y) if y else 0
    if op is FLOORMOD:
        return wrap(x % y) if y else x
    exact = {ADD: x + y, MUL: x * y, MAX: max(x, y)}
    return wrap(exact[op]) if op in exact else {CMPLT: x < y, CMPNE: x != y}[op]


def allowed(op, dtype):
    if dtype.kind == "bool":
        return op in (MUL, MAX, CMPNE)
    return dtype.is_int or op not in (FLOORDIV, FLOORMOD)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("op", sorted(BINARY, key=str), ids=str)
def test_binary_ops_broadcast(op, dtype):
    if not allowed(op, dtype):
        return
    x, y = samples(dtype, (4, 1), 1), samples(dtype, (3,), 2)
    got = run(op(param(0, dtype, (4, 1)), param(1, dtype, (3,))), x, y)
    for i in range(4):
        for j in range(3):
            a, b = x[i, 0].item(), y[j].item()
            if not isinstance(a, (int, float)):
                a, b = float(a), float(b)
            assert got[i, j] == reference(op, dtype, a, b)


@pytest.mark.parametrize("dtype", dtypes.FLOATS, ids=str)
def test_unary_float_ops(dtype):
    x = samples(dtype, (5,))
    p = param(0, dtype, (5,))
    wide = x.astype(np.float64)
    tolerance = 2.0 ** (1 - dtype.precision)
    assert np.allclose(run(EXP2(p), x).astype(float), np.exp2(wide), rtol=tolerance, atol=0)
    assert np.allclose(run(RECIP(p), x).astype(float), 1 / wide, rtol=tolerance, atol=0)
    assert np.array_equal(run(NEG(p), x).astype(float), -wide)
    positive = abs(x)
    log = run(LOG2(p), positive).astype(float)
    assert np.allclose(log, np.log2(abs(wide)), rtol=tolerance, atol=0)


@pytest.mark.parametrize("to", dtypes.ALL, ids=str)
@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_casts_of_small_values_keep_them(source, to):
    x = np.array([0, 1, 1]).astype(source.numpy)
    assert run(CAST(param(0, source, (3,)), arg=to), x).astype(float).tolist() == [0, 1, 1]


def test_where_takes_sides_elementwise():
    c, a, b = param(0, dtypes.bool_, (2, 1)), param(1, dtypes.int8, (3,)), const(7, dtypes.int8)
    got = run(WHERE(c, a, b), np.array([[True], [False]]), np.arange(3, dtype=np.int8))
    assert got.tolist() == [[0, 1, 2], [7, 7, 7]]


def test_scalars_of_every_dtype():
    for dtype in dtypes.ALL:
        if dtype.kind != "bool":
            top = np.asarray(100, dtype.numpy)
            assert float(run(ADD(param(0, dtype), param(0, dtype)), top)) == reference(
                ADD, dtype, 100, 100
            )


def test_a_dtype_narrower_than_its_container_wraps():
    p = param(0, INT4, (3,))
    x = np.array([7, -8, 3], np.int8)
    assert run(ADD(p, p), x).tolist() == [-2, 0, 6]
    assert run(NEG(p), x).tolist() == [-7, -8, -3]
    with pytest.raises(ValueError, match=r"expected int4\[3\] for slot 0 within \[-8, 7\], got"):
        evaluate(program(p), [np.array([8, 0, 0], np.int8)])


def test_outputs_in_order_are_copies():
    p = param(0, dtypes.float32, (2,))
    x = np.ones(2, np.float32)
    first, second, third = evaluate(program(p, const(2, dtypes.int64), p), [x])
    first[0] = 5
    assert (x[0], second, third[0]) == (1, 2, 1)


def test_call_binds_slots_of_the_body_only():
    x, y = param(0, dtypes.int32), param(1, dtypes.int32)
    body = ADD(MUL(x, const(10, dtypes.int32)), y)
    call = CALL(body, y, ADD(x, x))  # 10·y + 2·x
    assert run(call, np.int32(3), np.int32(4)).tolist() == 46
    outer = CALL(MUL(call, x), const(1, dtypes.int32), const(2, dtypes.int32))
    assert run(outer).tolist() == 22


def test_shared_nodes_are_evaluated_once():
    x = param(0, dtypes.uint64)
    for _ in range(60):
        x = ADD(x, x)
    assert run(x, np.uint64(3)) == 3 << 60


def test_a_deep_chain():
    node = param(0, dtypes.int64)
    for i in range(100_000):
        node = ADD(node, const(i % 3, dtypes.int64))
    assert run(node, np.int64(1)) == 1 + sum(i % 3 for i in range(100_000))


def test_deeply_nested_calls():
    x = param(0, dtypes.int64)
    body = ADD(x, const(1, dtypes.int64))
    for _ in range(5_000):
        body = CALL(body, ADD(x, const(1, dtypes.int64)))
    assert run(body, np.int64(0)) == 5_001


def test_memory_of_dead_values_is_freed():
    node = param(0, dtypes.float64, (1 << 20,))
    for _ in range(200):
        node = ADD(node, const(1.0, dtypes.float64))  # 1.6 GB if all were kept
    alive = []
    table = {
        **MEANING,
        ADD: lambda scope, n: alive.append(len(scope.values)) or MEANING[ADD](scope, n),
    }
    evaluate(program(node), [np.zeros(1 << 20)], table)
    assert max(alive) <= 4


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], r"expected float32\[2\] for slot 0, got no input"),
        ({1: np.int32(3)}, r"expected float32\[2\] for slot 0, got no input"),
        ([np.zeros(2), np.int32(1)], r"expected float32\[2\] for slot 0, got float64\[2\]"),
        ([np.zeros(3, np.float32), np.int32(1)], r"slot 0, got float32\[3\]"),
        ([np.zeros(2, np.float32), np.int32(9)], r"int32\[\] for slot 1 within \[0, 8\], got \[9"),
        (
            [np.zeros(2, np.float32), np.int32(-1)],
            r"int32\[\] for slot 1 within \[0, 8\], got \[-1",
        ),
    ],
)
def test_inputs_are_checked(inputs, message):
    p, n = param(0, dtypes.float32, (2,)), param(1, dtypes.int32, (), (0, 8))
    with pytest.raises(ValueError, match=message):
        evaluate(program(ADD(p, CAST(n, arg=dtypes.float32))), inputs)


def test_slots_may_have_gaps_and_more_may_be_given():
    p = param(3, dtypes.int8)
    assert evaluate(program(p), {3: np.int8(1), 5: np.int8(2)})[0] == 1
    assert evaluate(program(p), [None, None, None, np.int8(1), None])[0] == 1


def test_an_op_without_meaning_is_named():
    table = {op: row for op, row in MEANING.items() if op is not NEG}
    with pytest.raises(CompilerError, match="expected an op with a meaning, got NEG"):
        evaluate(program(NEG(const(1, dtypes.int8))), [], table)


def test_no_warning_escapes():
    p = param(0, dtypes.float32, (3,))
    x = np.array([0, -1, 3e38], np.float32)
    run(LOG2(p), x)
    run(RECIP(p), x)
    run(MUL(p, p), x)
    run(CAST(p, arg=dtypes.int8), x)
    run(CAST(p, arg=dtypes.float16), x)
    big = make(CAST, (p,), dtypes.int64)
    run(MUL(big, big), x)
