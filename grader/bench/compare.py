"""A suite measured against libraries: rows, a table, JSON, plots."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.bench import table
from grader.bench.row import Row, geomeans
from grader.bench.runner import run
from grader.bench.suites import SUITES
from grader.bench.timing import Plan
from grader.bench.worker import Job
from week02_render.toolchain import BuildError, find_toolchain
from week05_06_memory.machine import detect

PACKAGES = {"numpy": "numpy", "torch": "torch", "compile": "torch", "tinygrad": "tinygrad"}


@dataclass
class Comparison:
    """The rows of a suite."""

    suite: str
    threads: Sequence[int]
    against: Sequence[str]
    rows: list[Row] = field(default_factory=list)

    def of(self, threads: int) -> list[Row]:
        """The rows with so many threads."""
        return [row for row in self.rows if row.threads == threads]

    def json(self) -> dict[str, Any]:
        """As in the file of results."""
        return {
            "suite": self.suite,
            "machine": machine(),
            "versions": versions(self.against),
            "rows": [row.json() for row in self.rows],
            "geomean": {str(count): geomeans(self.of(count)) for count in self.threads},
        }

    def write(self, path: Path) -> None:
        """The JSON."""
        path.write_text(json.dumps(self.json(), indent=1) + "\n", encoding="utf-8")

    def measure(
        self, cases: Sequence[str], plan: Plan, console: Console, path: Path | None = None
    ) -> None:
        """Measure all, show progress, and write the JSON after every row."""
        job = Job(self.suite, tuple(cases), tuple(self.against), plan)
        with table.progress(console) as bar:
            task = bar.add_task("", total=len(cases) * len(self.threads))
            for count in self.threads:
                for event in run(job, count):
                    if isinstance(event, str):
                        bar.update(task, description=f"{event}, {count} threads")
                        continue
                    self.rows.append(event)
                    bar.advance(task)
                    if path is not None:
                        self.write(path)
                    if not console.is_terminal:
                        console.print(table.line(event), soft_wrap=True)

    def show(self, console: Console) -> None:
        """Tables and remarks."""
        for count in self.threads:
            console.print(table.table(self.of(count), self.against))
            console.print(table.standing(self.of(count)), markup=False, soft_wrap=True)
        growth = table.growth(self.rows) if self.suite == "scaling" else []
        for remark in [*growth, *table.remarks(self.rows)]:
            console.print(remark, markup=False, highlight=False, soft_wrap=True)
        made = ", ".join(f"{key} {value}" for key, value in versions(self.against).items())
        console.print(
            f"{_processor()}; {detect().describe()}\n{made}", style="dim", highlight=False
        )


def choose(suite: str, only: str) -> list[str]:
    """The names of the cases in which the pattern is found.

    Raises:
        ValueError: there are none, and there are others; or it is no pattern.
    """
    names = [workload.name for workload in SUITES[suite]()]
    try:
        found = [name for name in names if re.search(only, name)]
    except re.error as error:
        raise ValueError(f"{only} is no pattern: {error}") from None
    if not found:
        raise ValueError(f"expected a pattern found in one of {', '.join(names)}, got {only}")
    return found


def machine() -> dict[str, Any]:
    """The machine, for the record."""
    found = asdict(detect().measured())
    return {"processor": _processor(), **found, "rates": dict(found["rates"])}


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    match = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    return match[1] if match else platform.processor() or platform.machine()


def versions(against: Sequence[str]) -> dict[str, str]:
    """What was measured, for the record."""
    found = {"python": platform.python_version()}
    for name in dict.fromkeys(PACKAGES.get(name, name) for name in against):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    try:
        found["compiler"] = find_toolchain().version
    except BuildError as error:
        found["compiler"] = str(error)
    return found
