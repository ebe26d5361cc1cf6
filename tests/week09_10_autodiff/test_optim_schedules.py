"""Learning rates that change: PyTorch's, step for step; resumed; plateaus."""

import math

import pytest
import torch

from week09_10_autodiff import optim
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.tensor import Tensor

P = torch.optim.lr_scheduler


def optimizers():
    ours = optim.SGD([{"params": [Tensor([1.0], requires_grad=True)]}], lr=0.5)
    theirs = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    return ours, theirs


def rates(optimizer):
    return [float(group["lr"]) for group in optimizer.param_groups]


SAME = {
    "LambdaLR": (optim.LambdaLR, P.LambdaLR, {"lr_lambda": lambda t: 1 / (1 + t)}),
    "ConstantLR": (optim.ConstantLR, P.ConstantLR, {"factor": 0.25, "total_iters": 4}),
    "LinearLR": (optim.LinearLR, P.LinearLR, {"start_factor": 0.1, "total_iters": 7}),
    "CosineAnnealingLR": (
        optim.CosineAnnealingLR,
        P.CosineAnnealingLR,
        {"T_max": 6, "eta_min": 0.1},
    ),
    "StepLR": (optim.StepLR, P.StepLR, {"step_size": 3, "gamma": 0.5}),
    "MultiStepLR": (optim.MultiStepLR, P.MultiStepLR, {"milestones": [2, 5], "gamma": 0.3}),
    "ExponentialLR": (optim.ExponentialLR, P.ExponentialLR, {"gamma": 0.9}),
    "OneCycleLR": (
        optim.OneCycleLR,
        lambda o, **k: P.OneCycleLR(o, cycle_momentum=False, **k),
        {"max_lr": 2.0, "total_steps": 12},
    ),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.filterwarnings("ignore:Detected call of")
def test_rates_are_pytorchs(name):
    own, other, options = SAME[name]
    ours, theirs = optimizers()
    mine, yours = own(ours, **options), other(theirs, **options)
    for _ in range(11):
        assert rates(ours) == pytest.approx(rates(theirs), rel=1e-12)
        assert mine.get_last_lr() == pytest.approx(yours.get_last_lr(), rel=1e-12)
        mine.step()
        yours.step()


@pytest.mark.parametrize("name", SAME)
def test_a_schedule_goes_on_from_its_state(name):
    own, _, options = SAME[name]
    ours, _ = optimizers()
    schedule = own(ours, **options)
    for _ in range(5):
        schedule.step()
    fresh, _ = optimizers()
    fresh.load_state_dict(ours.state_dict())
    resumed = own(fresh, **options)
    resumed.load_state_dict(schedule.state_dict())
    assert rates(fresh) == rates(ours)
    schedule.step()
    resumed.step()
    assert rates(fresh) == rates(ours)


def test_warm_up_and_cosine():
    ours, _ = optimizers()
    schedule = optim.WarmupCosineLR(ours, warmup=4, total_iters=10, eta_min=0.1)
    found = []
    for _ in range(12):
        found += rates(ours)
        schedule.step()
    assert found[:4] == pytest.approx([0.125, 0.25, 0.375, 0.5])
    wanted = [0.1 + 0.4 * (1 + math.cos(math.pi * k / 6)) / 2 for k in range(7)]
    assert found[4:11] == pytest.approx(wanted)
    assert found[11] == pytest.approx(0.1)
    with pytest.raises(TensorError, match="expected warmup of 0 to 10 steps, got 11"):
        optim.WarmupCosineLR(ours, warmup=11, total_iters=10)


def test_each_group_begins_with_its_own_rate():
    a, b = (Tensor([1.0], requires_grad=True) for _ in range(2))
    ours = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.2}], lr=0.1)
    optim.StepLR(ours, 1, 0.5).step()
    assert rates(ours) == pytest.approx([0.05, 0.1])


def test_a_cycle_ends():
    ours, _ = optimizers()
    schedule = optim.OneCycleLR(ours, 1.0, 3)
    for _ in range(3):
        schedule.step()
    with pytest.raises(TensorError, match="expected 3 steps, got 4"):
        schedule.step()


@pytest.mark.parametrize("mode", ["min", "max"])
def test_plateaus_are_pytorchs(mode):
    ours, theirs = optimizers()
    options = {"mode": mode, "factor": 0.5, "patience": 1, "cooldown": 1, "min_lr": 0.05}
    mine, yours = optim.ReduceLROnPlateau(ours, **options), P.ReduceLROnPlateau(theirs, **options)
    measures = [3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.00005, 1.0, 1.0, 1.0, 0.5, 9.0, 9.0, 9.0, 9.0]
    for number, measure in enumerate(measures):
        mine.step(measure)
        yours.step(measure)
        assert rates(ours) == pytest.approx(rates(theirs), rel=1e-12)
        if number == 6:
            state = mine.state_dict()
            mine = optim.ReduceLROnPlateau(ours, **options)
            mine.load_state_dict(state)
    assert mine.get_last_lr() == rates(ours)


def test_plateaus_that_make_no_sense():
    ours, _ = optimizers()
    with pytest.raises(TensorError, match='expected mode "min" or "max", got \'mid\''):
        optim.ReduceLROnPlateau(ours, mode="mid")
    with pytest.raises(TensorError, match="expected a factor between 0 and 1, got 1"):
        optim.ReduceLROnPlateau(ours, factor=1.0)
