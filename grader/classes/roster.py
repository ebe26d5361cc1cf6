"""Who is in a class: a folder of submissions, or a CSV file of names and sources."""

from __future__ import annotations

import csv
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ARCHIVES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tar", ".zip")
COLUMNS = ("name", "source")
_URL = re.compile(r"\w[\w+.-]*://\S|[\w.-]+@[\w.-]+:\S")
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


class RosterError(Exception):
    """There is no class here; one sentence says what was expected."""


@dataclass(frozen=True)
class Entry:
    """One of the class: a name, and a folder, an archive or the URL of a git repository."""

    name: str
    source: str

    @property
    def is_git(self) -> bool:
        """Whether the source is to be cloned."""
        path = Path(self.source)
        if path.is_dir():
            return (path / "HEAD").is_file() and (path / "objects").is_dir()
        return not path.exists() and _URL.match(self.source) is not None


def shown(text: str) -> str:
    """A text of a stranger on one line, with escapes for what cannot be seen."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_seen(character: str) -> bool:
    """Whether a character is one that a reader sees: no control, no direction, no surrogate."""
    return unicodedata.category(character) not in _UNSEEN


def archive_suffix(name: str) -> str | None:
    """The suffix of an archive's name, or None."""
    return next((suffix for suffix in ARCHIVES if name.lower().endswith(suffix)), None)


def read_roster(path: Path) -> list[Entry]:
    """All of a class, sorted by name if a folder says who they are."""
    if path.is_dir():
        found = _of_folder(path)
    elif path.suffix.lower() == ".csv" and path.is_file():
        found = list(_of_table(path))
    else:
        raise RosterError(f"expected a folder or a .csv file of submissions, got {path}")
    if not found:
        raise RosterError(f"expected submissions in {path}, found none")
    return found


def _of_folder(folder: Path) -> list[Entry]:
    """Everything in the folder but hidden files: what is no submission gets its verdict."""
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    short = [path.name[: -len(archive_suffix(path.name) or "") or None] for path in paths]
    counts = Counter(name.casefold() for name in short)
    names = [
        name if counts[name.casefold()] == 1 else path.name
        for name, path in zip(short, paths, strict=True)
    ]
    return [Entry(name, str(path.absolute())) for name, path in zip(names, paths, strict=True)]


def _of_table(path: Path) -> Iterator[Entry]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            _expect_columns(path, table.fieldnames or ())
            rows = [(table.line_num, row) for row in table]
    except (UnicodeDecodeError, csv.Error) as error:
        raise RosterError(f"{path} is no CSV file in UTF-8: {error}") from None
    seen: dict[str, int] = {}
    for line, row in rows:
        name, source = ((row[column] or "").strip() for column in COLUMNS)
        if not name or not source:
            raise RosterError(f"{path}, line {line}: expected a name and a source")
        if seen.setdefault(name, line) != line:
            raise RosterError(f"{path}, line {line}: {name} is in line {seen[name]} already")
        local = path.absolute().parent / source
        yield Entry(name, source if _URL.match(source) else os.path.normpath(local))


def _expect_columns(path: Path, got: Iterable[str]) -> None:
    if missing := [column for column in COLUMNS if column not in got]:
        wanted, lacking = " and ".join(COLUMNS), " and no ".join(missing)
        raise RosterError(f"{path}: expected the columns {wanted}, found no {lacking}")
