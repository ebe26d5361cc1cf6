"""The fenced blocks of the syllabus, and what the reference says that they should hold.

A block ```uops that starts with its header is a program. A block that follows it is derived from
it, as the words behind the fence say; a line `…` in it stands for any lines left out:

    uops simplified       the graph that `simplify` gives
    uops loop, kernel     the listing of `uopc compile --ir`
    c, c unit             the kernels of the C text, or all of it
    text vv               what `uopc compile -vv` prints
    text nest             the tile level as loop nests; nest loop, the loop level; nest kernel, one
    text explain          what `uopc explain` prints, from the roles to the tiles
    text refusal          why the schedule is refused
    text eval             what `uopc eval` prints (no inputs)
    uops grad 0,2         what `uopc grad --wrt 0,2` gives; blocks after it are derived from that
    uops refused E401 3   a wrong program: a code, or how it begins, and the line

The path of a program file as the last word takes that program instead of the last one shown. A
block ```json schedule arranges the kernels of the program before it. From week 5 on all is for the
machine of `syllabus/machine.json`.
`UPDATE_EXAMPLES=1 pytest tests/syllabus` writes derived blocks without `…` anew.
"""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from projects.uopc.explaining import Explainer
from projects.uopc.nests import program_lines
from projects.uopc.reports import Reporter
from projects.uopc.show import Printer
from projects.uopc.weeks import LATEST, SCHEDULE, WEEKS
from week01_uops.interchange import read, write
from week01_uops.node import UOp
from week01_uops.reference import Reference
from week04_fusion.evaluate import evaluate
from week05_06_memory.compiler import compiler_for
from week05_06_memory.explain import Explanation
from week05_06_memory.machine import Machine
from week05_06_memory.nests import ScheduleError
from week05_06_memory.schedule import read as read_schedules
from week05_06_memory.scheduling import Arranged, scheduled
from week07_08_gpu.compiler import compiler_for as threaded_for

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((ROOT / "syllabus").rglob("*.md"))
MACHINE = Machine.from_json((ROOT / "syllabus/machine.json").read_text(encoding="utf-8"))
LEFT_OUT = "…"
_FENCE = re.compile(r"^```(\S.*)?$")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: the file.
        week: the page's, or the latest.
        first: the index of its first line in the page.
        words: behind the fence.
        lines: inside.
        program: the text that it is derived from, or its own.
        schedule: the file of schedules that was shown since the program.
    """

    page: Path
    week: int
    first: int
    words: tuple[str, ...]
    lines: tuple[str, ...]
    program: str
    schedule: str = "{}"

    @property
    def name(self) -> str:
        """For the list of tests."""
        return f"{self.page.name}:{self.first} {' '.join(self.words)}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def is_program(self) -> bool:
        return self.words in (("uops",), ("text",)) and is_program(self.lines)

    @property
    def is_derived(self) -> bool:
        kind = "c" if self.words[0] == "c" else " ".join(self.words[1:2])
        return self.page.name != "spec.md" and kind in DERIVED


def is_program(lines: tuple[str, ...]) -> bool:
    return bool(lines) and lines[0].split("#")[0].split() == ["uops", "1"]


def week_of(page: Path) -> int:
    found = re.fullmatch(r"week(\d\d)(?:_\d\d)?\.md", page.name)
    return int(found[1]) if found else LATEST


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    program, schedule, at = "", "{}", 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        at += 1
        if fence is None:
            continue
        end = next(i for i in range(at, len(lines)) if lines[i] == "```")
        words, inside = tuple((fence[1] or "text").split()), tuple(lines[at:end])
        if words in (("uops",), ("text",)) and is_program(inside):
            program, schedule = "\n".join(inside) + "\n", "{}"
        if words == ("json", "schedule"):
            schedule = "\n".join(inside)
        block = Block(page, week_of(page), at, words, inside, program, schedule)
        if words[:2] == ("uops", "grad"):
            program, schedule = "\n".join([*differentiated(block), ""]), "{}"
        if "/" in words[-1]:
            named = (ROOT / words[-1]).read_text(encoding="utf-8")
            block = replace(block, program=named, schedule="{}")
        yield block
        at = end + 1


def parsed(text: str, week: int) -> UOp:
    return read(text, file="<page>", ops=WEEKS[LATEST].ops, week=week)


def reference(block: Block, tell: Callable[[Arranged], None] = lambda done: None) -> Reference:
    """The compiler of the page's week; from week 5 on for MACHINE, with the block's schedule."""
    week = WEEKS[block.week]
    if not week.has_schedules:
        return week.reference
    made = (compiler_for if block.week < 7 else threaded_for)(MACHINE)
    old = made.pipeline.passes[made.pipeline.index(SCHEDULE)]
    given = read_schedules(block.schedule)
    new = replace(old, run=scheduled(MACHINE, given, tell, week.planner))
    return replace(made, pipeline=made.pipeline.replace_pass(SCHEDULE, new))


def lowered(block: Block, level: str) -> UOp:
    """The program at a level."""
    return reference(block).pipeline.run(parsed(block.program, block.week), until=level)


def simplified(block: Block) -> list[str]:
    program = parsed(block.program, block.week)
    return write(WEEKS[block.week].reference.simplify(program)).splitlines()


def listed(block: Block) -> list[str]:
    return ["uops 1", *Printer().lines(lowered(block, block.words[1]))]


def nested(block: Block) -> list[str]:
    lines = program_lines(lowered(block, "loop" if "loop" in block.words else "tile"))
    return lines[: lines.index("")] if "kernel" in block.words else lines


def refused(block: Block) -> list[str]:
    try:
        lowered(block, "tile")
    except ScheduleError as refusal:
        return [str(refusal)]
    return ["nothing is refused"]


def emitted(block: Block) -> list[str]:
    program = parsed(block.program, block.week)
    lines = reference(block).compile(program, "c").source.splitlines()
    if "unit" in block.words:
        return lines
    start = next(i for i, line in enumerate(lines) if line.startswith("/* k0"))
    ends = (i for i, line in enumerate(lines) if re.match(r"(void|size_t) program", line))
    return _stripped(lines[start : next(ends)])


def differentiated(block: Block) -> list[str]:
    slots = [int(slot) for slot in block.words[2].split(",")]
    program = parsed(block.program, block.week)
    return write(WEEKS[block.week].reference.grad(program, slots)).splitlines()


def _stripped(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def explained(block: Block) -> list[str]:
    page = io.StringIO()
    reporter = Reporter(Console(file=page, width=1000, highlight=False), diffs=True)
    pipeline = reference(block, reporter.arranged).pipeline
    pipeline.run(parsed(block.program, block.week), [reporter])
    return page.getvalue().splitlines()


def reasoned(block: Block) -> list[str]:
    page, kernels = io.StringIO(), list[Arranged]()
    pipeline = reference(block, kernels.append).pipeline
    pipeline.run(parsed(block.program, block.week), until="tile")
    explainer = Explainer(Console(file=page, width=1000, highlight=False))
    for done in kernels:
        explainer.kernel(Explanation(done, MACHINE))
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return _stripped(lines[lines.index("Who moves with which loop") : lines.index("The schedule")])


def evaluated(block: Block) -> list[str]:
    lines = []
    for number, array in enumerate(evaluate(parsed(block.program, block.week), {})):
        lines.append(f"output {number}: {array.dtype}{list(array.shape)}")
        lines += np.array2string(array, threshold=200).splitlines()
    return lines


DERIVED = {
    "c": emitted,
    "simplified": simplified,
    "loop": listed,
    "kernel": listed,
    "vv": explained,
    "nest": nested,
    "explain": reasoned,
    "refusal": refused,
    "eval": evaluated,
    "grad": differentiated,
}


def derived(block: Block) -> list[str]:
    """What the block should hold."""
    return DERIVED["c" if block.words[0] == "c" else block.words[1]](block)


def missing(block: Block, wanted: list[str]) -> list[str]:
    """The first run of lines that does not stand in `wanted`, after those before it."""
    if LEFT_OUT not in [line.strip() for line in block.lines]:
        return [] if list(block.lines) == wanted else wanted
    at = 0
    for run in _runs(block.lines):
        found = next((i for i in range(at, len(wanted)) if wanted[i : i + len(run)] == run), None)
        if found is None:
            return run
        at = found + len(run)
    return []


def _runs(lines: tuple[str, ...]) -> Iterator[list[str]]:
    run: list[str] = []
    for line in [*lines, LEFT_OUT]:
        if line.strip() != LEFT_OUT:
            run.append(line)
        elif run:
            yield run
            run = []


def renewed(page: Path) -> str:
    """The page with its derived blocks written anew, but for those that leave lines out."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in reversed(list(blocks(page))):
        if block.is_derived and LEFT_OUT not in [line.strip() for line in block.lines]:
            lines[block.first : block.first + len(block.lines)] = derived(block)
    return "\n".join(lines) + "\n"
