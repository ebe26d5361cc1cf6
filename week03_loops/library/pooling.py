"""Pooling of any rank: the windows of convolution, reduced."""

from __future__ import annotations

from collections.abc import Sequence

from week01_uops.node import UOp
from week01_uops.ops import ADD, MAX
from week03_loops.library.arithmetic import div, mul, widened
from week03_loops.library.check import Padding, PerAxis, expect, expect_float, margins, per_axis
from week03_loops.library.convolution import padded_windows
from week03_loops.library.movement import full, pad_with
from week03_loops.library.reduction import reduce_axes
from week03_loops.ops import identity, pad

Margins = Sequence[tuple[int, int]]


def _pool_margins(name: str, x: UOp, size: Sequence[int], padding: Padding) -> Margins:
    """Pairs for every axis of x; a padding as wide as the window is E311."""
    expect(0 < len(size) <= len(x.shape), "E406", f"{name}: expected x with more axes", x)
    pairs = margins(name, padding, len(size))
    for (low, high), length in zip(pairs, size, strict=True):
        good = max(low, high) < max(length, 1)
        wanted = f"padding below the window {list(size)}"
        expect(good, "E311", f"{name}: expected {wanted}, got {padding}")
    return (*[(0, 0)] * (len(x.shape) - len(size)), *pairs)


def max_pool(
    x: UOp,
    size: Sequence[int],
    *,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
) -> UOp:
    """y[…, p…] = max_k x[…, p·stride + k·dilation − padding…] over the last len(size) axes.

    The stride is the window's size unless given; padded elements never win. As
    torch.nn.functional.max_pool2d.
    """
    size = per_axis("max_pool", "size", size, len(size), 1)
    around = _pool_margins("max_pool", x, size, padding)
    filled = pad_with(x, around, identity(MAX, x.dtype))
    view = padded_windows("max_pool", filled, size, stride or size, dilation)
    return reduce_axes("max_pool", MAX, view, range(-len(size), 0), keepdim=False)


@widened
def avg_pool(
    x: UOp,
    size: Sequence[int],
    *,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    count_padding: bool = True,
) -> UOp:
    """y[…, p…] = mean_k x[…, p·stride + k − padding…] over the last len(size) axes.

    Padded zeros count in the mean unless `count_padding` is false. As
    torch.nn.functional.avg_pool2d.
    """
    expect_float("avg_pool", x=x)
    size = per_axis("avg_pool", "size", size, len(size), 1)
    around = _pool_margins("avg_pool", x, size, padding)

    def sums(values: UOp) -> UOp:
        view = padded_windows("avg_pool", pad(values, around), size, stride or size, 1)
        return reduce_axes("avg_pool", ADD, view, range(-len(size), 0), keepdim=False)

    count = 1
    for length in size:
        count *= length
    if count_padding or not any(map(any, around)):
        return mul(sums(x), 1 / count)
    return div(sums(x), sums(full(1.0, x.dtype, x.shape)))
