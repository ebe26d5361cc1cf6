"""Kernels taken into their readers: which, at what price, and that nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.week05_06_memory.loops import SMALL, before, inputs_of, kernels, run_plain
from week01_uops.dtypes import float32
from week01_uops.node import UOp, make
from week01_uops.ops import ADD, EXP2, MAX, MUL, NEG, param, program
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, BUFFER, END, INDEX, LOAD, STORE, StorageArg, loop, open_ranges
from week02_render.runtime import load
from week03_loops.library import attention, conv, linear, matmul, relu, softmax, transpose
from week03_loops.ops import REDUCE, ReduceArg, expand, flip, permute, reduce, reshape
from week04_fusion.ops import STAGE, stage
from week05_06_memory.compiler import REFERENCE
from week05_06_memory.evaluate import evaluate
from week05_06_memory.machine import Machine
from week05_06_memory.strips import hold_strips, is_order_free


def before_strips(whole: UOp) -> UOp:
    return before("strips", whole)


def held(whole: UOp, machine: Machine = SMALL) -> tuple[UOp, Trace]:
    """The program after the pass, which means what it meant before."""
    loops, trace = before_strips(whole), Trace()
    after = hold_strips(machine)(loops, trace)
    inputs = inputs_of(whole)
    for a, b in zip(
        evaluate(loops, inputs, state={}), evaluate(after, inputs, state={}), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    return after, trace


def ends(call: UOp) -> list[int]:
    return [r.arg.size for r in call.src[0].src[1:]]


def heads(batch=2, queries=3, shared=3, length=32, width=8, **options) -> UOp:
    q = param(0, float32, (batch, queries, length, width))
    k, v = (param(i, float32, (batch, shared, length, width)) for i in (1, 2))
    return attention(q, k, v, **options)


@pytest.mark.parametrize(
    "whole",
    [
        program(heads()),
        program(heads(causal=True)),
        program(heads(queries=4, shared=2)),
        program(heads(batch=1, queries=1, shared=1, length=48)),
    ],
    ids=["plain", "causal", "grouped", "one head"],
)
def test_attention_is_one_kernel(whole):
    after, trace = held(whole)
    assert trace.fired["strips"]
    (call,) = kernels(after)
    rows = set(call.src[0].src[1:-1])
    stages = [n for n in call.src[0].toposort() if n.op is STAGE]
    assert stages
    for strip in stages:
        assert rows == open_ranges(strip)


def test_a_kernel_is_named_after_all_that_it_combines():
    after, _ = held(program(heads()))
    assert [call.arg.name for call in kernels(after)] == ["add_max_2x3x32x8"]


SERVER = replace(SMALL, l1=32 << 10, l2=1 << 20, l3=32 << 20)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("batch", "queries", "shared", "length", "width"),
    [(1, 8, 8, 1024, 64), (4, 12, 12, 512, 64), (1, 32, 4, 512, 64), (1, 8, 8, 4096, 128)],
)
def test_attention_of_any_size_is_one_kernel(batch, queries, shared, length, width, causal):
    loops = before_strips(program(heads(batch, queries, shared, length, width, causal=causal)))
    assert len(kernels(hold_strips(SERVER)(loops, Trace()))) == 1


@pytest.mark.parametrize("sizes", [(128, 256, 1024), (1024, 1024, 4096), (128, 784, 128)])
def test_perceptrons_of_any_size_are_two_kernels(sizes):
    rows, width, hidden = sizes
    x = relu(linear(param(0, float32, (rows, width)), param(1, float32, (hidden, width))))
    loops = before_strips(program(linear(x, param(2, float32, (width, hidden)))))
    assert len(kernels(hold_strips(SERVER)(loops, Trace()))) == 2


def test_the_compiled_kernel_gives_the_same():
    whole = program(heads(length=64, width=16, causal=True))
    inputs = inputs_of(whole)
    (expected,) = evaluate(whole, inputs)
    (got,) = run_plain(whole, inputs)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_a_perceptron_stays_two_kernels():
    x = param(0, float32, (64, 64))
    hidden = relu(linear(x, param(1, float32, (256, 64))))
    after, trace = held(program(linear(hidden, param(2, float32, (64, 256)))))
    assert len(kernels(after)) == 2
    ((name, reason),) = trace.declined
    assert name == "strips"
    assert reason.startswith("reading 1.31e+05 bytes again for each of 8 strips costs more")


def test_what_is_near_anyway_is_not_held():
    whole = program(heads(batch=1, queries=1, length=8, shared=1))
    after, trace = held(whole, replace(SMALL, l1=8 << 10))
    assert len(kernels(after)) == len(kernels(before_strips(whole)))
    assert all("nearer" in reason for _, reason in trace.declined)


def test_windows_are_not_held():
    x = relu(conv(param(0, float32, (8, 1, 12, 12)), param(1, float32, (4, 1, 3, 3))))
    after, trace = held(program(conv(x, param(2, float32, (4, 4, 3, 3)))))
    assert len(kernels(after)) == 2
    assert any("window" in reason for _, reason in trace.declined)


def costly(x: UOp) -> UOp:
    for _ in range(4):
        x = EXP2(MUL(MAX(x, NEG(x)), -0.5))
    return x


def product(a: UOp, b: UOp) -> UOp:
    (m, k), n = a.shape, b.shape[1]
    terms = MUL(reshape(permute(a, (1, 0)), (k, m, 1)), reshape(b, (k, 1, n)))
    return reduce(ADD, terms, 1)


A, B = param(0, float32, (64, 32)), param(1, float32, (32, 12))


def test_a_producer_of_which_rows_are_read():
    after, _ = held(program(product(costly(A), B)))
    (call,) = kernels(after)
    (stage,) = (n for n in call.src[0].toposort() if n.op is STAGE)
    assert stage.shape == (32,)


def test_the_loops_of_the_rows_come_first():
    after, _ = held(program(transpose(product(costly(A), B), 0, 1)))
    (call,) = kernels(after)
    assert ends(call) == [64, 12]
    assert call.src[1].op.name == "OUTPUT"


def test_a_loop_that_is_split_in_the_reader_is_shared():
    x = param(0, float32, (4, 16, 32))
    rows = product(reshape(costly(x), (64, 32)), B)
    after, _ = held(program(rows))
    (call,) = kernels(after)
    assert ends(call) == [64, 12]


def test_columns_that_all_rows_need_are_not_shared():
    after, trace = held(program(product(A, transpose(costly(param(1, float32, (48, 32))), 0, 1))))
    assert len(kernels(after)) == 2
    ((_, reason),) = trace.declined
    assert "again" in reason


def test_rows_and_columns_are_not_held_both():
    """Of two operands, one is computed row by row; the other would be computed in every row."""
    a, b = EXP2(param(0, float32, (90, 120))), EXP2(param(1, float32, (120, 110)))
    after, trace = held(program(matmul(a, b)), SERVER)
    assert len(kernels(after)) == 2
    assert any("strips of something else" in reason for _, reason in trace.declined)


def test_sums_of_rows_and_of_columns_in_one_nest():
    """No order of the loops computes both once: one of them is repeated."""
    x, y = param(0, float32, (20, 7)), param(1, float32, (7, 30))
    i, j, k, l = (loop(n, size) for n, size in enumerate((20, 30, 7, 7)))
    row = REDUCE(LOAD(INDEX(x, i, k)), k, arg=ReduceArg(MAX, 0))
    column = REDUCE(LOAD(INDEX(y, l, j)), l, arg=ReduceArg(MAX, 0))
    whole = program(stage(MUL(row, column), i, j))
    inputs = inputs_of(whole)
    (got,) = load(REFERENCE.compile(whole), whole).run(inputs)
    np.testing.assert_array_equal(got, evaluate(whole, inputs)[0])


def test_an_output_is_not_taken_away():
    rows = costly(A)
    after, trace = held(program(rows, product(rows, B)))
    assert len(kernels(after)) == 2
    assert not trace.fired["strips"]


def test_two_readers_keep_a_temporary():
    rows = costly(A)
    after, _ = held(program(product(rows, B), product(rows, param(2, float32, (32, 12)))))
    assert len(kernels(after)) >= 2


def test_a_row_is_summed_without_a_temporary():
    sums = reshape(reduce(ADD, permute(costly(A), (1, 0)), 1), (64, 1))
    after, _ = held(program(ADD(product(softmax(A, 1), B), expand(sums, (64, 12)))))
    assert len(kernels(after)) == 1


def test_storage_that_changes_in_between_is_read_before():
    state = make(BUFFER, (), StorageArg(0, float32, (64, 32)))
    rows = costly(make(LOAD, (state,)))
    kept = make(AFTER, (state, make(STORE, (make(AFTER, (state, rows)), MUL(A, 2.0)))))
    whole = program(product(rows, B), kept)
    loops, trace = before_strips(whole), Trace()
    after = hold_strips(SMALL)(loops, trace)
    inputs = inputs_of(whole)
    old = np.random.default_rng(5).standard_normal((64, 32)).astype(np.float32)
    expected = evaluate(whole, inputs, state={0: old.copy()})
    for form in (loops, after):
        for a, b in zip(expected, evaluate(form, inputs, state={0: old.copy()}), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert len(kernels(after)) == 2


def changed_by_the_reader() -> UOp:
    state = make(BUFFER, (), StorageArg(0, float32, (64, 32)))
    new = product(costly(make(LOAD, (state,))), param(1, float32, (32, 32)))
    return program(make(AFTER, (state, make(STORE, (make(AFTER, (state, new)), new)))))


def changed_in_between() -> UOp:
    state = make(BUFFER, (), StorageArg(0, float32, (64, 32)))
    rows = costly(make(LOAD, (state,)))
    backwards = flip(make(AFTER, (state, rows)), [0])
    after = make(AFTER, (state, make(STORE, (backwards, transpose(C)))))
    return program(product(rows, permute(make(LOAD, (after,)), (1, 0))))


C = param(2, float32, (32, 64))


@pytest.mark.parametrize(
    ("whole", "reason"),
    [
        (changed_by_the_reader(), "its reader writes what it reads"),
        (changed_in_between(), "a kernel stands between it and its reader"),
    ],
)
def test_what_a_kernel_reads_must_not_change_before_it_runs(whole, reason):
    loops, trace = before_strips(whole), Trace()
    after = hold_strips(SMALL)(loops, trace)
    assert ("strips", reason) in trace.declined
    assert not trace.fired
    state = np.random.default_rng(5).standard_normal((64, 32)).astype(np.float32)
    (expected,) = evaluate(whole, inputs_of(whole), state={0: state.copy()})
    (got,) = evaluate(after, inputs_of(whole), state={0: state.copy()})
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


I, J = loop(0, 6), loop(1, 8)
PLACE, FLAT, OTHER = param(0, float32, (6, 8)), param(0, float32, (48,)), param(1, float32, (6, 8))


@pytest.mark.parametrize(
    ("place", "value", "free"),
    [
        (INDEX(PLACE, I, J), LOAD(INDEX(OTHER, I, J)), True),
        (INDEX(FLAT, ADD(MUL(I, 8), J)), LOAD(INDEX(OTHER, I, J)), True),
        (INDEX(FLAT, ADD(MUL(I, 7), J)), LOAD(INDEX(OTHER, I, J)), False),
        (INDEX(FLAT, ADD(MUL(J, 6), I)), LOAD(INDEX(OTHER, I, J)), True),
        (INDEX(FLAT, J), LOAD(INDEX(OTHER, I, J)), False),
        (INDEX(PLACE, I, J), LOAD(INDEX(PLACE, I, J)), False),
    ],
)
def test_loops_of_stores_to_distinct_elements_have_any_order(place, value, free):
    assert is_order_free(END(STORE(place, value), I, J)) is free
