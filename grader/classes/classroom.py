"""A class, graded: take in, grade what is new or changed, and go on whatever one of them does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from grader.classes.grading import Backend
from grader.classes.intake import folder_name, take_in
from grader.classes.roster import Entry, shown
from grader.classes.store import Store
from grader.classes.task import Event, Manner, Outcome, Task, key
from grader.classes.unpack import Refused

ATTEMPTS = 3
"""How often a submission is graded whose process or machine is lost, before the fault is ours."""

TAKERS = 4


class Watcher(Protocol):
    """Who sees a class being graded."""

    def taken(self, done: int, total: int) -> None:
        """So many are read."""

    def planned(self, kept: int, open_: int) -> None:
        """So many grades are known already, so many are to be found."""

    def event(self, name: str, event: Event) -> None:
        """Something was heard of a submission."""


@dataclass(frozen=True)
class Taken:
    """A submission in its folder, or why it is not; the key of its grade."""

    entry: Entry
    name: str
    folder: Path
    key: str
    refused: str = ""


@dataclass
class Classroom:
    """One run over a class."""

    entries: Sequence[Entry]
    manner: Manner
    store: Store
    folder: Path
    force: bool = False

    def grade(self, open_backend: Callable[[], Backend], watcher: Watcher) -> int:
        """Grade all that has no grade yet; how many that were."""
        self.fingerprint = self.manner.fingerprint()
        taken: list[Taken] = []
        for number, one in enumerate(self._taken(), 1):
            taken.append(one)
            watcher.taken(number, len(self.entries))
        week, store = self.manner.week, self.store
        todo = [t for t in taken if self.force or not store.holds(week, t.name, t.key)]
        watcher.planned(len(taken) - len(todo), len(todo))
        for one in todo:
            store.begin(week, one.name, one.entry.source, one.key)
        for one in [t for t in todo if t.refused]:
            store.end(week, one.name, Outcome.REFUSED, one.refused, 0.0)
            watcher.event(one.name, _end(Outcome.REFUSED, one.refused))
        self._grade({t.name: t for t in todo if not t.refused}, open_backend, watcher)
        return len(todo)

    def _taken(self) -> Iterator[Taken]:
        with ThreadPoolExecutor(TAKERS) as pool:
            yield from pool.map(self._take, self.entries)

    def _take(self, entry: Entry) -> Taken:
        name = shown(entry.name)
        folder = self.folder / "submissions" / folder_name(entry.name)
        try:
            content, refused = take_in(entry, folder), ""
        except Refused as why:
            content = refused = str(why)
        except Exception as error:  # one that breaks our reader must not keep others from a grade
            content = refused = f"cannot be taken in: {type(error).__name__}: {shown(str(error))}"
        return Taken(entry, name, folder, key(content, self.fingerprint), refused)

    def _grade(
        self, todo: dict[str, Taken], open_backend: Callable[[], Backend], watcher: Watcher
    ) -> None:
        if not todo:
            return
        backend = open_backend()
        try:
            for one in todo.values():
                backend.submit(Task(one.name, str(one.folder), self.manner))
            left = set(todo)
            while left:
                task, event = backend.next()
                if event["event"] == "lost":
                    event = self._lost(todo[task.name], task, event, backend)
                self._write(task.name, event)
                watcher.event(task.name, event)
                if event["event"] == "end":
                    left.discard(task.name)
        finally:
            backend.close()

    def _lost(self, one: Taken, task: Task, event: Event, backend: Backend) -> Event:
        """Try again with a fresh copy, or say that the fault is ours."""
        if task.attempt >= ATTEMPTS:
            return _end(Outcome.GRADER, f"{event['message']}; tried {task.attempt} times")
        again = task.again()
        fresh = self._take(one.entry)
        if fresh.key != one.key:
            return _end(Outcome.GRADER, "the submission changed while it was graded; grade again")
        self.store.begin(task.manner.week, one.name, one.entry.source, one.key, again.attempt)
        backend.submit(again)
        return event

    def _write(self, name: str, event: Event) -> None:
        week = self.manner.week
        if event["event"] == "end":
            outcome, message = Outcome(event["outcome"]), event["message"]
            self.store.end(week, name, outcome, message, event.get("seconds", 0.0))
        else:
            self.store.take(week, name, event)


def _end(outcome: Outcome, message: str) -> Event:
    return {"event": "end", "outcome": outcome, "message": message, "seconds": 0.0}


@dataclass(frozen=True)
class Pace:
    """How fast a run was: submissions graded, and seconds by the clock."""

    graded: int
    seconds: float

    @property
    def hourly(self) -> float:
        """Submissions an hour."""
        return 3600 * self.graded / self.seconds if self.seconds else 0.0


def timed(run: Callable[[], int]) -> Pace:
    """The pace of a run that returns how many it graded."""
    start = time.monotonic()
    graded = run()
    return Pace(graded, time.monotonic() - start)
