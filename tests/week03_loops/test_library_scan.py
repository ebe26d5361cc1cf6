import numpy as np
import pytest

from tests.week03_loops.oracle import INTEGERS, check, normal, run
from week01_uops.dtypes import bool_, from_numpy, int64
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(3, 7, 4), (1, 1, 1), (5, 0, 2), (2, 20, 1)])
def test_scans(shape, axis):
    x = normal(*shape, dtype=np.float64)
    check(lambda p: lib.cumsum(p, axis), x.cumsum(axis), x, ulps=32, scale=1)
    check(lambda p: lib.cumprod(p, axis), x.cumprod(axis), x, ulps=64)
    check(lambda p: lib.cummax(p, axis), np.maximum.accumulate(x, axis), x, ulps=0)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_scans_of_integers_wrap(dtype):
    x = np.random.default_rng(0).integers(0, 100, 30).astype(dtype) - dtype.type(50)
    check(lib.cumsum, x.cumsum(dtype=dtype), x)
    check(lib.cumprod, x.cumprod(dtype=dtype), x)
    check(lib.cummax, np.maximum.accumulate(x), x)


def test_scans_of_bools():
    x = np.array([True, True, False, True])
    check(lib.cumprod, [True, True, False, False], x)
    check(lib.cummax, [True, True, True, True], x)
    check(lib.cummax, [False, False, True, True], x[::-1] & ~x)


@pytest.mark.parametrize("count", [0, 1, 2, 100, 256, 257, 1000, 70000])
def test_arange(count):
    expected = np.arange(count)
    check(lambda p: lib.add(lib.arange(count), p), expected, np.int64(0))


@pytest.mark.parametrize("dtype", [*INTEGERS, np.dtype("float32")])
def test_arange_of_dtypes(dtype):
    zero = dtype.type(0)
    check(
        lambda p: lib.add(lib.arange(100, from_numpy(dtype)), p), np.arange(100, dtype=dtype), zero
    )


@pytest.mark.parametrize("diagonal", [-9, -1, 0, 2, 9])
def test_triangles(diagonal):
    x = normal(2, 4, 6)
    check(lambda p: lib.tril(p, diagonal), np.tril(x, diagonal), x)
    truth = np.zeros((4, 6), bool)
    ours = lambda p: lib.maximum(lib.lower_triangle(4, 6, diagonal), p)
    check(ours, np.tril(~truth, diagonal), truth)


def test_tril_of_bools_and_of_nothing():
    x = np.ones((3, 3), bool)
    check(lib.tril, np.tril(x), x)
    assert run(lib.tril, normal(0, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: lib.cumsum(param(0, int64, (3,)), 1), "E405 cumsum: expected an axis"),
        (lambda: lib.cumsum(param(0, bool_, (3,))), "E402 .*CAST"),
        (lambda: lib.arange(-1), "E311 arange: expected a count ≥ 0, got -1"),
        (lambda: lib.tril(param(0, int64, (3,))), "E406 tril: expected x with axes"),
    ],
)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
