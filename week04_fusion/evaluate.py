"""The interpreter of week 4: it knows every op up to here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from week01_uops.evaluate import Inputs, Meaning, State
from week01_uops.node import Op, UOp
from week01_uops.numerics import Array
from week02_render.evaluate import repeated
from week02_render.places import poison
from week02_render.scopes import LoopScope
from week03_loops import evaluate as week03
from week04_fusion import ops


def _stage(scope: LoopScope, node: UOp) -> Array:
    if len(node.src) == 1:
        return scope.value(node.src[0])
    return repeated(scope, node, lambda scopes: _stage_loops(scope, node, scopes))


def _stage_loops(scope: LoopScope, node: UOp, scopes: Iterator[LoopScope]) -> Array:
    """A temporary of the ranges' sizes, filled by the iterations that are carried out."""
    x = node.src[0]
    shape = (*scope.active.shape, *node.shape)
    result = poison(node.dtype, math.prod(shape)).reshape(shape)
    for inner in scopes:
        part = result[(slice(None),) * scope.lanes + inner.slices(scope)]
        active = inner.active.reshape((*inner.active.shape, *(1,) * len(x.shape)))
        np.copyto(part, inner.value(x), where=active)
    return result


MEANING: Mapping[Op, Meaning] = {**week03.MEANING, ops.STAGE: _stage}


def evaluate(
    program: UOp,
    inputs: Inputs,
    table: Mapping[Op, Meaning] | None = None,
    state: State | None = None,
) -> list[Array]:
    """The outputs of a program for inputs by PARAM slot: `week02_render.evaluate.evaluate`."""
    return week03.evaluate(program, inputs, MEANING if table is None else table, state)
