"""The files that a run writes: an option each, written while the run goes on."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from grader import html_report
from grader.failures import write_whole
from grader.formats import classroom, grades, gradescope, junit
from grader.results import RunResult, WeekResult
from grader.weeks import Week

Text = Callable[[RunResult], str]
PAUSE = 5.0
"""Seconds between two versions of a file that is not written after every event."""


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        text: what it holds; None for the JSON that RunResult itself writes.
        each: whether it is written after every event, or at most every PAUSE seconds.
    """

    text: Text | None
    about: str
    each: bool = False

    def write(self, run: RunResult, path: Path) -> None:
        """Put the file in place."""
        if self.text is None:
            run.write(path)
        else:
            write_whole(path, self.text(run))


FORMATS: Mapping[str, Format] = {
    "json": Format(None, "Write results.", each=True),
    "gradescope": Format(gradescope.text, "Write Gradescope's results.json.", each=True),
    "classroom": Format(classroom.text, "Write GitHub Classroom's outputs."),
    "junit": Format(junit.text, "Write JUnit XML."),
    "csv": Format(grades.text, "Write a table of points."),
    "html": Format(html_report.text, "Write the report as a page."),
}


@dataclass
class Outputs:
    """Where the results of one run go, by format."""

    files: Mapping[str, Path] = field(default_factory=dict)
    _written: dict[str, float] = field(default_factory=dict)

    def missing_folder(self) -> Path | None:
        """A folder that a file should go to and that is not there."""
        folders = (path.resolve().parent for path in self.files.values())
        return next((folder for folder in folders if not folder.is_dir()), None)

    def write(self, run: RunResult, *, last: bool = False) -> None:
        """Write what is due."""
        for name, path in self.files.items():
            now = time.monotonic()
            due = FORMATS[name].each or now - self._written.get(name, -PAUSE) >= PAUSE
            if due or last:
                FORMATS[name].write(run, path)
                self._written[name] = now

    @contextmanager
    def kept(self, run: RunResult) -> Iterator[None]:
        """Whatever ends the run, short of SIGKILL, all files are written and no process is left."""
        before = signal.signal(signal.SIGTERM, _leave)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
            self.write(run, last=True)

    def refused(self, run: RunResult, weeks: Sequence[Week], why: object) -> None:
        """The results of a submission that cannot be judged: every week says why."""
        run.complete = True
        run.weeks += [WeekResult(w.last, w.package, w.title, problem=str(why)) for w in weeks]
        self.write(run, last=True)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option a format; the command gets them together as `outputs`."""

    @wraps(command)
    def call(*args: Any, **given: Any) -> None:  # noqa: ANN401 - as click passes them
        files = {name: given.pop(f"{name}_file") for name in FORMATS}
        found = Outputs({name: path for name, path in files.items() if path is not None})
        command(*args, outputs=found, **given)

    for name in reversed(list(FORMATS)):
        kind = click.Path(path_type=Path, dir_okay=False)
        about = FORMATS[name].about
        call = click.option(f"--{name}", f"{name}_file", type=kind, help=about)(call)
    return call
