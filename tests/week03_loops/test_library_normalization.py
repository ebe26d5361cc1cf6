import numpy as np
import pytest

from tests.week03_loops.oracle import FLOATS, check, normal, run, wide
from week01_uops.dtypes import float32, int32
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def layernorm(x, axes=(-1,), epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def rmsnorm(x, axes=(-1,), epsilon=1e-6):
    return x / np.sqrt(np.square(x).mean(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis, dtype):
    x = 4 * normal(3, 20, 5, dtype=dtype)
    expected = softmax(wide(x), axis)
    check(lambda p: lib.softmax(p, axis), expected, x, ulps=32, scale=0.01)
    check(lambda p: lib.log_softmax(p, axis), np.log(expected), x, ulps=16, scale=4)


def test_softmax_at_the_edges():
    x = np.float32([[1e4, 1e4, -1e4], [-np.inf, 0, 0]])
    assert run(lib.softmax, x).tolist() == [[0.5, 0.5, 0], [0, 0.5, 0.5]]
    assert run(lib.log_softmax, x)[0, 2] == np.float32(-2e4 - np.log(2))
    assert np.isnan(run(lib.softmax, np.float32([-np.inf, -np.inf]))).all()
    assert run(lib.softmax, np.zeros((2, 0), np.float32)).shape == (2, 0)
    assert run(lib.softmax, np.zeros((0, 2), np.float32)).shape == (0, 2)
    assert run(lib.softmax, np.float32([[3]])).tolist() == [[1]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_layernorm(dtype):
    x = normal(3, 50, dtype=dtype) + dtype.type(2)
    weight, bias = normal(50, dtype=dtype, seed=1), normal(50, dtype=dtype, seed=2)
    expected = layernorm(wide(x)) * wide(weight) + wide(bias)
    check(lib.layernorm, expected, x, weight, bias, ulps=16, scale=1)
    check(lib.layernorm, layernorm(wide(x)), x, ulps=16, scale=1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rmsnorm(dtype):
    x, weight = normal(3, 50, dtype=dtype), normal(50, dtype=dtype, seed=1)
    check(lib.rmsnorm, rmsnorm(wide(x)) * wide(weight), x, weight, ulps=16, scale=1)


def test_normalizing_several_axes():
    x, weight = normal(2, 3, 4, 5, dtype=np.float64), normal(4, 5, dtype=np.float64)
    check(
        lambda a, b: lib.layernorm(a, b, axes=2),
        layernorm(x, (-2, -1)) * weight,
        x,
        weight,
        ulps=64,
        scale=1,
    )
    check(lambda a: lib.rmsnorm(a, axes=3), rmsnorm(x, (-3, -2, -1)), x, ulps=64, scale=1)


def test_constant_rows_are_their_bias():
    x, bias = np.full((2, 3), 7, np.float32), normal(3)
    check(lambda a, b: lib.layernorm(a, None, b), [bias, bias], x, bias)
    assert run(lib.rmsnorm, np.zeros((1, 1), np.float32)).tolist() == [[0]]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (1, 3, 2, 4)])
def test_batchnorm(shape):
    x = normal(*shape, dtype=np.float64)
    average, weight, bias = (normal(3, dtype=np.float64, seed=k) for k in (1, 2, 3))
    variance = np.square(normal(3, dtype=np.float64, seed=4))
    column = (3, *[1] * (len(shape) - 2))
    normal_x = (x - average.reshape(column)) / np.sqrt(variance.reshape(column) + 1e-5)
    expected = normal_x * weight.reshape(column) + bias.reshape(column)
    check(lib.batchnorm, expected, x, average, variance, weight, bias, ulps=64, scale=1)
    check(lib.batchnorm, normal_x, x, average, variance, ulps=64, scale=1)


X = param(0, float32, (2, 3, 4))
THREE = param(1, float32, (3,))
WRONG = [
    (lambda: lib.softmax(param(0, int32, (3,))), "E402 softmax: expected a float x, got int32"),
    (lambda: lib.softmax(X, 3), "E405 softmax: expected an axis"),
    (lambda: lib.log_softmax(X, -4), "E405 log_softmax: expected an axis"),
    (
        lambda: lib.layernorm(X, THREE),
        r"E403 layernorm: expected a weight of shape \[4\], got \[3\]",
    ),
    (lambda: lib.layernorm(X, axes=0), "E405 layernorm: expected 1 to 3 axes to normalize, got 0"),
    (lambda: lib.rmsnorm(X, THREE), r"E403 rmsnorm: expected a weight of shape \[4\]"),
    (
        lambda: lib.batchnorm(X, THREE, param(2, float32, (4,))),
        r"batchnorm: expected a variance of shape \[3\]",
    ),
    (lambda: lib.batchnorm(THREE, THREE, THREE), "E406 batchnorm: expected x with axes"),
]


@pytest.mark.parametrize(("build", "message"), WRONG)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
