"""All mutants, by week."""

from __future__ import annotations

from grader.adversary.mutant import Mutant
from grader.adversary.mutants import controls, week01, week02, week03, week04, week05, week09

MUTANTS: tuple[Mutant, ...] = tuple(
    mutant for week in (week01, week02, week03, week04, week05, week09) for mutant in week.MUTANTS
)
CONTROLS: tuple[Mutant, ...] = tuple(
    control for control in controls.CONTROLS if control.week in {mutant.week for mutant in MUTANTS}
)
"""Right compilers of the weeks that have mutants; they must pass."""


def mutant_of(name: str) -> Mutant:
    """The mutant or control of a name; a KeyError names those that exist."""
    for mutant in (*MUTANTS, *CONTROLS):
        if mutant.name == name:
            return mutant
    known = ", ".join(mutant.name for mutant in (*MUTANTS, *CONTROLS))
    raise KeyError(f"expected one of the mutants {known}, got {name}")
