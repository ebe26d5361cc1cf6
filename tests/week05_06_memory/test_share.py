"""Common values of two nests: held once, where they are alike, heavy, and small enough."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.week05_06_memory.loops import SMALL, agree, before, inputs_of, kernels, run_plain
from week01_uops.dtypes import float32
from week01_uops.node import UOp, const, make
from week01_uops.ops import (
    ADD,
    CALL,
    EXP2,
    MAX,
    MUL,
    NEG,
    RECIP,
    RETURN,
    CallArg,
    param,
    program,
)
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, BUFFER, END, INDEX, LOAD, OUTPUT, STORE, StorageArg, loop
from week03_loops.library import attention, layernorm, log_softmax, softmax
from week03_loops.ops import REDUCE, ReduceArg
from week04_fusion.ops import STAGE
from week05_06_memory.evaluate import evaluate
from week05_06_memory.share import share

X = param(0, float32, (6, 40))
I, J, K = loop(0, 6), loop(1, 40), loop(2, 40)


def shared(whole: UOp, machine=SMALL) -> tuple[UOp, Trace]:
    """The program after the pass; it means what it did."""
    loops, trace = before("share", whole), Trace()
    after = share(machine)(loops, trace)
    agree(whole, loops, after)
    return after, trace


def count(op, whole: UOp) -> int:
    return sum(n.op is op for n in whole.toposort())


def by_hand(value: UOp, *ranges: UOp, source: UOp = X) -> UOp:
    """A program of one kernel that stores a value, over PARAM 1, in each of its ranges."""
    shape = tuple(r.arg.size for r in ranges)
    target = param(0, float32, shape)
    output = make(OUTPUT, (), StorageArg(0, float32, shape))
    body = END(STORE(INDEX(target, *ranges), value), *ranges)
    return make(RETURN, (make(AFTER, (output, make(CALL, (body, output, source), CallArg("k")))),))


def total(value: UOp, *ranges: UOp, op=ADD) -> UOp:
    return make(REDUCE, (value, *ranges), ReduceArg(op, 0))


def run(whole: UOp, machine=SMALL) -> tuple[UOp, Trace]:
    trace = Trace()
    after = share(machine)(whole, trace)
    agree(whole, after)
    return after, trace


def at(*indices: UOp) -> UOp:
    return LOAD(INDEX(param(1, float32, (6, 40)), *indices))


def test_softmax_computes_each_exponential_once():
    after, trace = shared(program(softmax(X, 1)))
    assert trace.fired["share"] == 1
    assert count(EXP2, after) == 1
    (held,) = (n for n in after.toposort() if n.op is STAGE)
    assert held.shape == (40,)


@pytest.mark.parametrize("value", [log_softmax(X, 1), layernorm(X), softmax(X, 0)])
def test_what_is_computed_once_or_cheap_is_not_held(value):
    after, trace = shared(program(value))
    assert not trace.fired["share"]
    assert not count(STAGE, after)


def test_the_loops_around_come_first():
    after, _ = run(by_hand(MUL(EXP2(at(I, J)), total(EXP2(at(I, K)), K)), J, I))
    (call,) = kernels(after)
    assert call.src[0].src[1:] == (I, J)
    assert count(EXP2, after) == 1


def test_attention_holds_its_exponentials():
    q, k, v = (param(i, float32, (1, 2, 48, 16)) for i in range(3))
    after, trace = shared(program(attention(q, k, v)), replace(SMALL, l2=1 << 16))
    assert trace.fired["share"] == 1
    assert count(EXP2, after) == 1


def test_a_row_that_does_not_fit_is_computed_again():
    whole = program(softmax(param(0, float32, (2, 1025)), 1))
    after, trace = shared(whole)
    assert not trace.fired["share"]
    assert count(EXP2, after) == 2
    ((_, reason),) = trace.declined
    assert reason == "4100 bytes of it are more than half of the second cache"


def test_values_in_three_nests_and_of_two_ranges():
    both = loop(3, 40), loop(4, 6)
    square = total(EXP2(at(*both[::-1])), *both, op=MAX)
    value = MUL(EXP2(at(I, J)), RECIP(ADD(square, total(EXP2(at(I, K)), K))))
    after, trace = run(by_hand(value, I, J))
    assert trace.fired["share"] == 1
    (held,) = (n for n in after.toposort() if n.op is STAGE)
    assert held.shape in ((6, 40), (40, 6))


def test_equal_reductions_over_ranges_of_other_names_are_one():
    again = loop(7, 40)
    value = ADD(total(EXP2(at(I, K)), K), MUL(total(EXP2(at(I, again)), again), 3.0))
    after, trace = run(by_hand(value, I))
    assert trace.fired["share"] == 1
    assert not count(STAGE, after)
    assert count(REDUCE, after) == 1


def test_ranges_of_other_sizes_differ():
    short = loop(2, 39)
    _, trace = run(by_hand(ADD(EXP2(at(I, J)), total(EXP2(at(I, short)), short)), I, J))
    assert not trace.fired["share"]


def test_a_row_is_not_held_anew_in_each_turn_of_a_loop_over_it():
    """Both sums go through the rows; one does so for each column by itself."""
    row, other = loop(5, 6), loop(7, 40)
    rows_first = total(EXP2(at(row, K)), row, K)
    columns_first = total(MAX(total(EXP2(at(row, other)), row), 3.0), other)
    after, trace = run(by_hand(ADD(rows_first, columns_first), I))
    assert not trace.fired["share"]
    ((_, reason),) = trace.declined
    assert reason == "it would be held anew in each turn of a loop over its elements"
    assert count(EXP2, after) == 2


def test_storage_that_the_kernel_writes_is_read_again():
    place = make(BUFFER, (), StorageArg(0, float32, (6, 40)))
    read = param(0, float32, (6, 40))
    here, there = LOAD(INDEX(read, I, J)), LOAD(INDEX(read, I, K))
    value = MUL(EXP2(here), total(EXP2(there), K))
    body = END(STORE(INDEX(read, I, J), value), I, J)
    whole = make(RETURN, (make(AFTER, (place, make(CALL, (body, place), CallArg("k")))),))
    trace = Trace()
    assert share(SMALL)(whole, trace) is whole
    ((_, reason),) = trace.declined
    assert "changes" in reason


def test_the_compiled_kernel_gives_the_same():
    whole = program(softmax(X, 1))
    inputs = inputs_of(whole)
    np.testing.assert_allclose(run_plain(whole, inputs)[0], evaluate(whole, inputs)[0], rtol=1e-6)


steps = st.sampled_from(
    [
        lambda v: EXP2(MUL(v, 0.5)),
        lambda v: RECIP(ADD(MUL(v, v), 1.0)),
        lambda v: MUL(v, at(I, const(3, I.dtype))),
        lambda v: ADD(v, NEG(total(at(I, loop(9, 40)), loop(9, 40), op=MAX))),
        NEG,
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=1, max_size=5), st.sampled_from([ADD, MAX]), st.booleans())
def test_any_value_of_two_nests(chain, op, order):
    def value(r: UOp) -> UOp:
        x = at(I, r)
        for step in chain:
            x = step(x)
        return x

    summed = total(value(K), K, op=op)
    run(by_hand(MUL(value(J), summed), *((I, J) if order else (J, I))))
