"""Captured functions: gradients that are left and that are there, and faults inside."""

import pytest

from week09_10_autodiff import optim, random
from week09_10_autodiff.context import no_grad
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.jit import jit
from week09_10_autodiff.tensor import Tensor


def test_gradients_that_are_left_are_results():
    w = Tensor([3.0], requires_grad=True)

    @jit
    def backward(x):
        (x * w * w).sum().backward()

    backward(Tensor([1.0]))
    assert w.grad.item() == 6
    backward(Tensor([10.0]))
    assert w.grad.item() == 66
    w.grad = None
    backward(Tensor([1.0]))
    backward(Tensor([1.0]))
    assert w.grad.item() == 12
    assert backward.captures == 2
    assert backward.why == "a tensor float32[1] had no gradient and has one"


def test_gradients_that_are_there_are_inputs():
    w = Tensor([3.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=1.0)
    step = jit(optimizer.step)
    for k in (1.0, 2.0):
        optimizer.zero_grad()
        (w * k).sum().backward()
        step()
        assert w.grad.item() == k
    assert w.item() == 0
    assert step.captures == 1
    optimizer.zero_grad()
    step()
    assert step.why == "a tensor float32[1] had a gradient and has none"


def test_gradients_of_what_was_changed_are_gone():
    w = Tensor([3.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=1.0)

    @jit
    def step():
        (w * 1).sum().backward()
        optimizer.step()

    step()
    assert w.grad is None
    step()
    assert w.item() == 1
    assert w.requires_grad
    assert w.is_leaf


def test_derivatives_with_respect_to_a_variable_after_steps_in_place():
    w = Tensor([3.0], requires_grad=True)

    @jit
    def step():
        with no_grad():
            w.assign(w + 1)

    step()
    step()
    (w * w).sum().backward()
    assert w.grad.item() == 10


@pytest.mark.parametrize(
    "look",
    [lambda t: t.item(), lambda t: t.numpy(), lambda t: t.tolist(), lambda t: bool(t), float],
)
def test_elements_cannot_be_looked_at(look):
    f = jit(lambda x: look(x * 2))
    with pytest.raises(TensorError, match=r"while jit captures .*test_jit_gradients\.py:"):
        f(Tensor([1.0]))


def test_a_fault_inside_leaves_everything_as_it_was():
    random.manual_seed(5)
    w = Tensor([3.0], requires_grad=True)
    w.grad = Tensor([7.0])
    total = Tensor([1.0])
    wrong = [True]

    @jit
    def step(x):
        total.assign(total + x)
        w.grad = None
        (w * x + random.rand(1)).sum().backward()
        w.assign(w * 2)
        if wrong[0]:
            raise KeyError("no")
        return total + 0

    before = w.node, total.node
    with pytest.raises(KeyError):
        step(Tensor([1.0]))
    assert (w.node, total.node) == before
    assert w.grad.item() == 7
    assert random.get_state() == {"seed": 5, "position": 0}
    assert step.captures == 0
    wrong[0] = False
    assert step(Tensor([1.0])).item() == 2
    assert w.item() == 6


def test_a_tensor_that_leaks_out_of_a_capture_says_so():
    leaked = []

    @jit
    def f(x):
        leaked.append(x * 2)
        return x

    f(Tensor([1.0]))
    with pytest.raises(TensorError, match="expected tensors whose elements are known"):
        leaked[0].numpy()
    g = jit(lambda x: x + leaked[0])
    with pytest.raises(TensorError, match="return what is to be used outside"):
        g(Tensor([1.0]))


def test_wrong_calls_are_python_s_own_errors():
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        jit(lambda x: x)()
