"""First values: bounds and moments as PyTorch's, laziness, layers' defaults."""

import math

import numpy as np
import pytest
import torch

from week09_10_autodiff import nn, random
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.nn import init
from week09_10_autodiff.realize import PROGRAMS
from week09_10_autodiff.tensor import Tensor

SHAPE = (64, 32, 3)


@pytest.fixture(autouse=True)
def _seeded():
    random.manual_seed(7)


def values_of(function, *args, shape=SHAPE, **options):
    tensor = Tensor.zeros(*shape, requires_grad=True)
    assert function(tensor, *args, **options) is tensor
    assert tensor.requires_grad
    return tensor.numpy().ravel()


def of_torch(function, *args, **options):
    torch.manual_seed(0)
    return function(torch.empty(*SHAPE), *args, **options).numpy().ravel()


def alike(ours, theirs):
    """The same mean, standard deviation and quantiles, to four standard errors or so."""
    error = theirs.std() / math.sqrt(ours.size)
    assert abs(ours.mean() - theirs.mean()) < 6 * error
    assert abs(ours.std() - theirs.std()) < 6 * error
    spots = [0.05, 0.3, 0.7, 0.95]
    assert abs(np.quantile(ours, spots) - np.quantile(theirs, spots)).max() < 0.08 * theirs.std()


FAMILY = [
    ("uniform_", (-2.0, 3.0), {}),
    ("normal_", (1.0, 0.5), {}),
    ("trunc_normal_", (0.3, 1.0, -1.0, 1.5), {}),
    ("kaiming_uniform_", (), {"a": math.sqrt(5)}),
    ("kaiming_uniform_", (), {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", (), {}),
    ("xavier_uniform_", (), {"gain": 2.0}),
    ("xavier_normal_", (), {}),
]


@pytest.mark.parametrize(("name", "args", "options"), FAMILY)
def test_distributions_are_pytorchs(name, args, options):
    ours = values_of(getattr(init, name), *args, **options)
    theirs = of_torch(getattr(torch.nn.init, name), *args, **options)
    alike(ours, theirs)


def test_bounds():
    x = values_of(init.uniform_, -2.0, 3.0)
    assert -2 <= x.min() < -1.99
    assert 2.99 < x.max() < 3
    x = values_of(init.trunc_normal_, 0.0, 1.0, -0.5, 0.25)
    assert -0.5 <= x.min() < -0.49
    assert 0.24 < x.max() <= 0.25
    bound = math.sqrt(6 / (1 + 5) / (32 * 3))
    x = values_of(init.kaiming_uniform_, a=math.sqrt(5))
    assert 0.99 * bound < x.max() <= bound


def test_constants():
    assert set(values_of(init.zeros_)) == {0}
    assert set(values_of(init.ones_)) == {1}
    assert set(values_of(init.constant_, 2.5)) == {2.5}


@pytest.mark.parametrize("name", ["linear", "conv2d", "sigmoid", "tanh", "relu", "selu"])
def test_gains(name):
    assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert init.calculate_gain("leaky_relu", 0.2) == pytest.approx(
        torch.nn.init.calculate_gain("leaky_relu", 0.2)
    )


def test_a_generator_of_ones_own():
    one = values_of(init.normal_, generator=random.Generator(3))
    other = values_of(init.normal_, generator=random.Generator(3))
    assert (one == other).all()


def test_refusals():
    with pytest.raises(TensorError, match=r"a weight with 2 axes or more, got \[3\]"):
        init.kaiming_normal_(Tensor.zeros(3))
    with pytest.raises(TensorError, match="expected mode fan_in or fan_out, got 'both'"):
        init.kaiming_normal_(Tensor.zeros(3, 3), mode="both")
    with pytest.raises(TensorError, match=r"calculate_gain: expected one of linear, .* got gelu"):
        init.calculate_gain("gelu")


@pytest.mark.parametrize("layer", ["Linear(40, 90)", "Conv2d(10, 30, 3, groups=2)"])
def test_layers_begin_as_pytorchs(layer):
    ours = eval(f"nn.{layer}").realize()  # noqa: S307
    theirs = eval(f"torch.nn.{layer}")  # noqa: S307
    for (name, got), (_, wanted) in zip(
        ours.named_parameters(), theirs.named_parameters(), strict=True
    ):
        bound = wanted.abs().max().item()
        assert got.shape == tuple(wanted.shape), name
        assert abs(got.numpy()).max() == pytest.approx(bound, rel=0.15)
        assert got.numpy().std() == pytest.approx(wanted.std().item(), rel=0.4)


def test_an_embedding_begins_normal_with_a_row_of_zeros():
    weight = nn.Embedding(50, 40, padding_idx=-2).weight.numpy()
    assert (weight[48] == 0).all()
    assert np.delete(weight, 48, 0).std() == pytest.approx(1, rel=0.05)


def test_first_values_that_are_overwritten_are_never_computed():
    layer = nn.Linear(123, 45)
    compiled = PROGRAMS.compiled
    ones = np.ones((45, 123), np.float32)
    layer.load_state_dict({"weight": ones, "bias": ones[:, 0]})
    assert layer(Tensor.ones(1, 123)).sum().item() == 45 * 124
    assert PROGRAMS.compiled == compiled + 1
