import math

import numpy as np
import pytest

from tests.week03_loops.oracle import BFLOAT16, FLOATS, check, run, wide
from week01_uops.dtypes import int32
from week01_uops.errors import ProgramError
from week01_uops.ops import param
from week03_loops import library as lib

erf = np.vectorize(math.erf)
POINTS = np.linspace(-9, 9, 4001)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


REFERENCES = [
    (lib.relu, lambda x: np.maximum(x, 0), 0),
    (lib.sigmoid, sigmoid, 4),
    (lib.silu, lambda x: x * sigmoid(x), 16),
    (lib.tanh, np.tanh, 4),
    (lib.erf, erf, 8),
    (lib.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, 8),
    (
        lib.gelu_tanh,
        lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        8,
    ),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("ours", "theirs", "ulps"), REFERENCES)
def test_activations(ours, theirs, ulps, dtype):
    x = POINTS.astype(dtype)
    check(ours, theirs(wide(x)), x, ulps=ulps, scale=1)


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 6e-7), (np.float64, 2e-15)])
def test_documented_error_of_erf(dtype, bound):
    x = np.linspace(-7, 7, 20001).astype(dtype)
    assert np.max(np.abs(run(lib.erf, x) - erf(wide(x)))) < bound
    assert run(lib.erf, dtype([0, -30, 30])).tolist() == [0, -1, 1]


def test_gelu_keeps_its_tail():
    x = np.linspace(-5, -3, 50).astype(np.float32)
    expected = [v * math.erfc(-v / math.sqrt(2)) / 2 for v in wide(x)]
    np.testing.assert_allclose(run(lib.gelu, x), expected, rtol=2e-4)


def test_nothing_overflows():
    x = np.array([-1e4, 1e4], np.float32)
    assert run(lib.sigmoid, x).tolist() == [0, 1]
    assert run(lib.tanh, x).tolist() == [-1, 1]
    assert run(lib.gelu, x).tolist() == [0, 1e4]
    assert run(lib.gelu_tanh, x).tolist() == [0, 1e4]
    assert run(lib.silu, x).tolist() == [0, 1e4]


@pytest.mark.parametrize(
    "function", [lib.sigmoid, lib.silu, lib.tanh, lib.erf, lib.gelu, lib.gelu_tanh]
)
def test_errors_name_the_function(function):
    with pytest.raises(ProgramError, match=f"{function.__name__}: expected a float x, got int32"):
        function(param(0, int32, (3,)))


def test_dtype_stays():
    assert run(lib.gelu, np.zeros(3, BFLOAT16)).dtype == BFLOAT16
