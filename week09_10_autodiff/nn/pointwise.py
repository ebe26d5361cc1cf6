"""Activations that the library lacks, or has with another derivative, as expressions."""

from __future__ import annotations

from week01_uops.node import UOp
from week03_loops import library as lib
from week03_loops.library.arithmetic import widened
from week03_loops.library.check import expect_float


def relu(x: UOp) -> UOp:
    """0 where x ≤ 0, x elsewhere, so that the derivative at 0 is 0 as PyTorch's; NaN stays."""
    return lib.where(lib.le(x, 0), 0, x)


def leaky_relu(x: UOp, *, slope: float) -> UOp:
    """x where x > 0, slope·x elsewhere."""
    return lib.where(lib.gt(x, 0), x, lib.mul(x, slope))


@widened
def elu(x: UOp, *, alpha: float) -> UOp:
    """x where x > 0, α·(e^x − 1) elsewhere (Clevert et al., 2016)."""
    positive = lib.gt(x, 0)
    below = lib.mul(lib.sub(lib.exp(lib.where(positive, 0, x)), 1), alpha)
    return lib.where(positive, x, below)


@widened
def softplus(x: UOp) -> UOp:
    """ln(1 + e^x) = max(x, 0) + ln(1 + e^−|x|); absolute error about an ulp of 1."""
    expect_float("softplus", x=x)
    size = lib.absolute(x)
    return lib.add(lib.maximum(x, 0), lib.log(lib.add(lib.exp(lib.mul(size, -1)), 1)))


def logsigmoid(x: UOp) -> UOp:
    """ln sigmoid(x) = −softplus(−x)."""
    return lib.mul(softplus(lib.mul(x, -1)), -1)
