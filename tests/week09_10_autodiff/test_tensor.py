"""Tensors are lazy, are computed once, together, and let go of what nobody needs."""

import gc
import threading
import weakref

import numpy as np
import pytest

from week01_uops.ops import PARAM
from week09_10_autodiff.context import is_grad_enabled, no_grad, traced_by
from week09_10_autodiff.realize import PROGRAMS, Programs, canonical
from week09_10_autodiff.storage import Storage
from week09_10_autodiff.tensor import Tensor, cat, einsum, where


class Counted:
    """How many programs were compiled and run since it was made."""

    def __init__(self, monkeypatch):
        self.runs = 0
        self._before = PROGRAMS.compiled
        get = Programs.get

        def counted(programs, program):
            self.runs += 1
            return get(programs, program)

        monkeypatch.setattr(Programs, "get", counted)

    @property
    def compiled(self):
        return PROGRAMS.compiled - self._before


@pytest.fixture
def counted(monkeypatch):
    return Counted(monkeypatch)


def array(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# Laziness


def test_nothing_is_computed_before_it_is_looked_at(counted):
    x = Tensor(array(4, 4), requires_grad=True)
    y = ((x @ x).relu() * 2).sum()
    y.backward()
    assert not y.is_realized
    assert not x.grad.is_realized
    assert (y.shape, y.ndim, str(y.dtype)) == ((), 0, "float32")
    assert counted.runs == 0


def test_several_tensors_are_one_program(counted):
    x = Tensor(array(5), requires_grad=True)
    y = (x.exp() * x).sum()
    y.backward()
    Tensor.realize(y, x.grad, x + 1)
    assert counted.runs == 1


def test_a_value_is_computed_once(counted):
    x = Tensor(array(6))
    y = (x * 3).realize()
    first, second = y.numpy(), y.numpy()
    assert counted.runs == 1
    assert np.shares_memory(first, second)
    assert y.node.op is PARAM
    np.testing.assert_array_equal((y + 1).numpy(), array(6) * 3 + 1)
    program, inputs = canonical([(y * 2).node])
    assert [storage.array.shape for storage in inputs] == [(6,)]
    assert len(program.toposort()) == 4  # PARAM, 2, their product, RETURN: no 3


def test_what_was_computed_is_known_to_expressions_made_before(counted):
    x = Tensor(array(6))
    y = x.exp()
    z = y + 1
    y.realize()
    _, inputs = canonical([z.node])
    assert inputs == [y.storage()]
    np.testing.assert_allclose(z.numpy(), np.exp(array(6)) + 1, rtol=1e-6)


def test_a_variable_that_was_computed_keeps_its_expression_for_derivatives(counted):
    x = Tensor(array(3), requires_grad=True)
    y = x * x
    y.realize()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * array(3))


def test_equal_expressions_over_other_arrays_are_one_compiled_program(counted):
    for seed in range(3):
        x = Tensor(np.full((3, 3), seed, np.float32))
        assert (x * 0.3712 + x.T).sum().item() == pytest.approx(9 * seed * 1.3712)
    assert (counted.runs, counted.compiled) == (3, 1)


def test_one_array_twice_is_one_input():
    x = Tensor(array(3))
    y = Tensor(x)
    _, inputs = canonical([(x + y).node])
    assert len(inputs) == 1


def test_constants_need_no_program(counted):
    assert Tensor.zeros(2, 3).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert Tensor.full((2,), 7, dtype="int8").reshape(2, 1).tolist() == [[7], [7]]
    assert Tensor(array(0, 3)).sum().shape == ()
    assert (Tensor(array(0, 3)) * 2).numpy().shape == (0, 3)
    assert counted.runs == 0


def test_a_constant_that_was_computed_stays_one_in_other_expressions():
    zero = Tensor.zeros(())
    assert zero.item() == 0
    _, inputs = canonical([(Tensor(array(3)) + Tensor.zeros(())).relu().node])
    assert len(inputs) == 1
    x = Tensor([2.0], requires_grad=True)
    assert (x**0).tolist() == [1]
    assert (x**0).tolist() == [1]


def test_few_programs_are_kept():
    programs = Programs(2)
    made = [canonical([(Tensor(array(2)) * number).node])[0] for number in (2, 3, 4)]
    first, second, third = made
    loaded = programs.get(first)
    programs.get(second)
    assert programs.get(first) is loaded
    programs.get(third)
    assert len(programs) == 2
    assert programs.get(first) is loaded  # the second one went
    assert programs.compiled == 3


def test_long_chains():
    x = Tensor(array(2))
    y = x
    for _ in range(20000):
        y = y + 1
    program, _ = canonical([y.node])
    assert len(program.toposort()) == 20003


def test_every_tensor_that_is_read_is_told_to_a_tracer():
    class Tracer:
        def __init__(self):
            self.seen = []

        def used(self, tensors):
            self.seen += tensors

    a, b, c, d = (Tensor(array(2, 2), requires_grad=True) for _ in range(4))
    mask, index = Tensor([True, False]), Tensor([0, 1])
    tracer = Tracer()
    with traced_by(tracer):
        results = [a.where(mask, b), where(mask, c, 0.0), d[index], cat([a, b]), einsum("ij->", c)]
        results[0].backward(d)
        a.masked_fill(mask, 0.0)
    seen = {id(tensor) for tensor in tracer.seen}
    assert seen >= {id(t) for t in (a, b, c, d, mask, index, results[0])}


# Memory


def test_arrays_die_with_their_tensors():
    x = Tensor(array(1000))
    y = (x * 2).realize()
    z = y + 1
    kept = weakref.ref(x.storage()), weakref.ref(y.storage())
    del x
    gc.collect()
    assert kept[0]() is None
    del y
    gc.collect()
    assert kept[1]() is not None  # z reads it
    z.realize()
    gc.collect()
    assert kept[1]() is None


def test_a_training_loop_does_not_grow():
    w = Tensor(array(8), requires_grad=True)
    alive = []
    for _ in range(4):
        loss = (w * w).sum()
        loss.backward()
        with no_grad():
            w.assign(w - 0.1 * w.grad)
        w.grad = None
        Tensor.realize(w, loss)
        del loss
        gc.collect()
        alive.append(sum(type(item) is Storage for item in gc.get_objects()))
        assert len(w.node.toposort()) == 1
    assert alive[-1] == alive[1]
    np.testing.assert_allclose(w.numpy(), array(8) * 0.8**4, rtol=1e-5)


# Threads


def test_threads_compute_at_once():
    results = {}

    def work(number):
        for step in range(5):
            x = Tensor(np.full(64, number + step, np.float32))
            results[number, step] = (x * 2 + number).sum().item()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {(n, s): 64.0 * ((n + s) * 2 + n) for n in range(4) for s in range(5)}


def test_no_grad_is_of_one_thread():
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]
