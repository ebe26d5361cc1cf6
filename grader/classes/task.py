"""One submission to grade: what is asked, how, and the key that says when an answer still holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from grader.weeks import ROOT, WEEKS

Event = dict[str, Any]
Tell = Callable[[Event], None]
SOURCES = (".py", ".c", ".h", ".json", ".uop")


class Outcome(StrEnum):
    """What became of a submission as a whole; the value is what a table calls it."""

    GRADED = "graded"
    REFUSED = "refused"
    INVALID = "no valid submission"
    BUILD = "build failed"
    TIMEOUT = "out of time"
    GRADER = "fault of the grader"


@dataclass(frozen=True)
class Manner:
    """How a class is graded; all of it but `state` is part of the key.

    Attributes:
        only: pytest's expression of the tests that count; empty for all.
        rounds: of measuring a gate; None for the week's own number.
        timeout: seconds for one answer, in place of the submission's own.
        limit: seconds for a submission, waiting for a quiet machine left out.
        state: the folder of stored failures.
    """

    week: int
    seed: int = 0
    only: str = ""
    gates: bool = True
    rounds: int | None = None
    timeout: float | None = None
    shrink: bool = False
    limit: float = 1800.0
    state: str = ""

    @property
    def state_folder(self) -> Path | None:
        """The folder of stored failures, if they are to be kept in one."""
        return Path(self.state) if self.state else None

    def fingerprint(self) -> str:
        """The hash of what decides about grades beside the submission itself."""
        decides = {k: v for k, v in asdict(self).items() if k != "state"}
        return _hash([json.dumps(decides, sort_keys=True).encode(), *_sources(self.week)])


@dataclass(frozen=True)
class Task:
    """One submission, in a folder of its own, to be graded for the `attempt`-th time."""

    name: str
    folder: str
    manner: Manner
    attempt: int = 1

    def again(self) -> Task:
        """The same, once more."""
        return replace(self, attempt=self.attempt + 1)

    def line(self) -> bytes:
        """As one line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def of_line(line: bytes) -> Task:
        """The inverse of `line`."""
        fields = json.loads(line)
        return Task(**{**fields, "manner": Manner(**fields["manner"])})


def key(content: str, fingerprint: str) -> str:
    """What a stored grade is of: a submission's content, the tests, and the grader."""
    return _hash([content.encode(), fingerprint.encode()])


def _sources(number: int) -> Iterator[bytes]:
    """The grader, the weeks that it computes with, and the week's spec tests."""
    folders = [ROOT / "grader", *(week.folder for week in WEEKS)]
    for path in sorted(path for folder in folders for path in folder.rglob("*")):
        if path.suffix in SOURCES and _counts(path, number):
            yield str(path.relative_to(ROOT)).encode()
            yield path.read_bytes()


def _counts(path: Path, number: int) -> bool:
    inside = path.relative_to(ROOT).parts
    if inside[:2] == ("grader", "samples") or inside[:3] == ("grader", "bench", "results"):
        return False
    return not path.name.startswith("test_") or _holds(number, inside[0])


def _holds(number: int, package: str) -> bool:
    return any(week.holds(number) and week.package == package for week in WEEKS)


def _hash(parts: list[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()
