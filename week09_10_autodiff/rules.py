"""The table of derivatives: what each op hands back to its sources.

For y = op(x₀, x₁, …) and a cotangent ȳ, a rule gives x̄ₖ = ȳ·∂y/∂xₖ for each source, and None to
what has no derivative: integers, bools, conditions. A cotangent may be smaller than its node if it
broadcasts to it: the cotangent of every term of a sum is that of the sum, and the 1 that a loss
starts with stays one constant.

Where a factor is 0 or 1, WHERE chooses and nothing is multiplied, so that an infinite ȳ that does
not count leaves no NaN behind. Elsewhere a rule gives infinities and NaNs where PyTorch's does,
apart from what follows from the ops:

- There is no division. The derivatives of a·RECIP(b) are made of RECIP(b), that of LOG2 x of
  RECIP(x): they are infinite, or 0·∞, where 1/x overflows or x is infinite.
- Equal maxima share, as in torch.maximum and torch.amax. So relu, MAX(x, 0), passes on ½ at 0
  (PyTorch: 0), a clamp ½ at its ends (PyTorch: 1), and the first of several maxima in a window of
  max_pool does not get all.
- What is derived of Π is the product of the other elements, NaN of which PyTorch's quotient makes
  where an element is infinite.
- A power x^c, EXP2(c·LOG2 x), is NaN below 0, and so is its derivative. At 0 it is c·0^(c−1): of
  √x infinite, as in PyTorch.
- A sigmoid, RECIP(EXP2(z) + 1), has the derivative of torch.sigmoid, 0 where 2^z is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from week01_uops.dtypes import int64
from week01_uops.errors import ProgramError
from week01_uops.node import CONST, Op, UOp, const
from week01_uops.ops import (
    ADD,
    CAST,
    CMPLT,
    CMPNE,
    ELEMENTWISE,
    EXP2,
    FLOORDIV,
    FLOORMOD,
    LOG2,
    MAX,
    MUL,
    NEG,
    RECIP,
    WHERE,
)
from week02_render.ops import INDEX, LOAD
from week03_loops.library import arange, cast, concatenate, pad_with, reduce_sum, unsqueeze
from week03_loops.ops import (
    EXPAND,
    FLIP,
    PAD,
    PERMUTE,
    REDUCE,
    RESHAPE,
    SHRINK,
    expand,
    flip,
    pad,
    permute,
    reshape,
    shrink,
)
from week04_fusion.ops import STAGE
from week09_10_autodiff.factors import scaled, times
from week09_10_autodiff.ops import DETACH, LATER

Parts = tuple[UOp | None, ...]
Rule = Callable[[UOp, UOp], Parts]
"""rule(y, ȳ) → the cotangent of each source; ȳ broadcasts to y."""

STEPS = frozenset({CMPLT, CMPNE, FLOORDIV, FLOORMOD, DETACH})
"""Ops that hand nothing back: 0 wherever there is a derivative, or by decree."""

BROADCASTING = ELEMENTWISE | {EXPAND, LOAD}
"""Ops whose sources are repeated up to the shape of the result."""


def no_derivative(node: UOp) -> ProgramError:
    """E416: nothing is known of this op."""
    said = "nothing is derived through storage or loops"
    return ProgramError("E416", f"expected ops with a derivative, got {node.op}: {said}", (node,))


def power_of(y: UOp) -> tuple[UOp, float] | None:
    """The x and c of y = x^c, which is EXP2(c·LOG2 x)."""
    product = y.src[0] if y.op is EXP2 else y
    if product.op is not MUL or y is product:
        return None
    for log, factor in (product.src, product.src[::-1]):
        if log.op is LOG2 and factor.op is CONST:
            return log.src[0], float(factor.arg.value)
    return None


def of_power(y: UOp, bar: UOp, x: UOp, exponent: float) -> UOp:
    """The cotangent ȳ·c·x^(c−1) of x, for y = x^c: of y itself where c is ½ or −½."""
    slope = scaled(bar, exponent)
    if exponent == 0.5:
        return times(slope, RECIP(y))
    if exponent == -0.5:
        return times(slope, MUL(y, MUL(y, y)))
    return times(slope, EXP2(MUL(LOG2(x), exponent - 1)))


def logistic_of(y: UOp) -> UOp | None:
    """The z of y = 1/(2^z + 1), a sigmoid."""
    total = y.src[0] if y.op is RECIP else y
    if total.op is not ADD or y is total:
        return None
    for power, one in (total.src, total.src[::-1]):
        if power.op is EXP2 and one.op is CONST and one.arg.value == 1:
            return power.src[0]
    return None


def of_logistic(y: UOp, bar: UOp) -> UOp:
    """The cotangent ȳ·ln 2·y·(y − 1) of z, for y = 1/(2^z + 1): finite where 2^z is not."""
    return scaled(times(bar, MUL(y, ADD(y, -1.0))), math.log(2))


def _steps(y: UOp, bar: UOp) -> Parts:
    return (None,) * len(y.src)


def _add(y: UOp, bar: UOp) -> Parts:
    return bar, bar


def _mul(y: UOp, bar: UOp) -> Parts:
    """ȳ·b and ȳ·a; of a square 2·ȳ·a, at once."""
    a, b = y.src
    if a is b:
        return scaled(times(bar, a), 2.0), None
    return times(bar, b), times(bar, a)


def _max(y: UOp, bar: UOp) -> Parts:
    """Equal sources share: half of it each."""
    a, b = y.src
    tie, zero = scaled(bar, 0.5), _number(0.0, bar)
    return (
        WHERE(CMPNE(a, b), WHERE(CMPLT(a, b), zero, bar), tie),
        WHERE(CMPNE(a, b), WHERE(CMPLT(b, a), zero, bar), tie),
    )


def _neg(y: UOp, bar: UOp) -> Parts:
    return (scaled(bar, -1.0),)


def _recip(y: UOp, bar: UOp) -> Parts:
    """−ȳ·y²."""
    return (scaled(times(bar, MUL(y, y)), -1.0),)


def _exp2(y: UOp, bar: UOp) -> Parts:
    """ȳ·y·ln 2."""
    return (scaled(times(bar, y), math.log(2)),)


def _log2(y: UOp, bar: UOp) -> Parts:
    """ȳ / (x·ln 2)."""
    return (times(scaled(bar, 1 / math.log(2)), RECIP(y.src[0])),)


def _where(y: UOp, bar: UOp) -> Parts:
    condition, zero = y.src[0], _number(0.0, bar)
    return None, WHERE(condition, bar, zero), WHERE(condition, zero, bar)


def _cast(y: UOp, bar: UOp) -> Parts:
    """In the source's dtype; nothing comes back through integers and bools."""
    source = y.src[0].dtype
    return (cast(bar, source) if source.is_float else None,)


def _expand(y: UOp, bar: UOp) -> Parts:
    return (bar,)


def _reshape(y: UOp, bar: UOp) -> Parts:
    return (reshape(expand(bar, y.shape), y.src[0].shape) if bar.shape else bar,)


def _permute(y: UOp, bar: UOp) -> Parts:
    inverse = sorted(range(len(y.arg)), key=lambda axis: y.arg[axis])
    return (permute(expand(bar, y.shape), inverse) if bar.shape else bar,)


def _flip(y: UOp, bar: UOp) -> Parts:
    return (flip(expand(bar, y.shape), y.arg) if bar.shape else bar,)


def _pad(y: UOp, bar: UOp) -> Parts:
    x = y.src[0]
    box = [(low, low + size) for (low, _), size in zip(y.arg, x.shape, strict=True)]
    return (shrink(expand(bar, y.shape), box) if bar.shape else bar,)


def _shrink(y: UOp, bar: UOp) -> Parts:
    x = y.src[0]
    margins = [(low, size - end) for (low, end), size in zip(y.arg, x.shape, strict=True)]
    return (pad(expand(bar, y.shape), margins),)


def _reduce(y: UOp, bar: UOp) -> Parts:
    """Σ: ȳ for every term. Π: as the tree of products. max: shared by the equal ones.

    The maximum of something with NaN has no equal: ȳ·0/0 for all.
    """
    x, zero = y.src[0], _number(0.0, bar)
    if len(y.src) > 1:
        raise no_derivative(y)
    if y.arg.op is ADD:
        return (bar,)
    if y.arg.op is MUL:
        return (_of_product(x, expand(bar, y.shape), y.arg.axes),)
    others = CMPNE(x, y)
    count = reduce_sum(WHERE(others, zero, 1.0), range(y.arg.axes))
    return (MUL(WHERE(others, zero, bar), RECIP(count)),)


def _of_product(x: UOp, bar: UOp, axes: int) -> UOp:
    """The cotangent of x, of which Π over the first axes has the cotangent ȳ.

    Π is a tree: x₀·x₁·x₂·x₃ = (x₀·x₂)·(x₁·x₃). Back down it, each half gets ȳ times the other, so
    that zeros need no case of their own, and all levels together are O(n).
    """
    shape = x.shape
    levels = [reshape(x, (math.prod(shape[:axes]), *shape[axes:]))]
    while levels[-1].shape[0] > 1:
        low, high = _halves(levels[-1])
        levels.append(MUL(low, high))
    bar = reshape(bar, (1, *bar.shape))
    for level in reversed(levels[:-1]):
        low, high = _halves(level)
        bar = _first(concatenate((MUL(bar, high), MUL(bar, low))), level.shape[0])
    return reshape(_first(bar, levels[0].shape[0]), shape)


def _halves(x: UOp) -> tuple[UOp, UOp]:
    """The two halves along the first axis, to which a 1 is added if its size is odd."""
    rest = [(0, size) for size in x.shape[1:]]
    even = pad_with(x, [(0, x.shape[0] % 2), *[(0, 0)] * len(rest)], 1.0)
    half = even.shape[0] // 2
    return shrink(even, [(0, half), *rest]), shrink(even, [(half, 2 * half), *rest])


def _first(x: UOp, count: int) -> UOp:
    return shrink(x, [(0, count), *((0, size) for size in x.shape[1:])])


def _load(y: UOp, bar: UOp) -> Parts:
    """To the place where the gate is true, to the alternative where it is not."""
    if len(y.src) == 1:
        return (bar,)
    gate, zero = y.src[1], _number(0.0, bar)
    return (WHERE(gate, bar, zero), None, WHERE(gate, zero, bar))[: len(y.src)]


def _index(y: UOp, bar: UOp) -> Parts:
    """Each axis of the place gets the sum of what stands at its index: a one-hot sum."""
    place, *indices = y.src
    bar = expand(bar, y.shape)
    for axis, item in enumerate(indices):
        after = [1] * (len(bar.shape) - axis - len(item.shape))
        rows = reshape(cast(item, int64), (*item.shape, *after))
        count = place.shape[axis]
        positions = reshape(arange(count), (count, *[1] * len(rows.shape)))
        terms = WHERE(CMPNE(positions, rows), _number(0.0, bar), unsqueeze(bar, axis))
        bar = reduce_sum(terms, axis + 1) if item.shape else terms
    return (bar, *[None] * len(indices))


def _stage(y: UOp, bar: UOp) -> Parts:
    """A value held is the value; a STAGE over loops has no derivative."""
    if len(y.src) > 1:
        raise no_derivative(y)
    return (bar,)


def _number(value: float, like: UOp) -> UOp:
    return const(value, like.dtype)


RULES: Mapping[Op, Rule] = MappingProxyType(
    {
        ADD: _add,
        MUL: _mul,
        MAX: _max,
        NEG: _neg,
        RECIP: _recip,
        EXP2: _exp2,
        LOG2: _log2,
        WHERE: _where,
        CAST: _cast,
        **dict.fromkeys(STEPS, _steps),
        RESHAPE: _reshape,
        EXPAND: _expand,
        PERMUTE: _permute,
        FLIP: _flip,
        PAD: _pad,
        SHRINK: _shrink,
        REDUCE: _reduce,
        LATER: lambda y, bar: (bar, *[None] * (len(y.src) - 1)),
        LOAD: _load,
        INDEX: _index,
        STAGE: _stage,
    }
)
