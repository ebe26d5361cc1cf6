"""Losses: one scalar of a batch."""

from __future__ import annotations

from week01_uops.node import UOp
from week01_uops.ops import NEG
from week03_loops.library.arithmetic import square, sub
from week03_loops.library.check import expect_float, expect_integer, expect_rank, expect_shape
from week03_loops.library.gather import gather
from week03_loops.library.movement import unsqueeze
from week03_loops.library.normalization import log_softmax
from week03_loops.library.reduction import mean


def cross_entropy(logits: UOp, target: UOp) -> UOp:
    """−mean over the batch of log_softmax(logits)[target].

    logits (…, classes), target (…) class numbers → (); as torch.nn.functional.cross_entropy.
    """
    expect_float("cross_entropy", logits=logits)
    expect_integer("cross_entropy", target=target)
    expect_rank("cross_entropy", "logits", logits, 1, "(…, classes)")
    expect_shape("cross_entropy", "a target", target, logits.shape[:-1])
    chosen = gather(log_softmax(logits), unsqueeze(target, -1), -1)
    result: UOp = NEG(mean(chosen))
    return result


def mean_square_error(x: UOp, target: UOp) -> UOp:
    """mean((x − target)²) → (); as torch.nn.functional.mse_loss."""
    expect_float("mean_square_error", x=x)
    expect_shape("mean_square_error", "a target", target, x.shape)
    return mean(square(sub(x, target)))
