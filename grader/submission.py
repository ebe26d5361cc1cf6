"""Submissions: a folder with a `submission.toml` that says how to build and how to ask.

name = "Ada Lovelace"
language = "C"
weeks = [1, 2]
build = ["make"]                  # optional: run once in the folder before judging
compiler = ["./compiler"]         # a verb and its options are appended; runs in the folder
requires = ["../c-week1"]         # optional: other folders that the commands read

[timeouts]                        # optional, in seconds
build = 120
verb = 10
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader import sandbox
from grader.sandbox import Limits
from grader.verdict import Verdict, excerpt

FILE = "submission.toml"
KEYS = ("name", "language", "weeks", "build", "compiler", "requires", "timeouts")
TIMEOUTS = ("build", "verb")


class SubmissionError(Exception):
    """A folder is no submission, or cannot be built; one sentence says why."""


@dataclass(frozen=True)
class Submission:
    """What a folder hands in.

    Attributes:
        folder: where its commands run.
        build: a command that must succeed once before judging; empty if there is none.
        compiler: the command that answers verbs.
        requires: other folders that its commands read, relative to this one.
        seconds: for one answer; `build_seconds` for the build.
    """

    folder: Path
    name: str
    language: str
    weeks: tuple[int, ...]
    compiler: tuple[str, ...]
    build: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    seconds: float = 10.0
    build_seconds: float = 120.0

    def prepare(self) -> None:
        """Run the build, if there is one; SubmissionError with its last words if it fails."""
        if self.build:
            limits = Limits(seconds=self.build_seconds)
            run = sandbox.run(self.build, cwd=self.folder, limits=limits)
            if run.verdict is not Verdict.OK or run.status:
                why = run.note or f"exit status {run.status}"
                words = excerpt((run.stderr or run.stdout).decode("utf-8", "replace"), 20)
                raise SubmissionError(f"{self.name}: the build failed: {why}\n{words}".rstrip())
        program = self.compiler[0]
        path = str(self.folder / program) if "/" in program else program
        if shutil.which(path) is None:
            raise SubmissionError(f"{self.name}: expected a program {program}, found none")


def load(folder: Path) -> Submission:
    """Read a folder's `submission.toml`; a SubmissionError says what is wrong with it."""
    path = folder / FILE
    if not folder.is_dir():
        raise SubmissionError(f"no folder {folder}")
    if not path.is_file():
        raise SubmissionError(f"expected a file {FILE} in {folder}")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SubmissionError(f"{path} is not TOML: {error}") from None
    return _Reader(path, table).submission()


class _Reader:
    """The entries of one file, checked one by one."""

    def __init__(self, path: Path, table: Mapping[str, Any]) -> None:
        self.path = path
        self.table = table

    def fault(self, why: str) -> SubmissionError:
        return SubmissionError(f"{self.path}: {why}")

    def submission(self) -> Submission:
        self.only_known(self.table, KEYS)
        folder = self.path.parent.resolve()
        for name in self.words("requires", optional=True):
            if not (folder / name).is_dir():
                raise self.fault(f"requires the folder {name}, which is missing")
        times = self.timeouts()
        return Submission(
            folder,
            self.word("name"),
            self.word("language"),
            self.weeks(),
            self.words("compiler"),
            self.words("build", optional=True),
            self.words("requires", optional=True),
            times.get("verb", Submission.seconds),
            times.get("build", Submission.build_seconds),
        )

    def only_known(self, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                raise self.fault(f"expected the keys {', '.join(known)}, got {key}")

    def word(self, key: str) -> str:
        value = self.table.get(key)
        if not isinstance(value, str) or not value:
            raise self.fault(f'expected {key} = "…", got {self.shown(key)}')
        return value

    def words(self, key: str, *, optional: bool = False) -> tuple[str, ...]:
        value = self.table.get(key, [] if optional else None)
        good = isinstance(value, list) and all(isinstance(word, str) for word in value)
        if not good or (not value and not optional):
            raise self.fault(f'expected {key} = ["…", …], got {self.shown(key)}')
        return tuple(value)

    def weeks(self) -> tuple[int, ...]:
        value = self.table.get("weeks")
        if (
            not isinstance(value, list)
            or not value
            or not all(type(week) is int and 1 <= week <= 10 for week in value)
        ):
            raise self.fault(f"expected weeks = [1, …], each 1 to 10, got {self.shown('weeks')}")
        return tuple(sorted(set(value)))

    def timeouts(self) -> dict[str, float]:
        value = self.table.get("timeouts", {})
        if not isinstance(value, dict):
            raise self.fault(f"expected a table [timeouts], got {self.shown('timeouts')}")
        self.only_known(value, TIMEOUTS)
        for key, seconds in value.items():
            if type(seconds) not in (int, float) or not 0 < seconds <= 3600:
                raise self.fault(f"expected timeouts.{key} in seconds, 0 to 3600, got {seconds!r}")
        return {key: float(seconds) for key, seconds in value.items()}

    def shown(self, key: str) -> str:
        return repr(self.table[key]) if key in self.table else "nothing"
