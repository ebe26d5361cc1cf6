"""How far off a right answer may be: a-priori error bounds, element by element.

Next to each value v, computed in float64, a bound e is carried: every evaluation that the format
allows (any order of a sum, products fused into sums or not, functions within their units in the
last place) gives some x with |x − v| ≤ e. The bounds are those of the textbooks (Higham, "Accuracy
and Stability of Numerical Algorithms", chapters 2 to 4): an op rounds by at most u·|v| plus half
the least subnormal, u = 2^−precision, and passes its sources' errors on.

e = ∞ says that the element is open: an overflow, a comparison or a truncation may go either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from week01_uops import evaluate as plain
from week01_uops import numerics, ops
from week01_uops.dtypes import DType
from week01_uops.evaluate import Inputs, Meaning, Scope, checked, run
from week01_uops.node import CONST, Op, UOp
from week01_uops.numerics import Array


@dataclass(frozen=True, eq=False)
class Bounded:
    """Values and how far off a right answer may be.

    Attributes:
        value: floats as float64, others in their own type.
        error: of the same shape, ≥ 0; ∞ where anything is right.
    """

    value: Array
    error: Array


Bound = Callable[..., Array]
"""From the dtype and the Bounded sources to the error that the sources' errors cause."""

LEAST = 2.0**-1074
"""An error that leaves the sign of a zero open, and so its reciprocal, and nothing else."""

WORKING = 2.0**-53
"""What the float64 values themselves are rounded by, at most, relatively."""


def unit(dtype: DType) -> float:
    """How much one rounding changes a value, at most, relatively; v is rounded too."""
    return 2.0**-dtype.precision + WORKING


def least(dtype: DType) -> float:
    """The least subnormal."""
    return float(2.0 ** (2 - dtype.max_exponent - dtype.precision))


def least_normal(dtype: DType) -> float:
    """The least value that is not subnormal."""
    return float(2.0 ** (1 - dtype.max_exponent))


def exact(value: Array) -> Bounded:
    """Values that every evaluation agrees on."""
    wide = numerics.wide(value)
    return Bounded(wide, np.zeros(wide.shape))


def overflow(dtype: DType) -> float:
    """The least size that rounds to infinity (of float64, the largest finite one)."""
    if dtype.precision >= 53:
        return float(np.finfo(np.float64).max)
    return float(2.0**dtype.max_exponent * (2 - 2.0**-dtype.precision))


def settled(dtype: DType, value: Array, error: Array) -> Bounded:
    """A float result whose rounding is accounted for: is it finite, infinite or open?"""
    error = np.where(np.isnan(error), np.inf, error)
    top, size = overflow(dtype), np.abs(value)
    over = (size - error >= top) if dtype.precision < 53 else np.isinf(value) & (error == 0)
    error = np.where(over, 0.0, np.where(size + error >= top, np.inf, error))
    return Bounded(np.where(over, np.copysign(np.inf, value), value), error)


def rounded(dtype: DType, value: Array, caused: Array, ulps: float = 0.5) -> Bounded:
    """A float result with the error that its sources cause, rounded within `ulps`.

    An infinity or NaN that the sources agree on is no error.
    """
    size = np.abs(value) + caused
    own = ulps * 2 * unit(dtype) * size + ulps * least(dtype)
    determined = ~np.isfinite(value) & (caused == 0)
    return settled(dtype, value, np.where(determined, 0.0, caused + own))


def _operands(scope: Scope, node: UOp) -> list[Bounded]:
    return [scope.values[source] for source in node.src]


def _discrete(scope: Scope, node: UOp) -> Bounded:
    """Integers and bools from such: known exactly, or open."""
    sources = _operands(scope, node)
    shape = node.shape
    arrays = [np.broadcast_to(s.value, shape) for s in sources]
    function = DISCRETE[node.op]
    value = function(node.src[-1].dtype, *arrays)
    doubt = sum((np.broadcast_to(s.error, shape) for s in sources), np.zeros(shape))
    return Bounded(value, np.where(doubt == 0, 0.0, np.inf))


def _float_op(value: Callable[..., Any], caused: Bound, functions: bool = False) -> Meaning:
    """A float op: its value in float64, and the error that the sources' errors cause."""

    def meaning(scope: Scope, node: UOp) -> Bounded:
        if not node.dtype.is_float:
            return _discrete(scope, node)
        sources = _operands(scope, node)
        found = np.asarray(value(*(s.value for s in sources)))
        passed = np.asarray(caused(found, *sources))
        passed = np.where(sum((s.error for s in sources), np.zeros(())) == 0, 0.0, passed)
        ulps = FUNCTION_ULPS.get(node.dtype.name, 1.0) if functions else 0.5
        result = rounded(node.dtype, found, passed, ulps)
        return _flushed(node.dtype, result) if functions else result

    return meaning


FUNCTION_ULPS: Mapping[str, float] = {"float32": 2.0, "float64": 4.0}
"""Units in the last place that EXP2, LOG2 and RECIP may be off; 1 for narrower floats."""


def _flushed(dtype: DType, x: Bounded) -> Bounded:
    """A result of EXP2, LOG2 or RECIP that may be subnormal may be 0."""
    small = np.abs(x.value) - x.error < least_normal(dtype)
    return Bounded(x.value, np.where(small, np.maximum(x.error, np.abs(x.value)), x.error))


def _sum_error(value: Array, a: Bounded, b: Bounded) -> Array:
    """The sum of the errors; none at an infinity or NaN."""
    caused = a.error + b.error
    finite = np.isfinite(a.value) & np.isfinite(b.value)
    return np.where(finite | ~np.isfinite(caused), caused, 0.0)


def _product_error(value: Array, a: Bounded, b: Bounded) -> Array:
    """(a + e)·(b + f) − a·b; none at an infinity or NaN if the other factor's sign is known."""
    caused = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    finite = np.isfinite(a.value) & np.isfinite(b.value)
    signed = [(s.error == 0) | (np.abs(s.value) > s.error) for s in (a, b)]
    return np.where(finite, caused, np.where(signed[0] & signed[1], 0.0, np.inf))


def _exp2_error(value: Array, x: Bounded) -> Array:
    """2^(x+e) − 2^x = 2^x·(2^e − 1)."""
    return np.asarray(value * np.expm1(np.log(2) * x.error))


def _log2_error(value: Array, x: Bounded) -> Array:
    """log₂ x − log₂(x − e); open unless x > e, but NaN for certain where x < −e."""
    inside = x.value > x.error
    error = np.where(inside, -np.log1p(-x.error / x.value) / np.log(2), np.inf)
    return np.where(x.value + x.error < 0, 0.0, error)


def _reciprocal_error(value: Array, x: Bounded) -> Array:
    """1/(x − e) − 1/x = e / (x·(x − e)); open unless |x| > e."""
    size = np.abs(x.value)
    return np.where(size > x.error, x.error / (size * (size - x.error)), np.inf)


def _negate(scope: Scope, node: UOp) -> Bounded:
    (x,) = _operands(scope, node)
    return Bounded(-x.value, x.error) if node.dtype.is_float else _discrete(scope, node)


def _maximum(scope: Scope, node: UOp) -> Bounded:
    """|max(a′, b′) − max(a, b)| ≤ max of the errors; of 0 and −0 it is either."""
    if not node.dtype.is_float:
        return _discrete(scope, node)
    a, b = _operands(scope, node)
    zeros = (a.value == 0) & (b.value == 0) & (np.signbit(a.value) != np.signbit(b.value))
    error = np.maximum(a.error, b.error)
    return Bounded(np.maximum(a.value, b.value), np.where(zeros, np.maximum(error, LEAST), error))


def _compare(scope: Scope, node: UOp) -> Bounded:
    """Open where the two are closer than their errors."""
    if not node.src[0].dtype.is_float:
        return _discrete(scope, node)
    a, b = _operands(scope, node)
    doubt = a.error + b.error
    unordered = (np.isnan(a.value) | np.isnan(b.value)) & np.isfinite(doubt)
    clear = unordered | (doubt == 0) | (np.abs(a.value - b.value) > doubt)
    value = DISCRETE[node.op](node.src[0].dtype, a.value, b.value)
    return Bounded(value, np.where(clear, 0.0, np.inf))


def _where(scope: Scope, node: UOp) -> Bounded:
    """In doubt, either side: as far off as the other one may be."""
    condition, a, b = _operands(scope, node)
    value = np.where(condition.value, a.value, b.value)
    error = np.where(condition.value, a.error, b.error)
    same = (a.value == b.value) & (a.error == 0) & (b.error == 0)
    if node.dtype.is_float:
        gap = np.abs(np.subtract(a.value, b.value)) + a.error + b.error
        either = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
    else:
        either = np.where(same, 0.0, np.inf)
    return Bounded(value, np.where(condition.error == 0, error, either))


def _cast(scope: Scope, node: UOp) -> Bounded:
    (x,) = _operands(scope, node)
    source, dtype = node.src[0].dtype, node.dtype
    if dtype.is_float:
        if not source.is_float:
            return _from_discrete(dtype, x)
        narrower = dtype.precision < source.precision or dtype.max_exponent < source.max_exponent
        return rounded(dtype, x.value, x.error) if narrower else x
    value = numerics.cast(x.value, dtype)
    if not source.is_float:
        return Bounded(value, x.error)
    if dtype.kind == "bool":
        clear = (x.error == 0) | (np.abs(x.value) > x.error)
    else:
        low, high = np.trunc(x.value - x.error), np.trunc(x.value + x.error)
        clear = (low == high) & (low >= dtype.min) & (high < float(dtype.max + 1))
    return Bounded(value, np.where(clear, 0.0, np.inf))


def _from_discrete(dtype: DType, x: Bounded) -> Bounded:
    """An integer is rounded once, alike by everybody."""
    value = numerics.wide(numerics.cast(x.value, dtype))
    return Bounded(value, x.error)


def _const(scope: Scope, node: UOp) -> Bounded:
    return exact(numerics.constant(node.arg.value, node.dtype))


DISCRETE: Mapping[Op, Callable[..., Array]] = {
    ops.NEG: numerics.negate,
    ops.ADD: numerics.add,
    ops.MUL: numerics.multiply,
    ops.MAX: numerics.maximum,
    ops.FLOORDIV: numerics.floor_divide,
    ops.FLOORMOD: numerics.floor_modulo,
    ops.CMPLT: numerics.less,
    ops.CMPNE: numerics.differ,
}

MEANING: Mapping[Op, Meaning] = {
    CONST: _const,
    ops.PARAM: plain.MEANING[ops.PARAM],
    ops.RETURN: _operands,
    ops.CAST: _cast,
    ops.NEG: _negate,
    ops.RECIP: _float_op(lambda x: np.divide(1.0, x), _reciprocal_error, functions=True),
    ops.EXP2: _float_op(np.exp2, _exp2_error, functions=True),
    ops.LOG2: _float_op(np.log2, _log2_error, functions=True),
    ops.ADD: _float_op(np.add, _sum_error),
    ops.MUL: _float_op(np.multiply, _product_error),
    ops.MAX: _maximum,
    ops.FLOORDIV: _discrete,
    ops.FLOORMOD: _discrete,
    ops.CMPLT: _compare,
    ops.CMPNE: _compare,
    ops.WHERE: _where,
}


def evaluate_with_error(
    program: UOp, inputs: Inputs, table: Mapping[Op, Meaning] | None = None
) -> list[Bounded]:
    """The outputs of a tensor-level program, each with the error that a right answer may have.

    Raises:
        ValueError: an input is missing, or has another dtype, shape or range than its PARAM.
    """
    arguments = {slot: exact(array) for slot, array in checked(program, inputs).items()}
    scope = Scope(MEANING if table is None else table, arguments)
    with np.errstate(all="ignore"):
        run(scope, scope.order(program))
    outputs: list[Bounded] = scope.values[program]
    return [Bounded(o.value, np.broadcast_to(o.error, o.value.shape).copy()) for o in outputs]
