"""The stable interface of a compiler: what the reference and every submission offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from week01_uops.node import UOp

Target = Literal["c", "cuda", "hip"]


@dataclass(frozen=True)
class Artifact:
    """A compiled program: one translation unit that exports `program`."""

    source: str
    target: Target = "c"


class UnsupportedError(Exception):
    """A compiler was asked for a verb or a target that it does not offer; says which."""


class Compiler(Protocol):
    """Programs are RETURN nodes. Faults of the program are ProgramErrors."""

    def simplify(self, program: UOp) -> UOp:
        """An equal program, simpler."""

    def compile(self, program: UOp, target: Target) -> Artifact:
        """The source of one translation unit."""

    def grad(self, program: UOp, wrt: Sequence[int]) -> UOp:
        """The derivatives of the one output with respect to PARAM slots."""
