"""`check_nan`: which operation first gave a NaN, by one program."""

import math

import pytest

from week09_10_autodiff.nans import NanError, check_nan
from week09_10_autodiff.realize import Programs
from week09_10_autodiff.tensor import Tensor


def test_the_first_operation_and_its_line():
    x = Tensor([0.0, 1.0, -2.0])
    with check_nan() as check:
        y = x * 2
        z = y.log()
        loss = (z * 3).sum()
    with pytest.raises(NanError) as caught:
        check(loss)
    wanted = r"log first gave a NaN, 1 of 3 elements of [3] (at test_tensor_nans.py:16: `y.log()`)"
    assert str(caught.value) == wanted


def test_nothing_is_wrong():
    x = Tensor([1.0, 2.0])
    with check_nan() as check:
        y = x.log()
    check(y, x)
    assert check.first(y) is None


def test_nothing_is_computed_while_it_watches(monkeypatch):
    runs = []
    get = Programs.get
    monkeypatch.setattr(Programs, "get", lambda self, p: runs.append(p) or get(self, p))
    x = Tensor([-1.0])
    with check_nan() as check:
        z = (x.log() * 2).exp() + x
    assert not runs
    check.first(z)
    assert len(runs) <= 3  # the value, all operations, the one that is named


def test_a_nan_that_nothing_uses_is_none():
    x = Tensor([-1.0, 2.0])
    with check_nan() as check:
        y = x.log().where(x > 0, 0.0)
    assert check.first(y) is None


def test_a_derivative_is_named_with_what_it_is_of():
    x = Tensor([0.0, 4.0], requires_grad=True)
    with check_nan() as check:
        loss = (x.sqrt() * Tensor([0.0, 1.0])).sum()
        loss.backward()
    assert check.first(loss) is None
    found = check.first(x.grad)
    assert found.startswith("the derivative of sqrt first gave a NaN, 1 of 2 elements")
    assert "x.sqrt()" in found


def test_infinities():
    x = Tensor([0.0, 1.0])
    with check_nan(inf=True) as check:
        y = 1 / (x * 1)
    assert check.first(y).startswith("div first gave a NaN or an infinity, 1 of 2")
    with check_nan() as check:
        y = 1 / (x * 1)
    assert check.first(y) is None


def test_a_nan_that_was_given():
    x = Tensor([math.nan, 1.0])
    with check_nan() as check:
        y = x + 1
    assert "add first gave a NaN" in check.first(y)
    assert "it was given a NaN" in check.first(y)
    assert check.first(x).startswith("no operation that was watched gave a NaN")


def test_integers_hold_none():
    with check_nan() as check:
        y = Tensor([1, 2]) * 2
    assert check.first(y) is None
