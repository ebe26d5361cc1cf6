"""The interpreter of weeks 5 and 6: kinds of ranges say nothing about values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from week01_uops import numerics
from week01_uops.evaluate import Inputs, Meaning, State
from week01_uops.node import Op, UOp
from week01_uops.numerics import Array
from week02_render.scopes import LoopScope
from week04_fusion import evaluate as week04
from week05_06_memory import ops


def _square_root(scope: LoopScope, node: UOp) -> Array:
    """√x, rounded once: float64 is wide enough for every narrower dtype. Of −0 it is 0."""
    root = np.sqrt(scope.value(node.src[0]).astype(np.float64) + 0.0)
    return numerics.round_to(root, node.dtype)


def _first_of_tile(scope: LoopScope, node: UOp) -> Array:
    """min(r·by, size − by)."""
    first = scope.value(node.src[0]) * node.arg.by
    return np.asarray(np.minimum(first, node.arg.size - node.arg.by))


def _larger(scope: LoopScope, node: UOp) -> Array:
    """X if x > y, else y."""
    x, y = map(scope.value, node.src)
    return np.where(numerics.wide(x) > numerics.wide(y), x, y)


MEANING: Mapping[Op, Meaning] = {
    **week04.MEANING,
    **dict.fromkeys(ops.MARKS, lambda scope, node: scope.raw(node.src[0])),
    ops.SQRT: _square_root,
    ops.TILE: _first_of_tile,
    ops.NUMBER: lambda scope, node: scope.value(node.src[0]),
    ops.LARGER: _larger,
}


def evaluate(
    program: UOp,
    inputs: Inputs,
    table: Mapping[Op, Meaning] | None = None,
    state: State | None = None,
) -> list[Array]:
    """The outputs of a program for inputs by PARAM slot: `week02_render.evaluate.evaluate`."""
    return week04.evaluate(program, inputs, MEANING if table is None else table, state)
