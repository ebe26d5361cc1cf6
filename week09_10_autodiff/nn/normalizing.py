"""Normalizations that the library lacks, as expressions; float16 and bfloat16 in float32."""

from __future__ import annotations

from week01_uops.node import UOp
from week03_loops import library as lib
from week03_loops.library.arithmetic import widened
from week03_loops.library.check import expect, expect_float, expect_rank, expect_shape
from week03_loops.ops import reshape


@widened
def group_norm(x: UOp, weight: UOp | None, bias: UOp | None, *, groups: int, epsilon: float) -> UOp:
    """(x − μ)/√(σ² + ε)·weight + bias, μ and σ² of each sample's groups of channels.

    x (N, C, …), weight and bias (C) (Wu and He, 2018).
    """
    expect_float("group_norm", x=x)
    expect_rank("group_norm", "x", x, 2, "(N, C, …)")
    batch, channels, *rest = x.shape
    good = groups > 0 and channels % groups == 0
    wanted = f"groups that divide {channels} channels"
    expect(good, "E311", f"group_norm: expected {wanted}, got {groups}", x)
    grouped = reshape(x, (batch, groups, channels // groups, *rest))
    axes = range(2, len(grouped.shape))
    centred = lib.sub(grouped, lib.mean(grouped, axes, keepdim=True))
    scale = lib.rsqrt(lib.add(lib.mean(lib.square(centred), axes, keepdim=True), epsilon))
    return affine("group_norm", reshape(lib.mul(centred, scale), x.shape), weight, bias)


def affine(name: str, x: UOp, weight: UOp | None, bias: UOp | None) -> UOp:
    """x·weight + bias, both one number a channel: x (N, C, …)."""
    if weight is not None:
        x = lib.mul(x, _column(name, "a weight", weight, x))
    return x if bias is None else lib.add(x, _column(name, "a bias", bias, x))


def _column(name: str, what: str, item: UOp, x: UOp) -> UOp:
    expect_shape(name, what, item, (x.shape[1],))
    return reshape(item, (x.shape[1], *[1] * (len(x.shape) - 2)))


@widened
def batch_norm(x: UOp, weight: UOp | None, bias: UOp | None, *, epsilon: float) -> UOp:
    """(x − μ)/√(σ² + ε)·weight + bias, μ and σ² of each channel: x (N, C, …)."""
    mean, variance = batch_average(x), batch_variance(x, correction=0)
    return lib.batchnorm(x, mean, variance, weight, bias, epsilon=epsilon)


@widened
def batch_average(x: UOp) -> UOp:
    """The mean of each channel: x (N, C, …) → (C)."""
    expect_float("batch_norm", x=x)
    expect_rank("batch_norm", "x", x, 2, "(N, C, …)")
    return lib.mean(x, _others(x))


@widened
def batch_variance(x: UOp, *, correction: int) -> UOp:
    """The variance of each channel: x (N, C, …) → (C)."""
    return lib.var(x, _others(x), correction=correction)


def _others(x: UOp) -> list[int]:
    return [axis for axis in range(len(x.shape)) if axis != 1]
