"""Offsets: where an element lies in its storage, as one linear form over all axes.

    (x // C)·C·s + (x mod C)·s  =  x·s        and y // (B·C) is (y // B) // C

so an index that was taken apart into axes, one of which is C long, is one again.
"""

from __future__ import annotations

from collections.abc import Sequence

from week01_uops.linear import ZERO, Linear, value_of
from week01_uops.node import CONST, Shape, UOp
from week01_uops.ops import FLOORDIV, FLOORMOD


def flat(shape: Shape, axes: Sequence[Linear]) -> Linear:
    """The row-major offset Σ stride·index of an element with these indices."""
    total, stride = ZERO, 1
    for size, form in zip(reversed(shape), reversed(axes), strict=True):
        total = total.plus(form, stride)
        stride *= size
    return put_together(total)


def put_together(form: Linear) -> Linear:
    """The form with quotients and remainders of one number by one divisor as that number."""
    while (found := _pair(form)) is not None:
        quotient, remainder, step = found
        whole, size = remainder.src[0], remainder.src[1].arg.value
        form = form.plus(Linear({quotient: 1}, 0), -step * size)
        form = form.plus(Linear({remainder: 1}, 0), -step)
        form = form.plus(value_of(whole), step)
    return form


def _pair(form: Linear) -> tuple[UOp, UOp, int] | None:
    for remainder, step in form.terms.items():
        if remainder.op is FLOORMOD and remainder.src[1].op is CONST:
            for quotient, c in form.terms.items():
                fits = c == step * remainder.src[1].arg.value
                if fits and quotient.op is FLOORDIV and _is_rest(quotient, remainder):
                    return quotient, remainder, step
    return None


def _is_rest(quotient: UOp, remainder: UOp) -> bool:
    """Whether they are x // C and x mod C; for x = y // B, the quotient may be y // (B·C)."""
    x, size = remainder.src
    if quotient.src == remainder.src:
        return True
    if x.op is not FLOORDIV or x.src[1].op is not CONST or quotient.src[1].op is not CONST:
        return False
    inner, both = x.src[1].arg.value, quotient.src[1].arg.value
    return quotient.src[0] is x.src[0] and min(inner, both) > 0 and inner * size.arg.value == both
