"""The inputs of a model: names and shapes, one PARAM slot each, in order."""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops.dtypes import DType
from week01_uops.node import Shape, UOp
from week01_uops.ops import param

Shapes = Mapping[str, Shape]


def params(shapes: Shapes, dtype: DType) -> dict[str, UOp]:
    """PARAM k for the k-th name."""
    return {name: param(slot, dtype, shape) for slot, (name, shape) in enumerate(shapes.items())}
