"""Powers of one half, which programs write by logarithms, are square roots.

    2^(½·log2 x)   →  √x            2^(−½·log2 x)   →   1/√x

One instruction takes the place of two polynomials, and rounds once. Of −0 the power is 0 and its
reciprocal ∞, which is why the op SQRT gives 0 and not −0.
"""

from __future__ import annotations

from week01_uops.node import UOp, make
from week01_uops.ops import EXP2, LOG2, MUL, RECIP
from week01_uops.pattern import Rule, any_of, constant_var, var
from week01_uops.rewrite import Rules
from week05_06_memory.ops import SQRT

x, c = var("x"), constant_var("c")


def _root(x: UOp, c: UOp) -> UOp | None:
    power = c.arg.value
    if abs(power) != 0.5:
        return None
    root = make(SQRT, (x,))
    return root if power > 0 else make(RECIP, (root,))


ROOTS = Rules(
    "roots",
    (Rule("square_root", any_of({EXP2}, MUL(any_of({LOG2}, x), c)), _root, proof="evaluator"),),
)
