"""What `uopc compile` tells of a compilation: as a table, as diffs, as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from projects.uopc.show import Printer, difference, kernel_names
from week01_uops.passes import Step

STYLES = {"+": "green", "-": "red", "@": "cyan"}


class Reporter:
    """Keeps every step of a compilation; with `diffs`, prints each pass that changed something."""

    def __init__(self, console: Console, *, diffs: bool) -> None:
        self.console = console
        self.diffs = diffs
        self.steps: list[Step] = []
        self.printer = Printer()
        self.latest: list[str] = []

    def __call__(self, step: Step) -> None:
        """Take note of a pass."""
        if self.diffs:
            self._show(step)
        self.steps.append(step)

    def _show(self, step: Step) -> None:
        self.console.print(Text(f"── {step.of.name}: {step.of.about}", style="bold"))
        before = self.printer.lines(step.before) if not self.steps else self.latest
        self.latest = self.printer.lines(step.after) if step.after is not step.before else before
        for line in difference(before, self.latest):
            self.console.print(Text(line, style=STYLES.get(line[0], "dim")))
        for name, count in step.trace.fired.most_common():
            if count:
                self.console.print(Text(f"   {name} ×{count}", style="dim"))
        for (name, reason), node in step.trace.declined.items():
            about = f"{node.op.name} {node.dtype}{list(node.shape)}"
            self.console.print(Text(f"   {name} declined at {about}: {reason}", style="yellow"))

    def table(self) -> None:
        """Every pass with its level, time, and what it did; the kernels."""
        table = Table(box=None, header_style="bold")
        for name in ("pass", "level", "ms", "nodes", "what it did"):
            table.add_column(name, justify="right" if name in ("ms", "nodes") else "left")
        for step in self.steps:
            did = ", ".join(f"{name} ×{n}" for name, n in step.trace.fired.most_common(6) if n)
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


def as_json(steps: list[Step], source: str | None) -> dict[str, Any]:
    """Kernels, passes, counts and times, for programs to read."""
    final = steps[-1].after
    names = kernel_names(final)
    return {
        "kernels": len(names),
        "kernel_names": names,
        "nodes": len(final.toposort()),
        "ops": dict(sorted(Counter(n.op.name for n in final.toposort()).items())),
        "seconds": sum(step.seconds for step in steps),
        "passes": [_pass_json(step) for step in steps],
        **({"source": source} if source is not None else {}),
    }


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
