"""Reductions over any axes: the reduced axes are permuted to the front, then one REDUCE.

x (s0, …) → the shape without the reduced axes, or with size 1 in their place if `keepdim`.
Axes may be negative; None stands for all of them.
"""

from __future__ import annotations

import math

from week01_uops.node import Op, UOp
from week01_uops.ops import ADD, MAX, MUL
from week03_loops.library.arithmetic import mul, reversed_order, square, sub, widened
from week03_loops.library.check import Axes, axes_of, expect_float
from week03_loops.ops import permute, reduce, reshape


def reduce_axes(name: str, op: Op, x: UOp, axes: Axes, keepdim: bool) -> UOp:
    """Combine x with `op` over the axes; `name` is for errors."""
    reduced = axes_of(name, axes, len(x.shape))
    kept = [axis for axis in range(len(x.shape)) if axis not in reduced]
    result = reduce(op, permute(x, (*reduced, *kept)), len(reduced))
    if not keepdim:
        return result
    return reshape(result, [1 if a in reduced else size for a, size in enumerate(x.shape)])


def reduce_sum(x: UOp, axes: Axes = None, *, keepdim: bool = False) -> UOp:
    """Σ x; 0 if empty. bool is E402: CAST it."""
    return reduce_axes("reduce_sum", ADD, x, axes, keepdim)


def reduce_prod(x: UOp, axes: Axes = None, *, keepdim: bool = False) -> UOp:
    """Π x; 1 if empty; of bools: all."""
    return reduce_axes("reduce_prod", MUL, x, axes, keepdim)


def reduce_max(x: UOp, axes: Axes = None, *, keepdim: bool = False) -> UOp:
    """The largest, NaN if there is one; −inf or the least integer if empty; of bools: any."""
    return reduce_axes("reduce_max", MAX, x, axes, keepdim)


def reduce_min(x: UOp, axes: Axes = None, *, keepdim: bool = False) -> UOp:
    """The smallest, reversed(max(reversed x)); NaN if there is one."""
    return reversed_order(reduce_axes("reduce_min", MAX, reversed_order(x), axes, keepdim))


@widened
def mean(x: UOp, axes: Axes = None, *, keepdim: bool = False) -> UOp:
    """Σ x · 1/n of floats; NaN if empty."""
    expect_float("mean", x=x)
    return mul(reduce_axes("mean", ADD, x, axes, keepdim), _share(x, axes, 0))


@widened
def var(x: UOp, axes: Axes = None, *, keepdim: bool = False, correction: int = 0) -> UOp:
    """Σ (x − mean)² · 1/(n − correction) of floats, in two passes; NaN if n ≤ correction."""
    expect_float("var", x=x)
    squares = square(sub(x, mean(x, axes, keepdim=True)))
    return mul(reduce_axes("var", ADD, squares, axes, keepdim), _share(x, axes, correction))


def _share(x: UOp, axes: Axes, correction: int) -> float:
    """1/(n − correction); NaN where that is not positive."""
    count = math.prod(x.shape[a] for a in axes_of("mean", axes, len(x.shape))) - correction
    return 1 / count if count > 0 else math.nan
