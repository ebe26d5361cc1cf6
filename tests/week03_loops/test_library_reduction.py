import numpy as np
import pytest

from tests.week03_loops.oracle import FLOATS, INTEGERS, check, normal, run, wide
from week01_uops.dtypes import bool_, float32, int32
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib

AXES = [None, (), 0, -1, (0, 2), (2, 1), [1], (0, 1, 2)]


def axis_of(axes):
    return tuple(axes) if isinstance(axes, list) else axes


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 1, 3), (1, 1, 1)])
def test_axes(shape, axes, keepdim):
    x = normal(*shape, dtype=np.float64)
    keyword = {"axis": axis_of(axes), "keepdims": keepdim}
    for ours, theirs in [
        (lib.reduce_sum, np.sum),
        (lib.reduce_prod, np.prod),
        (lib.reduce_max, np.max),
        (lib.reduce_min, np.min),
        (lib.mean, np.mean),
        (lib.var, np.var),
    ]:
        check(
            lambda p, f=ours: f(p, axes, keepdim=keepdim), theirs(x, **keyword), x, ulps=64, scale=1
        )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype):
    x = np.random.default_rng(1).integers(0, 100, (6, 7)).astype(dtype) - dtype.type(50)
    check(lambda p: lib.reduce_sum(p, 1), x.sum(1, dtype=dtype), x)
    check(lambda p: lib.reduce_prod(p, 0), x.prod(0, dtype=dtype), x)
    check(lambda p: lib.reduce_max(p, 0), x.max(0), x)
    check(lambda p: lib.reduce_min(p, 1), x.min(1), x)


def test_bools_are_all_and_any():
    x = np.array([[True, True], [False, True], [False, False]])
    check(lambda p: lib.reduce_prod(p, 1), x.all(1), x)
    check(lambda p: lib.reduce_max(p, 1), x.any(1), x)
    check(lambda p: lib.reduce_min(p, 1), x.all(1), x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_narrow_floats(dtype):
    x = normal(5, 300, dtype=dtype)
    check(lambda p: lib.mean(p, 1), wide(x).mean(1), x, ulps=2, scale=1)
    check(lambda p: lib.var(p, 1), wide(x).var(1), x, ulps=8, scale=1)
    check(lambda p: lib.var(p, 1, correction=1), wide(x).var(1, ddof=1), x, ulps=8, scale=1)


def test_empty_reductions_give_the_identity():
    x = np.zeros((0, 3), np.float32)
    assert run(lambda p: lib.reduce_sum(p, 0), x).tolist() == [0, 0, 0]
    assert run(lambda p: lib.reduce_prod(p, 0), x).tolist() == [1, 1, 1]
    assert run(lambda p: lib.reduce_max(p, 0), x).tolist() == [-np.inf] * 3
    assert run(lambda p: lib.reduce_min(p, 0), x).tolist() == [np.inf] * 3
    assert np.isnan(run(lambda p: lib.mean(p, 0), x)).all()
    assert np.isnan(run(lambda p: lib.var(p, correction=1), np.zeros(1, np.float32)))
    assert run(lambda p: lib.reduce_sum(p, 1), x).shape == (0,)
    assert run(lambda p: lib.reduce_min(p, 0), np.zeros((0,), np.uint8)) == 255


def test_nan_stays():
    x = np.array([1, np.nan, -np.inf], np.float32)
    for function in (lib.reduce_sum, lib.reduce_max, lib.reduce_min, lib.mean):
        assert np.isnan(run(function, x))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: lib.reduce_sum(param(0, float32, (2, 3)), 2),
            r"E405 reduce_sum: .* axis in \[-2, 2\), got 2",
        ),
        (
            lambda: lib.reduce_max(param(0, float32, (2, 3)), (0, -2)),
            "E311 reduce_max: expected each axis once",
        ),
        (lambda: lib.reduce_sum(param(0, bool_, (2,))), "E402 .*CAST"),
        (lambda: lib.mean(param(0, int32, (2,))), "E402 mean: expected a float x, got int32"),
        (lambda: lib.var(param(0, float32, (2,)), 1), "E405"),
    ],
)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
