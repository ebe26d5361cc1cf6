"""What the adversary suite is made of: cheats, mutants, and what the grader says of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grader.verdict import Verdict


@dataclass(frozen=True)
class Outcome:
    """What the grader said.

    Attributes:
        verdict: a `Verdict`, or another word of the grader's, such as a gate's.
        told: the sentence that goes with it.
    """

    verdict: str
    told: str


@dataclass(frozen=True)
class Cheat:
    """A submission, or a compiler, that tries to pass without doing the work.

    Attributes:
        name: one word for a table's first column.
        week: the week whose claims it is judged by.
        about: what it does, in one sentence.
        expected: the verdict that it must get.
        run: judges it, from nothing, and leaves nothing behind.
    """

    name: str
    week: int
    about: str
    expected: Verdict | str
    run: Callable[[], Outcome]
