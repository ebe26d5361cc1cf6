"""The weeks that exist: their packages, their references, and what every week shares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from grader.known import once
from week01_uops.interchange import read as read_text
from week01_uops.node import UOp
from week01_uops.reference import Reference
from week04_fusion.evaluate import MEANING, evaluate
from week04_fusion.ops import OPS

__all__ = ["MEANING", "OPS", "ROOT", "WEEKS", "Week", "evaluate", "read", "week_of"]

ROOT = Path(__file__).resolve().parent.parent
CONFORMANCE = ROOT / "grader" / "conformance"
_NAME = re.compile(r"week(\d\d)(?:_(\d\d))?_\w+")


@dataclass(frozen=True)
class Week:
    """One package of the course; some hold two weeks, first to last."""

    first: int
    last: int
    package: str

    @property
    def folder(self) -> Path:
        """Where its spec tests lie."""
        return ROOT / self.package

    @property
    def title(self) -> str:
        """How a report names it."""
        return f"week {self.first}" + (f"–{self.last}" if self.last > self.first else "")

    def holds(self, number: int) -> bool:
        """Whether a week of the course is in it."""
        return self.first <= number <= self.last

    def reference(self) -> Reference:
        """The course's own compiler of this week."""
        found: Reference = import_module(f"{self.package}.compiler").REFERENCE
        return found


def _weeks() -> Iterator[Week]:
    for path in sorted(ROOT.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match and (path / "__init__.py").is_file():
            first = int(match[1])
            yield Week(first, int(match[2] or first), path.name)


WEEKS = tuple(_weeks())


def week_of(number: int) -> Week:
    """The package that holds a week; a KeyError names those that exist."""
    for week in WEEKS:
        if week.holds(number):
            return week
    known = ", ".join(w.title for w in WEEKS)
    raise KeyError(f"expected one of {known}, got week {number}")


def conformance_files(week: Week) -> list[Path]:
    """The conformance programs of a week's package, sorted by name."""
    folders = [CONFORMANCE / f"week{n:02}" for n in range(week.first, week.last + 1)]
    return sorted(path for folder in folders for path in folder.rglob("*.uop"))


def read(text: str | bytes, week: int) -> UOp:
    """A program of a week, or ReadErrors."""
    return once("read", (text, week), lambda: read_text(text, ops=OPS, week=week))
