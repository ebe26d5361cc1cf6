"""The fusion decision: what it costs, what stays, and how many kernels are left."""

import numpy as np
import pytest

from week01_uops.dtypes import float32, int64
from week01_uops.interchange import read, write
from week01_uops.node import UOp
from week01_uops.ops import ADD, CALL, EXP2, MAX, MUL, NEG, RECIP, param, program
from week01_uops.passes import Step, verifier
from week01_uops.rewrite import Trace
from week02_render.ops import STORE, loop
from week03_loops.library import arange
from week03_loops.ops import REDUCE, expand, permute, reduce, reshape
from week04_fusion.compiler import COMPILER
from week04_fusion.demand import demand
from week04_fusion.evaluate import evaluate
from week04_fusion.fuse import FUSION, fuse
from week04_fusion.ops import OPS, STAGE
from week04_fusion.stage import stage_all, store_stages
from week04_fusion.work import constants, work_of

A = param(0, float32, (64, 48))
B = param(1, float32, (48, 32))


def matmul(a: UOp, b: UOp) -> UOp:
    m, k = a.shape
    n = b.shape[1]
    left = reshape(permute(a, (1, 0)), (k, m, 1))
    return reduce(ADD, MUL(left, reshape(b, (k, 1, n))), 1)


def by_rows(op, x: UOp) -> UOp:
    return reshape(reduce(op, permute(x, (1, 0)), 1), (x.shape[0], 1))


def softmax(x: UOp) -> UOp:
    e = EXP2(MUL(ADD(x, NEG(by_rows(MAX, x))), 1.4426950408889634))
    return MUL(e, RECIP(by_rows(ADD, e)))


def layernorm(x: UOp) -> UOp:
    n = 1 / x.shape[1]
    centred = ADD(x, NEG(MUL(by_rows(ADD, x), n)))
    variance = MUL(by_rows(ADD, MUL(centred, centred)), n)
    return MUL(centred, RECIP(ADD(variance, 1e-5)))


def attention() -> UOp:
    q, k, v = (param(i, float32, (64, 16)) for i in range(3))
    return matmul(softmax(MUL(matmul(q, permute(k, (1, 0))), 0.25)), v)


def chain(x: UOp) -> UOp:
    for _ in range(10):
        x = EXP2(MUL(MAX(x, NEG(x)), -0.5))
    return x


def two_sums(x: UOp) -> tuple[UOp, UOp]:
    return reduce(ADD, x, 1), reduce(ADD, MUL(x, x), 1)


KERNELS = {
    "elementwise chain": ((chain(A),), 1),
    "gemm, bias, relu": ((MAX(ADD(matmul(A, B), param(2, float32, (32,))), 0.0),), 1),
    "softmax": ((softmax(A),), 1),
    "layernorm": ((layernorm(A),), 1),
    "attention": ((attention(),), 3),
    "two sums of one array": (two_sums(A), 1),
    "two products": ((matmul(A, B), matmul(A, param(2, float32, (48, 32)))), 2),
    "softmax of a product": ((softmax(matmul(A, B)),), 2),
    "a product of a softmax": ((matmul(softmax(A), B),), 2),
}


def compiled(outputs: tuple[UOp, ...]) -> tuple[UOp, list[Step]]:
    steps: list[Step] = []
    return COMPILER.run(program(*outputs), [steps.append, verifier]), steps


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_counts(name):
    outputs, most = KERNELS[name]
    whole, _ = compiled(outputs)
    assert sum(n.op is CALL for n in whole.toposort()) <= most


@pytest.mark.parametrize("name", KERNELS)
def test_every_level_means_the_same(name):
    before = program(*KERNELS[name][0])
    generator = np.random.default_rng(0)
    inputs = {
        n.arg.slot: generator.standard_normal(n.shape).astype(np.float32)
        for n in before.toposort()
        if n.op.name == "PARAM"
    }
    expected = evaluate(before, inputs)
    for level in ("tensor", "loop", "kernel"):
        got = evaluate(COMPILER.run(before, until=level), inputs, state={})
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def test_every_computed_value_is_staged_first():
    staged = stage_all(program(chain(A)), Trace())
    assert sum(n.op is STAGE for n in staged.toposort()) == 40
    assert not any(n.op is STAGE for n in fuse(staged, Trace()).toposort())


def test_programs_that_hold_stages_already_are_decided_too():
    staged = stage_all(program(chain(A)), Trace())
    assert sum(n.op is CALL for n in COMPILER.run(staged).toposort()) == 1


def test_a_stage_that_stays_says_why():
    _, steps = compiled(KERNELS["attention"][0])
    declined = next(s for s in steps if s.of.name == "fuse").trace.declined
    assert len(declined) == 2
    assert all("evaluations of" in reason for _, reason in declined)


def norm_of(count: int) -> UOp:
    """The squared length of so many arrays together, as gradients are clipped by."""
    terms = [param(k, float32, (8 + k, 4)) for k in range(count)]
    sums = [reduce(ADD, MUL(x, x), 2) for x in terms]
    total = sums[0]
    for term in sums[1:]:
        total = ADD(total, term)
    return total


@pytest.mark.parametrize(("count", "kernels"), [(1, 1), (4, 1), (5, 2), (40, 37)])
def test_a_kernel_computes_few_sums_for_one_number(count, kernels):
    before = program(norm_of(count))
    whole = COMPILER.run(before)
    assert sum(n.op is CALL for n in whole.toposort()) == kernels
    inputs = {k: np.full((8 + k, 4), k + 1, np.float32) for k in range(count)}
    np.testing.assert_allclose(evaluate(whole, inputs), evaluate(before, inputs), rtol=1e-5)


def test_a_demand_counts_the_loops_that_it_depends_on():
    i, j, k = loop(0, 4), loop(1, 5), loop(2, 6)
    nest = STORE(param(9, float32, ()), MUL(param(8, float32, ()), 1.0))
    assert demand(nest, (i, k), (i, j, k)).evaluations == 120
    assert demand(nest, (i,), (i, j, k)).evaluations == 4
    assert demand(nest, (), (i, j, k)).evaluations == 1
    assert demand(nest, (j,), (i, j, k)) == demand(nest, (j,), (i, j))


def test_work_counts_down_to_the_stages_that_stay():
    product = matmul(A, B)
    order = program(MAX(product, 0.0)).toposort()
    work = work_of(order, (), frozenset())
    assert work[product] == 64 * 32 * 48 * 2
    assert work[MAX(product, 0.0)] == 64 * 32 * 97


def test_an_arange_is_no_work():
    positions = arange(40, int64)
    order = stage_all(program(positions), Trace()).toposort()
    assert any(n.op is REDUCE for n in order)
    assert order[-1].src[0] in constants(order)


def test_the_last_rule_decides_everything():
    assert FUSION[-1].applies(None)
    assert len({rule.name for rule in FUSION}) == len(FUSION)


def test_a_stage_of_loops_becomes_storage_filled_by_them():
    text = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
r = RANGE : {"id": 7, "size": 4}
p = INDEX x r
v = LOAD p
e = EXP2 v
s = STAGE e r
return s
"""
    before = read(text, ops=OPS)
    stored = store_stages(before, Trace())
    assert not any(n.op is STAGE for n in stored.toposort())
    array = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(evaluate(before, {0: array})[0], 2.0**array)
    np.testing.assert_allclose(evaluate(COMPILER.run(before), {0: array}, state={})[0], 2.0**array)


def test_deep_stacks_do_not_multiply_work():
    """Twelve layers of product and softmax: without STAGEs 3^12 evaluations."""
    x = param(0, float32, (16, 16))
    for layer in range(12):
        x = softmax(matmul(x, param(1 + layer, float32, (16, 16))))
    whole, _ = compiled((x,))
    assert sum(n.op is CALL for n in whole.toposort()) <= 24
    assert len(write(whole)) < 200_000


def test_broadcast_rows_are_computed_once_for_each_row():
    row = RECIP(EXP2(param(0, float32, (1, 300))))
    whole, _ = compiled((MUL(expand(row, (200, 300)), param(1, float32, (200, 300))),))
    assert sum(n.op is CALL for n in whole.toposort()) <= 2
