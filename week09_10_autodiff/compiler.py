"""The compiler of weeks 9 and 10: that of weeks 7 and 8, with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from week01_uops.node import UOp
from week01_uops.reference import Reference
from week07_08_gpu import compiler as week07
from week09_10_autodiff.gradients import grad


@dataclass(frozen=True)
class Differentiating(Reference):
    """A reference compiler that has the verb `grad`."""

    def grad(self, program: UOp, wrt: Sequence[int]) -> UOp:
        """The derivatives of the one output with respect to PARAM slots, simplified."""
        return self.simplify(grad(program, wrt))


REFERENCE = Differentiating(week07.COMPILER, week07.REFERENCE.renderers)
COMPILER = REFERENCE.pipeline
