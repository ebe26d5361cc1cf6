"""Offsets: where an element lies in its storage, as one linear form over all axes.

    (x // C)·C·s + (x mod C)·s  =  x·s

so an index that was taken apart into two axes, one of which is C long, is one again.
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
        size = quotient.src[1].arg.value
        form = form.plus(Linear({quotient: 1}, 0), -step * size)
        form = form.plus(Linear({remainder: 1}, 0), -step)
        form = form.plus(value_of(quotient.src[0]), step)
    return form


def _pair(form: Linear) -> tuple[UOp, UOp, int] | None:
    for quotient, c in form.terms.items():
        if quotient.op is FLOORDIV and quotient.src[1].op is CONST:
            size = quotient.src[1].arg.value
            for remainder, step in form.terms.items():
                same = remainder.op is FLOORMOD and remainder.src == quotient.src
                if same and c == step * size:
                    return quotient, remainder, step
    return None
