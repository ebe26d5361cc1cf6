"""A small convolutional classifier of images with one channel."""

from __future__ import annotations

from dataclasses import dataclass

from projects.models.slots import Shapes, params
from week01_uops.dtypes import DType, float32
from week01_uops.node import UOp
from week01_uops.ops import program
from week03_loops.library import conv, linear, max_pool, relu
from week03_loops.ops import reshape


@dataclass(frozen=True)
class Classifier:
    """Sizes of the network: square images of an even size."""

    batch: int = 1
    size: int = 8
    filters: tuple[int, int] = (8, 16)
    classes: int = 10

    def shapes(self) -> Shapes:
        """Slot 0 the images, then the weights."""
        first, second = self.filters
        return {
            "images": (self.batch, 1, self.size, self.size),
            "conv1.weight": (first, 1, 3, 3),
            "conv1.bias": (first,),
            "conv2.weight": (second, first, 3, 3),
            "conv2.bias": (second,),
            "head.weight": (self.classes, second * (self.size // 2) ** 2),
            "head.bias": (self.classes,),
        }


def digits_classifier(sizes: Classifier = Classifier(), dtype: DType = float32) -> UOp:
    """Logits (batch, classes): two 3×3 convolutions with relu, a 2×2 maximum, one linear layer."""
    p = params(sizes.shapes(), dtype)
    x = relu(conv(p["images"], p["conv1.weight"], p["conv1.bias"], padding=1))
    x = relu(conv(x, p["conv2.weight"], p["conv2.bias"], padding=1))
    x = max_pool(x, (2, 2))
    x = reshape(x, (sizes.batch, p["head.weight"].shape[1]))
    return program(linear(x, p["head.weight"], p["head.bias"]))
