"""Optimizers: ten steps as PyTorch's, groups, state, clipping, accumulation, narrow floats."""

import copy

import numpy as np
import pytest
import torch

from tests.week09_10_autodiff.against_torch import normal
from week09_10_autodiff import nn
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.nn import functional
from week09_10_autodiff.optim import (
    SGD,
    Accumulator,
    Adam,
    AdamW,
    clip_grad_norm_,
    clip_grad_value_,
)
from week09_10_autodiff.realize import PROGRAMS
from week09_10_autodiff.tensor import Tensor

SIZES = ((4, 3), (3,))


def pair(dtype=np.float32):
    arrays = [normal(*size).astype(dtype) for size in SIZES]
    mine = [Tensor(a, requires_grad=True) for a in arrays]
    yours = [torch.tensor(a, requires_grad=True) for a in arrays]
    return mine, yours


def loss_of(parameters, step, convert):
    """Something whose gradient changes from step to step."""
    w, b = parameters
    x = convert(normal(5, 4, seed=step).astype(np.float32))
    return ((x @ w + b) ** 2).mean() + (w * w * w).sum() * 0.01


def train(mine, yours, ours, theirs, steps=10, between=None):
    for step in range(steps):
        for parameters, optimizer, convert in (
            (mine, ours, Tensor),
            (yours, theirs, torch.tensor),
        ):
            optimizer.zero_grad()
            loss_of(parameters, step, convert).backward()
            if between:
                between(parameters)
            optimizer.step()
    for one, other in zip(mine, yours, strict=True):
        wanted = other.detach().numpy()
        np.testing.assert_allclose(one.numpy(), wanted, rtol=2e-6, atol=1e-6)


RULES = {
    "SGD": (SGD, torch.optim.SGD, {"lr": 0.05}),
    "SGD, decay": (SGD, torch.optim.SGD, {"lr": 0.05, "weight_decay": 0.1}),
    "SGD, momentum": (SGD, torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "SGD, dampening": (SGD, torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.3}),
    "SGD, Nesterov": (
        SGD,
        torch.optim.SGD,
        {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ),
    "Adam": (Adam, torch.optim.Adam, {"lr": 0.05}),
    "Adam, decay": (
        Adam,
        torch.optim.Adam,
        {"lr": 0.05, "weight_decay": 0.2, "betas": (0.8, 0.95), "eps": 1e-4},
    ),
    "AdamW": (AdamW, torch.optim.AdamW, {"lr": 0.05, "weight_decay": 0.3}),
    "AdamW, no first moment": (AdamW, torch.optim.AdamW, {"lr": 0.05, "betas": (0.0, 0.99)}),
}


@pytest.mark.parametrize("name", RULES)
def test_ten_steps_are_pytorchs(name):
    own, other, options = RULES[name]
    mine, yours = pair()
    train(mine, yours, own(mine, **options), other(yours, **options))


def test_another_learning_rate_and_the_next_step_compile_nothing():
    mine, yours = pair()
    ours, theirs = AdamW(mine, lr=0.1), torch.optim.AdamW(yours, lr=0.1)
    train(mine, yours, ours, theirs, 2)
    compiled = PROGRAMS.compiled
    ours.param_groups[0]["lr"] = theirs.param_groups[0]["lr"] = 0.02
    train(mine, yours, ours, theirs, 3)
    assert PROGRAMS.compiled == compiled
    assert ours.steps.item() == 5
    assert ours.param_groups[0]["lr"].item() == 0.02


def test_a_step_is_one_program_with_its_loss():
    mine, _ = pair()
    optimizer = SGD(mine, lr=0.0123, momentum=0.5)
    loss = loss_of(mine, 0, Tensor)
    loss.backward()
    compiled = PROGRAMS.compiled
    optimizer.step()
    assert PROGRAMS.compiled == compiled + 1
    assert loss.is_realized
    assert all(p.is_realized for p in mine)


def test_groups_have_options_of_their_own():
    mine, yours = pair()
    groups = lambda ps: [{"params": ps[:1], "lr": 0.01}, {"params": ps[1:], "weight_decay": 0.0}]
    ours = AdamW(groups(mine), lr=0.1, weight_decay=0.5)
    theirs = torch.optim.AdamW(groups(yours), lr=0.1, weight_decay=0.5)
    train(mine, yours, ours, theirs, 4)


def test_parameters_without_a_gradient_stay():
    mine, _ = pair()
    before = mine[1].tolist()
    optimizer = AdamW(mine, lr=0.1)
    mine[0].sum().backward()
    optimizer.step()
    assert mine[1].tolist() == before
    assert optimizer.state[1]["exp_avg"].tolist() == [0, 0, 0]
    optimizer.zero_grad()
    assert all(p.grad is None for p in mine)


@pytest.mark.parametrize("name", ["SGD, momentum", "SGD, dampening", "AdamW"])
def test_a_state_goes_on_here_from_pytorch_and_from_here(name):
    own, other, options = RULES[name]
    mine, yours = pair()
    ours, theirs = own(mine, **options), other(yours, **options)
    train(mine, yours, ours, theirs, 3)
    saved = copy.deepcopy(theirs.state_dict())
    for state in (saved, ours.state_dict()):
        again = [Tensor(p.numpy(), requires_grad=True) for p in mine]
        resumed = own(again, **{**options, "lr": 9.0})
        resumed.load_state_dict(state)
        loss_of(again, 3, Tensor).backward()
        resumed.step()
        copies = [torch.tensor(y.detach().numpy(), requires_grad=True) for y in yours]
        wanted = other(copies, **options)
        wanted.load_state_dict(copy.deepcopy(saved))
        loss_of(copies, 3, torch.tensor).backward()
        wanted.step()
        for a, b in zip(again, copies, strict=True):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=2e-6, atol=1e-6)


def test_our_state_is_laid_out_as_pytorchs():
    mine, yours = pair()
    ours, theirs = AdamW(mine), torch.optim.AdamW(yours)
    train(mine, yours, ours, theirs, 1)
    one, other = ours.state_dict(), theirs.state_dict()
    assert one["state"].keys() == other["state"].keys()
    assert one["state"][0].keys() == other["state"][0].keys()
    assert one["param_groups"][0].items() <= other["param_groups"][0].items()


def test_states_that_do_not_fit_are_refused():
    mine, _ = pair()
    ours = AdamW(mine)
    state = ours.state_dict()
    with pytest.raises(TensorError, match=r"expected groups of \[2\] parameters, got \[1\]"):
        ours.load_state_dict({**state, "param_groups": [{"params": [0]}]})
    with pytest.raises(TensorError, match=r"exp_avg of parameter 1 of shape \[3\], got nothing"):
        ours.load_state_dict({**state, "state": {0: state["state"][0]}})
    other = {"exp_avg": Tensor.zeros(2), "exp_avg_sq": Tensor.zeros(3)}
    with pytest.raises(TensorError, match=r"exp_avg of parameter 1 of shape \[3\], got \[2\]"):
        ours.load_state_dict({**state, "state": {0: state["state"][0], 1: other}})


WRONG = {
    "expected lr ≥ 0, got -1": lambda p: SGD(p, lr=-1),
    "expected weight_decay ≥ 0, got nan": lambda p: SGD(p, weight_decay=float("nan")),
    "nesterov: expected momentum > 0 and dampening 0": lambda p: SGD(p, nesterov=True),
    "expected momentum ≥ 0": lambda p: SGD(p, momentum=-0.1),
    r"expected betas in \[0, 1\), got \(0.9, 1.0\)": lambda p: AdamW(p, betas=(0.9, 1.0)),
    "expected parameters to train, got none": lambda p: AdamW([]),
    "expected each parameter once": lambda p: AdamW([*p, p[0]]),
    "parameter 0: expected a float tensor that no operation made": lambda p: AdamW([p[0] * 2]),
    "expected the options lr, betas, eps, weight_decay, got momentum": lambda p: AdamW(
        [{"params": p, "momentum": 1}]
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_makes_no_sense_is_refused(message):
    with pytest.raises(TensorError, match=message):
        WRONG[message](pair()[0])


# Gradients before a step


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("limit", [0.1, 1e3])
def test_clipping_by_norm_is_pytorchs(norm, limit):
    mine, yours = pair()
    loss_of(mine, 0, Tensor).backward()
    loss_of(yours, 0, torch.tensor).backward()
    got = clip_grad_norm_(mine, limit, norm)
    wanted = torch.nn.utils.clip_grad_norm_(yours, limit, norm)
    got.realize(*(p.grad for p in mine))
    assert got.item() == pytest.approx(wanted.item(), rel=1e-5)
    for a, b in zip(mine, yours, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_clipping_by_value():
    mine, _ = pair()
    (mine[0] * Tensor(normal(4, 3).astype(np.float32))).sum().backward()
    clip_grad_value_(mine, 0.3)
    wanted = np.clip(normal(4, 3), -0.3, 0.3)
    np.testing.assert_allclose(mine[0].grad.numpy(), wanted, rtol=1e-6)
    assert clip_grad_norm_([mine[1]], 1.0).item() == 0


def test_training_with_clipping_is_pytorchs():
    mine, yours = pair()

    def clip(parameters):
        library = clip_grad_norm_ if parameters is mine else torch.nn.utils.clip_grad_norm_
        library(parameters, 0.5)

    train(mine, yours, AdamW(mine, lr=0.1), torch.optim.AdamW(yours, lr=0.1), 3, clip)


def test_accumulated_gradients_are_those_of_all_batches():
    mine, yours = pair()
    ours, theirs = SGD(mine, lr=0.1), torch.optim.SGD(yours, lr=0.1)
    sums = Accumulator(mine)
    for _ in range(2):
        for step in range(3):
            loss_of(mine, step, Tensor).backward()
            sums.add()
        sums.give()
        ours.step()
        theirs.zero_grad()
        (sum(loss_of(yours, step, torch.tensor) for step in range(3)) / 3).backward()
        theirs.step()
        for a, b in zip(mine, yours, strict=True):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
        ours.zero_grad()
    assert sums.count.item() == 0
    loss_of(mine, 0, Tensor).backward()
    with pytest.raises(TensorError, match="give: expected no gradients but those added"):
        sums.give()


# Narrow floats


def test_master_weights_keep_what_bfloat16_would_lose():
    start = np.ones((8,), np.float32)
    small = 1e-4  # below half a unit of bfloat16 at 1
    kept = Tensor(start, "bfloat16", requires_grad=True)
    lost = Tensor(start, "bfloat16", requires_grad=True)
    optimizers = [SGD([kept], lr=small, master_weights=True), SGD([lost], lr=small)]
    for _ in range(60):
        for parameter, optimizer in zip((kept, lost), optimizers, strict=True):
            optimizer.zero_grad()
            parameter.float().sum().backward()
            optimizer.step()
    master = optimizers[0].state[0]["master"]
    np.testing.assert_allclose(master.numpy(), 1 - 60 * small, rtol=1e-5)
    assert (kept.float().numpy() < 1).all()
    assert (lost.float().numpy() == 1).all()
    again = SGD([Tensor(kept, requires_grad=True)], master_weights=True)
    state = optimizers[0].state_dict()
    again.load_state_dict(state)
    assert (again.state[0]["master"].numpy() == master.numpy()).all()
    del state["state"][0]["master"]
    again.load_state_dict(state)
    assert (again.state[0]["master"].numpy() == kept.float().numpy()).all()


def test_a_scaled_loss_trains_float16():
    parameter = Tensor(np.ones(4), "float16", requires_grad=True)
    optimizer = SGD([parameter], lr=1.0, master_weights=True, grad_scale=2.0**14)
    tiny = 2.0**-20
    loss = (parameter.float() * tiny).sum() * 2.0**14
    loss.backward()
    optimizer.step()
    assert (optimizer.state[0]["master"].numpy() == 1 - tiny).all()


def test_a_bfloat16_network_learns():
    model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 3))
    model = model.bfloat16()
    x, y = Tensor(normal(32, 4), "bfloat16"), Tensor((normal(32, 4)[:, 0] > 0).astype(np.int64))
    optimizer = AdamW(model.parameters(), lr=0.02, master_weights=True)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
