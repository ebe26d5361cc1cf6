"""Reductions: to loops, to registers, and which of them share a loop."""

import numpy as np
import pytest

from week01_uops.dtypes import bfloat16, float16, float32, int32
from week01_uops.node import UOp
from week01_uops.ops import ADD, EXP2, MAX, MUL, NEG, param, program
from week02_render.ops import ALLOC, END, LOAD, STORE
from week03_loops.compiler import COMPILER
from week03_loops.ops import REDUCE, permute, reduce, reshape
from week03_loops.reduction import accumulator_dtype
from week04_fusion.evaluate import evaluate

X = param(0, float32, (5, 7))


def kernel(*outputs: UOp) -> UOp:
    """The program with accumulators, not yet put in order."""
    last = COMPILER.index("accumulate")
    short = COMPILER.__class__(COMPILER.name, COMPILER.accepts, COMPILER.passes[: last + 1])
    return short.run(program(*outputs))


def count(whole: UOp, op) -> int:
    return sum(node.op is op for node in whole.toposort())


def check(*outputs: UOp, array=None) -> UOp:
    whole = kernel(*outputs)
    assert count(whole, REDUCE) == 0
    x = array if array is not None else np.arange(35, dtype=np.float32).reshape(5, 7) - 17
    for a, b in zip(evaluate(program(*outputs), {0: x}), evaluate(whole, {0: x}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return whole


@pytest.mark.parametrize("op", [ADD, MUL, MAX])
@pytest.mark.parametrize("axes", [0, 1, 2])
def test_each_reduction_over_each_number_of_axes(op, axes):
    check(reduce(op, X, axes), array=np.linspace(0.5, 1.5, 35, dtype=np.float32).reshape(5, 7))


def test_a_reduction_is_a_register_and_a_loop():
    whole = check(reduce(ADD, X, 1))
    (register,) = [n for n in whole.toposort() if n.op is ALLOC]
    assert register.arg.addrspace == "REG"
    assert count(whole, STORE) == 3  # identity, update, result


def test_sixteen_bit_floats_accumulate_in_float32():
    assert accumulator_dtype(float16) is float32
    assert accumulator_dtype(bfloat16) is float32
    assert accumulator_dtype(int32) is int32
    half = param(0, float16, (4096,))
    check(reduce(ADD, half, 1), array=np.full(4096, 0.1, np.float16))


def test_independent_reductions_share_a_loop():
    both = ADD(reduce(ADD, X, 1), reduce(MAX, X, 1))
    assert count(check(both), END) == 2  # the shared loop, and the output's
    loads = [n for n in check(both).toposort() if n.op is LOAD and n.src[0].shape == ()]
    assert loads


def test_a_reduction_of_a_reduction_has_a_loop_of_its_own():
    rows = permute(X, (1, 0))
    most = reshape(reduce(MAX, rows, 1), (5, 1))
    shifted = EXP2(ADD(X, NEG(most)))
    assert count(check(reduce(ADD, permute(shifted, (1, 0)), 1)), END) == 3


def test_a_reduction_inside_a_reduction():
    """Σᵢ xᵢ·(Σⱼ xᵢⱼ) has loops of equal sizes, one inside the other."""
    square = param(0, float32, (4, 4))
    inner = reduce(ADD, permute(square, (1, 0)), 1)
    check(reduce(ADD, MUL(inner, inner), 1), array=np.arange(16, dtype=np.float32).reshape(4, 4))


def test_empty_reductions_give_the_identity():
    empty = param(0, float32, (0, 3))
    got = evaluate(kernel(reduce(MAX, empty, 1)), {0: np.zeros((0, 3), np.float32)})
    assert np.all(got[0] == -np.inf)
