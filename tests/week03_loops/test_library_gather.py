import numpy as np
import pytest

from tests.week03_loops.oracle import INTEGERS, check, normal, run
from week01_uops.dtypes import float32, int8, int64
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib


def positions(count, *shape, dtype=np.int64):
    return np.random.default_rng(3).integers(0, max(count, 1), shape).astype(dtype)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0,)])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_take(axis, shape):
    x = normal(3, 5, 4)
    index = positions(x.shape[axis], *shape)
    check(lambda a, b: lib.take(a, b, axis), np.take(x, index, axis), x, index)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_take_with_every_index_dtype(dtype):
    x, index = np.arange(7) * 10, positions(7, 9, dtype=dtype)
    check(lib.take, x[index], x, index)


def test_take_of_bools_and_of_what_is_not_finite():
    index = np.array([2, 0])
    x = np.array([True, False, False])
    check(lib.take, x[index], x, index)
    x = np.float32([np.inf, np.nan, 1])
    check(lib.take, x[index], x, index)


def test_positions_outside_read_zero():
    x, index = normal(4), np.array([-1, 4, 1])
    check(lib.take, [0, 0, x[1]], x, index)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(axis):
    x = normal(3, 5, 4)
    shape = list(x.shape)
    shape[axis] = 7
    index = positions(x.shape[axis], *shape)
    check(lambda a, b: lib.gather(a, b, axis), np.take_along_axis(x, index, axis), x, index)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_add(axis):
    x = normal(3, 5, 4, dtype=np.float64)
    index = positions(x.shape[axis], 11)
    shape = list(x.shape)
    shape[axis] = 11
    values = normal(*shape, dtype=np.float64, seed=1)
    expected = x.copy()
    np.add.at(np.moveaxis(expected, axis, 0), index, np.moveaxis(values, axis, 0))
    ours = lambda a, b, c: lib.scatter_add(a, b, c, axis)
    check(ours, expected, x, index, values, ulps=32, scale=1)


def test_scatter_add_of_nothing_and_outside():
    x = np.arange(4)
    check(lib.scatter_add, x, x, np.zeros(0, np.int64), np.zeros(0, np.int64))
    check(lib.scatter_add, x, x, np.array([-1, 4]), np.array([7, 7]))


@pytest.mark.parametrize("count", [1, 4, 0])
def test_one_hot(count):
    index = positions(4, 2, 3)
    expected = (index[..., None] == np.arange(count)).astype(np.float32)
    result = run(lambda p: lib.one_hot(p, count), index)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.float32


X = param(0, float32, (3, 200))
WRONG = [
    (
        lambda: lib.take(X, param(1, float32, (2,))),
        "E402 take: expected an integer index, got float32",
    ),
    (lambda: lib.take(X, param(1, int8, (2,)), 1), "E402 .* index whose dtype holds 199, got int8"),
    (lambda: lib.take(X, param(1, int64, (2,)), 2), "E405 take: expected an axis"),
    (lambda: lib.gather(X, param(1, int64, (2,)), 1), "E406 gather: expected an index of rank 2"),
    (
        lambda: lib.gather(X, param(1, int64, (2, 5)), 1),
        r"E403 gather: expected an index of shape \[3, 5\]",
    ),
    (
        lambda: lib.scatter_add(X, param(1, int64, (2,)), param(2, float32, (3, 200))),
        r"E403 scatter_add: expected values of shape \[2, 200\], got \[3, 200\]",
    ),
    (
        lambda: lib.scatter_add(X, param(1, int64, (2, 1)), X),
        "E406 scatter_add: expected an index of one axis",
    ),
    (lambda: lib.one_hot(X, 3), "E402 one_hot: expected an integer index"),
]


@pytest.mark.parametrize(("build", "message"), WRONG)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
