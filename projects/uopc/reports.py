"""What `uopc compile` tells of a compilation: as a table, as diffs, as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from projects.uopc.nests import is_nest, kernel_lines, program_lines
from projects.uopc.show import Printer, difference, kernel_names
from week01_uops.node import UOp
from week01_uops.passes import Step
from week05_06_memory.schedule import show, to_json
from week05_06_memory.scheduling import Arranged

STYLES = {"+": "green", "-": "red", "@": "cyan", "⋮": "cyan"}

Form = Literal["nest", "uops"]
"""How a program is printed: as loop nests where it is nothing else, or as a list of uops."""


class Reporter:
    """Keeps every step of a compilation; with `diffs`, prints each pass that changed something.

    Attributes:
        steps: the passes so far.
        kernels: what the schedule pass did to each kernel; `arranged` is told.
    """

    def __init__(self, console: Console, *, diffs: bool, form: Form = "nest") -> None:
        self.console = console
        self.diffs = diffs
        self.form = form
        self.steps: list[Step] = []
        self.kernels: list[Arranged] = []
        self.printer = Printer()
        self.latest: list[str] = []
        self.latest_form: Form | None = None

    def __call__(self, step: Step) -> None:
        """Take note of a pass."""
        if self.diffs:
            self._show(step)
        self.steps.append(step)

    def arranged(self, done: Arranged) -> None:
        """Take note of a kernel's schedule."""
        self.kernels.append(done)

    def _form_of(self, program: UOp) -> Form:
        return "nest" if self.form == "nest" and is_nest(program) else "uops"

    def _lines(self, program: UOp, form: Form) -> list[str]:
        """The program in a form; nothing if it has none of that form."""
        if form == "uops":
            return self.printer.lines(program)
        return program_lines(program) if is_nest(program) else []

    def _show(self, step: Step) -> None:
        form = self._form_of(step.after)
        before = self.latest if form == self.latest_form else self._lines(step.before, form)
        changed = step.after is not step.before or form != self.latest_form
        self.latest = self._lines(step.after, form) if changed else before
        self.latest_form = form
        if self.latest == before and not step.trace.declined and step.of.name != "schedule":
            return
        self._print(f"── {step.of.name}: {step.of.about}", "bold")
        if form == "nest" and self.kernels and step.of.name == "schedule":
            self._show_schedules()
        else:
            self._show_difference(before, self.latest, form)
            self._show_rules(step)
        for (name, reason), node in step.trace.declined.items():
            about = f"{node.op.name} {node.dtype}{list(node.shape)}"
            self._print(f"   {name} declined at {about}: {reason}", "yellow")

    def _print(self, line: str, style: str) -> None:
        self.console.print(Text(line, style=style), soft_wrap=True)

    def _show_rules(self, step: Step) -> None:
        for name, count in step.trace.fired.most_common():
            if count:
                self._print(f"   {name} ×{count}", "dim")

    def _show_difference(self, before: list[str], after: list[str], form: Form) -> None:
        for line in difference(before, after, numbers=form == "uops"):
            self._print(line, STYLES.get(line[0], "dim"))

    def _show_schedules(self) -> None:
        """Each kernel, each step of its schedule with the reason and what it changed."""
        for done in self.kernels:
            lines = kernel_lines(done.before, done.kernel)
            self._print("\n".join(lines), "dim")
            body = done.before
            for place, item in enumerate(done.steps, 1):
                self._print(f"{place}. {show(item.step)}", "bold")
                if item.because:
                    self._print(f"   because: {item.because}", "yellow")
                body = item.step.apply(body)
                lines = self._changed(lines, body, done.kernel)
            if body is not done.after:
                self._print("then simplified", "bold")
                self._changed(lines, done.after, done.kernel)

    def _changed(self, before: list[str], body: UOp, kernel: str) -> list[str]:
        lines = kernel_lines(body, kernel)
        self._show_difference(before, lines, "nest")
        return lines

    def table(self) -> None:
        """Every pass with its level, time, and what it did; the kernels."""
        table = Table(box=None, header_style="bold")
        for name in ("pass", "level", "ms", "nodes", "what it did"):
            table.add_column(name, justify="right" if name in ("ms", "nodes") else "left")
        for step in self.steps:
            did = ", ".join(f"{name} ×{n}" for name, n in _counts(step).most_common(6) if n)
            table.add_row(
                step.of.name,
                step.of.level,
                f"{step.seconds * 1e3:.2f}",
                str(len(step.after.toposort())),
                did,
            )
        self.console.print(table)
        kernels = kernel_names(self.steps[-1].after)
        self.console.print(f"kernels: {len(kernels)}" + "".join(f"\n  {k}" for k in kernels))


def _counts(step: Step) -> Counter[str]:
    """What fired how often; of steps of schedules, how many of a sort."""
    if step.of.name != "schedule":
        return step.trace.fired
    found: Counter[str] = Counter()
    for name, count in step.trace.fired.items():
        found[name.split(" ", 1)[0]] += count
    return found


def as_json(
    steps: list[Step], source: str | None, kernels: Iterable[Arranged] = ()
) -> dict[str, Any]:
    """Kernels, schedules, passes, counts and times, for programs to read."""
    final = steps[-1].after
    names = kernel_names(final)
    return {
        "kernels": len(names),
        "kernel_names": names,
        "schedules": {done.kernel: schedule_json(done) for done in kernels},
        "nodes": len(final.toposort()),
        "ops": dict(sorted(Counter(n.op.name for n in final.toposort()).items())),
        "seconds": sum(step.seconds for step in steps),
        "passes": [_pass_json(step) for step in steps],
        **({"source": source} if source is not None else {}),
    }


def schedule_json(done: Arranged) -> list[dict[str, Any]]:
    """A kernel's schedule as it stands in a file, without the reasons."""
    rows: list[dict[str, Any]] = to_json(item.step for item in done.steps)
    return rows


def _pass_json(step: Step) -> dict[str, Any]:
    return {
        "name": step.of.name,
        "level": step.of.level,
        "seconds": step.seconds,
        "nodes": len(step.after.toposort()),
        "changed": step.after is not step.before,
        "rules": {name: count for name, count in step.trace.fired.items() if count},
        "declined": [
            {"rule": name, "reason": reason, "op": node.op.name}
            for (name, reason), node in step.trace.declined.items()
        ],
    }
