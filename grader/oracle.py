"""The right answers: values, how far off they may be, and elements that the format leaves open.

Open are what a CAST makes of a float outside the integer's range, and what depends on it, and
what depends on the sign of a computed zero. They are found by a second evaluation that chooses
differently wherever there is a choice: what differs is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.compare import rough_bounds
from grader.draws import Array, Inputs
from grader.weeks import MEANING, evaluate
from week01_uops import ops
from week01_uops.evaluate import Meaning
from week01_uops.node import Op, UOp
from week01_uops.numerics import is_float, wide
from week03_loops.ops import REDUCE


@dataclass(frozen=True)
class Expected:
    """The right outputs for some inputs.

    Attributes:
        values: one array for each output.
        allowed: how far each element may be off, absolutely; NaN where any value is right.
    """

    values: tuple[Array, ...]
    allowed: tuple[Array | float, ...]


def expected(program: UOp, inputs: Inputs, tolerance: float | None = None) -> Expected:
    """The oracle's outputs; `tolerance` is relative, and replaces the program's own bounds."""
    values = run(program, inputs)
    allowed = rough_bounds(values, tolerance, len(program.toposort()))
    if has_choices(program):
        other = run(program, inputs, OTHER)
        for number, (one, two) in enumerate(zip(values, other, strict=True)):
            bounds = np.broadcast_to(allowed[number], one.shape).astype(np.float64)
            allowed[number] = np.where(_equal(one, two), bounds, np.nan)
    return Expected(values, tuple(allowed))


def run(
    program: UOp, inputs: Inputs, table: Mapping[Op, Meaning] | None = None
) -> tuple[Array, ...]:
    """The outputs as arrays."""
    with np.errstate(all="ignore"):
        return tuple(np.asarray(output) for output in evaluate(program, inputs, table))


def has_choices(program: UOp) -> bool:
    """Whether a program has an op through which an unspecified value can show."""
    return any(
        node.op is ops.RECIP or (node.op is ops.CAST and _truncates(node))
        for node in program.toposort()
    )


def _truncates(node: UOp) -> bool:
    return node.dtype.is_int and node.src[0].dtype.is_float


def _equal(one: Array, two: Array) -> Array:
    if not is_float(one):
        return np.asarray(one == two)
    one, two = wide(one), wide(two)
    return np.asarray((one == two) | (np.isnan(one) & np.isnan(two)))


def _other_cast(scope: Any, node: UOp) -> Array:  # noqa: ANN401 - a scope of the evaluator
    """CAST with 1 where a float is outside the integer's range, and −0 for 0."""
    found = MEANING[ops.CAST](scope, node)
    if not _truncates(node):
        return _other_zero(found)
    whole = np.trunc(wide(scope.operands(node)[0]))
    inside = (whole >= float(node.dtype.min)) & (whole < float(node.dtype.max + 1))
    return np.asarray(np.where(inside, found, found.dtype.type(1)))


def _other_zero(found: Array) -> Array:
    """Floats with the sign of each zero changed; other values as they are."""
    if not is_float(found):
        return found
    return np.asarray(np.where(found == 0, -found, found).astype(found.dtype))


def _with_other_zeros(meaning: Meaning) -> Meaning:
    return lambda scope, node: _other_zero(meaning(scope, node))


OTHER: Mapping[Op, Meaning] = {
    **MEANING,
    **{
        op: _with_other_zeros(MEANING[op])
        for op in (ops.ADD, ops.MUL, ops.MAX, ops.NEG, ops.EXP2, ops.LOG2, ops.RECIP, REDUCE)
    },
    ops.CAST: _other_cast,
}
