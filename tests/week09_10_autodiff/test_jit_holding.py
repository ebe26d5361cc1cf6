"""Captured functions: who holds an old value keeps it, and what is assigned elsewhere is found."""

import numpy as np
import pytest

from tests.week09_10_autodiff.jitted import counter, place
from week09_10_autodiff import random
from week09_10_autodiff.jit import jit
from week09_10_autodiff.tensor import Tensor


@pytest.mark.parametrize(
    "look",
    [
        lambda t: t.numpy(),
        lambda t: t * 1,
        lambda t: t.detach(),
        lambda t: Tensor(t),
        lambda t: t.T,
    ],
    ids=["numpy", "expression", "detach", "tensor", "transpose"],
)
@pytest.mark.parametrize("when", [0, 1, 2])
def test_old_values_stay(look, when):
    total, step = counter()
    one = Tensor(np.ones(3, np.float32))
    for _ in range(when):
        step(one)
    held = look(total)
    step(one)
    step(one)
    assert total.tolist() == [when + 2] * 3
    assert np.asarray(held).tolist() == [when] * 3


def test_results_stay():
    total, step = counter()
    one = Tensor(np.ones(3, np.float32))
    first = step(one)
    lazy = first + total
    step(one)
    assert first.tolist() == [2] * 3
    assert lazy.tolist() == [3] * 3


def test_nothing_moves_without_a_reason():
    """Two functions that change the same tensors, and one that reads them, leave them in place."""
    total = Tensor(np.zeros(3, np.float32))

    @jit
    def add(x):
        total.assign(total + x)

    @jit
    def double():
        total.assign(total * 2)

    look = jit(lambda x: total + x)
    one = Tensor(np.ones(3, np.float32))
    add(one), double(), look(one)
    where = place(total)
    for _ in range(3):
        add(one), double()
        look(one)
    assert place(total) == where
    assert total.tolist() == [30] * 3


def test_a_tensor_over_foreign_memory_moves():
    array = np.ones(16, np.float32)
    x = Tensor.from_numpy(array)

    @jit
    def add():
        x.assign(x + 1)

    add()
    add()
    assert x.tolist() == [3] * 16
    assert array.tolist() == [1] * 16


def test_read_only_memory_is_left_alone():
    array = np.ones(64, np.float32)
    array.flags.writeable = False
    x = Tensor.from_numpy(array)
    jit(lambda: x.assign(x + 1))()
    assert x.tolist() == [2] * 64
    assert array[0] == 1


def test_tensors_that_were_one_are_two():
    a = Tensor([1.0, 2.0])
    b = a.detach()

    @jit
    def step():
        a.assign(a + b)
        return a + 0

    assert [step().tolist() for _ in range(3)] == [[2, 4], [3, 6], [4, 8]]
    assert b.tolist() == [1, 2]


def test_both_of_two_tensors_that_were_one_are_changed():
    a = Tensor([1.0])
    b = a.detach()

    @jit
    def step():
        a.assign(a + 1)
        b.assign(b * 2)

    step()
    step()
    assert (a.item(), b.item()) == (3, 4)


def test_tensors_that_are_assigned_elsewhere_are_found_again():
    w, x = Tensor([1.0]), Tensor([10.0])
    f = jit(lambda x: x * w)
    assert f(x).item() == 10
    w.assign([3.0])
    assert f(x).item() == 30
    w.assign(w + 1)
    assert f(x).item() == 40
    assert f.captures == 1


def test_state_that_is_assigned_elsewhere_is_found_again():
    total, step = counter()
    one = Tensor(np.ones(3, np.float32))
    step(one)
    total.assign([10.0, 20.0, 30.0])
    assert step(one).tolist() == [22, 42, 62]
    assert step.captures == 1


def test_tensors_that_were_one_and_differ_later_are_captured_again():
    a = Tensor([1.0])
    b = a.detach()
    f = jit(lambda x: a * x + b)
    assert f(Tensor([10.0])).item() == 11
    b.assign([5.0])
    assert f(Tensor([10.0])).item() == 15
    assert f.captures == 2
    assert f.why == "two tensors float32[1] that had one value have two by now"


def test_a_tensor_that_is_not_computed_yet_is_computed_once():
    random.manual_seed(0)
    w = random.rand(4)
    f = jit(lambda x: x + w)
    first = f(Tensor.zeros(4))
    assert w.is_realized
    assert first.tolist() == f(Tensor.zeros(4)).tolist() == w.tolist()
