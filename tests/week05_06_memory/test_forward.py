"""Sums of what the loop before them stores: joined with it, where nothing else is read."""

from dataclasses import replace

import numpy as np
import pytest

from tests.week02_render.by_hand import Launch, joined
from tests.week05_06_memory.loops import SMALL, kernels
from week01_uops.closeness import within
from week01_uops.dtypes import float32, int64
from week01_uops.node import UOp, const
from week01_uops.ops import ADD, EXP2, MUL, param, program
from week01_uops.passes import verifier
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, AllocArg, loop
from week02_render.runtime import load
from week03_loops.error_model import evaluate_with_error
from week03_loops.library import layernorm, softmax
from week05_06_memory.compiler import compiler_for
from week05_06_memory.evaluate import evaluate
from week05_06_memory.forward import forward
from week05_06_memory.machine import detect

I, K, L = loop(0, 4), loop(1, 8), loop(2, 8)
X = param(1, float32, (4, 9))
ROW = UOp.apply_to(ALLOC, (), AllocArg(0, float32, (9,), "LOCAL"))
LARGE = replace(SMALL, vector_registers=32)


def number(value: int) -> UOp:
    return const(value, int64)


def filled(*more: UOp, item: UOp = K, at: UOp | None = None) -> UOp:
    value = EXP2(LOAD(INDEX(X, I, item)))
    return END(STORE(INDEX(AFTER(ROW, I, *more), at or item), value), item)


def sums(*values: UOp, item: UOp = L) -> UOp:
    """p0[i] = the sum of the totals of some values over a loop."""
    effects, places = [], []
    for slot, value in enumerate(values, 1):
        acc = UOp.apply_to(ALLOC, (), AllocArg(slot, float32, (), "REG"))
        start = STORE(AFTER(acc, I), const(0.0, float32))
        inside = AFTER(acc, start, item)
        effects.append(STORE(inside, ADD(LOAD(inside), value)))
        places.append(acc)
    end = END(effects[0] if len(effects) == 1 else AFTER(*effects), item)
    total = const(0.0, float32)
    for place in places:
        total = ADD(total, LOAD(AFTER(place, end)))
    return END(STORE(INDEX(param(0, float32, (4,)), I), total), I)


def held(first: UOp, at: UOp) -> UOp:
    return LOAD(INDEX(AFTER(ROW, first), at))


def run(body: UOp, machine=LARGE) -> tuple[UOp, int]:
    """The body after the pass, which means what it meant."""
    trace = Trace()
    after = forward(machine)(joined({1: X}, [Launch(body, (1,), "k")]), trace)
    before = joined({1: X}, [Launch(body, (1,), "k")])
    x = np.random.default_rng(0).standard_normal((4, 9)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(after, {1: x}), evaluate(before, {1: x}))
    return after, trace.fired["forward"]


FIRST = filled()
"""Row i: e(k) for all k."""

PLAIN = held(FIRST, L)


@pytest.mark.parametrize("body", [sums(PLAIN), sums(PLAIN, MUL(PLAIN, PLAIN))], ids=["one", "two"])
def test_sums_follow_at_once(body):
    after, fired = run(body)
    assert fired == 1
    (call,) = kernels(after)
    inner = [n for n in call.src[0].toposort() if n.op is END and K not in n.src and I not in n.src]
    assert len(inner) == 1
    assert not [n for n in call.src[0].toposort() if n is K]


def other_sum(first: UOp) -> UOp:
    """What is summed depends on a sum of all that was stored."""
    acc = UOp.apply_to(ALLOC, (), AllocArg(7, float32, (), "REG"))
    item = loop(5, 8)
    start = STORE(AFTER(acc, I), const(0.0, float32))
    inside = AFTER(acc, start, item)
    whole = END(STORE(inside, ADD(LOAD(inside), held(first, item))), item)
    return MUL(held(first, L), LOAD(AFTER(acc, whole)))


@pytest.mark.parametrize(
    "body",
    [
        sums(held(FIRST, ADD(L, number(1)))),
        sums(held(FIRST, number(3))),
        sums(LOAD(INDEX(AFTER(ROW, FIRST, filled(FIRST)), L))),
        sums(held(filled(item=loop(1, 9)), L)),
        sums(held(filled(at=ADD(K, number(1))), L)),
    ],
    ids=["its neighbour", "one for all", "two nests", "fewer", "shifted"],
)
def test_others_stay_apart(body):
    assert run(body)[1] == 0


def test_what_depends_on_all_of_a_row_stays_apart():
    """Of two sums, the second needs the first: that one is joined, the other is not."""
    assert run(sums(other_sum(FIRST)))[1] == 1


def test_registers_have_to_suffice():
    values = [MUL(PLAIN, const(float(n), float32)) for n in range(1, 10)]
    assert run(sums(*values))[1] == 0
    assert run(sums(*values[:8]))[1] == 1
    assert run(sums(*values[:8]), replace(LARGE, vector_registers=16))[1] == 0


@pytest.mark.parametrize("function", [lambda x: softmax(x, 1), lambda x: softmax(x, 0), layernorm])
@pytest.mark.parametrize("shape", [(3, 1024), (3, 4096), (2, 1000), (5, 333)])
def test_whole_programs(function, shape):
    whole = program(function(param(0, float32, shape)))
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    artifact = compiler_for(replace(detect(), vector_bytes=64, vector_registers=32)).compile(
        whole, "c", [verifier]
    )
    (got,) = load(artifact, whole).run([x])
    (bound,) = evaluate_with_error(whole, [x])
    assert within(bound, got, float32) is None


def test_of_a_softmax_the_sum_has_no_loop_of_its_own():
    machine = replace(detect(), vector_bytes=64, vector_registers=32)
    whole, steps = program(softmax(param(0, float32, (3, 1024)), 1)), []
    compiler_for(machine).compile(whole, "c", [steps.append])
    (fired,) = [s.trace.fired["forward"] for s in steps if s.of.name == "forward"]
    assert fired == 1
