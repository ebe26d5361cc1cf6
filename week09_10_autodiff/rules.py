"""The table of derivatives: what each op hands back to its sources.

For y = op(x₀, x₁, …) and a cotangent ȳ, a rule gives x̄ₖ = ȳ·∂y/∂xₖ for each source, in the shape
of y where the op broadcasts, and None to what has no derivative: integers, bools, conditions.
Where a factor is 0 or 1, WHERE chooses and nothing is multiplied, so an infinite ȳ that does not
count leaves no NaN behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from week01_uops.dtypes import int64
from week01_uops.errors import ProgramError
from week01_uops.node import Op, UOp, const
from week01_uops.ops import (
    ADD,
    CAST,
    CMPLT,
    CMPNE,
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

Rule = Callable[[UOp, UOp], tuple[UOp | None, ...]]
"""rule(y, ȳ) → the cotangent of each source."""


def _none(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """A step: no derivative, or 0 wherever there is one."""
    return (None,) * len(y.src)


def _add(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    return bar, bar


def _mul(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    a, b = y.src
    return MUL(bar, b), MUL(bar, a)


def _max(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """Equal sources share: half of it each."""
    a, b = y.src
    tie, zero = MUL(bar, 0.5), _number(0.0, bar)
    return (
        WHERE(CMPNE(a, b), WHERE(CMPLT(a, b), zero, bar), tie),
        WHERE(CMPNE(a, b), WHERE(CMPLT(b, a), zero, bar), tie),
    )


def _recip(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """−ȳ·y²."""
    return (NEG(MUL(bar, MUL(y, y))),)


def _exp2(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """ȳ·y·ln 2."""
    return (MUL(MUL(bar, y), math.log(2)),)


def _log2(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """ȳ / (x·ln 2)."""
    return (MUL(MUL(bar, RECIP(y.src[0])), 1 / math.log(2)),)


def _where(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    condition, zero = y.src[0], _number(0.0, bar)
    return None, WHERE(condition, bar, zero), WHERE(condition, zero, bar)


def _cast(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """In the source's dtype; nothing comes back through integers and bools."""
    source = y.src[0].dtype
    return (cast(bar, source) if source.is_float else None,)


def _reshape(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    return (reshape(bar, y.src[0].shape),)


def _permute(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    inverse = sorted(range(len(y.arg)), key=lambda axis: y.arg[axis])
    return (permute(bar, inverse),)


def _flip(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    return (flip(bar, y.arg),)


def _pad(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    x = y.src[0]
    box = [(low, low + size) for (low, _), size in zip(y.arg, x.shape, strict=True)]
    return (shrink(bar, box),)


def _shrink(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    x = y.src[0]
    margins = [(low, size - end) for (low, end), size in zip(y.arg, x.shape, strict=True)]
    return (pad(bar, margins),)


def _reduce(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """Σ: ȳ for every term. Π: as the tree of products. max: shared by the equal ones."""
    x, zero = y.src[0], _number(0.0, bar)
    if len(y.src) > 1:
        raise no_derivative(y)
    if y.arg.op is ADD:
        return (expand(bar, x.shape),)
    if y.arg.op is MUL:
        return (_of_product(x, bar, y.arg.axes),)
    others = CMPNE(x, y)
    count = reduce_sum(WHERE(others, zero, 1.0), range(y.arg.axes))
    return (WHERE(others, zero, MUL(bar, RECIP(count))),)


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


def _load(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """To the place where the gate is true, to the alternative where it is not."""
    if len(y.src) == 1:
        return (bar,)
    gate, zero = y.src[1], _number(0.0, bar)
    return WHERE(gate, bar, zero), None, WHERE(gate, zero, bar)


def _index(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """Each axis of the place gets the sum of what stands at its index: a one-hot sum."""
    place, *indices = y.src
    for axis, item in enumerate(indices):
        count = place.shape[axis]
        rows = reshape(cast(item, int64), (item.size,))
        if not item.shape:
            bar = unsqueeze(bar, axis)
        after = [1] * (len(bar.shape) - axis - 1)
        elsewhere = CMPNE(unsqueeze(arange(count), 1), rows)
        mask = reshape(elsewhere, (*elsewhere.shape, *after))
        terms = WHERE(mask, _number(0.0, bar), unsqueeze(bar, axis))
        bar = reduce_sum(terms, axis + 1)
    return (bar, *[None] * len(indices))


def _stage(y: UOp, bar: UOp) -> tuple[UOp | None, ...]:
    """A value held is the value; a STAGE over loops has no derivative."""
    if len(y.src) > 1:
        raise no_derivative(y)
    return (bar,)


def _number(value: float, like: UOp) -> UOp:
    return const(value, like.dtype)


def no_derivative(node: UOp) -> ProgramError:
    """E416: nothing is known of this op."""
    return ProgramError("E416", f"expected ops with a derivative, got {node.op}", (node,))


RULES: Mapping[Op, Rule] = MappingProxyType(
    {
        ADD: _add,
        MUL: _mul,
        MAX: _max,
        NEG: lambda y, bar: (NEG(bar),),
        RECIP: _recip,
        EXP2: _exp2,
        LOG2: _log2,
        WHERE: _where,
        CAST: _cast,
        **dict.fromkeys((CMPLT, CMPNE, FLOORDIV, FLOORMOD), _none),
        RESHAPE: _reshape,
        EXPAND: lambda y, bar: (bar,),
        PERMUTE: _permute,
        FLIP: _flip,
        PAD: _pad,
        SHRINK: _shrink,
        REDUCE: _reduce,
        LOAD: _load,
        INDEX: _index,
        STAGE: _stage,
    }
)
