"""Submissions: a folder with a `submission.toml` that says how to build and how to ask.

name = "Ada Lovelace"             # how reports name it
language = "c"                    # any word; `grader doctor` knows the tools of some
weeks = [1, 2]                    # those to be judged
build = ["make"]                  # optional: run once in the folder before judging
compiler = ["./compiler"]         # a verb and its options are appended; runs in the folder
serve = ["./compiler", "serve"]   # optional: one process for many requests, see `serve.py`
requires = ["../c-week1"]         # optional: other folders that the commands read

[timeouts]                        # optional, in seconds, up to 3600
build = 120                       # for the whole build; 120 if not said
verb = 10                         # for one answer; 10 if not said
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader import sandbox
from grader.sandbox import Limits
from grader.verdict import Verdict, excerpt
from grader.weeks import ROOT, WEEKS, Week

FILE = "submission.toml"
LARGEST = 8 << 10
"""Bytes of it that are read; what takes long in TOML grows with their square."""
COURSE = (*(week.package for week in WEEKS), "projects")
"""What a submission in Python may import."""
KEYS = ("name", "language", "weeks", "build", "compiler", "serve", "requires", "timeouts")
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
        serve: the command that answers many requests in one process; empty if there is none.
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
    serve: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[Path, ...]:
        """The folders that its commands may read beside its own: the course's are among them."""
        required = ((self.folder / name).resolve() for name in self.requires)
        return (*required, *(ROOT / name for name in COURSE))

    def names(self, week: Week) -> bool:
        """Whether it is to be judged in a week's package."""
        return any(map(week.holds, self.weeks))

    def expect_named(self, week: Week) -> None:
        """SubmissionError if it is not to be judged in a week's package."""
        if not self.names(week):
            done = ", ".join(map(str, self.weeks))
            raise SubmissionError(f"{self.name} names the weeks {done}, not {week.title}")

    def prepare(self) -> None:
        """Make it ready to be asked; SubmissionError says what keeps it from that."""
        self.run_build()
        self.expect_programs()

    def run_build(self) -> None:
        """Run the build, if there is one; SubmissionError with its last words if it fails."""
        if not self.build:
            return
        limits = Limits(seconds=self.build_seconds)
        run = sandbox.run(self.build, cwd=self.folder, limits=limits, writes=True, reads=self.reads)
        if run.verdict is not Verdict.OK or run.status:
            why = run.note or f"exit status {run.status}"
            words = excerpt((run.stderr or run.stdout).decode("utf-8", "replace"), 20)
            raise SubmissionError(f"{self.name}: the build failed: {why}\n{words}".rstrip())

    def expect_programs(self) -> None:
        """SubmissionError if what the commands start is not there."""
        for program in dict.fromkeys((*self.compiler[:1], *self.serve[:1])):
            if self.which(program) is None:
                raise SubmissionError(f"{self.name}: expected a program {program}, found none")

    def which(self, program: str) -> str | None:
        """Where the first word of a command is found, as an executable."""
        return shutil.which(str(self.folder / program) if "/" in program else program)


def load(folder: Path) -> Submission:
    """Read a folder's `submission.toml`; a SubmissionError says what is wrong with it."""
    path = folder / FILE
    if not folder.is_dir():
        raise SubmissionError(f"no folder {folder}")
    if not path.is_file():
        raise SubmissionError(f"expected a file {FILE} in {folder}")
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise SubmissionError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > LARGEST:
        raise SubmissionError(f"expected {path} to be of {LARGEST >> 10} KiB at most")
    try:
        table = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{path} is not TOML: {excerpt(str(error), 1)}") from None
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
            if not os.path.isdir(folder / name):
                raise self.fault(f"requires the folder {_brief(name)}, which is missing")
            if (folder / name).resolve().parent not in (folder, folder.parent):
                why = "expected required folders to lie beside its own"
                raise self.fault(f"{why}, got {_brief(name)}")
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
            self.words("serve", optional=True),
        )

    def only_known(self, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                raise self.fault(f"expected the keys {', '.join(known)}, got {_brief(key)}")

    def word(self, key: str) -> str:
        value = self.table.get(key)
        if not isinstance(value, str) or not value:
            raise self.fault(f'expected {key} = "…", got {self.shown(key)}')
        if excerpt(value, 1) != value or "\t" in value:
            raise self.fault(f"expected {key} to be a short line, got {self.shown(key)}")
        return value

    def words(self, key: str, *, optional: bool = False) -> tuple[str, ...]:
        value = self.table.get(key, [] if optional else None)
        good = isinstance(value, list) and all(
            isinstance(word, str) and "\0" not in word for word in value
        )
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
                wanted = f"expected timeouts.{key} in seconds, 0 to 3600"
                raise self.fault(f"{wanted}, got {_shown(seconds)}")
        return {key: float(seconds) for key, seconds in value.items()}

    def shown(self, key: str) -> str:
        return _shown(self.table[key]) if key in self.table else "nothing"


def _brief(text: str) -> str:
    return excerpt(text, 1, 80)


def _shown(value: object) -> str:
    try:
        return _brief(repr(value))
    except ValueError:  # Python writes no integer of thousands of digits
        return "a number of thousands of digits"
