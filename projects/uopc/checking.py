"""`uopc compile --check`: does every pass keep the meaning?

The program is evaluated by the interpreter on made-up inputs before the first pass and after each;
the first pass after which an output differs is named.
"""

from __future__ import annotations

import numpy as np

from projects.uopc.inputs import random_inputs
from week01_uops.dtypes import DType
from week01_uops.errors import CompilerError
from week01_uops.node import UOp
from week01_uops.passes import Step
from week05_06_memory.evaluate import evaluate

SLACK = 1 << 12
"""Rounding units, of the largest element, that another order of additions may cost."""


def disagreement(dtype: DType, expected: np.ndarray, got: np.ndarray) -> str | None:
    """The first element that differs by more than rounding, in words; None if none does."""
    if not dtype.is_float:
        wrong = expected != got
    else:
        a, b = expected.astype(np.float64), got.astype(np.float64)
        finite = np.isfinite(a)
        scale = float(np.max(np.abs(a), where=finite, initial=0.0))
        with np.errstate(invalid="ignore"):
            close = np.abs(a - b) <= SLACK * 2.0**-dtype.precision * scale
        wrong = ~np.where(finite, close, (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements, first at {list(at)}: "
        f"expected {expected[at]}, got {got[at]}"
    )


class Checker:
    """An observer that compares each pass's result with the program at the start."""

    def __init__(self, program: UOp, seed: int = 0) -> None:
        self.program = program
        self.inputs = random_inputs(program, seed)
        self.expected = evaluate(program, self.inputs, state={})
        self.passed = 0

    def __call__(self, step: Step) -> None:
        """Evaluate after a pass that changed something; raise if an output differs."""
        self.passed += 1
        if step.after is step.before:
            return
        got = evaluate(step.after, self.inputs, state={})
        for number, (a, b) in enumerate(zip(self.expected, got, strict=True)):
            what = disagreement(self.program.src[number].dtype, a, b)
            if what is not None:
                raise CompilerError(
                    f"pass {step.of.name} changed the meaning of output {number}: {what}"
                )
