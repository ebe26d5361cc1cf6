"""Softmax and the normalizations. float16 and bfloat16 are computed in float32."""

from __future__ import annotations

from week01_uops.node import UOp
from week01_uops.ops import RECIP
from week03_loops.library.arithmetic import add, exp, log, mul, rsqrt, square, sub, widened
from week03_loops.library.check import axis_of, expect, expect_float, expect_rank, expect_shape
from week03_loops.library.reduction import mean, reduce_max, reduce_sum
from week03_loops.ops import reshape


@widened
def softmax(x: UOp, axis: int = -1) -> UOp:
    """e^(x − m) / Σ e^(x − m), m the maximum along the axis, so that nothing overflows."""
    expect_float("softmax", x=x)
    powers = exp(sub(x, reduce_max(x, axis_of("softmax", axis, len(x.shape)), keepdim=True)))
    return mul(powers, RECIP(reduce_sum(powers, axis, keepdim=True)))


@widened
def log_softmax(x: UOp, axis: int = -1) -> UOp:
    """(x − m) − ln Σ e^(x − m), m the maximum along the axis."""
    expect_float("log_softmax", x=x)
    low = sub(x, reduce_max(x, axis_of("log_softmax", axis, len(x.shape)), keepdim=True))
    return sub(low, log(reduce_sum(exp(low), axis, keepdim=True)))


def _affine(name: str, x: UOp, weight: UOp | None, bias: UOp | None, axes: int) -> UOp:
    """x·weight + bias, both of the shape of the last axes."""
    for label, item in (("a weight", weight), ("a bias", bias)):
        if item is not None:
            expect_shape(name, label, item, x.shape[len(x.shape) - axes :])
    x = x if weight is None else mul(x, weight)
    return x if bias is None else add(x, bias)


def _last(name: str, x: UOp, axes: int) -> tuple[int, ...]:
    rank = len(x.shape)
    good = 1 <= axes <= rank
    expect(good, "E405", f"{name}: expected 1 to {rank} axes to normalize, got {axes}", x)
    return tuple(range(rank - axes, rank))


@widened
def layernorm(
    x: UOp,
    weight: UOp | None = None,
    bias: UOp | None = None,
    *,
    axes: int = 1,
    epsilon: float = 1e-5,
) -> UOp:
    """(x − μ)/√(σ² + ε)·weight + bias, μ and σ² over the last axes (Ba et al., 2016)."""
    expect_float("layernorm", x=x)
    last = _last("layernorm", x, axes)
    centred = sub(x, mean(x, last, keepdim=True))
    scale = rsqrt(add(mean(square(centred), last, keepdim=True), epsilon))
    return _affine("layernorm", mul(centred, scale), weight, bias, axes)


@widened
def rmsnorm(x: UOp, weight: UOp | None = None, *, axes: int = 1, epsilon: float = 1e-6) -> UOp:
    """x/√(mean(x²) + ε)·weight over the last axes (Zhang and Sennrich, 2019)."""
    expect_float("rmsnorm", x=x)
    last = _last("rmsnorm", x, axes)
    scale = rsqrt(add(mean(square(x), last, keepdim=True), epsilon))
    return _affine("rmsnorm", mul(x, scale), weight, None, axes)


@widened
def batchnorm(
    x: UOp,
    average: UOp,
    variance: UOp,
    weight: UOp | None = None,
    bias: UOp | None = None,
    *,
    epsilon: float = 1e-5,
) -> UOp:
    """Inference: (x − average)/√(variance + ε)·weight + bias, one of each for a channel.

    x (N, C, …), the others (C) (Ioffe and Szegedy, 2015).
    """
    expect_float("batchnorm", x=x)
    expect_rank("batchnorm", "x", x, 2, "(N, C, …)")
    channels = x.shape[1]

    def column(name: str, item: UOp) -> UOp:
        expect_shape("batchnorm", name, item, (channels,))
        return reshape(item, (channels, *[1] * (len(x.shape) - 2)))

    scale = rsqrt(add(column("a variance", variance), epsilon))
    if weight is not None:
        scale = mul(scale, column("a weight", weight))
    y = mul(sub(x, column("an average", average)), scale)
    return y if bias is None else add(y, column("a bias", bias))
