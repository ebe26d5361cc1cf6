"""The rule of each op: equal to PyTorch's autograd and to differences, twice, on all elements."""

import math

import numpy as np
import pytest
import torch

from tests.week09_10_autodiff.autograd import agree, check, normal, ours, positive, same_program
from tests.week09_10_autodiff.autograd import theirs as by_torch
from week01_uops.dtypes import float16, float32, float64, int8, int32, int64
from week01_uops.node import const
from week01_uops.ops import (
    ADD,
    CAST,
    CMPLT,
    CMPNE,
    EXP2,
    FLOORDIV,
    FLOORMOD,
    LOG2,
    MAX,
    MUL,
    NEG,
    RECIP,
    WHERE,
    param,
    program,
)
from week02_render.ops import INDEX, LOAD
from week03_loops import library as lib
from week03_loops.ops import REDUCE, expand, flip, pad, permute, reduce, reshape, shrink
from week04_fusion.evaluate import evaluate
from week04_fusion.ops import OPS, stage
from week09_10_autodiff.factors import scaled, times, unbroadcast
from week09_10_autodiff.gradients import gradient
from week09_10_autodiff.rules import RULES, STEPS

INF, NAN = math.inf, math.nan
X = param(0, float64, (3,))
ROWS = np.array([2, 0, 2, 3])
"""Positions, one of them twice."""

ELEMENTWISE = {
    "ADD": (ADD, normal(2, 3), normal(2, 3, seed=1)),
    "ADD of rows": (ADD, normal(2, 3), normal(3)),
    "ADD of columns": (ADD, normal(2, 1), normal(3)),
    "ADD of a scalar": (ADD, normal(2, 3), normal()),
    "ADD to itself": (lambda x: ADD(x, x), normal(2, 3)),
    "MUL": (MUL, normal(2, 3), normal(2, 3, seed=1)),
    "MUL of columns": (MUL, normal(2, 1, 3), normal(4, 1)),
    "MUL by a scalar": (MUL, normal(), normal(2, 3)),
    "MUL by itself": (lambda x: MUL(x, x), normal(2, 3)),
    "MUL by a constant": (lambda x: MUL(x, -2.5), normal(3)),
    "MAX": (MAX, normal(2, 3), normal(3)),
    "MAX with a constant": (lambda x: MAX(x, 0.0), normal(2, 3)),
    "NEG": (NEG, normal(4)),
    "NEG of NEG": (lambda x: MUL(NEG(NEG(x)), NEG(x)), normal(4)),
    "RECIP": (RECIP, positive(2, 3)),
    "RECIP below 0": (lambda x: RECIP(NEG(x)), positive(2, 3)),
    "EXP2": (EXP2, normal(2, 3)),
    "LOG2": (LOG2, positive(2, 3)),
    "WHERE": (lambda c, a, b: WHERE(c, a, b), normal(3) > 0, normal(2, 3), normal(2, 1)),
    "WHERE of what is computed": (
        lambda a, b: WHERE(CMPLT(a, b), a, MUL(a, b)),
        normal(5),
        normal(5, seed=3),
    ),
    "CAST within floats": (
        lambda x: CAST(CAST(MUL(x, x), arg="float64"), arg="float64"),
        normal(3),
    ),
    "powers": (lambda x: EXP2(MUL(LOG2(x), 0.5)), positive(2, 3)),
    "inverse powers": (lambda x: EXP2(MUL(const(-0.5, float64), LOG2(x))), positive(2, 3)),
    "cubes": (lambda x: EXP2(MUL(LOG2(x), 3.0)), positive(2, 3)),
    "powers whose logarithm is used": (
        lambda x: (lambda log: ADD(EXP2(MUL(log, 1.5)), MUL(log, log)))(LOG2(x)),
        positive(4),
    ),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    check(*ELEMENTWISE[name])


def twice(move):
    """Something that bends, moved, and multiplied by itself moved."""
    return lambda x: MUL(move(EXP2(x)), move(x))


MOVEMENT = {
    "RESHAPE": (twice(lambda x: reshape(x, (3, 4))), normal(2, 6)),
    "RESHAPE to nothing": (twice(lambda x: reshape(x, ())), normal(1, 1)),
    "EXPAND": (twice(lambda x: expand(x, (4, 2, 3))), normal(2, 1)),
    "EXPAND of a scalar": (twice(lambda x: expand(x, (2, 3))), normal()),
    "EXPAND of 1": (twice(lambda x: expand(x, (2, 1, 1))), normal(1, 1)),
    "PERMUTE": (twice(lambda x: permute(x, (2, 0, 1))), normal(2, 3, 4)),
    "FLIP": (twice(lambda x: flip(x, (0, 2))), normal(2, 3, 2)),
    "PAD": (twice(lambda x: pad(x, ((1, 0), (0, 2)))), normal(2, 3)),
    "SHRINK": (twice(lambda x: shrink(x, ((1, 3), (0, 2)))), normal(4, 3)),
    "SHRINK to nothing": (lambda x: shrink(MUL(x, x), ((1, 1), (0, 2))), normal(4, 3)),
    "windows": (twice(lambda x: lib.windows(x, [0], [3], [1], [2])), normal(7)),
    "STAGE": (twice(stage), normal(2, 3)),
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name):
    check(*MOVEMENT[name])


def with_zeros(*shape, at):
    x = normal(*shape)
    for place in at:
        x[place] = 0
    return x


REDUCTIONS = {
    "Σ": (lambda x: reduce(ADD, MUL(x, x), 1), normal(3, 2)),
    "Σ over all": (lambda x: reduce(ADD, EXP2(x), 2), normal(3, 2)),
    "Σ over none": (lambda x: reduce(ADD, EXP2(x), 0), normal(3, 2)),
    "Σ of one": (lambda x: reduce(ADD, EXP2(x), 1), normal(1, 2)),
    "Σ of nothing": (lambda x: reduce(ADD, EXP2(x), 1), np.zeros((0, 2))),
    "Σ of what was repeated": (lambda x: reduce(ADD, expand(x, (5, 3)), 1), normal(3)),
    "Π": (lambda x: reduce(MUL, x, 1), normal(5, 2)),
    "Π over two": (lambda x: reduce(MUL, x, 2), normal(2, 3, 2)),
    "Π of one": (lambda x: reduce(MUL, x, 1), normal(1, 2)),
    "Π of nothing": (lambda x: reduce(MUL, x, 1), np.zeros((0, 2))),
    "Π over none": (lambda x: reduce(MUL, x, 0), normal(2, 2)),
    "Π with a zero": (lambda x: reduce(MUL, x, 1), with_zeros(4, 2, at=[(1, 0)])),
    "Π with two zeros": (
        lambda x: reduce(MUL, x, 1),
        with_zeros(4, 2, at=[(1, 0), (3, 0), (0, 1)]),
    ),
    "Π with three": (lambda x: reduce(MUL, x, 1), with_zeros(5, at=[0, 2, 4])),
    "max": (lambda x: MUL(reduce(MAX, x, 1), reduce(MAX, x, 1)), normal(3, 2)),
    "max over all": (lambda x: reduce(MAX, MUL(x, x), 2), normal(3, 2)),
    "max of one": (lambda x: reduce(MAX, EXP2(x), 1), normal(1, 2)),
    "max of nothing": (lambda x: reduce(MAX, x, 1), np.zeros((0, 2))),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    check(*REDUCTIONS[name])


TIES = {
    "of MAX": (
        lambda a, b: MUL(MAX(a, b), MAX(a, b)),
        np.array([1.0, 2, 3]),
        np.array([1.0, 3, 3]),
    ),
    "of MAX with itself": (lambda a: MAX(a, a), np.array([1.0, -2.0])),
    "of MAX with a constant": (lambda a: MAX(a, 1.0), np.array([1.0, -2.0, 3.0])),
    "of REDUCE MAX": (lambda x: MUL(reduce(MAX, x, 1), 2.0), np.array([[1.0, 2], [3, 2], [3, 2]])),
    "of all": (lambda x: reduce(MAX, x, 2), np.ones((2, 3))),
    "of zeros": (lambda a, b: MAX(a, b), np.array([0.0, -0.0]), np.array([-0.0, 0.0])),
}


@pytest.mark.parametrize("name", TIES)
def test_equal_maxima_share(name):
    check(*TIES[name], numeric=False)


PLACES = {
    "a row": (lambda x, i: LOAD(INDEX(EXPd(x), i)), normal(4, 3), np.array(2)),
    "an element": (
        lambda x, i, j: LOAD(INDEX(EXPd(x), i, j)),
        normal(4, 3),
        np.array(2),
        np.array(0),
    ),
    "rows": (lambda x, i: LOAD(INDEX(EXPd(x), i)), normal(4, 3), ROWS),
    "a grid": (lambda x, i, j: LOAD(INDEX(EXPd(x), i, j)), normal(4, 3, 2), ROWS, np.array([1, 1])),
    "a scalar, then rows": (
        lambda x, i, j: LOAD(INDEX(EXPd(x), i, j)),
        normal(2, 4, 3),
        np.array(1),
        ROWS,
    ),
    "rows, then a scalar": (
        lambda x, j, i: LOAD(INDEX(EXPd(x), i, j)),
        normal(4, 3, 2),
        np.array(1),
        ROWS,
    ),
    "one row": (lambda x, i: LOAD(INDEX(EXPd(x), i)), normal(4, 3), np.array([1])),
    "no rows": (lambda x, i: LOAD(INDEX(EXPd(x), i)), normal(4, 3), np.zeros(0, np.int64)),
    "small positions": (lambda x, i: LOAD(INDEX(EXPd(x), i)), normal(4, 3), ROWS.astype(np.int8)),
    "an input": (lambda x, i: LOAD(INDEX(x, i)), normal(4, 3), ROWS),
    "a moved input": (
        lambda x, i: LOAD(INDEX(flip(permute(reshape(x, (3, 4)), (1, 0)), (1,)), i)),
        normal(4, 3),
        ROWS,
    ),
    "gates": (
        lambda x, i, g, y: LOAD(INDEX(EXPd(x), i), g, y),
        normal(4, 3),
        ROWS,
        normal(4, 3, seed=1) > 0,
        normal(4, 3, seed=2),
    ),
    "a gate": (lambda x, g, y: LOAD(EXPd(x), g, y), normal(4, 3), np.array(True), normal(3)),
    "a closed gate": (
        lambda x, g, y: LOAD(EXPd(x), g, y),
        normal(4, 3),
        np.array(False),
        normal(3),
    ),
    "an alternative that is repeated": (
        lambda x, i, g, y: LOAD(INDEX(x, i), g, y),
        normal(4, 3),
        ROWS,
        normal(4, 3) > 0,
        normal(),
    ),
    "positions that are computed": (
        lambda x: LOAD(INDEX(x, CAST(MUL(x, 0.0), arg="int64"))),
        positive(3),
    ),
}


def EXPd(x):  # noqa: N802
    """A place with something that bends in it."""
    return stage(EXP2(x))


@pytest.mark.parametrize("name", PLACES)
def test_places(name):
    check(*PLACES[name])


def test_a_load_without_alternative():
    """What is loaded where the gate is false is open, so it is multiplied by 0 there."""

    def function(x, g):
        return MUL(LOAD(stage(MUL(x, x)), g), WHERE(g, const(1.0, float64), 0.0))

    check(function, normal(5), normal(5, seed=1) > 0, numeric=False)


STEPPING = {
    "CMPLT": lambda x: CAST(CMPLT(x, 0.0), arg="float64"),
    "CMPNE": lambda x: CAST(CMPNE(x, 0.0), arg="float64"),
    "CAST": lambda x: CAST(CAST(MUL(x, 3.0), arg="int8"), arg="float64"),
    "FLOORDIV": lambda x: CAST(FLOORDIV(CAST(x, arg="int32"), 2), arg="float64"),
    "FLOORMOD": lambda x: CAST(FLOORMOD(CAST(x, arg="int32"), 2), arg="float64"),
}


@pytest.mark.parametrize("name", STEPPING)
def test_steps_hand_nothing_back(name):
    check(STEPPING[name], normal(5))
    check(lambda x: MUL(STEPPING[name](x), MUL(x, x)), normal(5))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_casts_through_narrow_floats(dtype):
    """The cotangent is rounded to the narrow dtype on its way back, as PyTorch's is."""

    def function(x):
        return CAST(MUL(CAST(x, arg=dtype), CAST(x, arg=dtype)), arg="float64")

    for times_ in (1, 2):
        found, wanted = (
            run(
                function if run is ours else same_program(function, [normal(7)]),
                [normal(7)],
                times_,
            )
            for run in (ours, by_torch)
        )
        agree(found, wanted, {"float32": 1e-6, "float16": 2e-3, "bfloat16": 1.6e-2}[dtype])


def test_every_op_of_values_has_a_rule():
    """All but inputs, constants, calls, and what stores or loops."""
    without = {op.name for op in OPS} - {op.name for op in RULES}
    assert without == {
        *("PARAM", "CONST", "CALL", "RETURN"),
        *("BUFFER", "ALLOC", "STORE", "AFTER", "RANGE", "END"),
    }
    assert set(RULES) >= STEPS


SPECIAL = {
    "1/x at 0": (RECIP, [0.0, -0.0, INF, NAN]),
    "x/x at 0": (lambda x: MUL(x, RECIP(x)), [0.0, 1.0, INF]),
    "log2": (LOG2, [0.0, -1.0, INF, NAN]),
    "x·log2 x at 0": (lambda x: MUL(x, LOG2(x)), [0.0, 1.0, -1.0]),
    "x·log2 y at 0": (lambda x: MUL(shrink(x, ((0, 1),)), LOG2(shrink(x, ((1, 2),)))), [0.0, 0.0]),
    "exp2": (EXP2, [INF, -INF, NAN, 2000.0, -2000.0]),
    "0·x": (lambda x: MUL(x, 0.0), [INF, NAN, 1.0]),
    "MAX": (lambda x: MAX(x, 0.0), [INF, -INF, NAN]),
    "MAX of infinities": (lambda x: MAX(x, INF), [INF, -INF, NAN, 1.0]),
    "REDUCE MAX with NaN": (lambda x: reduce(MAX, x, 1), [1.0, NAN, 2.0]),
    "REDUCE MAX of −∞": (lambda x: reduce(MAX, x, 1), [-INF, -INF]),
    "REDUCE MAX of ∞": (lambda x: reduce(MAX, x, 1), [INF, INF, 0.0]),
    "Σ": (lambda x: reduce(ADD, MUL(x, x), 1), [INF, NAN, 1.0]),
    "WHERE hides the other side": (lambda x: WHERE(CMPLT(x, 1.0), x, LOG2(x)), [0.0, 2.0, -1.0]),
    "the side that is taken": (lambda x: WHERE(CMPLT(x, 1.0), LOG2(x), x), [0.0, 2.0, -1.0]),
    "a difference": (lambda x: ADD(x, NEG(x)), [INF, 1.0]),
    "softmax of −∞": (lib.softmax, [-INF, 0.0, 1.0]),
    "softmax of −∞ alone": (lib.softmax, [-INF, -INF]),
    "softmax with NaN": (lib.softmax, [NAN, 0.0]),
    "log_softmax of large": (lib.log_softmax, [1e300, 0.0, -1e300]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_infinities_and_nan_are_where_pytorch_has_them(name):
    function, values = SPECIAL[name]
    x = np.array(values)
    agree(ours(function, [x]), by_torch(same_program(function, [x]), [x]))


POWERS = {0.5: torch.sqrt, -0.5: torch.rsqrt, 2.0: torch.square, 1.5: lambda x: x**1.5}


@pytest.mark.parametrize("exponent", POWERS)
def test_powers_at_zero(exponent):
    """√x has an infinite slope at 0, and x² none, as in PyTorch; EXP2 and LOG2 alone give NaN."""
    x = np.array([0.0, 4.0, INF])
    found = ours(lambda x: EXP2(MUL(LOG2(x), exponent)), [x])
    agree(found, by_torch(POWERS[exponent], [x]))


def test_a_sigmoid_that_saturates_has_no_slope():
    """As torch.sigmoid; 1/(1 + e^−x), op for op, would give 0·∞ where e^−x is infinite."""
    x = np.array([800.0, -800.0, 0.0, INF, -INF, NAN])
    agree(ours(lib.sigmoid, [x]), by_torch(torch.sigmoid, [x]))


def test_an_infinite_factor():
    """The derivative by it is the product of the others (PyTorch: ∞ / ∞)."""
    (found,) = gradient(reduce(MUL, X, 1), [X])
    np.testing.assert_array_equal(
        evaluate(program(found), [np.array([INF, 2, 3])])[0], [6, INF, INF]
    )


def test_integers_and_bools_get_nothing():
    a, b = (lib.full(1, int32, (2,)), lib.full(2, int32, (2,)))
    node = CMPLT(a, b)
    assert RULES[CMPLT](node, const(1.0, float64)) == (None, None)
    cast = CAST(a, arg="float32")
    assert RULES[CAST](cast, const(1.0, float32)) == (None,)


def test_constant_factors_join():
    x = lib.full(1.0, float32, ())
    y = EXP2(x)
    assert scaled(y, 1.0) is y
    assert scaled(NEG(y), -1.0) is y
    assert scaled(scaled(y, 2.0), -0.5) is NEG(y)
    assert scaled(scaled(y, math.log(2)), 1 / math.log(2)) is y
    assert scaled(NEG(y), 3.0) is MUL(y, -3.0)
    assert scaled(const(2.0, float32), 3.0) is const(6.0, float32)
    assert scaled(const(1.0, float32), -1.0) is const(-1.0, float32)
    assert scaled(const(0.5, float32), 2.0) is const(1.0, float32)
    assert times(expand(const(2.0, float32), (3, 3)), MUL(y, 0.5)) is y


@pytest.mark.parametrize(("one", "other"), [(1e30, 1e30), (1e-30, 1e-30), (0.0, INF), (INF, 2.0)])
def test_factors_whose_product_is_out_of_range_do_not_join(one, other):
    y = EXP2(lib.full(1.0, float32, ()))
    assert scaled(MUL(y, one), other) is MUL(MUL(y, one), other)


def test_a_sum_over_what_was_repeated():
    x = EXP2(lib.full(1.0, float64, (4, 2, 3)))
    assert unbroadcast(x, (4, 2, 3), (4, 2, 3)) is x
    assert unbroadcast(x, (2, 1), (4, 2, 3)).shape == (2, 1)
    assert unbroadcast(const(2.0, float64), (2, 1), (4, 2, 3)) is const(24.0, float64)
    assert unbroadcast(const(2.0, float64), (), (0, 3)) is const(0.0, float64)
    row = EXP2(lib.full(1.0, float64, (3,)))
    assert unbroadcast(row, (2, 3), (4, 2, 3)) is MUL(reshape(row, (1, 3)), 4.0)
    assert all(n.op is not REDUCE for n in unbroadcast(row, (2, 3), (4, 2, 3)).toposort())


def test_narrow_dtypes_keep_theirs():
    for dtype in (float16, float32):
        x = lib.full(1.0, dtype, (3,))
        y = EXP2(x)
        assert {part.dtype for part in RULES[EXP2](y, y)} == {dtype}
    assert RULES[CAST](CAST(EXP2(x), arg="float64"), const(1.0, float64))[0].dtype is float32
    assert int8.bits < int64.bits
