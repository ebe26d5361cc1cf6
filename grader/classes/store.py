"""What is known of a class, in SQLite: a row a submission and a row a test, as soon as known.

A submission whose row has no outcome was not graded to its end; it is then graded from its
beginning, so that a run that was killed and resumed ends with the grades of one that was not.
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.classes.roster import is_seen
from grader.classes.scored import points
from grader.classes.task import Event, Outcome

LONGEST = 4000
"""Characters of a text that are kept."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS submission (
    week INTEGER, name TEXT, source TEXT, key TEXT, outcome TEXT, message TEXT, attempts INTEGER,
    earned REAL, most REAL, open REAL, seconds REAL DEFAULT 0, build_seconds REAL DEFAULT 0,
    PRIMARY KEY (week, name));
CREATE TABLE IF NOT EXISTS test (
    week INTEGER, name TEXT, test TEXT, outcome TEXT, seconds REAL, sentence TEXT, verdict TEXT,
    failure TEXT, message TEXT, PRIMARY KEY (week, name, test));
CREATE TABLE IF NOT EXISTS gate (
    week INTEGER, name TEXT, "case" TEXT, threads INTEGER, outcome TEXT, credit REAL, ratio REAL,
    low REAL, high REAL, message TEXT, PRIMARY KEY (week, name, "case", threads));
CREATE TABLE IF NOT EXISTS printed (
    week INTEGER, name TEXT, program TEXT, answer TEXT, PRIMARY KEY (week, name, program));
CREATE TABLE IF NOT EXISTS spent (
    week INTEGER, name TEXT, seconds REAL, own REAL, processor REAL, PRIMARY KEY (week, name));
"""
PARTS = ("test", "gate", "printed", "spent")
GRADES = """
SELECT s.name, s.outcome, s.message, s.earned, s.most, s.open,
    coalesce(t.tests, 0), coalesce(t.passed, 0), coalesce(t.failed, 0), coalesce(t.skipped, 0),
    coalesce(g.gates, 0), coalesce(g.credit, 0), s.seconds, s.build_seconds, coalesce(p.seconds, 0),
    coalesce(p.own, 0), coalesce(p.processor, 0)
FROM submission s
LEFT JOIN (SELECT week, name, count(*) tests, sum(outcome = 'passed') passed,
        sum(outcome IN ('failed', 'error')) failed, sum(outcome = 'skipped') skipped
    FROM test GROUP BY week, name) t ON t.week = s.week AND t.name = s.name
LEFT JOIN (SELECT week, name, count(*) gates, sum(credit) credit
    FROM gate GROUP BY week, name) g ON g.week = s.week AND g.name = s.name
LEFT JOIN spent p ON p.week = s.week AND p.name = s.name
WHERE s.week = ? AND s.outcome IS NOT NULL
"""


class StoreError(Exception):
    """The file of results cannot be used; one sentence says why."""


@dataclass(frozen=True)
class Grade:
    """What a submission earned.

    Attributes:
        earned: points, of `most`; `open` are those that nothing was judged for.
        tests: those that should run; 0 if it did not come to that.
        seconds: from the start of its process to the end.
        build_seconds: of the build; `program_seconds` those of all its processes, the build's too.
        own_seconds: of the grader, waiting for the machine and gates included; `processor` so many
            it computed.
    """

    name: str
    outcome: Outcome
    message: str
    earned: float
    most: float
    open: float
    tests: int
    passed: int
    failed: int
    skipped: int
    gates: int
    credit: float
    seconds: float
    build_seconds: float
    program_seconds: float
    own_seconds: float
    processor: float

    @property
    def score(self) -> float:
        """From 0 to 1."""
        return self.earned / self.most if self.most else 0.0


class Store:
    """The file of results; one process at a time writes it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise StoreError(f"another run is writing to {folder}") from None
        path = folder / "class.sqlite"
        self._base = sqlite3.connect(path, isolation_level=None)
        try:
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = NORMAL")
            self._base.executescript(SCHEMA)
        except sqlite3.DatabaseError as error:
            self.close()
            raise StoreError(f"{path} is no file of results: {error}") from None

    def close(self) -> None:
        """Let others in."""
        self._base.close()
        self._lock.close()

    def holds(self, week: int, name: str, key: str) -> bool:
        """Whether there is a grade of this very content, and it is no fault of ours."""
        row = self._base.execute(
            "SELECT key, outcome FROM submission WHERE week = ? AND name = ?", (week, name)
        ).fetchone()
        return row is not None and row[0] == key and row[1] not in (None, Outcome.GRADER)

    def begin(self, week: int, name: str, source: str, key: str, attempt: int = 1) -> None:
        """Forget what was known of a submission: it is graded from its beginning."""
        with self._base:
            self._base.execute("BEGIN")
            for table in PARTS:
                self._base.execute(f"DELETE FROM {table} WHERE week = ? AND name = ?", (week, name))
            self._insert(
                "submission", week=week, name=name, source=source, key=key, attempts=attempt
            )

    def take(self, week: int, name: str, event: Event) -> None:
        """Write down what `one` told."""
        kind = event["event"]
        if kind == "collected":
            with self._base:
                self._base.execute("BEGIN")
                for test in event["tests"]:
                    self._insert("test", week=week, name=name, test=test)
        elif kind == "built":
            self._update(week, name, build_seconds=event["seconds"])
        elif kind == "result":
            failure = event["failure"] or {}
            fields = {k: event[k] for k in ("test", "outcome", "seconds", "sentence", "message")}
            found = {"verdict": failure.get("verdict"), "failure": failure.get("id")}
            self._insert("test", week=week, name=name, **fields, **found)
        elif kind == "gate":
            kept = ("case", "threads", "outcome", "credit", "ratio", "low", "high", "message")
            self._insert("gate", week=week, name=name, **{k: event[k] for k in kept})
        elif kind == "printed":
            answer = {k: event[k] for k in ("program", "answer")}
            self._insert("printed", week=week, name=name, **answer)
        elif kind == "spent":
            spent = {k: event[k] for k in ("seconds", "own", "processor")}
            self._insert("spent", week=week, name=name, **spent)

    def end(self, week: int, name: str, outcome: Outcome, message: str, seconds: float) -> None:
        """The submission has its outcome; from now on its row counts."""
        tests = self._rows("test, outcome, verdict FROM test", week, name)
        gates = self._rows('"case", threads, outcome, credit FROM gate', week, name)
        ended = {"outcome": outcome, "message": message, "seconds": seconds}
        self._update(week, name, **ended, **asdict(points(week, tests, gates)))

    def grades(self, week: int, names: Sequence[str]) -> list[Grade]:
        """The grades of these submissions that have one, in this order."""
        rows = {row[0]: row for row in self._base.execute(GRADES, (week,))}
        found = [rows[clean(name)] for name in names if clean(name) in rows]
        return [Grade(row[0], Outcome(row[1]), *row[2:]) for row in found]

    def printed(self, week: int, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Name → program → what the compiler answered, as a hash."""
        found: dict[str, dict[str, str]] = {name: {} for name in names}
        query = "SELECT name, program, answer FROM printed WHERE week = ? AND answer IS NOT NULL"
        for name, program, answer in self._base.execute(query, (week,)):
            if name in found:
                found[name][program] = answer
        return found

    def _rows(self, what: str, week: int, name: str) -> list[Any]:
        query = f"SELECT {what} WHERE week = ? AND name = ? ORDER BY rowid"
        return self._base.execute(query, (week, name)).fetchall()

    def _insert(self, table: str, **fields: Any) -> None:  # noqa: ANN401 - what SQLite holds
        columns = ", ".join(f'"{column}"' for column in fields)
        places = ", ".join("?" * len(fields))
        command = f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({places})"
        self._base.execute(command, [_plain(value) for value in fields.values()])

    def _update(self, week: int, name: str, **fields: Any) -> None:  # noqa: ANN401
        changes = ", ".join(f"{column} = ?" for column in fields)
        values = [_plain(value) for value in fields.values()]
        self._base.execute(
            f"UPDATE submission SET {changes} WHERE week = ? AND name = ?", [*values, week, name]
        )


def _plain(value: Any) -> Any:  # noqa: ANN401
    return clean(value) if isinstance(value, str) else value


def clean(text: str) -> str:
    """A text without what a terminal would obey or a database refuse, and not too long."""
    kept = "".join(c if c in "\n\t" or is_seen(c) else "\N{REPLACEMENT CHARACTER}" for c in text)
    return kept if len(kept) <= LONGEST else f"{kept[: LONGEST - 1]}…"
