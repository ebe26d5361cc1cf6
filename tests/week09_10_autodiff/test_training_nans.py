"""The search for the operation that a NaN comes from."""

import math

import numpy as np
import pytest

from week09_10_autodiff.context import watched_by
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.training.nans import Inspector, NotFiniteError


def told(step):
    with pytest.raises(NotFiniteError) as error, watched_by(Inspector()):
        step()
    return str(error.value)


def test_a_step_without_a_nan_is_left_alone():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with watched_by(Inspector()):
        (x.log() * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.log([1.0, 2.0]) + 1, rtol=1e-6)


def test_the_first_operation_is_named_with_its_line():
    x = Tensor([1.0, -2.0, 3.0])

    def step():
        y = x + 1
        z = y.log()  # the line
        return (z * 2).sum()

    text = told(step)
    assert "the first NaN came from `log`" in text
    assert "z = y.log()  # the line" in text
    assert "test_training_nans.py:" in text
    assert "(1 of 3 elements of [3])" in text


def test_an_infinite_value_on_the_way_is_named():
    x = Tensor([1.0, 100.0])

    def step():
        big = x.exp()
        return big / big  # infinite over infinite

    text = told(step)
    assert text.startswith("the first NaN came from `/`") or "div" in text.splitlines()[0]
    assert "infinite since `exp`" in text
    assert "big = x.exp()" in text


def test_masks_are_infinite_by_intention():
    x = Tensor(np.arange(4.0, dtype=np.float32).reshape(2, 2))
    with watched_by(Inspector()):
        masked = x.where(Tensor([[True, False], [True, True]]), -math.inf)
        masked.softmax(-1).sum()


def test_a_nan_in_the_derivative_names_the_operation_that_is_derived():
    x = Tensor([0.0, 4.0], requires_grad=True)

    def step():
        root = x.relu().sqrt()  # the derivative at 0 is infinite
        (root * 0.0).sum().backward()

    text = told(step)
    assert "the first NaN came from `the derivative of " in text
    assert "root = x.relu().sqrt()" in text


def test_a_nan_that_is_given_is_reported_where_it_is_first_used():
    x = Tensor([math.nan, 1.0])
    text = told(lambda: x * 2)
    assert "(1 of 2 elements of [2], and it was given one)" in text


def test_watching_ends_with_the_block():
    x = Tensor([-1.0])
    with watched_by(Inspector()):
        pass
    assert math.isnan(x.log().item())
