"""Running a library function on arrays: PARAMs, a program, the evaluator."""

import ml_dtypes
import numpy as np

from week01_uops.dtypes import from_numpy
from week01_uops.ops import param, program
from week03_loops.evaluate import evaluate

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")] + [BFLOAT16]
INTEGERS = [np.dtype(name) for name in ("int8", "uint8", "int32", "uint32", "int64", "uint64")]
EPSILON = {np.dtype("float16"): 2**-10, BFLOAT16: 2**-7, np.dtype("float32"): 2**-23}


def run(function, *arrays):
    """The value of function(PARAM 0, PARAM 1, …) for these arrays."""
    arrays = [np.asarray(array) for array in arrays]
    params = [param(k, from_numpy(a.dtype), a.shape) for k, a in enumerate(arrays)]
    (result,) = evaluate(program(function(*params)), dict(enumerate(arrays)))
    return np.asarray(result)


def check(function, expected, *arrays, ulps=4.0, scale=0.0):
    """Compare dtype, shape and value: within `ulps` of the value, or of `scale` if larger."""
    result = run(function, *arrays)
    expected = np.asarray(expected)
    floating = result.dtype in (*EPSILON, np.dtype("float64"))
    if not floating:
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
        return
    assert result.dtype == np.asarray(arrays[0]).dtype
    assert result.shape == expected.shape
    epsilon = EPSILON.get(result.dtype, 2**-52)
    np.testing.assert_allclose(
        result.astype(np.float64),
        expected.astype(np.float64),
        rtol=ulps * epsilon,
        atol=ulps * epsilon * scale,
    )


def normal(*shape, dtype=np.float32, seed=0):
    """Standard normal numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def wide(x):
    """x in float64, exactly."""
    return np.asarray(x).astype(np.float64)
