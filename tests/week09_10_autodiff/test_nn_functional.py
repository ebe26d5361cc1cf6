"""torch.nn.functional's functions here: values and gradients are PyTorch's."""

import numpy as np
import pytest
import torch
import torch.nn.functional as T  # noqa: N812 - as everybody calls it

from tests.week09_10_autodiff.against_torch import Case, compiled, interpreted, normal
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.nn import functional as F  # noqa: N812 - likewise
from week09_10_autodiff.tensor import Tensor

X = np.concatenate([normal(4, 6) * 3, np.zeros((1, 6)), [[1e-3, -1e-3, 30, -30, 5, -5]]])
IMAGE = normal(2, 6, 8, 7)
TARGET = np.random.default_rng(0).integers(0, 5, (6,))
TARGET_2D = np.random.default_rng(0).integers(0, 5, (2, 3, 4))
IGNORED = np.array([0, -100, 2, 4, -100, 1])
ODDS = np.random.default_rng(3).dirichlet(np.ones(5), 6)
WITH_ZERO = np.where(ODDS < 0.1, 0, ODDS)
BITS = np.array([[0.0, 1.0, 0.3], [1.0, 0.0, 1.0]])


def same(name, *arrays, **options):
    return Case(
        lambda *a: getattr(F, name)(*a, **options),
        lambda *a: getattr(T, name)(*a, **options),
        arrays,
    )


def only_first(name, *arrays, **options):
    """The other float arguments are constants, for which PyTorch gives no gradient."""
    fixed = arrays[1:]
    return Case(
        lambda x: getattr(F, name)(
            x, *(None if f is None else Tensor(f) for f in fixed), **options
        ),
        lambda x: getattr(T, name)(
            x, *(None if f is None else torch.tensor(f) for f in fixed), **options
        ),
        arrays[:1],
    )


CASES = {
    "relu": same("relu", X),
    "leaky_relu": same("leaky_relu", X, negative_slope=0.2),
    "elu": same("elu", X, alpha=0.7),
    "gelu": same("gelu", X),
    "gelu tanh": same("gelu", X, approximate="tanh"),
    "silu": same("silu", X),
    "sigmoid": same("sigmoid", X),
    "tanh": same("tanh", X),
    "softplus": same("softplus", X[:4]),
    "logsigmoid": same("logsigmoid", X[:4]),
    "softmax": same("softmax", X, dim=0),
    "log_softmax": same("log_softmax", X, dim=-1),
    "linear": same("linear", normal(2, 3, 4), normal(5, 4), normal(5)),
    "linear without bias": same("linear", normal(3, 4), normal(5, 4)),
    "embedding": Case(F.embedding, T.embedding, (np.array([[0, 2], [2, 1]]), normal(4, 3))),
    "embedding with padding": Case(
        lambda i, w: F.embedding(i, w, padding_idx=2),
        lambda i, w: T.embedding(i, w, padding_idx=2),
        (np.array([[0, 2], [2, 1]]), normal(4, 3)),
    ),
    "conv1d": same("conv1d", normal(2, 4, 9), normal(6, 2, 3), normal(6), padding=1, groups=2),
    "conv2d": same("conv2d", IMAGE, normal(4, 6, 3, 2), normal(4), stride=2, padding=1),
    "conv2d dilated": same("conv2d", IMAGE, normal(4, 6, 3, 2), dilation=(2, 1)),
    "max_pool2d": same("max_pool2d", IMAGE, kernel_size=3, stride=2, padding=1),
    "avg_pool2d": same("avg_pool2d", IMAGE, kernel_size=(2, 3), stride=2, padding=1),
    "avg_pool2d of what is there": same(
        "avg_pool2d", IMAGE, kernel_size=3, padding=1, count_include_pad=False
    ),
    "layer_norm": Case(
        lambda x, w, b: F.layer_norm(x, (4, 6), w, b),
        lambda x, w, b: T.layer_norm(x, (4, 6), w, b),
        (normal(3, 4, 6), normal(4, 6), normal(4, 6, seed=1)),
    ),
    "layer_norm of one axis": same("layer_norm", X, normalized_shape=(6,)),
    "rms_norm": Case(
        lambda x, w: F.rms_norm(x, 6, w, eps=1e-6),
        lambda x, w: T.rms_norm(x, (6,), w, eps=1e-6),
        (X[:4], normal(6)),
    ),
    "rms_norm, default eps": same("rms_norm", X, normalized_shape=(6,)),
    "group_norm": Case(
        lambda x, w, b: F.group_norm(x, 3, w, b),
        lambda x, w, b: T.group_norm(x, 3, w, b),
        (IMAGE, normal(6), normal(6, seed=1)),
    ),
    "batch_norm in training": Case(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: T.batch_norm(x, None, None, w, b, training=True),
        (IMAGE, normal(6), normal(6, seed=1)),
    ),
    "batch_norm": Case(
        lambda x, w, b: F.batch_norm(x, Tensor(normal(6)), Tensor(normal(6) ** 2), w, b),
        lambda x, w, b: T.batch_norm(
            x, torch.tensor(normal(6)), torch.tensor(normal(6) ** 2), w, b
        ),
        (IMAGE, normal(6), normal(6, seed=1)),
    ),
    "attention": same(
        "scaled_dot_product_attention", normal(2, 3, 5, 4), normal(2, 3, 7, 4), normal(2, 3, 7, 6)
    ),
    "attention, causal": same(
        "scaled_dot_product_attention",
        *(normal(2, 3, 5, 4, seed=k) for k in range(3)),
        is_causal=True,
    ),
    "attention, causal, more keys": same(
        "scaled_dot_product_attention",
        normal(2, 3, 5, 4),
        *(normal(2, 3, 7, 4, seed=k) for k in range(2)),
        is_causal=True,
        scale=0.3,
    ),
    "attention, masked": Case(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        lambda q, k, v, m: T.scaled_dot_product_attention(q, k, v, attn_mask=m),
        (*(normal(2, 3, 5, 4, seed=k) for k in range(3)), normal(5, 5) > -1),
    ),
    "attention, a float mask": Case(
        F.scaled_dot_product_attention,
        T.scaled_dot_product_attention,
        (*(normal(2, 3, 5, 4, seed=k) for k in range(3)), normal(5, 5)),
    ),
    "attention, groups": Case(
        F.scaled_dot_product_attention,
        lambda q, k, v: T.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        (normal(2, 6, 5, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 4, seed=1)),
    ),
    "mse_loss": same("mse_loss", normal(3, 4), normal(3, 4, seed=1)),
    "mse_loss, sum": same("mse_loss", normal(3, 4), normal(3, 4, seed=1), reduction="sum"),
    "l1_loss": same("l1_loss", normal(3, 4), normal(3, 4, seed=1), reduction="none"),
    "l1_loss at 0": same("l1_loss", np.ones(3), np.array([1.0, 0.0, 2.0])),
    "bce": only_first("binary_cross_entropy_with_logits", X[:2, :3], BITS),
    "bce, weighted": only_first(
        "binary_cross_entropy_with_logits",
        X[:2, :3] * 20,
        BITS,
        np.array([0.5, 2.0, 1.0]),
        pos_weight=None,
        reduction="sum",
    ),
    "nll_loss": same("nll_loss", normal(6, 5), TARGET),
    "nll_loss of pixels": same("nll_loss", normal(2, 5, 3, 4), TARGET_2D, reduction="none"),
    "cross_entropy": same("cross_entropy", normal(6, 5) * 9, TARGET),
    "cross_entropy, sum": same("cross_entropy", normal(6, 5), TARGET, reduction="sum"),
    "cross_entropy of one": same("cross_entropy", normal(5), np.array(3)),
    "cross_entropy of pixels": same("cross_entropy", normal(2, 5, 3, 4), TARGET_2D),
    "cross_entropy, ignored": same("cross_entropy", normal(6, 5), IGNORED),
    "cross_entropy, smooth": same(
        "cross_entropy", normal(6, 5), IGNORED, label_smoothing=0.1, reduction="none"
    ),
    "cross_entropy, smooth mean": same("cross_entropy", normal(6, 5), IGNORED, label_smoothing=0.3),
    "cross_entropy, ignored class": same("cross_entropy", normal(6, 5), TARGET, ignore_index=2),
    "cross_entropy of odds": same("cross_entropy", normal(6, 5), ODDS),
    "cross_entropy of odds, smooth": only_first(
        "cross_entropy", normal(6, 5), ODDS, label_smoothing=0.2, reduction="none"
    ),
    "kl_div": only_first("kl_div", np.log(ODDS), WITH_ZERO, reduction="batchmean"),
    "kl_div of logs": only_first(
        "kl_div", np.log(ODDS), np.log(ODDS[::-1].copy()), log_target=True, reduction="sum"
    ),
}
WEIGHTS = normal(5) ** 2
for _name in ("nll_loss", "cross_entropy"):
    for _reduction in ("mean", "none"):
        CASES[f"{_name}, weighted, {_reduction}"] = Case(
            lambda x, t, n=_name, r=_reduction: getattr(F, n)(x, t, Tensor(WEIGHTS), reduction=r),
            lambda x, t, n=_name, r=_reduction: getattr(T, n)(
                x, t, torch.tensor(WEIGHTS, dtype=x.dtype), reduction=r
            ),
            (normal(6, 5), IGNORED),
        )
CASES["cross_entropy, weighted, smooth"] = Case(
    lambda x, t: F.cross_entropy(x, t, Tensor(WEIGHTS), label_smoothing=0.2),
    lambda x, t: T.cross_entropy(x, t, torch.tensor(WEIGHTS), label_smoothing=0.2),
    (normal(6, 5), IGNORED),
)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_pytorchs(name):
    CASES[name].check("float64", interpreted)


def test_compiled_they_are_pytorchs_too():
    names = ["cross_entropy, smooth mean", "attention, groups", "group_norm", "conv1d", "gelu tanh"]
    for name in names:
        CASES[name].check("float32", compiled)


def test_narrow_floats_are_computed_in_float32():
    x = normal(3, 8).astype(np.float32)
    half = Tensor(x, "bfloat16")
    wide = half.float()
    for function in (
        F.softplus,
        lambda t: F.group_norm(t, 2),
        lambda t: F.cross_entropy(t, Tensor(TARGET[:3])),
        lambda t: F.batch_norm(t, None, None, training=True),
    ):
        one, other = function(half), function(wide)
        assert str(one.dtype) == "bfloat16"
        got, wanted = interpreted(one.float(), other)
        np.testing.assert_allclose(got, wanted, rtol=2**-8)


def test_one_hot():
    got = F.one_hot(Tensor([[0, 2], [1, 0]]), 3, "int64")
    assert got.tolist() == T.one_hot(torch.tensor([[0, 2], [1, 0]]), 3).tolist()


def test_the_mean_of_nothing_is_nan():
    (got,) = interpreted(F.cross_entropy(Tensor(normal(2, 3)), Tensor([-100, -100])))
    assert np.isnan(got)


X3 = Tensor(normal(2, 3))
REFUSED = {
    r"cross_entropy: expected a target of shape \[2\]": lambda: F.cross_entropy(X3, Tensor([1])),
    r"cross_entropy: expected reduction 'mean' or 'sum' or 'none', got 'avg'": lambda: (
        F.cross_entropy(X3, Tensor([1, 2]), reduction="avg")
    ),
    "cross_entropy: expected a label_smoothing of 0 to 1, got 2": lambda: F.cross_entropy(
        X3, Tensor([1, 2]), label_smoothing=2
    ),
    "kl_div: expected reduction 'mean' or 'sum' or 'none' or 'batchmean'": lambda: F.kl_div(
        X3, X3, reduction="x"
    ),
    r"mse_loss: expected a target of shape \[2, 3\]": lambda: F.mse_loss(X3, Tensor([1.0])),
    r"layer_norm: expected x to end in \[2\], got \[2, 3\]": lambda: F.layer_norm(X3, 2),
    "group_norm: expected groups that divide 3 channels, got 2": lambda: F.group_norm(X3, 2),
    r"conv2d: expected x with 4 axes, got \[2, 3\]": lambda: F.conv2d(X3, X3),
    "batch_norm: expected running_mean and running_var, got None": lambda: F.batch_norm(
        X3, None, None
    ),
    "batch_norm: expected several values a channel": lambda: F.batch_norm(
        Tensor(normal(1, 3)), None, None, training=True
    ),
    "expected attn_mask or is_causal, got both": lambda: F.scaled_dot_product_attention(
        X3, X3, X3, attn_mask=X3, is_causal=True
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_arguments_are_refused_with_a_sentence(message):
    with pytest.raises(TensorError, match=message):
        REFUSED[message]()
