"""The rules that every pipeline simplifies with: those of week 1 that change no result."""

from __future__ import annotations

from week01_uops.algebra import ALGEBRA
from week01_uops.compare import COMPARE
from week01_uops.conditions import CONDITIONS
from week01_uops.fold import FOLDING
from week01_uops.node import UOp
from week01_uops.rewrite import Rules, rewrite
from week01_uops.symbolic import SYMBOLIC

SIMPLIFY: Rules = (FOLDING + ALGEBRA + SYMBOLIC + COMPARE + CONDITIONS).exact


def simplify(program: UOp) -> UOp:
    """The program at the fixed point of `SIMPLIFY`; CALLs must have been inlined."""
    return rewrite(program, SIMPLIFY)
