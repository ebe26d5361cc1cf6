"""Index maps: each movement op as arithmetic on indices, against NumPy; and how simple it gets."""

import itertools

import numpy as np
import pytest

from week01_uops.dtypes import int64
from week01_uops.node import UOp, const
from week01_uops.ops import ADD, FLOORDIV, FLOORMOD, MUL, param, program
from week02_render.lower import Element, Lowering
from week02_render.ops import RANGE
from week03_loops.compiler import ROWS
from week03_loops.movement import INDEX_MAPS, axis_groups, flatten, unflatten
from week03_loops.ops import EXPAND, FLIP, PAD, PERMUTE, RESHAPE, SHRINK, permute, reshape
from week04_fusion.evaluate import evaluate


def mapped(node: UOp, at):
    """The source's indices and the condition, for constant indices of the result."""
    indices, valid = INDEX_MAPS[node.op](node, tuple(const(i, int64) for i in at))
    values = evaluate(program(*indices, *([] if valid is None else [valid])), {})
    position = tuple(int(v) for v in values[: len(indices)])
    return position, True if valid is None else bool(values[-1])


X = param(0, int64, (3, 4))
MOVES = [
    RESHAPE(X, arg=(12,)),
    RESHAPE(X, arg=(2, 6)),
    RESHAPE(X, arg=(3, 2, 2)),
    RESHAPE(X, arg=(1, 3, 1, 4)),
    EXPAND(param(0, int64, (3, 1)), arg=(2, 3, 4)),
    PERMUTE(X, arg=(1, 0)),
    FLIP(X, arg=(1,)),
    FLIP(X, arg=(0, 1)),
    PAD(X, arg=((1, 0), (2, 3))),
    SHRINK(X, arg=((1, 3), (0, 2))),
]


@pytest.mark.parametrize("node", MOVES, ids=lambda n: f"{n.op}{n.arg}")
def test_maps_agree_with_the_interpreter(node):
    source = np.arange(1, node.src[0].size + 1).reshape(node.src[0].shape)
    (expected,) = evaluate(program(node), {0: source})
    for at in itertools.product(*map(range, node.shape)):
        position, valid = mapped(node, at)
        assert (source[position] if valid else 0) == expected[at]


def test_groups_are_as_short_as_can_be():
    groups = list(axis_groups((2, 6, 5, 1), (3, 4, 5)))
    assert groups[0] == (range(2), range(2))
    assert (range(2, 3), range(2, 3)) in groups


@pytest.mark.parametrize(
    ("a", "b"), [((), (1, 1)), ((4,), (4, 1)), ((2, 3, 4), (24,)), ((6, 4), (2, 3, 2, 2))]
)
def test_groups_cover_all_axes_and_hold_equal_counts(a, b):
    groups = list(axis_groups(a, b))
    assert [i for ours, _ in groups for i in ours] == list(range(len(a)))
    assert [j for _, theirs in groups for j in theirs] == list(range(len(b)))
    for ours, theirs in groups:
        assert np.prod([a[i] for i in ours]) == np.prod([b[j] for j in theirs])


def divisions(value: UOp) -> int:
    state = Lowering(ROWS)
    element = state.element(Element(value, state.ranges(value.shape)))
    return sum(n.op in (FLOORDIV, FLOORMOD) for n in element.toposort())


def test_there_and_back_leaves_no_division():
    x = param(0, int64, (6, 20))
    assert divisions(reshape(reshape(x, (120,)), (6, 20))) == 0
    assert divisions(reshape(reshape(x, (2, 3, 4, 5)), (6, 20))) == 0
    assert (
        divisions(reshape(permute(permute(reshape(x, (2, 3, 20)), (2, 1, 0)), (2, 1, 0)), (6, 20)))
        == 0
    )


def test_splitting_an_axis_needs_no_division():
    assert divisions(reshape(param(0, int64, (6, 20)), (2, 3, 4, 5))) == 0


def test_empty_arrays_have_some_index():
    node = RESHAPE(param(0, int64, (0, 3)), arg=(3, 0))
    indices, valid = INDEX_MAPS[RESHAPE](node, (const(0, int64), const(0, int64)))
    assert len(indices) == 2
    assert valid is None


def test_flatten_and_unflatten_are_inverse():
    state = Lowering(ROWS)
    at = list(state.ranges((4, 1, 7)))
    assert unflatten(flatten(at, [4, 1, 7]), [4, 1, 7]) == at
    assert all(i.op is RANGE or i is const(0, int64) for i in at)
    assert flatten(at, [4, 1, 7]) is ADD(MUL(at[0], 7), at[2])
