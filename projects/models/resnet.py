"""The basic block of a residual network (He et al., 2016), for inference."""

from __future__ import annotations

from dataclasses import dataclass

from projects.models.slots import Shapes, params
from week01_uops.dtypes import DType, float32
from week01_uops.node import UOp
from week01_uops.ops import program
from week03_loops.library import add, batchnorm, conv, relu


@dataclass(frozen=True)
class ResidualBlock:
    """Sizes of a block: `channels` in, `filters` out, on square images."""

    batch: int = 4
    channels: int = 64
    size: int = 28
    filters: int = 64
    stride: int = 1

    @property
    def downsamples(self) -> bool:
        """The shortcut is a 1×1 convolution, since the shapes differ."""
        return self.stride != 1 or self.channels != self.filters

    def shapes(self) -> Shapes:
        """Slot 0 x, then the weights under the names of torchvision's BasicBlock."""
        shapes: dict[str, tuple[int, ...]] = {
            "x": (self.batch, self.channels, self.size, self.size),
            **_layer("conv1", "bn1", (self.filters, self.channels, 3, 3)),
            **_layer("conv2", "bn2", (self.filters, self.filters, 3, 3)),
        }
        if self.downsamples:
            shapes |= _layer("downsample.0", "downsample.1", (self.filters, self.channels, 1, 1))
        return shapes


def _layer(convolution: str, norm: str, weight: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    statistics = ("running_mean", "running_var", "weight", "bias")
    return {
        f"{convolution}.weight": weight,
        **{f"{norm}.{name}": weight[:1] for name in statistics},
    }


def resnet_block(sizes: ResidualBlock = ResidualBlock(), dtype: DType = float32) -> UOp:
    """relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)) → (batch, filters, size', size').

    The shortcut is x itself, or bn(conv1×1(x)) where the shapes differ.
    """
    p = params(sizes.shapes(), dtype)

    def layer(x: UOp, convolution: str, norm: str, stride: int, padding: int) -> UOp:
        y = conv(x, p[f"{convolution}.weight"], stride=stride, padding=padding)
        average, variance = p[f"{norm}.running_mean"], p[f"{norm}.running_var"]
        return batchnorm(y, average, variance, p[f"{norm}.weight"], p[f"{norm}.bias"])

    x = p["x"]
    y = layer(relu(layer(x, "conv1", "bn1", sizes.stride, 1)), "conv2", "bn2", 1, 1)
    if sizes.downsamples:
        x = layer(x, "downsample.0", "downsample.1", sizes.stride, 0)
    return program(relu(add(y, x)))
