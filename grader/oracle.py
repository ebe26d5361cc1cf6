"""The right answers: values, how far off they may be, and elements that the format leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader import neighbours
from grader.draws import Array, Inputs
from grader.known import fixed, once
from grader.weeks import evaluate
from week01_uops.error_model import Bounded, evaluate_with_error
from week01_uops.evaluate import Meaning, State
from week01_uops.node import Op, UOp
from week01_uops.numerics import is_float, wide
from week01_uops.ops import MUL, RETURN
from week03_loops.error_model import MEANING as BOUNDED


@dataclass(frozen=True)
class Expected:
    """The right outputs for some inputs.

    Attributes:
        values: one array for each output.
        allowed: how far each element may be off, absolutely; NaN where any value is right.
    """

    values: tuple[Array, ...]
    allowed: tuple[Array, ...]


def expected(program: UOp, inputs: Inputs, tolerance: float | None = None) -> Expected:
    """The oracle's outputs; a `tolerance` is relative and takes the place of the program's bounds.

    Elements that the format leaves open stay so.
    """
    return once(
        "expected", (program, inputs, tolerance), lambda: _found(program, inputs, tolerance)
    )


def _found(program: UOp, inputs: Inputs, tolerance: float | None) -> Expected:
    values = run(program, inputs)
    allowed = bounds_of(program, inputs, values)
    if tolerance is not None:
        bounds = [tolerance * _magnitude(value) for value in values]
        allowed = [np.where(np.isnan(a), a, b) for a, b in zip(allowed, bounds, strict=True)]
    return Expected(tuple(map(fixed, values)), tuple(map(fixed, allowed)))


def bounds_of(program: UOp, inputs: Inputs, values: tuple[Array, ...]) -> list[Array]:
    """The a-priori error bounds of a tensor-level program; else those that neighbours show."""
    if all(node.op in BOUNDED or node.op is RETURN for node in program.toposort()):
        with np.errstate(all="ignore"):
            found = evaluate_with_error(program, inputs, _fused(program))
        return [_allowed(bound, value) for bound, value in zip(found, values, strict=True)]
    off = [np.zeros(value.shape) for value in values]
    if neighbours.has_neighbours(program):
        for number in range(neighbours.COUNT):
            others = run(program, inputs, neighbours.neighbour(program, number))
            for k, (value, other) in enumerate(zip(values, others, strict=True)):
                off[k] = np.maximum(off[k], distance(value, other))
    return [neighbours.MARGIN * size for size in off]


def _allowed(bound: Bounded, value: Array) -> Array:
    """The bound is around a value in float64, what is allowed around the oracle's own."""
    gap = np.nan_to_num(distance(wide(np.asarray(value)), bound.value))
    return np.where(np.isinf(bound.error), np.nan, np.where(bound.error, bound.error + gap, 0.0))


def _fused(program: UOp) -> Mapping[Op, Meaning]:
    """Bounds in which a product that a sum may fuse does not have to overflow."""
    fusable = neighbours.fused_products(program)

    def multiply(scope: Any, node: UOp) -> Bounded:  # noqa: ANN401 - a scope of the evaluator
        found: Bounded = BOUNDED[MUL](scope, node)
        if node not in fusable:
            return found
        finite = [np.isfinite(scope.values[source].value) for source in node.src]
        over = np.isinf(found.value) & finite[0] & finite[1]
        return Bounded(found.value, np.where(over, np.inf, found.error))

    return {**BOUNDED, MUL: multiply}


def run(
    program: UOp,
    inputs: Inputs,
    table: Mapping[Op, Meaning] | None = None,
    state: State | None = None,
) -> tuple[Array, ...]:
    """The outputs as arrays; `state` holds BUFFERs from call to call."""
    with np.errstate(all="ignore"):
        return tuple(np.asarray(output) for output in evaluate(program, inputs, table, state))


def distance(one: Array, two: Array) -> Array:
    """|one − two|; NaN where they are of different kinds, or integers that differ."""
    if not is_float(one):
        return np.where(one == two, 0.0, np.nan)
    one, two = wide(one), wide(two)
    with np.errstate(all="ignore"):
        same = (one == two) | (np.isnan(one) & np.isnan(two))
        finite = np.isfinite(one) & np.isfinite(two)
        return np.where(same, 0.0, np.where(finite, np.abs(one - two), np.nan))


def _magnitude(value: Array) -> Array:
    if not is_float(value):
        return np.zeros(value.shape)
    size = np.abs(wide(value))
    return np.where(np.isfinite(size), size, 0.0)
