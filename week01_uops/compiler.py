"""Week 1's compiler: inline every CALL, then simplify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from week01_uops.calls import inline
from week01_uops.interface import Target, UnsupportedError
from week01_uops.node import UOp
from week01_uops.ops import CALL, OPS
from week01_uops.passes import Dialect, Pass, Pipeline, rules_pass
from week01_uops.simplify import SIMPLIFY

DIALECT = Dialect("week01", OPS)
INLINED = Dialect("week01 without CALL", OPS - {CALL})

INLINE = Pass("inline", "tensor", inline, INLINED, "put the body of each CALL in its place")
SIMPLIFIED = rules_pass("simplify", "tensor", SIMPLIFY, INLINED, "fold, cancel and bound")

COMPILER = Pipeline("week01", DIALECT, (INLINE, SIMPLIFIED))


@dataclass(frozen=True)
class Reference:
    """The stable interface over a pipeline that makes no source."""

    pipeline: Pipeline

    def simplify(self, program: UOp) -> UOp:
        """An equal program, simpler."""
        return self.pipeline.run(program)

    def compile(self, program: UOp, target: Target) -> NoReturn:
        """Not before week 2."""
        raise UnsupportedError(
            f"{self.pipeline.name} compiles to no {target}; that comes in week 2"
        )

    def grad(self, program: UOp, wrt: Sequence[int]) -> NoReturn:
        """Not before week 9."""
        raise UnsupportedError(f"{self.pipeline.name} has no derivatives; they come in week 9")


REFERENCE = Reference(COMPILER)
