"""Sine and cosine of angles in turns: cos 2πu and sin 2πu for u in [0, 1).

Angles in turns need no reduction by a multiple of π that is not exact: where u − ½, |u − ½| − ¼ are
exact, as they are for multiples of 2⁻²⁴ (2⁻⁵³), the error is relative, at zeros too.
"""

from __future__ import annotations

import math

from week01_uops.dtypes import float64
from week01_uops.node import UOp
from week01_uops.ops import NEG
from week03_loops.library import absolute, lt, mul, square, sub, where
from week03_loops.library.activation import polynomial
from week03_loops.library.arithmetic import widened
from week03_loops.library.check import expect_float


@widened
def cos_turns(u: UOp) -> UOp:
    """Cos 2πu for u in [0, 1): relative error about 3 roundings.

    cos 2πu = sin 2π(|u − ½| − ¼): a fold that leaves at most a quarter of a turn.
    """
    expect_float("cos_turns", u=u)
    return sine(sub(absolute(sub(u, 0.5)), 0.25))


@widened
def sin_turns(u: UOp) -> UOp:
    """Sin 2πu for u in [0, 1): relative error about 3 roundings.

    sin 2πu = −sin 2πs for s = u − ½ in [−½, ½), and sin 2πs = sin 2π(±½ − s) beyond a quarter.
    """
    expect_float("sin_turns", u=u)
    s = sub(u, 0.5)
    folded = where(lt(s, 0), sub(-0.5, s), sub(0.5, s))
    return sine(NEG(where(lt(absolute(s), 0.25), s, folded)))


def sine(s: UOp) -> UOp:
    """Sin 2πs for |s| ≤ ¼: Σ (−1)ⁿ·(2πs)^(2n+1)/(2n+1)!, cut off below a tenth of an ulp."""
    count = 11 if s.dtype is float64 else 7
    return mul(s, polynomial(square(s), [_term(n) for n in range(count)]))


def _term(n: int) -> float:
    return float((-1) ** n * (2 * math.pi) ** (2 * n + 1) / math.factorial(2 * n + 1))
