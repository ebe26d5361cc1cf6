"""Captured functions: the same values as without, state in place, random numbers, memory."""

import gc
from weakref import ref

import numpy as np

from tests.week09_10_autodiff.jitted import counter, place, tensor
from week01_uops.dtypes import float64
from week09_10_autodiff import optim, random
from week09_10_autodiff.jit import jit
from week09_10_autodiff.realize import PROGRAMS
from week09_10_autodiff.tensor import Tensor


def test_values_are_those_of_the_function():
    w = tensor(3, 4)
    f = lambda x: (x @ w).relu().sum(1)
    captured = jit(f)
    for seed in range(3):
        x = tensor(5, 3, seed=seed)
        np.testing.assert_allclose(captured(x).numpy(), f(x).numpy(), rtol=1e-6)
    assert captured.captures == 1
    assert captured.why == "it was called for the first time"


def test_state_is_changed_where_it_lies():
    total, step = counter()
    one = Tensor(np.ones(3, np.float32))
    step(one)
    where = place(total)
    results = [step(one) for _ in range(3)]
    assert place(total) == where
    assert total.tolist() == [4, 4, 4]
    assert [r.tolist()[0] for r in results] == [4, 6, 8]


def test_further_calls_compile_nothing():
    _, step = counter()
    step(tensor(3))
    compiled = PROGRAMS.compiled
    for seed in range(4):
        step(tensor(3, seed=seed))
    assert PROGRAMS.compiled == compiled


def test_equal_functions_share_a_program():
    first, second = counter()[1], counter()[1]
    first(tensor(3))
    compiled = PROGRAMS.compiled
    assert second(tensor(3)).shape == (3,)
    assert PROGRAMS.compiled == compiled


def test_two_counters_keep_their_own_state():
    (a, step_a), (b, step_b) = counter(), counter()
    one = Tensor(np.ones(3, np.float32))
    for _ in range(2):
        step_a(one)
        step_b(one * 10)
    assert a.tolist() == [2] * 3
    assert b.tolist() == [20] * 3


def train(capture, steps=4):
    """The losses of a small network, trained with AdamW, and its parameters."""
    random.manual_seed(3)
    w, v = tensor(6, 16, seed=1, requires_grad=True), tensor(16, 2, seed=2, requires_grad=True)
    optimizer = optim.AdamW([w, v], lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        hidden = random.dropout((x @ w).tanh(), 0.1)
        loss = (hidden @ v - y).square().mean()
        loss.backward()
        optim.clip_grad_norm_([w, v], 0.5)
        optimizer.step()
        return loss.detach()

    step = capture(step)
    losses = []
    for seed in range(steps):
        optimizer.param_groups[0]["lr"] = 0.05 / (seed + 1)
        losses.append(step(tensor(8, 6, seed=seed + 10), tensor(8, 2, seed=seed + 20)).item())
    return losses, [p.numpy() for p in (w, v)], optimizer.steps.item(), step


def test_training_is_the_same_as_without():
    plain, want, _, _ = train(lambda f: f)
    losses, found, count, step = train(jit)
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert count == 4
    assert step.captures == 1


def test_state_that_is_made_by_the_first_call():
    made = {}

    @jit
    def mean(x):
        if "sum" not in made:
            made["sum"], made["count"] = Tensor.zeros(2), Tensor.zeros()
        made["sum"].assign(made["sum"] + x)
        made["count"].assign(made["count"] + 1)
        return made["sum"] / made["count"]

    results = [mean(Tensor([k, 2.0 * k])).tolist() for k in (1.0, 3.0, 5.0)]
    assert results == [[1, 2], [2, 4], [3, 6]]
    assert mean.captures == 1


def test_a_value_that_needs_the_whole_old_one():
    x = tensor(4, 4)
    want = x.numpy()

    @jit
    def square():
        x.assign(x @ x)

    for _ in range(2):
        square()
        want = want @ want
    np.testing.assert_allclose(x.numpy(), want, rtol=1e-4)


def test_tensors_that_are_exchanged():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])

    @jit
    def exchange():
        old = a + 0
        a.assign(b)
        b.assign(old)

    exchange()
    assert (a.tolist(), b.tolist()) == ([3, 4], [1, 2])
    exchange()
    assert (a.tolist(), b.tolist()) == ([1, 2], [3, 4])


def test_several_assignments_count_from_the_first_to_the_last():
    x = Tensor([1.0])

    @jit
    def twice():
        x.assign(x + 1)
        x.assign(x * 10)
        return x + 0

    assert twice().tolist() == [20]
    assert twice().tolist() == [210]
    assert x.tolist() == [210]


def test_random_numbers_are_those_without():
    def draw():
        return [
            random.rand(5),
            random.randn(2, 2),
            random.randint(0, 10, (4,)),
            random.randperm(6),
            random.rand(3, dtype=float64),
        ]

    random.manual_seed(11)
    want = [[x.tolist() for x in draw()] for _ in range(3)]
    state = random.get_state()
    random.manual_seed(11)
    captured = jit(draw)
    assert [[x.tolist() for x in captured()] for _ in range(3)] == want
    assert random.get_state() == state
    random.manual_seed(11)
    assert [x.tolist() for x in captured()] == want[0]
    assert captured.captures == 1


def test_nothing_outlives_the_function():
    storages = []

    def use():
        w, total = tensor(64), tensor(64)
        step = jit(lambda x: total.assign(total + x * w))
        step(tensor(64))
        storages.extend(ref(x.storage()) for x in (w, total))

    use()
    gc.collect()
    assert [s() for s in storages] == [None, None]
