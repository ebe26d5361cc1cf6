"""Shaped values to loops: what one element is, by op."""

import numpy as np
import pytest

from week01_uops.dtypes import float32, int32
from week01_uops.node import const, make
from week01_uops.ops import ADD, CMPLT, FLOORMOD, MUL, WHERE, param, program
from week01_uops.rewrite import Trace
from week02_render.compiler import COMPILER
from week02_render.lower import ROWS, Element, Lowering, broadcast_indices, lower_with
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, RANGE, STORE, AllocArg, load
from week04_fusion.evaluate import evaluate

X = param(0, float32, (3, 4))


def lowered(body):
    return lower_with(ROWS)(body, Trace())


def test_a_store_becomes_a_nest_over_its_shape():
    place = param(1, float32, (3, 4))
    nest = lowered(STORE(place, ADD(X, 1.0)))
    assert nest.op is END
    assert [r.arg.size for r in nest.src[1:]] == [3, 4]
    inner = nest.src[0]
    assert inner.src[0] is make(INDEX, (place, *nest.src[1:]))
    assert inner.src[1] is ADD(load(make(INDEX, (X, *nest.src[1:]))), 1.0)


def test_axes_of_size_one_need_no_loop():
    nest = lowered(STORE(param(1, float32, (1, 4)), MUL(param(0, float32, (1, 4)), 2.0)))
    assert [r.arg.size for r in nest.src[1:]] == [4]


def test_scalars_need_no_nest():
    assert lowered(STORE(param(1, float32, ()), const(1.0, float32))).op is STORE


def test_shared_values_are_lowered_once():
    shared = ADD(X, 1.0)
    nest = lowered(STORE(param(1, float32, (3, 4)), MUL(shared, shared)))
    product = nest.src[0].src[1]
    assert product.src[0] is product.src[1]


def test_broadcasting_drops_indices():
    row = param(2, float32, (4,))
    nest = lowered(STORE(param(1, float32, (3, 4)), ADD(X, row)))
    i, j = nest.src[1:]
    assert load(make(INDEX, (row, j))) in nest.toposort()
    assert broadcast_indices((i, j), (3, 1), (3, 4)) == (i, const(0, i.dtype))


def test_reductions_of_one_level_share_ranges():
    state = Lowering(ROWS)
    (first,) = state.shared_ranges((5,), 1)
    assert state.shared_ranges((5,), 1) == (first,)
    (other,) = state.shared_ranges((5,), 2)
    assert other is not first
    both = state.shared_ranges((5, 5), 1)
    assert both[0] is first
    assert both[1] not in (first, other)


def test_depth_is_no_limit():
    x = param(0, float32, (2,))
    value = x
    for _ in range(20_000):
        value = ADD(value, x)
    state = Lowering(ROWS)
    assert state.element(Element(value, state.ranges((2,)))).op is ADD


def programs():
    index = param(1, int32, (5,))
    at = FLOORMOD(index, 3)
    yield program(LOAD(INDEX(X, at)))
    yield program(LOAD(INDEX(X, at, FLOORMOD(index, 4))))
    yield program(LOAD(INDEX(X, const(2, int32))))
    picked = INDEX(param(0, float32, (3,)), index)
    yield program(LOAD(picked, WHERE(CMPLT(index, 3), CMPLT(const(-1, int32), index), False)))
    place = make(ALLOC, (), AllocArg(0, float32, (3, 4)))
    row = STORE(
        INDEX(make(AFTER, (place, STORE(place, X))), const(1, int32)),
        LOAD(INDEX(X, const(0, int32))),
    )
    yield program(make(AFTER, (place, row)))


@pytest.mark.parametrize("before", list(programs()), ids=str)
def test_indexing_keeps_its_meaning(before):
    inputs = {
        0: np.arange(12, dtype=np.float32).reshape(3, 4)[:, : (4 if X in before.toposort() else 1)],
        1: np.array([0, 5, -1, 2, 7], np.int32),
    }
    if X not in before.toposort():
        inputs[0] = np.arange(3, dtype=np.float32)
    after = COMPILER.run(before, until="loop")
    for a, b in zip(
        evaluate(before, inputs, state={}), evaluate(after, inputs, state={}), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert all(not n.shape for n in after.toposort() if n.op is RANGE)


def test_elements_of_empty_values_load_nothing():
    """A load in a loop that never runs may be moved out of it, where it would be out of bounds."""
    empty = param(0, float32, (0, 3))
    nest = lowered(STORE(param(1, float32, (0, 3)), ADD(empty, 1.0)))
    assert not any(node.op is LOAD for node in nest.toposort())
