"""Losses as expressions, elementwise or a sample each, and how they are put together.

float16 and bfloat16 are computed in float32 where a sum or an exponential is taken.
"""

from __future__ import annotations

from week01_uops.dtypes import bool_
from week01_uops.node import UOp
from week01_uops.ops import NEG
from week03_loops import library as lib
from week03_loops.library.arithmetic import widened
from week03_loops.library.check import expect, expect_float, expect_integer, expect_shape
from week03_loops.ops import reshape
from week09_10_autodiff.nn.pointwise import softplus

REDUCTIONS = ("mean", "sum", "none")


def reduced(name: str, losses: UOp, reduction: str) -> UOp:
    """The mean, the sum, or the losses themselves."""
    expect_reduction(name, reduction)
    if reduction == "none":
        return losses
    return lib.mean(losses) if reduction == "mean" else lib.reduce_sum(losses)


def expect_reduction(name: str, reduction: str, known: tuple[str, ...] = REDUCTIONS) -> None:
    """E311 unless it is one of those known."""
    wanted = " or ".join(map(repr, known))
    expect(reduction in known, "E311", f"{name}: expected reduction {wanted}, got {reduction!r}")


def square_error(x: UOp, target: UOp, *, reduction: str) -> UOp:
    """(x − t)²."""
    expect_float("mse_loss", x=x)
    expect_shape("mse_loss", "a target", target, x.shape)
    return reduced("mse_loss", lib.square(lib.sub(x, target)), reduction)


def absolute_error(x: UOp, target: UOp, *, reduction: str) -> UOp:
    """|x − t|; derivative 0 at 0."""
    expect_float("l1_loss", x=x)
    expect_shape("l1_loss", "a target", target, x.shape)
    return reduced("l1_loss", lib.absolute(lib.sub(x, target)), reduction)


@widened
def binary(x: UOp, target: UOp, weight: UOp | None, positive: UOp | None, *, reduction: str) -> UOp:
    """−w·[p·t·ln sigmoid(x) + (1 − t)·ln(1 − sigmoid(x))], without an overflow.

    = w·[(1 − t)·x + (1 + (p − 1)·t)·softplus(−x)].
    """
    expect_float("binary_cross_entropy_with_logits", x=x)
    expect_shape("binary_cross_entropy_with_logits", "a target", target, x.shape)
    tail = softplus(_node(NEG(x)))
    if positive is not None:
        tail = lib.mul(tail, lib.add(lib.mul(lib.sub(positive, 1), target), 1))
    losses = lib.add(lib.mul(lib.sub(1.0, target), x), tail)
    losses = losses if weight is None else lib.mul(losses, weight)
    return reduced("binary_cross_entropy_with_logits", losses, reduction)


@widened
def divergence(x: UOp, target: UOp, *, reduction: str, log_target: bool) -> UOp:
    """t·(ln t − x), 0 where t is; with log_target e^t·(t − x)."""
    expect_float("kl_div", x=x)
    expect_shape("kl_div", "a target", target, x.shape)
    expect_reduction("kl_div", reduction, (*REDUCTIONS, "batchmean"))
    if log_target:
        losses = lib.mul(lib.exp(target), lib.sub(target, x))
    else:
        logarithm = lib.log(lib.where(lib.eq(target, 0), 1, target))
        losses = lib.mul(target, lib.sub(logarithm, x))
    if reduction != "batchmean":
        return reduced("kl_div", losses, reduction)
    return lib.mul(lib.reduce_sum(losses), 1 / max(x.shape[0], 1) if x.shape else 1)


@widened
def negative_log_likelihood(
    x: UOp, target: UOp, weight: UOp | None, *, ignore_index: int, reduction: str
) -> UOp:
    """−w[t]·x[…, t, …] over the class axis, 0 where t is ignored; the mean is over Σ w[t].

    x (N, C, …) or (C), target (N, …) or ().
    """
    axis = _class_axis("nll_loss", x, target, weight)
    expect_reduction("nll_loss", reduction)
    weights = _weights(target, weight, ignore_index, x)
    chosen = lib.gather(x, lib.unsqueeze(target, axis), axis)
    losses = lib.mul(_node(NEG(_without(chosen, axis))), weights)
    return _combined(losses, weights, reduction)


@widened
def cross_entropy(
    x: UOp,
    target: UOp,
    weight: UOp | None,
    *,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> UOp:
    """NLL of log_softmax over the class axis, with (1 − ε) at the target and ε / C everywhere.

    x (N, C, …) or (C); target (N, …) or () of class numbers, or probabilities of the shape of x.
    """
    expect_reduction("cross_entropy", reduction)
    good = 0 <= label_smoothing <= 1
    wanted = "a label_smoothing of 0 to 1"
    expect(good, "E311", f"cross_entropy: expected {wanted}, got {label_smoothing}")
    if target.dtype.is_float:
        return _of_probabilities(x, target, weight, reduction, label_smoothing)
    axis = _class_axis("cross_entropy", x, target, weight)
    weights = _weights(target, weight, ignore_index, x)
    logs = lib.log_softmax(x, axis)
    chosen = lib.gather(logs, lib.unsqueeze(target, axis), axis)
    losses = lib.mul(_node(NEG(_without(chosen, axis))), weights)
    if label_smoothing:
        kept = lib.cast(_kept(target, ignore_index), x.dtype)
        spread = lib.mul(_weighted(logs, weight, axis), kept)
        share = label_smoothing / x.shape[axis]
        losses = lib.sub(lib.mul(losses, 1 - label_smoothing), lib.mul(spread, share))
    return _combined(losses, weights, reduction)


def _of_probabilities(
    x: UOp, target: UOp, weight: UOp | None, reduction: str, smoothing: float
) -> UOp:
    """−Σ_c w[c]·t[c]·log_softmax(x)[c]; the mean is over the samples."""
    expect_shape("cross_entropy", "a target", target, x.shape)
    axis = min(1, len(x.shape) - 1)
    if smoothing:
        target = lib.add(lib.mul(target, 1 - smoothing), smoothing / x.shape[axis])
    products = lib.mul(target, lib.log_softmax(x, axis))
    losses = _node(NEG(_weighted(products, weight, axis)))
    return reduced("cross_entropy", losses, reduction)


def _weighted(x: UOp, weight: UOp | None, axis: int) -> UOp:
    """Σ_c w[c]·x[c]."""
    if weight is not None:
        after = (1,) * (len(x.shape) - axis - 1)
        x = lib.mul(x, reshape(weight, (*weight.shape, *after)))
    return lib.reduce_sum(x, axis)


def _class_axis(name: str, x: UOp, target: UOp, weight: UOp | None) -> int:
    """The axis of classes, once the shapes are known to agree."""
    expect_float(name, x=x)
    expect_integer(name, target=target)
    expect(len(x.shape) > 0, "E406", f"{name}: expected x of shape (N, C, …) or (C)", x)
    axis = min(1, len(x.shape) - 1)
    expect_shape(name, "a target", target, (*x.shape[:axis], *x.shape[axis + 1 :]))
    if weight is not None:
        expect_shape(name, "a weight", weight, (x.shape[axis],))
    return axis


def _weights(target: UOp, weight: UOp | None, ignore_index: int, x: UOp) -> UOp:
    """w[t], and 0 where t is ignored."""
    kept = _kept(target, ignore_index)
    if weight is None:
        return lib.cast(kept, x.dtype)
    return lib.where(kept, lib.take(weight, target), 0)


def _kept(target: UOp, ignore_index: int) -> UOp:
    """Where a target counts; everywhere if its dtype cannot hold the index."""
    if target.dtype.min <= ignore_index <= target.dtype.max:
        return lib.ne(target, ignore_index)
    return lib.full(True, bool_, target.shape)


def _combined(losses: UOp, weights: UOp, reduction: str) -> UOp:
    if reduction == "none":
        return losses
    total = lib.reduce_sum(losses)
    return total if reduction == "sum" else lib.div(total, lib.reduce_sum(weights))


def _without(x: UOp, axis: int) -> UOp:
    """X without an axis of size 1."""
    return reshape(x, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _node(node: UOp) -> UOp:
    """The type of what an op gives when applied to nodes."""
    return node
