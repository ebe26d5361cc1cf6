"""Functions of tensors, with the names, arguments and meanings of torch.nn.functional.

`from week09_10_autodiff.nn import functional as F`
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from week01_uops.dtypes import bool_, float32
from week01_uops.node import UOp
from week03_loops import library as lib
from week03_loops.library.check import Padding, PerAxis
from week09_10_autodiff import random
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.nn import losses, normalizing, pointwise
from week09_10_autodiff.promotion import DTypeLike, dtype_of
from week09_10_autodiff.recompute import recompute
from week09_10_autodiff.tensor import Tensor

LONG = 4
"""So many times the width of a head a text may be long before its weights take more memory, for
derivatives, than queries, keys and values with their results."""

Shape = int | Sequence[int]


# Activations


def relu(x: Tensor) -> Tensor:
    """max(x, 0), with the derivative 0 at 0."""
    return x._apply("relu", pointwise.relu)


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where x > 0, negative_slope·x elsewhere."""
    return x._apply("leaky_relu", pointwise.leaky_relu, slope=negative_slope)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where x > 0, α·(e^x − 1) elsewhere."""
    return x._apply("elu", pointwise.elu, alpha=alpha)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x·Φ(x); with `approximate="tanh"` through the hyperbolic tangent."""
    return x.gelu(approximate)


def silu(x: Tensor) -> Tensor:
    """x·sigmoid(x)."""
    return x.silu()


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e^−x)."""
    return x.sigmoid()


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return x.tanh()


def softplus(x: Tensor) -> Tensor:
    """ln(1 + e^x)."""
    return x._apply("softplus", pointwise.softplus)


def logsigmoid(x: Tensor) -> Tensor:
    """ln sigmoid(x)."""
    return x._apply("logsigmoid", pointwise.logsigmoid)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """e^x / Σ e^x along an axis."""
    return x.softmax(dim)


def log_softmax(x: Tensor, dim: int = -1) -> Tensor:
    """x − ln Σ e^x along an axis."""
    return x.log_softmax(dim)


# Layers


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·Wᵀ + bias: x (…, k), weight (n, k), bias (n) → (…, n)."""
    return x.linear(weight, bias)


def embedding(x: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of a weight (v, d) that x (…) numbers → (…, d).

    The row `padding_idx` gets no gradient. A number outside of the weight gives zeros.
    """
    rows = weight._apply("embedding", lib.take, x)
    if padding_idx is None:
        return rows
    padding = (x == padding_idx % weight.shape[0]).unsqueeze(-1)
    return rows.detach().where(padding, rows)


def one_hot(x: Tensor, num_classes: int, dtype: DTypeLike = float32) -> Tensor:
    """X (…) → (…, num_classes): 1 at x, 0 elsewhere."""
    return x._apply("one_hot", lambda node: lib.one_hot(node, num_classes, dtype_of(dtype)))


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation: x (N, C, l), weight (O, C/groups, k), bias (O) → (N, O, m)."""
    return _conv("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation: x (N, C, h, w), weight (O, C/groups, i, j), bias (O) → (N, O, …)."""
    return _conv("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def _conv(
    name: str,
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: PerAxis,
    padding: Padding,
    dilation: PerAxis,
    groups: int,
) -> Tensor:
    if x.ndim != rank + 2:
        raise TensorError(f"{name}: expected x with {rank + 2} axes, got {list(x.shape)}")
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return x._apply(name, lib.conv, weight, bias, **options)


def max_pool2d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
) -> Tensor:
    """The largest of each window of the last two axes; equal ones share the gradient."""
    return x.max_pool2d(kernel_size, stride, padding, dilation)


def avg_pool2d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of the last two axes."""
    return x.avg_pool2d(kernel_size, stride, padding, count_include_pad=count_include_pad)


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element 0 with probability p, else divided by 1 − p."""
    return random.dropout(x, p) if training and p else x


# Normalizations


def layer_norm(
    x: Tensor,
    normalized_shape: Shape,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x − μ)/√(σ² + ε)·weight + bias over the last axes, which are `normalized_shape`."""
    axes = _last("layer_norm", x, normalized_shape)
    return x._apply("layer_norm", lib.layernorm, weight, bias, axes=axes, epsilon=eps)


def rms_norm(
    x: Tensor, normalized_shape: Shape, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x/√(mean x² + ε)·weight over the last axes; ε is that of the dtype unless given."""
    axes = _last("rms_norm", x, normalized_shape)
    epsilon = 2.0 ** (1 - x.dtype.precision) if eps is None else eps
    return x._apply("rms_norm", lib.rmsnorm, weight, axes=axes, epsilon=epsilon)


def _last(name: str, x: Tensor, normalized_shape: Shape) -> int:
    wanted = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not wanted or x.shape[-len(wanted) :] != wanted:
        raise TensorError(f"{name}: expected x to end in {list(wanted)}, got {list(x.shape)}")
    return len(wanted)


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Each sample's groups of channels normalized: x (N, C, …), weight and bias (C)."""
    options = {"groups": num_groups, "epsilon": eps}
    return x._apply("group_norm", normalizing.group_norm, weight, bias, **options)


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of x (N, C, …) normalized, by the batch in training, else by what ran.

    In training the running values are assigned (1 − momentum)·old + momentum·new, the new
    variance with the correction n/(n − 1).
    """
    if not training:
        if running_mean is None or running_var is None:
            raise TensorError("batch_norm: expected running_mean and running_var, got None")
        others = (running_mean, running_var, weight, bias)
        return x._apply("batch_norm", lib.batchnorm, *others, epsilon=eps)
    if x.ndim > 1 and x.node.size == x.shape[1]:
        raise TensorError(f"batch_norm: expected several values a channel, got {list(x.shape)}")
    y = x._apply("batch_norm", normalizing.batch_norm, weight, bias, epsilon=eps)
    for running, statistic in ((running_mean, _average), (running_var, _variance)):
        if running is not None:
            running.assign(running * (1 - momentum) + statistic(x.detach()) * momentum)
    return y


def _average(x: Tensor) -> Tensor:
    return x._apply("batch_norm", normalizing.batch_average)


def _variance(x: Tensor) -> Tensor:
    return x._apply("batch_norm", normalizing.batch_variance, correction=1)


# Attention


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(q·kᵀ·scale + mask)·v (Vaswani et al., 2017).

    query (…, h, t, d), key (…, g, s, d), value (…, g, s, e) → (…, h, t, e): groups of h/g query
    heads share a head of keys and values. The scale is 1/√d unless given. A bool mask is true
    where a query may look, a float one is added. `is_causal` lets query i see the keys 0 … i.
    Dropout, of the weights, is done whenever dropout_p is not 0.

    Of long texts, more than `LONG` times as long as a head is wide, the weights are not kept for
    derivatives but computed again (Dao et al., "FlashAttention", 2022).
    """
    if is_causal and attn_mask is not None:
        raise TensorError("scaled_dot_product_attention: expected attn_mask or is_causal, got both")
    if is_causal and query.shape[-2] != key.shape[-2]:
        attn_mask = Tensor.ones(query.shape[-2], key.shape[-2], dtype=bool_).tril()
        is_causal = False
    if dropout_p:
        return _attention_with_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale)

    def attention(q: UOp, k: UOp, v: UOp, mask: UOp | None) -> UOp:
        return lib.attention(q, k, v, mask=mask, causal=is_causal, scale=scale)

    def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q._apply("scaled_dot_product_attention", attention, k, v, attn_mask)

    if key.shape[-2] <= LONG * query.shape[-1]:
        return attended(query, key, value)
    return recompute(attended, query, key, value)


def _attention_with_dropout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    p: float,
    causal: bool,
    scale: float | None,
) -> Tensor:
    repeats = query.shape[-3] // key.shape[-3]
    key, value = (x.repeat_interleave(repeats, -3) for x in (key, value))
    scores = (query @ key.mT) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if causal:
        mask = Tensor.ones(query.shape[-2], key.shape[-2], dtype=bool_).tril()
    if mask is not None:
        scores = scores.where(mask, -math.inf) if mask.dtype is bool_ else scores + mask
    return dropout(scores.softmax(-1), p) @ value


# Losses


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(x − target)²."""
    return x._apply("mse_loss", losses.square_error, target, reduction=reduction)


def l1_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """|x − target|."""
    return x._apply("l1_loss", losses.absolute_error, target, reduction=reduction)


def nll_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """−weight[target]·x at the target's class: x (N, C, …) of log-probabilities, target (N, …)."""
    options = {"ignore_index": ignore_index, "reduction": reduction}
    return x._apply("nll_loss", losses.negative_log_likelihood, target, weight, **options)


def cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """−weight[target]·log_softmax(x) at the target's class.

    x (N, C, …) or (C); target (N, …) or () of class numbers, or probabilities of the shape of x.
    The mean is over the weights of the targets that are not `ignore_index`.
    """
    options = {
        "ignore_index": ignore_index,
        "reduction": reduction,
        "label_smoothing": label_smoothing,
    }
    return x._apply("cross_entropy", losses.cross_entropy, target, weight, **options)


def binary_cross_entropy_with_logits(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """−weight·[pos_weight·target·ln sigmoid(x) + (1 − target)·ln(1 − sigmoid(x))]."""
    name = "binary_cross_entropy_with_logits"
    return x._apply(name, losses.binary, target, weight, pos_weight, reduction=reduction)


def kl_div(x: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target·(ln target − x), x and with `log_target` also the target being logarithms."""
    options = {"reduction": reduction, "log_target": log_target}
    return x._apply("kl_div", losses.divergence, target, **options)
