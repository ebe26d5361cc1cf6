"""The reference compiler of a week: the stable interface over its pipeline and its renderers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from week01_uops.interface import Artifact, Target, UnsupportedError
from week01_uops.node import UOp
from week01_uops.passes import Observer, Pipeline

SIMPLIFYING = frozenset({"inline", "order", "simplify"})
"""The passes of `simplify`."""


class Renderer(Protocol):
    """From a program at kernel level to text; `checked` builds report indices out of range."""

    def __call__(self, program: UOp, *, checked: bool = False) -> str:
        """The text."""


@dataclass(frozen=True)
class Reference:
    """A pipeline, and the text that it ends in, by target."""

    pipeline: Pipeline
    renderers: Mapping[Target, Renderer]

    def simplify(self, program: UOp) -> UOp:
        """An equal program, simpler, at tensor level."""
        passes = tuple([item for item in self.pipeline.passes if item.name in SIMPLIFYING])
        return replace(self.pipeline, passes=passes).run(program)

    def compile(
        self,
        program: UOp,
        target: Target = "c",
        observe: Sequence[Observer] = (),
        *,
        checked: bool = False,
    ) -> Artifact:
        """The source of one translation unit; `checked` for the debug build."""
        if target not in self.renderers:
            known = ", ".join(self.renderers) or "nothing yet"
            raise UnsupportedError(f"{self.pipeline.name} compiles to {known}, not to {target}")
        lowered = self.pipeline.run(program, observe)
        return Artifact(self.renderers[target](lowered, checked=checked), target)

    def debug(self) -> Reference:
        """The same compiler, which makes debug builds only."""

        def checked(render: Renderer) -> Renderer:
            return lambda program, *, checked=False: render(program, checked=True)

        return replace(self, renderers={t: checked(r) for t, r in self.renderers.items()})

    def grad(self, program: UOp, wrt: Sequence[int]) -> UOp:
        """Not before week 9."""
        raise UnsupportedError(f"{self.pipeline.name} has no derivatives; they come in week 9")
