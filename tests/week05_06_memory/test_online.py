"""Long rows in blocks: which sums are recognized, what becomes of them, and when it is chosen."""

from dataclasses import replace

import numpy as np
import pytest

from tests.week05_06_memory.loops import SMALL, before, inputs_of, kernels
from week01_uops.calls import substitute
from week01_uops.closeness import within
from week01_uops.dtypes import DType, bool_, float16, float32, float64, int64
from week01_uops.node import UOp, const, make
from week01_uops.ops import ADD, CAST, EXP2, MAX, MUL, NEG, RECIP, param, program
from week01_uops.passes import Pipeline, verifier
from week01_uops.rewrite import Trace
from week02_render.ops import ALLOC, END, INDEX, KEEP, LOAD, RANGE, STORE, loop, open_ranges
from week02_render.runtime import load
from week03_loops.error_model import evaluate_with_error
from week03_loops.library import (
    add,
    attention,
    cross_entropy,
    exp,
    linear,
    log,
    log_softmax,
    matmul,
    reduce_max,
    reduce_sum,
    softmax,
    sub,
)
from week03_loops.ops import REDUCE, ReduceArg
from week04_fusion.merge import replace_calls
from week05_06_memory.compiler import compiler_for, pipeline_for
from week05_06_memory.dependence import carried
from week05_06_memory.evaluate import evaluate
from week05_06_memory.hoist import hoist
from week05_06_memory.machine import Machine
from week05_06_memory.nests import ScheduleError
from week05_06_memory.online import online
from week05_06_memory.roles import Nest, nests_of
from week05_06_memory.running import NoBlocks, Running, find_running
from week05_06_memory.split import split
from week05_06_memory.tiling import tileable
from week05_06_memory.widen import widen

LARGE = replace(SMALL, l1=32 << 10, l2=1 << 20, l3=32 << 20)


def given(slot: int, *shape: int, dtype: DType = float32) -> UOp:
    return param(slot, dtype, shape)


def heads(queries=67, keys=301, width=16, value=16, dtype=float32, **options) -> UOp:
    q, k = given(0, 2, queries, width, dtype=dtype), given(1, 2, keys, width, dtype=dtype)
    return program(attention(q, k, given(2, 2, keys, value, dtype=dtype), **options))


def log_sum_exp(x: UOp) -> UOp:
    top = reduce_max(x, -1, keepdim=True)
    return add(top, log(reduce_sum(exp(sub(x, top)), -1, keepdim=True)))


# Which sums are recognized ------------------------------------------------------------------------

X, V, OUT = given(0, 5, 40), given(1, 40), given(2, 5)
ROW, J, K = loop(0, 5), loop(1, 40), loop(2, 40)


def at(place: UOp, *indices: UOp) -> UOp:
    return make(LOAD, (make(INDEX, (place, *indices)),))


def total(op, value: UOp, item: UOp) -> UOp:
    return make(REDUCE, (value, item), ReduceArg(op, 0))


def real(value: float) -> UOp:
    return const(value, float32)


TOP = total(MAX, at(X, ROW, J), J)
LOW = make(ADD, (at(X, ROW, K), make(NEG, (TOP,))))


def body_of(value: UOp) -> UOp:
    return make(END, (make(STORE, (make(INDEX, (OUT, ROW)), value)), ROW))


def found(term: UOp) -> Running:
    return find_running(body_of(total(ADD, term, K)))


@pytest.mark.parametrize(
    "exponent",
    [
        LOW,
        make(MUL, (LOW, real(1.5))),
        make(KEEP, (make(MUL, (LOW, real(1.5))),)),
        make(
            ADD,
            (make(MUL, (at(X, ROW, K), real(0.3))), make(NEG, (make(MUL, (TOP, real(0.3))),))),
        ),
        make(ADD, (make(MUL, (TOP, real(-0.3))), make(MUL, (real(0.3), at(X, ROW, K))))),
    ],
    ids=["x - m", "(x - m)c", "kept", "xc - mc", "m(-c) + cx"],
)
def test_exponents_are_multiples_of_a_difference(exponent):
    running = found(make(EXP2, (exponent,)))
    assert running.top is TOP
    (one,) = running.totals
    assert (one.rest, one.outer) == ((), ())


def test_factors_of_a_weight_are_taken_apart():
    weight, other = make(EXP2, (LOW,)), loop(3, 40)
    scale = make(RECIP, (total(ADD, substitute(weight, {K: other}), other),))
    term = make(MUL, (make(MUL, (weight, scale)), at(V, K)))
    denominator, result = found(term).totals
    assert denominator.node is scale.src[0]
    assert result.outer == (scale,)
    assert [f.op for f in result.rest] == [LOAD]


def test_a_rounded_weight_is_taken_as_it_was():
    weight = make(EXP2, (LOW,))
    narrow = make(CAST, (weight,), float16)
    term = make(MUL, (narrow, const(2.0, float16)))
    value = make(CAST, (total(ADD, term, K),), float32)
    (one,) = find_running(body_of(value)).totals
    assert one.weight.dtype is float32
    assert one.dtype is float32


@pytest.mark.parametrize(
    "term",
    [
        make(EXP2, (make(NEG, (LOW,)),)),
        make(EXP2, (make(ADD, (LOW, real(1.0))),)),
        make(EXP2, (make(ADD, (make(MUL, (at(X, ROW, K), real(0.3))), make(NEG, (TOP,)))),)),
        make(EXP2, (make(ADD, (LOW, at(V, K))),)),
        make(MUL, (make(EXP2, (LOW,)), LOW)),
        make(MUL, (make(EXP2, (LOW,)), make(RECIP, (TOP,)))),
        make(ADD, (make(EXP2, (LOW,)), at(V, K))),
        at(X, ROW, K),
        make(EXP2, (at(X, ROW, K),)),
    ],
    ids=["m - x", "x - m + 1", "0.3x - m", "x - m + v", "e(x - m)", "e/m", "e + v", "x", "e^x"],
)
def test_other_terms_are_not(term):
    with pytest.raises(NoBlocks, match="no maxima"):
        found(term)


def test_the_row_of_a_maximum_is_the_row_of_its_sums():
    shorter = loop(3, 39)
    low = make(ADD, (at(X, ROW, shorter), make(NEG, (TOP,))))
    with pytest.raises(NoBlocks):
        find_running(body_of(total(ADD, make(EXP2, (low,)), shorter)))


# What becomes of them -----------------------------------------------------------------------------


def joined(whole: UOp, machine: Machine = SMALL) -> tuple[UOp, Trace]:
    """The program after the pass, which means what it meant before."""
    trace = Trace()
    after = online(machine)(before("online", whole), trace)
    inputs = inputs_of(whole)
    expect_right(whole, inputs, evaluate(after, inputs, state={}))
    return after, trace


def expect_right(whole: UOp, inputs: dict, results: list) -> None:
    """Within the bound that holds for the program as it was."""
    bounds = evaluate_with_error(whole, inputs)
    for output, bound, got in zip(whole.src, bounds, results, strict=True):
        assert within(bound, got, output.dtype) is None


CASES = {
    "attention": heads(),
    "causal": heads(causal=True),
    "causal, some rows see nothing": heads(queries=301, keys=207, causal=True),
    "float mask": heads(mask=given(3, 67, 301)),
    "bool mask": heads(mask=given(3, 67, 301, dtype=bool_)),
    "groups": program(attention(given(0, 4, 67, 16), given(1, 2, 301, 16), given(2, 2, 301, 16))),
    "one query": heads(queries=1, keys=3001, value=24),
    "float16": heads(dtype=float16),
    "float64": heads(dtype=float64),
    "softmax": program(softmax(given(0, 3, 5003))),
    "log-softmax of one row": program(log_softmax(given(0, 3001))),
    "log-sum-exp": program(log_sum_exp(given(0, 3, 5000))),
    "log-sum-exp of products": program(log_sum_exp(matmul(given(0, 20, 16), given(1, 16, 1500)))),
}


@pytest.mark.parametrize("whole", CASES.values(), ids=CASES)
def test_long_rows_are_one_kernel_that_holds_blocks(whole):
    after, trace = joined(whole)
    assert trace.fired["online"] == 1
    (call,) = kernels(after)
    held = [n.size * n.dtype.bits // 8 for n in call.src[0].toposort() if n.op is ALLOC]
    assert sum(held) <= SMALL.l2


COMPILED = [
    "causal, some rows see nothing",
    "float mask",
    "groups",
    "one query",
    "float16",
    "softmax",
    "log-sum-exp of products",
]


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_and_scheduled_they_are_right(name):
    whole = CASES[name]
    inputs = inputs_of(whole, seed=5)
    artifact = compiler_for(SMALL).compile(whole, "c", [verifier])
    expect_right(whole, inputs, load(artifact.source, whole).run(inputs))


def test_cross_entropy_has_rows_in_a_mean():
    whole = program(cross_entropy(given(0, 3, 3000), given(1, 3, dtype=int64)))
    after = online(SMALL)(before("online", whole), trace := Trace())
    assert trace.fired["online"] == 1
    inputs = inputs_of(whole)
    np.testing.assert_allclose(evaluate(after, inputs), evaluate(whole, inputs), rtol=1e-6)


def block_loops(whole: UOp) -> list[UOp]:
    """The loops over blocks."""
    (call,) = kernels(whole)
    return [r for n in call.src[0].toposort() if is_over_blocks(n) for r in n.src[1:]]


def is_over_blocks(node: UOp) -> bool:
    """Whether a node repeats other loops."""
    return node.op is END and any(effect.op is END for effect in node.src[0].src)


def test_a_rest_is_a_block_of_its_own():
    assert [r.arg.size for r in block_loops(joined(heads(keys=320))[0])] == [20]
    assert [r.arg.size for r in block_loops(joined(heads(keys=301))[0])] == [18, 1]


def test_a_causal_mask_ends_the_loop_over_blocks():
    after, _ = joined(heads(queries=301, causal=True))
    blocks, rest = block_loops(after)
    assert blocks.src
    assert rest.src
    (rows,) = open_ranges(blocks.src[0])
    assert rows.arg.size == -(-301 // 24)


def test_a_bound_that_is_no_sum_is_none():
    """Each row of a strip may end anywhere: all blocks are computed."""
    after, _ = joined(heads(mask=given(3, 67, 301, dtype=bool_)))
    assert all(not r.src for r in block_loops(after))


# When it is chosen --------------------------------------------------------------------------------


def loops_of(whole: UOp, machine: Machine) -> tuple[UOp, dict[str, Trace]]:
    """The program before it is scheduled, and what the passes up to there said."""
    pipeline = pipeline_for(machine)
    traces: dict[str, Trace] = {}
    observe = lambda step: traces.update({step.of.name: step.trace})
    passes = pipeline.passes[: pipeline.index("schedule")]
    return Pipeline("test", pipeline.accepts, passes).run(whole, [observe]), traces


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [256, 1024])
def test_attention_is_one_kernel_in_the_form_that_the_caches_ask_for(length, causal):
    q, k, v = (given(i, 1, 2, length, 32) for i in range(3))
    whole = program(attention(q, k, v, causal=causal))
    small, traces = loops_of(whole, SMALL)
    assert len(kernels(small)) == 1
    assert traces["online"].fired["online"] == 1
    large, traces = loops_of(whole, LARGE)
    assert len(kernels(large)) == 1
    assert not traces["online"].fired


def test_of_long_attention_the_rows_do_not_fit():
    q, k, v = (given(i, 1, 1, 16384, 64) for i in range(3))
    found, traces = loops_of(program(attention(q, k, v)), LARGE)
    assert traces["online"].fired["online"] == 1
    assert len(kernels(found)) == 1
    loops = {n.arg.size for n in kernels(found)[0].src[0].toposort() if n.op is RANGE}
    assert loops == {86, 192, 64, 256}


def test_rows_that_nearly_fit_stay_whole_and_it_is_said_why():
    whole = heads(queries=4, keys=200)
    _, trace = joined(whole, replace(SMALL, l2=16 << 10))
    assert not trace.fired
    ((name, reason),) = trace.declined
    assert name == "online"
    assert reason == "6.4e+03 bytes of rows fit in half of the second cache"


@pytest.mark.parametrize(("queries", "keys"), [(67, 0), (67, 1), (0, 301)])
def test_empty_rows_have_no_blocks(queries, keys):
    found, traces = loops_of(heads(queries=queries, keys=keys), SMALL)
    assert not traces["online"].fired
    inputs = inputs_of(heads(queries=queries, keys=keys))
    expect_right(heads(queries=queries, keys=keys), inputs, evaluate(found, inputs, state={}))


def test_rows_that_are_stored_are_not_in_blocks():
    scores = matmul(given(0, 64, 16), given(1, 16, 600))
    _, trace = joined(program(softmax(scores)))
    assert not trace.fired
    assert [r for _, r in trace.declined] == ["something else needs whole rows"]


def test_short_rows_stay_out_of_blocks():
    """The queries are computed from short rows, once each: not again for each block."""
    q = linear(given(0, 1, 300, 16), given(3, 16, 16))
    after, trace = joined(program(attention(q, given(1, 1, 300, 16), given(2, 1, 300, 16))))
    assert trace.fired["online"] == 1
    assert len(kernels(after)) == 2


def test_kernels_in_blocks_are_not_taken_into_others():
    whole = program(linear(heads().src[0], given(3, 8, 16)))
    found, traces = loops_of(whole, SMALL)
    assert len(kernels(found)) == 2
    assert "one of the two is computed in blocks" in [r for _, r in traces["strips"].declined]
    inputs = inputs_of(whole)
    expect_right(whole, inputs, evaluate(found, inputs, state={}))


def test_one_cache_is_enough():
    assert joined(heads(), replace(SMALL, l1=8 << 10, l2=0, l3=0))[1].fired["online"] == 1


def test_blocks_have_rows_where_rows_share_what_they_read():
    def rows(whole: UOp) -> set[int]:
        (call,) = kernels(joined(whole)[0])
        held = [n for n in call.src[0].toposort() if n.op is ALLOC]
        return {n.shape[0] if n.shape else 1 for n in held}

    assert rows(program(log_sum_exp(given(0, 3, 5000)))) == {1}
    assert rows(program(log_sum_exp(matmul(given(0, 20, 16), given(1, 16, 1500))))) == {20}


# Steps that meet running sums ---------------------------------------------------------------------


@pytest.fixture
def blocked() -> tuple[UOp, Nest]:
    """The body of an attention in blocks, and the loop over them."""
    (call,) = kernels(joined(heads(keys=320))[0])
    (blocks,) = [nest for nest in nests_of(call.src[0]) if is_over_blocks(nest.root)]
    return call.src[0], blocks


def test_blocks_are_done_in_order(blocked):
    _, nest = blocked
    assert carried(nest.root) == set(nest.results)
    assert not tileable(nest)


def test_steps_do_not_move_what_blocks_bring_up_to_date(blocked):
    body, nest = blocked
    (block,) = nest.results
    (strip,) = [r for r in open_ranges(nest.root) if r.arg.size == 3]
    sums = [n for n in body.toposort() if n.op is REDUCE and block in open_ranges(n)]
    for step in (
        lambda: widen(body, block.arg.id),
        lambda: widen(body, strip.arg.id),
        lambda: hoist(body, sums[-1].src[1].arg.id, (block.arg.id,)),
    ):
        with pytest.raises(ScheduleError, match="brought up to date"):
            step()


@pytest.mark.parametrize("by", [2, 5])
def test_a_bounded_loop_over_blocks_can_be_split(by):
    """What brings the sums up to date past the bound is gated, wherever it is waited for."""
    whole = heads(queries=60, keys=160, causal=True)
    after, _ = joined(whole)
    (call,) = kernels(after)
    (block,) = block_loops(after)
    assert block.src
    body = split(call.src[0], block.arg.id, by)
    found = replace_calls(after, {call: call.with_src((body, *call.src[1:]))})
    inputs = inputs_of(whole)
    expect_right(whole, inputs, evaluate(found, inputs, state={}))
