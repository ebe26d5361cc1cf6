"""The ladder: a matrix product from loops as written to packed tiles, a few steps a rung.

    python -m grader.bench.ladder                    the table of syllabus/week05_06.md
    python -m grader.bench.ladder --out FOLDER       and each rung's schedule, for `uopc`

All rungs are measured in turn, with one thread; every result is checked. Before each sample the
peak of multiply-adds is measured, and a rung's part of it is the median over the rounds. The C
compiler's own vectorizer is turned off, so that the rungs show what the schedule does; the last
line says what that vectorizer makes of the loops as written.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from grader.bench.compare import machine as described
from grader.bench.compare import versions
from grader.bench.contenders import Ours
from grader.bench.contractions import gemm
from grader.bench.timing import Measurement, Plan, undisturbed
from grader.bench.workload import Array, Workload
from week01_uops.dtypes import float32
from week01_uops.interchange import write
from week02_render.buffers import aligned_empty
from week02_render.cache import ObjectCache
from week02_render.library import Library
from week02_render.runtime import build
from week02_render.toolchain import find_toolchain
from week05_06_memory.compiler import compiler_for
from week05_06_memory.machine import Machine, detect
from week05_06_memory.probe import source_for
from week05_06_memory.schedule import Schedule, from_json, to_json

SIZE = 1024
BUDGET = 600.0
"""Seconds after which no round begins."""

WINDOWS = 8
"""Short measurements of the peak; the best one counts."""

ROWS = 6
"""Rows of the register tile."""

Steps = list[dict[str, Any]]


class Beside(Ours):
    """A program of this compiler; what the machine can do is measured before each sample."""

    def __init__(self, *given: Any, machine: Machine) -> None:  # noqa: ANN401 - as Ours takes them
        super().__init__(*given)
        content = build(source_for(machine.vector_bytes), ObjectCache(), find_toolchain())
        self._library = Library(content)
        self._probe = self._library.symbol("probe_peak", "double (*)(void)")
        self.peaks: list[float] = []

    def take(self) -> None:
        """Note the peak, too."""
        super().take()
        self.peaks.append(max(self._probe() for _ in range(WINDOWS)))


@dataclass(frozen=True)
class Rung:
    """A schedule, and what is new in it."""

    name: str
    schedule: Schedule
    vectorizer: bool = False

    def contender(self, workload: Workload, inputs: list[Array], machine: Machine) -> Beside:
        """The workload with this schedule."""
        tool = find_toolchain()
        if not self.vectorizer:
            tool = replace(tool, flags=(*tool.flags, "-fno-tree-vectorize"))
        compiler = compiler_for(machine, {"*": self.schedule})
        return Beside(workload, inputs, compiler, tool, machine=machine)


def _step(name: str, **values: object) -> dict[str, Any]:
    return {"step": name, **values}


def _split(name: int, by: int, outer: int, inner: int) -> dict[str, Any]:
    return _step("split", range=name, by=by, into=[outer, inner])


def _kinds(vector: int, *unrolled: int) -> Steps:
    copies = [_step("kind", range=name, kind="unroll") for name in unrolled]
    return [*copies, _step("kind", range=vector, kind="vector")]


def rungs(machine: Machine) -> Iterator[Rung]:
    """From the loops as written; the ranges are 0 and 1 over the results, 2 over the sum."""
    lanes = machine.vector_bytes // 4
    vectors = (machine.vector_registers - 2) // (ROWS + 1)
    hoisted = [_step("hoist", range=2, over=[1])]
    tiles = [_split(0, ROWS, 3, 4), _split(1, vectors * lanes, 5, 6), _split(6, lanes, 7, 8)]
    rows_outside, columns_outside = (
        [*tiles, _step("reorder", order=[*loops, 4, 7, 8])] for loops in ((3, 5), (5, 3))
    )
    tile = _kinds(8, 4, 7)
    packed = [*columns_outside, _step("stage", slot=1, at=5), *tile]
    found: Mapping[str, Steps] = {
        "as written: i, j, k": [],
        "hoist: k outside of j": hoisted,
        f"j in vectors of {lanes}": [*hoisted, _split(4, lanes, 5, 6), *_kinds(6)],
        f"sums in registers: {ROWS} × {vectors * lanes}": [*rows_outside, *tile],
        "columns outside of rows": [*columns_outside, *tile],
        "columns of B packed": packed,
        "packed in vectors": [*packed, _split(10, lanes, 11, 12), *_kinds(12, 11)],
    }
    for name, steps in found.items():
        yield Rung(name, from_json(steps))
    yield Rung("as written, by the C compiler's vectorizer", (), vectorizer=True)


def measure(workload: Workload, found: list[Rung], machine: Machine, plan: Plan) -> list[float]:
    """Each rung's part of the peak of one core.

    Raises:
        ValueError: a rung's result is wrong, or it cannot be compiled.
    """
    inputs = [aligned_empty(shape, float32) for shape in workload.shapes]
    contenders = {rung.name: rung.contender(workload, inputs, machine) for rung in found}
    drawn = [workload.draw(seed) for seed in range(plan.sets)]
    answers = [(arrays, workload.answer(arrays)) for arrays in drawn]
    measurement = Measurement(contenders, inputs, answers)
    measurement.calibrate()
    rounds = measurement.rounds(plan)
    for name, fault in measurement.faults.items():
        raise ValueError(f"{name}: {fault}") from fault
    counted = [number for number, done in enumerate(rounds) if done in undisturbed(rounds)]
    return [
        statistics.median(
            workload.flops / rounds[number].seconds[name] / one.peaks[1 + number]
            for number in counted
        )
        for name, one in contenders.items()
    ]


def write_files(workload: Workload, found: list[Rung], folder: Path) -> None:
    """`gemm.uop` and, of each rung, a file for `uopc compile --schedule`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gemm.uop").write_text(write(workload.program), encoding="utf-8")
    for number, rung in enumerate(found, 1):
        rows = ",\n  ".join(json.dumps(row) for row in to_json(rung.schedule))
        text = f'{{"*": [\n  {rows}\n]}}\n'
        (folder / f"rung{number}.json").write_text(text, encoding="utf-8")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", type=click.IntRange(min=64), default=SIZE, show_default=True)
@click.option("--first", type=click.IntRange(min=1), default=1, help="The first rung measured.")
@click.option("--rounds", type=click.IntRange(min=1), default=Plan.rounds, show_default=True)
@click.option("--json", "json_report", is_flag=True, help="Print plain data.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="For schedules.")
def main(size: int, first: int, rounds: int, json_report: bool, out: Path | None) -> None:
    """Measure a matrix product on one core, from loops as written to packed tiles."""
    target, workload = detect(), gemm("gemm", size, size, size)
    found = list(rungs(target))
    if out is not None:
        write_files(workload, found, out)
    try:
        shares = measure(workload, found[first - 1 :], target, Plan(rounds, BUDGET))
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    rows = list(zip(found[first - 1 :], shares, strict=True))
    if json_report:
        told = [{"rung": r.name, "peak": s, "schedule": to_json(r.schedule)} for r, s in rows]
        report = {"machine": described(), "versions": versions([]), "size": size, "rungs": told}
        click.echo(json.dumps(report, indent=1))
        return
    for number, (rung, share) in enumerate(rows, first):
        click.echo(f"{number}  {rung.name:44}{100 * share:5.1f} %")
    click.echo(f"of the peak of one core, {size}³, {rounds} rounds; {target.describe()}")


if __name__ == "__main__":
    main()
