"""Mutants: the reference compiler with one thing wrong in it, as data.

A mutant is a function from the reference to another `Reference`, with another rule table or pass.
Where a piece takes no argument, a `Patch` names it; it is in place only while the mutant answers,
so that the judge, which reads and evaluates by the same modules, never sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from grader.subject import Answer, InProcess
from grader.verdict import Verdict
from grader.weeks import week_of
from week01_uops.interface import Compiler
from week01_uops.reference import Reference

Change = Callable[[Reference], Reference]


@dataclass(frozen=True)
class Patch:
    """Another value of `owner.name`, for a while."""

    owner: object
    name: str
    value: object


@dataclass(frozen=True)
class Mutant:
    """A compiler that is wrong on purpose.

    Attributes:
        name: one word for a table's first column, and the key of `killers.json`.
        week: whose reference is changed, and whose spec tests must kill it.
        about: what is wrong, in one sentence.
        change: the change; none if the patches are all.
        patches: what else is wrong while it answers.
        expected: the verdict of the test that kills it.
        slow: judging it takes long: nightly.
    """

    name: str
    week: int
    about: str
    change: Change = lambda reference: reference
    patches: tuple[Patch, ...] = ()
    expected: Verdict = Verdict.WRONG
    slow: bool = False

    def subject(self) -> InProcess:
        """It, under judgement."""
        week = week_of(self.week)
        return Patched(self.change(week.reference()), week.last, self.name, self.patches)


class Patched(InProcess):
    """A compiler of ours that answers with some pieces exchanged."""

    def __init__(self, compiler: Compiler, week: int, name: str, patches: Sequence[Patch]) -> None:
        super().__init__(compiler, week, name)
        self.patches = patches

    def ask(self, verb: Sequence[str], text: str | bytes) -> Answer:
        """As the reference answers, under the patches."""
        with applied(self.patches):
            return super().ask(verb, text)


@contextmanager
def applied(patches: Sequence[Patch]) -> Iterator[None]:
    """The patches in place, then all as it was."""
    before = [Patch(p.owner, p.name, getattr(p.owner, p.name)) for p in patches]
    try:
        for patch in patches:
            setattr(patch.owner, patch.name, patch.value)
        yield
    finally:
        for patch in before:
            setattr(patch.owner, patch.name, patch.value)
