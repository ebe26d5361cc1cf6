"""Constructors, casts, windows: against NumPy and PyTorch."""

import numpy as np
import pytest
import torch

import week09_10_autodiff as ours
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.tensor import Tensor

RANGES = [
    (5,),
    (0,),
    (2, 9),
    (2, 9, 3),
    (9, 2, -2),
    (0.0, 1.0, 0.25),
    (1, 2, 0.3),
    (1.5,),
    (600,),
]


def test_ranges():
    made = [Tensor.arange(*given) for given in RANGES]
    Tensor.realize(*made)
    for given, x in zip(RANGES, made, strict=True):
        wanted = torch.arange(*given)
        assert str(wanted.dtype) == f"torch.{x.dtype}"
        np.testing.assert_allclose(x.numpy(), wanted.numpy(), rtol=1e-6)
    assert Tensor.arange(3, dtype="float64").tolist() == [0, 1, 2]


@pytest.mark.parametrize("given", [(0, 1, 5), (2, -3, 7), (1, 1, 1), (0, 1, 0), (0.1, 0.9, 64)])
def test_linspace(given):
    wanted = torch.linspace(*given).numpy()
    np.testing.assert_allclose(Tensor.linspace(*given).numpy(), wanted, rtol=1e-6, atol=1e-7)


def test_constants():
    assert Tensor.zeros(2, 3).shape == Tensor.zeros((2, 3)).shape == (2, 3)
    assert Tensor.zeros(()).shape == Tensor.zeros().shape == ()
    assert Tensor.ones(2, dtype="bool").tolist() == [True, True]
    assert Tensor.full((2,), 3).dtype.name == "int64"
    assert Tensor.full((2,), True).dtype.name == "bool"
    assert Tensor.full(2, 0.5, "float16").tolist() == [0.5, 0.5]
    x = Tensor.zeros(2, 3, dtype="float16")
    assert (x.ones_like() + x.full_like(2) + x.zeros_like()).tolist() == [[3] * 3] * 2
    assert x.ones_like("int8").dtype.name == "int8"
    np.testing.assert_array_equal(Tensor.eye(3).numpy(), np.eye(3))
    np.testing.assert_array_equal(Tensor.eye(2, 4, dtype="int32").numpy(), np.eye(2, 4))
    assert Tensor.ones(2, requires_grad=True).requires_grad


def test_functions_of_the_package():
    assert ours.zeros(2).tolist() == [0, 0]
    assert ours.arange(3).tolist() == [0, 1, 2]
    assert ours.from_numpy(np.ones(2)).dtype is ours.float64
    assert "Tensor" in dir(ours)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ours.nonsense


@pytest.mark.parametrize("name", ["float", "double", "half", "bfloat16", "int", "long", "bool"])
def test_casts(name):
    values = [-2.75, -0.3, 0.0, 1.5, 300.0]
    wanted = getattr(torch.tensor(values), name)()
    got = getattr(Tensor(values), name)()
    assert f"torch.{got.dtype}" == str(wanted.dtype)
    assert got.tolist() == wanted.tolist()
    assert got.to(got.dtype) is got


def test_casts_have_derivatives():
    x = Tensor([1.5, 2.5], requires_grad=True)
    (x.half().double() * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert x.grad.dtype.name == "float32"


F = torch.nn.functional
RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((2, 4, 7, 6))
LINES = RNG.standard_normal((2, 4, 9))
WINDOWS = {
    "conv2d": ("conv2d", IMAGES, ((6, 4, 3, 2), (6,)), {"stride": 2, "padding": 1}),
    "conv2d groups": ("conv2d", IMAGES, ((6, 2, 2, 2),), {"groups": 2, "dilation": (2, 1)}),
    "conv1d": ("conv1d", LINES, ((3, 4, 3), (3,)), {"padding": 2}),
    "max_pool2d": ("max_pool2d", IMAGES, (), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "max_pool1d": ("max_pool1d", LINES, (), {"kernel_size": 3}),
    "avg_pool2d": ("avg_pool2d", IMAGES, (), {"kernel_size": (2, 3), "padding": 1}),
    "avg_pool2d alone": (
        "avg_pool2d",
        IMAGES,
        (),
        {"kernel_size": 2, "padding": 1, "count_include_pad": False},
    ),
    "avg_pool1d": ("avg_pool1d", LINES, (), {"kernel_size": 2, "stride": 1}),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_windows(case):
    name, data, shapes, options = WINDOWS[case]
    arrays = [data, *(RNG.standard_normal(shape) for shape in shapes)]
    xs = [Tensor(array, requires_grad=True) for array in arrays]
    ts = [torch.tensor(array, requires_grad=True) for array in arrays]
    y = getattr(xs[0], name)(*xs[1:], **options)
    wanted = getattr(F, name)(*ts, **options)
    weights = np.cos(np.arange(wanted.numel())).reshape(wanted.shape)
    (y * Tensor(weights)).sum().backward()
    (wanted * torch.from_numpy(weights)).sum().backward()
    Tensor.realize(y, *[x.grad for x in xs])
    np.testing.assert_allclose(y.numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-12)
    for x, t in zip(xs, ts, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_pads():
    x, t = Tensor(IMAGES), torch.from_numpy(IMAGES)
    for given in ((1, 2), (1, 0, 0, 3), (-1, 2, 0, -2)):
        wanted = F.pad(t, given, value=1.5).numpy()
        np.testing.assert_array_equal(x.pad(given, 1.5).numpy(), wanted)
    pairs = ((0, 1), (2, 0), (0, 0), (1, 1))
    np.testing.assert_array_equal(x.pad(pairs).numpy(), np.pad(IMAGES, pairs))


def test_functions_that_pytorch_lacks_or_names_elsewhere():
    x = Tensor([[0.5, -2.0], [3.0, 0.0]])
    assert x.cummax(1).tolist() == [[0.5, 0.5], [3, 3]]
    t = torch.tensor([[0.5, -2.0], [3.0, 0.0]])
    for mine, theirs in (
        (x.silu(), F.silu(t)),
        (x.gelu(), F.gelu(t)),
        (x.gelu("tanh"), F.gelu(t, approximate="tanh")),
        (x.linear(Tensor.ones(3, 2), Tensor.ones(3)), F.linear(t, torch.ones(3, 2), torch.ones(3))),
        (Tensor([1, 0]).one_hot(3), F.one_hot(torch.tensor([1, 0]), 3)),
        (x.take([3, 0]), t.take(torch.tensor([3, 0]))),
        (x.take_along_dim([[1], [0]], 1), t.take_along_dim(torch.tensor([[1], [0]]), 1)),
    ):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_derivatives_at_edges_are_pytorchs():
    for function in (
        lambda x: x.relu(),
        lambda x: x.clamp(0.0, 2.0),
        lambda x: x.clamp(max=0.0),
        lambda x: x.abs(),
        lambda x: x.amax(),
    ):
        x = Tensor([-1.0, 0.0, 2.0, 2.0], requires_grad=True)
        t = torch.tensor([-1.0, 0.0, 2.0, 2.0], requires_grad=True)
        function(x).sum().backward()
        function(t).sum().backward()
        assert x.grad.tolist() == t.grad.tolist()
    nan = Tensor([float("nan")])
    assert nan.relu().isnan().item()
    assert nan.clamp(0, 1).isnan().item()


def test_integer_division_rounds_down():
    a, b = np.meshgrid(np.arange(-7, 8), [-3, -1, 2, 5])
    x, y = Tensor(a), Tensor(b)
    np.testing.assert_array_equal((x // y).numpy(), a // b)
    np.testing.assert_array_equal((x % y).numpy(), a % b)
    assert (7 // Tensor([2]), -7 % Tensor([4]))[1].tolist() == [1]


def test_shifts():
    x = Tensor([-5, 3])
    assert (x << 2).tolist() == [-20, 12]
    assert (x >> 1).tolist() == [-3, 1]
    for action in (lambda: Tensor([1.0]) << 1, lambda: x >> x):
        with pytest.raises(TensorError, match="an integer tensor and a Python integer"):
            action()


def test_powers_of_integers_and_of_negative_numbers():
    assert (Tensor([-2, 3]) ** 3).tolist() == [-8, 27]
    assert (Tensor([-2, 3, 2]) ** Tensor([3, 2, 0])).tolist() == [-8, 9, 1]
    t = torch.tensor([-2.0, -2.0, 0.0, 0.0, -1.5])
    e = torch.tensor([3.0, 0.5, 0.0, 2.0, 2.0])
    np.testing.assert_allclose((Tensor(t) ** Tensor(e)).numpy(), (t**e).numpy(), rtol=1e-6)


def test_rounding():
    values = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e18, -3e30, 0.49999997]
    for name in ("round", "floor", "ceil", "trunc"):
        got = getattr(Tensor(values, "float64"), name)().numpy()
        np.testing.assert_array_equal(
            got, getattr(torch.tensor(values, dtype=torch.float64), name)().numpy()
        )
    assert Tensor([3]).floor().dtype.name == "int64"
