"""Derivatives of tensors, and tensors that change: what is derived, and what is constant."""

import numpy as np
import pytest

from week09_10_autodiff.context import enable_grad, is_grad_enabled, no_grad
from week09_10_autodiff.derivatives import grad
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.tensor import Tensor


def test_backward_adds_up():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [5, 7]
    assert not x.grad.requires_grad


def test_backward_from_a_given_gradient():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * x).backward(Tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]


def test_higher_derivatives():
    x = Tensor(2.0, requires_grad=True)
    first = grad(x**4, x)
    second = grad(first, x)
    third = grad(second, x)
    assert [t.item() for t in (first, second, third)] == [32, 48, 48]
    y = x**3
    y.backward(create_graph=True)
    assert grad(x.grad, x).item() == 12


def test_the_derivative_that_backward_leaves_is_a_constant():
    x = Tensor(3.0, requires_grad=True)
    (x * x).backward()
    product = x.grad * x
    assert grad(product, x).item() == 6


def test_grad_of_several():
    x, y = Tensor(2.0, requires_grad=True), Tensor(5.0, requires_grad=True)
    z = Tensor(1.0, requires_grad=True)
    dx, dy, dz = grad(x * x * y, [x, y, z])
    assert [dx.item(), dy.item(), dz.item()] == [20, 4, 0]
    assert grad(x * y, x, Tensor(2.0)).item() == 10


def test_equal_values_are_variables_of_their_own():
    a = Tensor.zeros(2, requires_grad=True)
    b = Tensor.zeros(2, requires_grad=True)
    c = Tensor(a, requires_grad=True)
    (a * 2 + b * 3 + c * 4).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist(), c.grad.tolist()) == ([2, 2], [3, 3], [4, 4])


def test_variables_that_are_computed_between_forward_and_backward():
    w = Tensor.zeros(2, requires_grad=True)
    loss = (w + 1).square().sum()
    w.realize()
    loss.backward()
    later = (w * 5).sum()
    later.backward()
    assert w.grad.tolist() == [7, 7]


def test_derivatives_are_of_the_value_that_was_read():
    w = Tensor([3.0], requires_grad=True)
    loss = w.square().sum()
    with no_grad():
        w.assign(w * 0)
    loss.backward()
    assert w.grad.tolist() == [6]
    assert grad(loss, w).tolist() == [6]


def test_detach_and_no_grad():
    x = Tensor([2.0], requires_grad=True)
    assert not x.detach().requires_grad
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [2]
    with no_grad():
        assert not is_grad_enabled()
        constant = x * x
        with enable_grad():
            assert (x * 1).requires_grad
    assert is_grad_enabled()
    assert not constant.requires_grad
    x.grad = None
    (constant * x).sum().backward()
    assert x.grad.tolist() == [4]


def test_detach_of_a_variable_without_a_value():
    x = Tensor.full((1,), 3.0, requires_grad=True)
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [3]
    with no_grad():
        constant = x + 0
    assert not constant.requires_grad
    assert grad((constant * x).sum(), x).tolist() == [3]


def test_no_grad_decorates():
    @no_grad()
    def double(x):
        return x * 2

    assert not double(Tensor([1.0], requires_grad=True)).requires_grad


def test_requires_grad_can_be_taken_back():
    x = Tensor([1.0], requires_grad=True)
    y = Tensor([1.0], requires_grad=True)
    loss = (x * y).sum()
    x.requires_grad_(False)
    loss.backward()
    assert x.grad is None
    assert y.grad.tolist() == [1]


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda x: Tensor([1.0]).sum().backward(), "depends on one that requires grad"),
        (lambda x: x.backward(), r"a scalar, got the shape \[2\]"),
        (lambda x: x.backward(Tensor([1.0])), r"a gradient of float32\[2\], got float32\[1\]"),
        (lambda x: grad(Tensor(1.0), x), "depends on one that requires grad"),
        (lambda x: (x * 2).requires_grad_(), "a leaf, got a result"),
        (lambda x: Tensor([1], requires_grad=True), "a float tensor, got int64"),
        (lambda x: x.__iadd__(1), "no_grad"),
    ],
)
def test_refused(action, message):
    with pytest.raises(TensorError, match=message):
        action(Tensor([1.0, 2.0], requires_grad=True))


# Change


def test_assign_changes_the_tensor_and_not_what_was_made_of_it():
    x = Tensor([1.0, 2.0])
    before = x * 10
    x.assign([3, 4])
    assert x.dtype.name == "float32"
    assert x.tolist() == [3, 4]
    assert before.tolist() == [10, 20]
    x.assign(7)
    assert x.tolist() == [7, 7]


def test_operators_in_place():
    x = Tensor([1.0, 2.0])
    same = x
    x += 1
    x *= Tensor([2, 3])
    x -= 0.5
    x /= 2
    assert same is x
    np.testing.assert_allclose(x.numpy(), [1.75, 4.25])


def test_assigning_what_is_derived_makes_a_result():
    w = Tensor([2.0], requires_grad=True)
    x = Tensor([0.0])
    x.assign(w * 3)
    assert x.requires_grad
    assert not x.is_leaf
    (x * x).sum().backward()
    assert w.grad.tolist() == [36]


def test_assign_refuses_other_shapes():
    with pytest.raises(TensorError, match="assign: "):
        Tensor([1.0, 2.0]).assign([1.0, 2.0, 3.0])
