"""Temporaries whose axes are in the order in which they are read."""

import numpy as np
import pytest

from week01_uops.dtypes import float32
from week01_uops.ops import ADD, EXP2, MUL, NEG, param, program
from week01_uops.rewrite import Trace
from week03_loops.library import matmul, reduce_sum, transpose
from week03_loops.ops import permute, reduce, reshape
from week04_fusion.ops import STAGE, stage
from week05_06_memory.compiler import COMPILER
from week05_06_memory.evaluate import evaluate
from week05_06_memory.layout import lay_out

X = param(0, float32, (6, 4))
ROWS = np.arange(24, dtype=np.float32).reshape(6, 4)


def laid_out(value):
    trace = Trace()
    before = program(value)
    after = lay_out(before, trace)
    (expected,), (got,) = evaluate(before, [ROWS]), evaluate(after, [ROWS])
    assert np.array_equal(expected, got)
    return after.src[0], trace.fired["layout"]


def shapes(value):
    return [n.shape for n in value.toposort() if n.op is STAGE]


def test_a_permutation_goes_into_the_stage():
    after, fired = laid_out(stage(NEG(permute(stage(EXP2(X)), (1, 0)))))
    assert fired == 1
    assert shapes(after) == [(4, 6), (4, 6)]


def test_of_a_sum_into_all_that_is_added():
    parts = ADD(stage(EXP2(X)), stage(NEG(X)))
    after, fired = laid_out(stage(MUL(permute(parts, (1, 0)), 2.0)))
    assert fired == 2
    assert shapes(after) == [(4, 6), (4, 6), (4, 6)]


def test_several_permutations_and_axes_of_size_one():
    held = permute(reshape(stage(EXP2(X)), (6, 1, 4)), (2, 1, 0))
    after, fired = laid_out(stage(NEG(reshape(held, (1, 4, 6)))))
    assert fired == 1
    assert shapes(after) == [(4, 6), (1, 4, 6)]


def test_three_axes_and_a_broadcast():
    cube = stage(EXP2(reshape(X, (2, 3, 4))))
    after, fired = laid_out(stage(ADD(permute(cube, (2, 0, 1)), 1.0)))
    assert fired == 1
    assert shapes(after) == [(4, 2, 3), (4, 2, 3)]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(NEG(stage(EXP2(X))), id="read in order"),
        pytest.param(
            stage(ADD(reshape(permute(stage(EXP2(X)), (1, 0)), (6, 4)), stage(EXP2(X)))),
            id="two orders",
        ),
        pytest.param(
            stage(NEG(reshape(permute(reshape(stage(EXP2(X)), (6, 2, 2)), (1, 0, 2)), (6, 4)))),
            id="axes split on the way",
        ),
        pytest.param(stage(reduce_sum(stage(EXP2(X)), 1)), id="only put in front, to be summed"),
    ],
)
def test_what_stays(value):
    assert laid_out(value)[1] == 0


def test_a_sum_of_one_reader_does_not_keep_the_others_waiting():
    turned = permute(stage(EXP2(X)), (1, 0))
    sums = reduce(MUL, turned, 1)
    assert laid_out(stage(MUL(turned, reshape(sums, (1, 6)))))[1] == 1


def test_a_product_that_is_read_transposed_is_written_transposed():
    a, b, c = (param(slot, float32, (32, 32)) for slot in range(3))
    product = transpose(matmul(a, b))
    fired = {}
    whole = program(EXP2(MUL(product, c)), NEG(MUL(product, c)))
    COMPILER.run(whole, [lambda step: fired.update({step.of.name: step.trace.fired})])
    assert fired["layout"]["layout"] == 1
