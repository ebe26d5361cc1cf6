"""Convolution of any rank: PAD once, view the sliding windows, contract with the weight."""

from __future__ import annotations

from week01_uops.node import UOp
from week03_loops.library.arithmetic import add
from week03_loops.library.check import (
    Padding,
    PerAxis,
    expect,
    expect_rank,
    expect_shape,
    margins,
    per_axis,
)
from week03_loops.library.linear_algebra import contract
from week03_loops.library.movement import windows
from week03_loops.ops import pad, reshape


def padded_windows(
    name: str, x: UOp, sizes: tuple[int, ...], stride: PerAxis, dilation: PerAxis
) -> UOp:
    """Windows over the last axes of an x that is padded already; they come last.

    x (…, *lengths) → (…, *positions, *sizes); E403 where the window is longer than the axis.
    """
    rank = len(sizes)
    first = len(x.shape) - rank
    strides = per_axis(name, "stride", stride, rank, 1)
    dilations = per_axis(name, "dilation", dilation, rank, 1)
    for length, size, step in zip(x.shape[first:], sizes, dilations, strict=True):
        span = (size - 1) * step + 1
        good = size > 0 and span <= length
        wanted = f"a window of 1 to {length} elements, the padded axis"
        expect(good, "E403", f"{name}: expected {wanted}, got {span if size else 0}", x)
    return windows(x, range(first, len(x.shape)), sizes, strides, dilations)


def conv(
    x: UOp,
    weight: UOp,
    bias: UOp | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> UOp:
    """Cross-correlation, as torch.nn.functional.conv1d, conv2d, conv3d.

    y[n, o, p…] = bias[o] + Σ_{c, k…} x[n, c, p·stride + k·dilation − padding, …]·weight[o, c, k…],
    c over the channels of o's group: x (N, C, *lengths), weight (O, C/groups, *kernel),
    bias (O) → (N, O, *positions). `padding` is one integer, one for each axis, or pairs
    (before, after). E403 for shapes that do not match, E311 for options out of range.
    """
    expect_rank("conv", "x", x, 2, "(N, C, *lengths)")
    rank = len(x.shape) - 2
    batch, channels = x.shape[:2]
    good = groups > 0 and channels % groups == 0
    expect(good, "E311", f"conv: expected groups that divide {channels} channels, got {groups}", x)
    outer, inner = (groups, channels // groups)
    kernel = ", kernel" * rank
    good = (
        len(weight.shape) == rank + 2 and weight.shape[1] == inner and weight.shape[0] % groups == 0
    )
    wanted = f"a weight of shape [a multiple of {groups}, {inner}{kernel}]"
    expect(good, "E403", f"conv: expected {wanted}, got {list(weight.shape)}", weight)
    x = pad(x, ((0, 0), (0, 0), *margins("conv", padding, rank)))
    view = padded_windows("conv", x, weight.shape[2:], stride, dilation)
    positions = [f"p{i}" for i in range(rank)]
    taps = [f"k{i}" for i in range(rank)]
    y = contract(
        "conv",
        (
            reshape(view, (batch, outer, inner, *view.shape[2:])),
            reshape(weight, (outer, weight.shape[0] // groups, *weight.shape[1:])),
        ),
        (["n", "g", "c", *positions, *taps], ["g", "o", "c", *taps]),
        ["n", "g", "o", *positions],
    )
    y = reshape(y, (batch, weight.shape[0], *y.shape[3:]))
    if bias is None:
        return y
    expect_shape("conv", "a bias", bias, weight.shape[:1])
    return add(y, reshape(bias, (*bias.shape, *[1] * rank)))
