"""STAGE, interpreted, and programs at several levels."""

import numpy as np
import pytest

from tests.week02_render.sequential import Program, run
from week01_uops.dtypes import ALL, float32, int64
from week01_uops.node import const
from week01_uops.ops import ADD, EXP2, MAX, MUL, NEG, RECIP, param, program
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
from week03_loops.ops import expand, permute, reduce, reshape
from week04_fusion.evaluate import evaluate
from week04_fusion.ops import STAGE, StageArg, stage


def value(node, *inputs):
    (result,) = evaluate(program(node), inputs)
    return result


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_stage_of_a_value_is_the_value(dtype):
    x = np.array([0, 1, 1]).astype(dtype.numpy)
    node = stage(param(0, dtype, (3,)))
    assert np.array_equal(value(node, x), x)
    assert np.array_equal(value(LOAD(INDEX(node, const(1, int64))), x), x[1])


def test_a_stage_keeps_what_was_stored_when_it_was_filled():
    buffer = BUFFER(arg=StorageArg(0, int64, ()))
    before = stage(buffer)
    after = AFTER(buffer, STORE(buffer, ADD(before, const(1, int64))))
    assert [r.tolist() for r in evaluate(program(AFTER(before, after), after), [])] == [0, 1]


def test_a_stage_over_loops_is_indexed_by_them():
    i, j = loop(0, 3), loop(1, 4)
    table = STAGE(ADD(MUL(i, const(10, int64)), j), i, j, arg=StageArg("LOCAL"))
    want = np.add.outer(10 * np.arange(3), np.arange(4))
    assert np.array_equal(value(table), want)
    assert np.array_equal(value(permute(table, (1, 0))), want.T)
    k = loop(2, 4)
    row = load(index(table, const(2, int64), k))
    assert value(reduce(ADD, row, 0, k)) == want[2].sum()


def test_a_stage_of_shaped_values():
    x = np.arange(24).reshape(4, 2, 3)
    i = loop(0, 4)
    rows = stage(MUL(LOAD(INDEX(param(0, int64, (4, 2, 3)), i)), i), i)
    assert np.array_equal(value(rows, x), x * np.arange(4).reshape(4, 1, 1))


def test_a_packed_panel_in_an_outer_loop():
    x = np.arange(20).reshape(4, 5)
    i, j, k = loop(0, 4), loop(1, 5), loop(2, 5)
    panel = stage(MUL(load(index(param(0, int64, (4, 5)), i, j)), const(2, int64)), j)
    out = OUTPUT(arg=StorageArg(0, int64, (4, 5)))
    back = load(index(panel, ADD(const(4, int64), MUL(k, const(-1, int64)))))
    store = END(STORE(index(out, i, k), back), i, k)
    assert np.array_equal(value(AFTER(out, store), x), 2 * x[:, ::-1])


def test_what_a_bound_leaves_out_of_a_stage_is_undefined():
    i = loop(0, 4, const(2, int64))
    table = value(stage(i, i))
    assert table[:2].tolist() == [0, 1]
    assert (table[2:] < -1000).all()
    assert value(LOAD(INDEX(stage(i, i), const(1, int64)))) == 1


def test_a_stage_cut_into_pieces(monkeypatch):
    i, j = loop(0, 7), loop(1, 6)
    table = stage(ADD(MUL(i, const(10, int64)), j), i, j)
    want = np.add.outer(10 * np.arange(7), np.arange(6))
    for limit in (1, 3, 8, 20):
        monkeypatch.setattr("week02_render.carried.LIMIT", limit)
        assert np.array_equal(value(table), want)


def test_softmax_at_tensor_and_at_loop_level():
    rows, columns = 5, 6
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    p = param(0, float32, (rows, columns))

    def along(op, node):
        total = reduce(op, permute(node, (1, 0)), 1)
        return expand(reshape(total, (rows, 1)), (rows, columns))

    powers = EXP2(ADD(p, NEG(along(MAX, p))))
    tensor = value(MUL(powers, RECIP(along(ADD, powers))), x)
    i, k, c = loop(0, rows), loop(1, columns), loop(2, columns)
    largest = reduce(MAX, load(index(p, i, k)), 0, k)
    held = stage(EXP2(ADD(load(index(p, i, k)), NEG(largest))), k)
    total = reduce(ADD, load(index(held, k)), 0, k)
    out = OUTPUT(arg=StorageArg(0, float32, (rows, columns)))
    store = STORE(index(out, i, c), MUL(load(index(held, c)), RECIP(total)))
    assert np.array_equal(value(AFTER(out, END(store, i, c)), x), tensor)
    powers = np.exp2(x - x.max(1, keepdims=True))
    assert np.allclose(tensor, powers / powers.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("seed", range(2000, 2030))
def test_random_programs_with_reductions_and_stages(seed):
    random = Program(seed, reduce, stage)
    outputs = [AFTER(place, random.effect) for place in random.outputs]
    got = [result.tolist() for result in evaluate(program(*outputs), [])]
    assert got == run(random.effect, random.outputs)
