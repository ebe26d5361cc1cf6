"""Every function of the library: derivatives equal PyTorch's in float64, and differences.

Each is compared with the program op for op in PyTorch and, where PyTorch has the function, with
that; once more for second derivatives.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tests.week09_10_autodiff.autograd import agree, check, normal, ours, positive, theirs
from week01_uops.dtypes import BY_NAME, float64
from week03_loops import library as lib
from week03_loops.library.activation import polynomial

INDEX = np.array([1, 3, 1])
GRID = np.array([[1, 0, 2, 2], [0, 0, 3, 1]])
MASK = normal(3, 4, seed=9) > 0

# name: our function, PyTorch's, arrays
FUNCTIONS = {
    "relu": (lib.relu, torch.relu, normal(3, 4)),
    "sigmoid": (lib.sigmoid, torch.sigmoid, normal(3, 4)),
    "silu": (lib.silu, F.silu, normal(3, 4)),
    "tanh": (lib.tanh, torch.tanh, normal(3, 4)),
    "erf": (lib.erf, torch.erf, 2 * normal(3, 4)),
    "gelu": (lib.gelu, F.gelu, 2 * normal(3, 4)),
    "gelu_tanh": (lib.gelu_tanh, lambda x: F.gelu(x, approximate="tanh"), normal(3, 4)),
    "absolute": (lib.absolute, torch.abs, normal(3, 4)),
    "add": (lib.add, torch.add, normal(3, 4), normal(4)),
    "add, number": (lambda x: lib.add(2, x), lambda x: 2 + x, normal(3, 4)),
    "cast": (lambda x: lib.cast(x, float64), lambda x: x, normal(3, 4)),
    "clamp": (lambda x: lib.clamp(x, -0.5, 0.7), lambda x: x.clamp(-0.5, 0.7), normal(3, 4)),
    "clamp by arrays": (lib.clamp, torch.clamp, normal(3, 4), normal(3, 1) - 1, normal(4) + 1),
    "div": (lib.div, torch.div, normal(3, 4), positive(3, 1)),
    "div, number": (lambda x: lib.div(2.0, x), lambda x: 2.0 / x, positive(3, 4)),
    "exp": (lib.exp, torch.exp, normal(3, 4)),
    "log": (lib.log, torch.log, positive(3, 4)),
    "maximum": (lib.maximum, torch.maximum, normal(3, 4), normal(4)),
    "minimum": (lib.minimum, torch.minimum, normal(3, 4), normal(3, 1)),
    "mul": (lib.mul, torch.mul, normal(3, 4), normal(3, 1)),
    "rsqrt": (lib.rsqrt, torch.rsqrt, positive(3, 4)),
    "sqrt": (lib.sqrt, torch.sqrt, positive(3, 4)),
    "square": (lib.square, torch.square, normal(3, 4)),
    "sub": (lib.sub, torch.sub, normal(3, 4), normal(4)),
    "where": (lib.where, torch.where, MASK, normal(3, 4), normal(4)),
    "polynomial": (
        lambda x: polynomial(x, (1.0, -2.0, 3.0)),
        lambda x: 1 - 2 * x + 3 * x * x,
        normal(5),
    ),
    "rotary": (lib.rotary, None, normal(2, 3, 4), normal(3, 2), normal(3, 2, seed=1)),
    "conv1d": (lib.conv, F.conv1d, normal(2, 3, 6), normal(4, 3, 2), normal(4)),
    "conv, stride and padding": (
        lambda x, w: lib.conv(x, w, stride=2, padding=(1, 2)),
        lambda x, w: F.conv2d(x, w, stride=2, padding=(1, 2)),
        normal(1, 2, 5, 4),
        normal(2, 2, 3, 3),
    ),
    "conv, dilation": (
        lambda x, w: lib.conv(x, w, dilation=2),
        lambda x, w: F.conv1d(x, w, dilation=2),
        normal(1, 1, 7),
        normal(2, 1, 3),
    ),
    "conv, groups": (
        lambda x, w: lib.conv(x, w, groups=2),
        lambda x, w: F.conv1d(x, w, groups=2),
        normal(1, 4, 5),
        normal(4, 2, 2),
    ),
    "conv3d": (lib.conv, F.conv3d, normal(1, 1, 3, 3, 2), normal(1, 1, 2, 2, 2)),
    "take": (lib.take, lambda x, i: x[i], normal(4, 3), INDEX),
    "take along 1": (lambda x, i: lib.take(x, i, 1), lambda x, i: x[:, i], normal(2, 4), GRID),
    "gather": (lambda x, i: lib.gather(x, i, 1), lambda x, i: x.gather(1, i), normal(2, 5), GRID),
    "scatter_add": (
        lib.scatter_add,
        lambda x, i, v: x.index_add(0, i, v),
        normal(4, 2),
        INDEX,
        normal(3, 2),
    ),
    "einsum": (
        lambda a, b: lib.einsum("ijk,kl->lj", a, b),
        lambda a, b: torch.einsum("ijk,kl->lj", a, b),
        normal(2, 3, 2),
        normal(2, 4),
    ),
    "einsum of three": (
        lambda a, b, c: lib.einsum("i,ij,j->", a, b, c),
        lambda a, b, c: torch.einsum("i,ij,j->", a, b, c),
        normal(2),
        normal(2, 3),
        normal(3),
    ),
    "linear": (lib.linear, F.linear, normal(2, 3), normal(4, 3), normal(4)),
    "matmul": (lib.matmul, torch.matmul, normal(2, 3), normal(3, 4)),
    "matmul of many": (lib.matmul, torch.matmul, normal(2, 1, 2, 3), normal(3, 3, 2)),
    "matmul of vectors": (lib.matmul, torch.matmul, normal(3), normal(3, seed=1)),
    "matmul of 1": (lib.matmul, torch.matmul, normal(1, 3), normal(3, 1)),
    "cross_entropy": (lib.cross_entropy, F.cross_entropy, normal(3, 4), INDEX),
    "mean_square_error": (lib.mean_square_error, F.mse_loss, normal(3, 4), normal(3, 4, seed=1)),
    "concatenate": (
        lambda a, b: lib.concatenate((a, b, a)),
        lambda a, b: torch.cat((a, b, a)),
        normal(2, 3),
        normal(1, 3),
    ),
    "move_axis": (lambda x: lib.move_axis(x, 0, 2), lambda x: x.movedim(0, 2), normal(2, 3, 4)),
    "narrow": (lambda x: lib.narrow(x, 1, 1, 3), lambda x: x[:, 1:3], normal(2, 4)),
    "pad_with": (
        lambda x: lib.pad_with(x, ((1, 2),), 3.0),
        lambda x: F.pad(x, (1, 2), value=3.0),
        normal(4),
    ),
    "split": (lambda x: lib.mul(*lib.split(x, 0, 2)), lambda x: x[:2] * x[2:], normal(4, 3)),
    "transpose": (lib.transpose, lambda x: x.mT, normal(2, 3)),
    "unsqueeze": (lambda x: lib.unsqueeze(x, 1), lambda x: x.unsqueeze(1), normal(2, 3)),
    "windows": (
        lambda x: lib.windows(x, [0], [3], [2], [1]),
        lambda x: x.unfold(0, 3, 2),
        normal(8),
    ),
    "batchnorm": (
        lib.batchnorm,
        lambda x, m, v, w, b: ((x.mT - m) / (v + 1e-5).sqrt() * w + b).mT,
        *(normal(3, 2, 2), normal(2), positive(2), normal(2, seed=1), normal(2, seed=2)),
    ),
    "layernorm": (
        lib.layernorm,
        lambda x, w, b: F.layer_norm(x, (4,), w, b),
        *(normal(3, 4), normal(4), normal(4, seed=1)),
    ),
    "layernorm over two": (
        lambda x: lib.layernorm(x, axes=2),
        lambda x: F.layer_norm(x, (3, 2)),
        normal(2, 3, 2),
    ),
    "log_softmax": (lib.log_softmax, lambda x: x.log_softmax(-1), normal(3, 4)),
    "rmsnorm": (lib.rmsnorm, lambda x, w: F.rms_norm(x, (4,), w, 1e-6), normal(3, 4), normal(4)),
    "softmax": (lib.softmax, lambda x: x.softmax(-1), normal(3, 4)),
    "softmax of columns": (lambda x: lib.softmax(x, 0), lambda x: x.softmax(0), normal(3, 4)),
    "softmax of 1": (lib.softmax, lambda x: x.softmax(-1), normal(3, 1)),
    "avg_pool": (lambda x: lib.avg_pool(x, (2, 2)), lambda x: F.avg_pool2d(x, 2), normal(1, 4, 4)),
    "avg_pool, padding": (
        lambda x: lib.avg_pool(x, (3,), stride=2, padding=1, count_padding=False),
        lambda x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False),
        normal(2, 5),
    ),
    "max_pool": (lambda x: lib.max_pool(x, (2, 2)), lambda x: F.max_pool2d(x, 2), normal(1, 4, 4)),
    "max_pool, overlapping": (
        lambda x: lib.max_pool(x, (3,), stride=1, padding=1),
        lambda x: F.max_pool1d(x, 3, 1, 1),
        normal(2, 5),
    ),
    "mean": (lib.mean, torch.mean, normal(3, 4)),
    "mean of rows": (
        lambda x: lib.mean(x, 1, keepdim=True),
        lambda x: x.mean(1, True),
        normal(3, 4),
    ),
    "reduce_max": (lambda x: lib.reduce_max(x, 1), lambda x: x.amax(1), normal(3, 4)),
    "reduce_min": (lambda x: lib.reduce_min(x, 0), lambda x: x.amin(0), normal(3, 4)),
    "reduce_prod": (lambda x: lib.reduce_prod(x, 1), lambda x: x.prod(1), normal(3, 4)),
    "reduce_sum": (lambda x: lib.reduce_sum(x, (0, 2)), lambda x: x.sum((0, 2)), normal(2, 3, 2)),
    "var": (lambda x: lib.var(x, 1, correction=1), lambda x: x.var(1), normal(3, 4)),
    "cumsum": (lambda x: lib.cumsum(x, 1), lambda x: x.cumsum(1), normal(2, 5)),
    "cumprod": (lib.cumprod, lambda x: x.cumprod(0), normal(5, 2)),
    "cummax": (lib.cummax, lambda x: x.cummax(0).values, normal(5, 2)),
    "tril": (lib.tril, torch.tril, normal(3, 4)),
}

WITHOUT = {
    *(
        "arange",
        "eq",
        "full",
        "ge",
        "gt",
        "le",
        "logical_not",
        "lower_triangle",
        "lt",
        "ne",
        "one_hot",
    ),
}
"""Functions of integers and bools, and of nothing."""


def attention_of(shape, **options):
    """Attention and PyTorch's, of heads in two groups."""

    def reference(q, k, v, *mask):
        k, v = (x.repeat_interleave(2, -3) for x in (k, v))
        given = {"attn_mask": mask[0]} if mask else {}
        causal = {"is_causal": True} if options.get("causal") else {}
        return F.scaled_dot_product_attention(
            q, k, v, scale=options.get("scale"), **causal, **given
        )

    def function(q, k, v, *mask):
        return lib.attention(q, k, v, mask=mask[0] if mask else None, **options)

    t, s, d = shape
    return function, reference, normal(4, t, d), normal(2, s, d), normal(2, s, 2, seed=1)


ATTENTION = {
    "attention": attention_of((3, 2, 2)),
    "attention, scaled": attention_of((2, 3, 2), scale=0.3),
    "attention, causal": attention_of((3, 3, 2), causal=True),
    "attention, float mask": (*attention_of((3, 4, 2)), normal(3, 4, seed=5)),
    "attention, bool mask": (*attention_of((3, 4, 2)), np.tri(3, 4, dtype=bool)),
    "attention to one key": attention_of((2, 1, 2)),
}


@pytest.mark.parametrize("name", {**FUNCTIONS, **ATTENTION})
def test_library(name):
    function, reference, *arrays = {**FUNCTIONS, **ATTENTION}[name]
    check(function, *arrays, reference=reference)


def test_all_functions_are_here():
    tested = {name.partition(",")[0].split(" ")[0] for name in {**FUNCTIONS, **ATTENTION}}
    tested = {name.removesuffix("1d").removesuffix("3d") for name in tested}
    assert set(lib.__all__) <= tested | WITHOUT
    assert not tested & WITHOUT


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["softmax", "gelu", "layernorm", "log_softmax", "rsqrt"])
def test_narrow_floats(name, dtype):
    """What is computed wider is derived wider, and rounded once on the way back."""
    function, reference, *arrays = FUNCTIONS[name]
    wide = [array.astype(dtype).astype(np.float64) for array in arrays]

    def narrow(*nodes):
        return lib.cast(function(*(lib.cast(x, BY_NAME[dtype]) for x in nodes)), float64)

    found, wanted = ours(narrow, wide), theirs(reference, wide)
    agree(found, wanted, {"float32": 1e-5, "float16": 4e-3}[dtype])


def test_mlp_and_attention_to_the_second_derivative():
    """Of a two-layer perceptron and of causal attention with norms, in all arguments at once."""

    def mlp(x, w1, b1, w2, b2, target):
        hidden = lib.gelu(lib.linear(x, w1, b1))
        return lib.cross_entropy(lib.linear(hidden, w2, b2), target)

    def torch_mlp(x, w1, b1, w2, b2, target):
        return F.cross_entropy(F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2), target)

    arrays = (normal(3, 4), normal(5, 4), normal(5), normal(4, 5), normal(4), INDEX)
    check(mlp, *arrays, reference=torch_mlp)

    def block(x, wq, wk, wv, gain):
        normed = lib.rmsnorm(x, gain)
        q, k, v = (lib.unsqueeze(lib.matmul(normed, w), 0) for w in (wq, wk, wv))
        return lib.add(x, lib.reduce_sum(lib.attention(q, k, v, causal=True), 0))

    def torch_block(x, wq, wk, wv, gain):
        normed = F.rms_norm(x, (4,), gain, 1e-6)
        q, k, v = ((normed @ w)[None] for w in (wq, wk, wv))
        return x + F.scaled_dot_product_attention(q, k, v, is_causal=True)[0]

    arrays = (normal(3, 4), *(normal(4, 4, seed=s) / 2 for s in range(3)), positive(4))
    check(block, *arrays, reference=torch_block)
