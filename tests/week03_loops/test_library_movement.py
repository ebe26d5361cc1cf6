import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from tests.week03_loops.oracle import check, normal, run
from week01_uops.dtypes import float32
from week01_uops.errors import ProgramError
from week01_uops.node import toposort
from week01_uops.ops import param
from week03_loops import library as lib
from week03_loops.ops import MOVEMENT, PAD

X = np.arange(60).reshape(3, 4, 5)


def test_axes():
    check(lambda p: lib.transpose(p), X.swapaxes(1, 2), X)
    check(lambda p: lib.transpose(p, 0, -1), X.swapaxes(0, 2), X)
    check(lambda p: lib.move_axis(p, 0, -1), np.moveaxis(X, 0, -1), X)
    check(lambda p: lib.move_axis(p, 2, 0), np.moveaxis(X, 2, 0), X)
    check(lambda p: lib.unsqueeze(p, -1), X[..., None], X)
    check(lambda p: lib.unsqueeze(p, 1), X[:, None], X)


def test_parts():
    check(lambda p: lib.narrow(p, 1, 1, 3), X[:, 1:3], X)
    check(lambda p: lib.narrow(p, -1, 2, 2), X[..., 2:2], X)
    check(lambda p: lib.split(p, 1, 2)[1], X[:, 2:], X)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_])
def test_concatenate(dtype):
    x, y = (X % 3).astype(dtype), (X[:, :2] % 2).astype(dtype)
    check(lambda a, b: lib.concatenate([a, b, a], 1), np.concatenate([x, y, x], 1), x, y)
    check(lambda a: lib.concatenate([a], -1), x, x)
    empty = np.zeros((3, 0, 5), dtype)
    check(lambda a, b: lib.concatenate([a, b], 1), x, x, empty)


def test_concatenate_keeps_nan_and_infinity_in_their_places():
    x, y = np.float32([np.nan, np.inf]), np.float32([1])
    check(lambda a, b: lib.concatenate([a, b]), np.concatenate([x, y]), x, y)


def test_fills():
    assert (
        run(lambda p: lib.add(p, lib.full(3, float32, (2, 2))), np.float32(1)).tolist()
        == [[4, 4]] * 2
    )
    x = normal(2, 3)
    expected = np.pad(x, ((1, 0), (0, 2)), constant_values=-np.inf)
    check(lambda p: lib.pad_with(p, ((1, 0), (0, 2)), -np.inf), expected, x)


def windows_of(x, axis, size, stride, dilation):
    view = sliding_window_view(x, (size - 1) * dilation + 1, axis)
    return np.moveaxis(np.moveaxis(view[..., ::dilation], axis, 0)[::stride], 0, axis)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 20), st.integers(1, 6), st.integers(1, 7), st.integers(1, 5), st.integers(0, 2)
)
def test_windows(length, size, stride, dilation, axis):
    length = max(length, (size - 1) * dilation + 1)
    shape = [2, 3, 2]
    shape[axis] = length
    x = np.arange(np.prod(shape)).reshape(shape)
    expected = windows_of(x, axis, size, stride, dilation)
    check(lambda p: lib.windows(p, [axis], [size], [stride], [dilation]), expected, x)


def test_windows_move_elements_and_invent_none():
    x = param(0, float32, (2, 9, 9))
    view = lib.windows(x, [1, 2], [3, 3], [2, 1], [1, 2])
    assert view.shape == (2, 4, 5, 3, 3)
    ops = {node.op for node in toposort((view,)) if node is not x}
    assert ops <= MOVEMENT - {PAD}


def test_windows_side_by_side_are_a_reshape():
    x = param(0, float32, (2, 8))
    assert len(toposort((lib.windows(x, [1], [2], [2], [1]),))) == 2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: lib.narrow(x, 1, 0, 4), r"E410 narrow: expected bounds in \[0, 3\]"),
        (lambda x: lib.split(x, 1, 2), "E404 split: expected axis 1 a multiple of 2, got 3"),
        (lambda x: lib.transpose(x, 0, 2), "E405 transpose"),
        (lambda x: lib.unsqueeze(x, 4), "E405 unsqueeze"),
        (lambda x: lib.concatenate([], 0), "E406 concatenate: expected at least one part"),
        (
            lambda x: lib.concatenate([x, lib.transpose(x)], 0),
            "E403 concatenate: expected shapes equal",
        ),
    ],
)
def test_errors(build, message):
    with pytest.raises(ProgramError, match=message):
        build(param(0, float32, (2, 3)))
