"""Which arrays count as equal."""

import numpy as np
import pytest

from week01_uops import dtypes
from week01_uops.closeness import Difference, close, within
from week01_uops.dtypes import bfloat16, float32
from week01_uops.error_model import Bounded


def floats(*values):
    return np.array(values, np.float32)


def test_exact_by_default():
    x = floats(1, -0.0, np.nan, np.inf, -np.inf)
    assert close(x, floats(1, 0.0, np.nan, np.inf, -np.inf), float32) is None
    nearby = np.nextafter(floats(1), 2)
    assert close(floats(1), nearby, float32) == Difference((0,), 1.0, float(nearby[0]), 1)


@pytest.mark.parametrize(
    ("want", "have"),
    [
        (np.nan, 1),
        (1, np.nan),
        (np.inf, 3e38),
        (3e38, np.inf),
        (np.inf, -np.inf),
        (np.nan, np.inf),
    ],
)
def test_nan_and_infinities_must_match(want, have):
    found = close(floats(0, want), floats(0, have), float32, ulps=1e6, scale=1e30)
    assert found is not None
    assert found.index == (1,)
    assert close(floats(want), floats(have), float32, error=np.inf) is None


def test_units_of_the_value_or_of_the_scale():
    x = floats(1000)
    y = floats(1000 * (1 + 3 * 2.0**-23))
    assert close(x, y, float32, ulps=4) is None
    assert close(x, y, float32, ulps=2) is not None
    small = floats(1e-6)
    assert close(floats(0), small, float32, ulps=16) is not None
    assert close(floats(0), small, float32, ulps=16, scale=1.0) is None
    assert close(floats(0), small, float32, error=2e-6) is None


def test_narrow_floats_integers_and_bools():
    x = np.array([1, 2], bfloat16.numpy)
    assert (
        close(x, (x.astype(float) * (1 + 2.0**-7)).astype(bfloat16.numpy), bfloat16, ulps=1) is None
    )
    a, b = np.array([[1, 2], [3, 4]]), np.array([[1, 5], [3, 5]])
    assert close(a, b, dtypes.int64, ulps=100) == Difference((0, 1), 2, 5, 2)
    assert close(a > 2, b > 2, dtypes.bool_) == Difference((0, 1), False, True, 1)
    big = np.array([2**63], np.uint64)
    assert close(big, big + 1, dtypes.uint64) == Difference((0,), 2**63, 2**63 + 1, 1)


def test_shapes_and_dtypes_must_match():
    with pytest.raises(ValueError, match=r"expected float32\[2\], got float32\[3\]"):
        close(floats(1, 2), floats(1, 2, 3), float32)
    with pytest.raises(ValueError, match=r"expected float32\[1\], got float64\[1\]"):
        close(floats(1), np.ones(1), float32)


def test_open_elements_may_be_anything():
    bounded = Bounded(np.array([1.0, 2.0]), np.array([np.inf, 0.5]))
    assert within(bounded, floats(np.nan, 2.25), float32) is None
    assert within(bounded, floats(np.nan, 2.75), float32).index == (1,)
    assert within(bounded, floats(np.nan, 2.75), float32, factor=2) is None
    flags = Bounded(np.array([True, True]), np.array([np.inf, 0]))
    assert within(flags, np.array([False, True]), dtypes.bool_) is None
