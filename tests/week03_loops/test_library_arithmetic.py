import math
from math import inf, nan

import numpy as np
import pytest

from tests.week03_loops.oracle import FLOATS, INTEGERS, check, normal, run, wide
from week01_uops.dtypes import bool_, float16, float32, int32
from week01_uops.errors import ProgramError
from week01_uops.node import const
from week01_uops.ops import CAST, param
from week03_loops import library as lib

SPECIAL = np.array([-inf, -3.5, -1, -0.0, 0.0, 1e-30, 0.5, 2, 100, inf, nan])
GRID = np.meshgrid(SPECIAL, SPECIAL)


def edges(dtype):
    info = np.iinfo(dtype)
    low = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 5]
    return np.meshgrid(*[np.array(low, dtype)] * 2)


COMPARISONS = [
    (lib.lt, np.less),
    (lib.le, np.less_equal),
    (lib.gt, np.greater),
    (lib.ge, np.greater_equal),
    (lib.eq, np.equal),
    (lib.ne, np.not_equal),
]


@pytest.mark.parametrize(("ours", "theirs"), COMPARISONS)
@pytest.mark.parametrize("dtype", [np.float32, *INTEGERS])
def test_comparisons(ours, theirs, dtype):
    x, y = edges(dtype) if dtype in INTEGERS else (a.astype(dtype) for a in GRID)
    check(ours, theirs(x, y), x, y)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_minimum_maximum_difference(dtype):
    x, y = (
        edges(dtype) if dtype in INTEGERS else (normal(7, 7, dtype=dtype, seed=s) for s in (1, 2))
    )
    check(lib.minimum, np.minimum(x, y), x, y)
    check(lib.maximum, np.maximum(x, y), x, y)
    with np.errstate(over="ignore"):
        check(lib.sub, x - y, x, y)
        check(lib.absolute, np.abs(x), x)


def test_minimum_keeps_nan():
    x, y = (a.astype(np.float32) for a in GRID)
    check(lib.minimum, np.minimum(x, y), x, y)


def test_minimum_of_bools_is_and():
    x, y = np.meshgrid([False, True], [False, True])
    check(lib.minimum, x & y, x, y)
    check(lib.logical_not, ~x, x)


def test_numbers_take_the_dtype_of_the_other_operand():
    x = normal(3)
    check(lambda p: lib.sub(1, p), 1 - x, x)
    check(lambda p: lib.where(lib.lt(p, 0), 0, p), np.maximum(x, 0), x)
    check(lambda p: lib.clamp(p, -0.5, 0.5), np.clip(x, -0.5, 0.5), x)
    assert lib.add(param(0, int32), 3).dtype is int32


@pytest.mark.parametrize("dtype", FLOATS)
def test_division(dtype):
    x, y = normal(40, dtype=dtype, seed=1), normal(40, dtype=dtype, seed=2)
    check(lib.div, wide(x) / wide(y), x, y, ulps=2)


def test_division_of_narrow_floats_has_no_subnormal_reciprocal():
    x = np.array([60000.0], np.float16)
    check(lib.div, [1.0], x, x, ulps=0)


TRANSCENDENTAL = [
    (lib.exp, np.exp, np.linspace(-5, 5, 101), 8),
    (lib.log, np.log, np.geomspace(1e-4, 1e4, 101), 8),
    (lib.sqrt, np.sqrt, np.geomspace(1e-4, 1e4, 101), 16),
    (lib.rsqrt, lambda x: 1 / np.sqrt(x), np.geomspace(1e-4, 1e4, 101), 16),
    (lib.square, np.square, np.linspace(-3, 3, 31), 1),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("ours", "theirs", "points", "ulps"), TRANSCENDENTAL)
def test_transcendental(ours, theirs, points, ulps, dtype):
    x = points.astype(dtype)
    check(ours, theirs(wide(x)), x, ulps=ulps, scale=0.1)


def test_values_at_the_edges():
    assert run(lib.sqrt, np.float32([0, inf, 4])).tolist() == [0, inf, 2]
    assert math.isnan(run(lib.sqrt, np.float32(-1)))
    assert run(lib.log, np.float32([0, 1, inf])).tolist() == [-inf, 0, inf]
    assert run(lib.exp, np.float32([-inf, 0, inf])).tolist() == [0, 1, inf]
    assert run(lib.rsqrt, np.float32([0, inf])).tolist() == [inf, 0]


def test_narrow_floats_are_rounded_once():
    x = param(0, float16, (3,))
    y = lib.exp(x)
    assert y.op is CAST
    assert y.dtype is float16
    assert y.src[0].dtype is float32
    assert lib.exp(param(0, float32)).op is not CAST


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (1, 1)])
def test_shapes(shape):
    x = normal(*shape)
    assert run(lib.exp, x).shape == shape
    assert run(lib.sub, x, x).shape == shape


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: lib.exp(param(0, int32)), "E402 exp: expected a float x, got int32"),
        (lambda: lib.div(param(0, int32), 2), "E402 div: expected a float a, got int32"),
        (lambda: lib.logical_not(param(0, int32)), "E402 logical_not: expected a bool x"),
        (lambda: lib.add(param(0, int32), 0.5), "E306 expected an integer"),
        (lambda: lib.add(param(0, int32), const(True, bool_)), "E401"),
    ],
)
def test_errors(build, message):
    with pytest.raises(ProgramError) as caught:
        build()
    assert str(caught.value).startswith(message)


def test_two_numbers_are_no_program():
    with pytest.raises(TypeError, match="expected a UOp"):
        lib.add(1, 2)
