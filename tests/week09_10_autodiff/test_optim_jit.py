"""Training steps under `jit`: one capture, the same numbers as without it."""

import numpy as np
import pytest

from tests.week09_10_autodiff.against_torch import normal
from week09_10_autodiff import nn, random
from week09_10_autodiff.data import DataLoader
from week09_10_autodiff.jit import jit
from week09_10_autodiff.nn import functional
from week09_10_autodiff.optim import SGD, Accumulator, AdamW, WarmupCosineLR, clip_grad_norm_
from week09_10_autodiff.recompute import recompute

X = normal(24, 4).astype(np.float32)
LOADER = DataLoader((X, (X[:, 0] > 0).astype(np.int64)), 8, shuffle=True)


def network():
    random.manual_seed(1)
    layers = (
        nn.Linear(4, 8, bias=False),
        nn.BatchNorm1d(8),
        nn.GELU(),
        nn.Dropout(0.2),
        nn.Linear(8, 2),
    )
    return nn.Sequential(*layers)


def train(captured, steps=6):
    model = network()
    optimizer = AdamW(model.parameters(), lr=0.05)
    schedule = WarmupCosineLR(optimizer, 2, 8)

    def step(x, y):
        optimizer.zero_grad()
        loss = functional.cross_entropy(recompute(model, x), y)
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss, norm

    run = jit(step) if captured else step
    found = []
    for number in range(steps):
        loss, norm = run(*LOADER.batch(number))
        schedule.step()
        found.append((loss.item(), norm.item()))
    state = {name: t.numpy() for name, t in model.state_dict().items()}
    return found, state, run, optimizer


def test_a_captured_step_is_the_step():
    losses, state, _, _ = train(False)
    got, other, run, optimizer = train(True)
    np.testing.assert_allclose(got, losses, rtol=1e-4)
    for name, value in state.items():
        np.testing.assert_allclose(other[name], value, rtol=1e-3, atol=1e-4)
    assert run.captures == 1
    assert optimizer.steps.item() == 6
    assert other["1.num_batches_tracked"] == 6


def test_a_captured_step_goes_on_from_a_loaded_state():
    model = network().eval()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = LOADER.batch(0)
    step(x, y)
    state = {n: t.numpy().copy() for n, t in model.state_dict().items()}
    moments = optimizer.state_dict()
    wanted = [step(x, y).item() for _ in range(3)]
    model.load_state_dict(state)
    optimizer.load_state_dict(moments)
    assert [step(x, y).item() for _ in range(3)] == wanted
    assert step.captures == 1


@pytest.mark.parametrize("captured", [False, True])
def test_gradients_are_accumulated_in_one_program_and_used_in_another(captured):
    model = network().eval()
    optimizer = SGD(model.parameters(), lr=0.5)
    sums = Accumulator(model.parameters())
    whole = network().eval()
    reference = SGD(whole.parameters(), lr=0.5)

    def gather(x, y):
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        sums.add()
        return loss

    def update():
        sums.give()
        optimizer.step()
        optimizer.zero_grad()

    if captured:
        gather, update = jit(gather), jit(update)
    for _ in range(2):
        for number in range(3):
            gather(*LOADER.batch(number))
        update()
        reference.zero_grad()
        batches = [LOADER.batch(number) for number in range(3)]
        total = sum(functional.cross_entropy(whole(x), y) for x, y in batches) * (1 / 3)
        total.backward()
        reference.step()
    for one, other in zip(model.parameters(), whole.parameters(), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)
