"""The fenced blocks of the syllabus, and what the reference says that they should hold.

A block ```uops that starts with its header is a program. A block that follows it is derived from
it, as the words behind the fence say; a line `…` in it stands for any lines left out:

    uops simplified       the graph that `simplify` gives
    uops loop, kernel     the listing of `uopc compile --ir`
    c, c unit             the kernels of the C text, or all of it
    text vv               what `uopc compile -vv` prints
    text eval             what `uopc eval` prints (no inputs)
    uops refused E401 3   a wrong program: a code, or how it begins, and the line

The path of a program file as the last word takes that program instead of the last one shown.
`UPDATE_EXAMPLES=1 pytest tests/syllabus` writes derived blocks without `…` anew.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from projects.uopc.reports import Reporter
from projects.uopc.show import Printer
from projects.uopc.weeks import LATEST, WEEKS
from week01_uops.interchange import read, write
from week01_uops.node import UOp
from week04_fusion.evaluate import evaluate

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((ROOT / "syllabus").glob("*.md"))
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
    """

    page: Path
    week: int
    first: int
    words: tuple[str, ...]
    lines: tuple[str, ...]
    program: str

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
    found = re.fullmatch(r"week(\d\d)\.md", page.name)
    return int(found[1]) if found else LATEST


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    program, at = "", 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        at += 1
        if fence is None:
            continue
        end = next(i for i in range(at, len(lines)) if lines[i] == "```")
        words, inside = tuple((fence[1] or "text").split()), tuple(lines[at:end])
        if words in (("uops",), ("text",)) and is_program(inside):
            program = "\n".join(inside) + "\n"
        named = (ROOT / words[-1]).read_text(encoding="utf-8") if "/" in words[-1] else program
        yield Block(page, week_of(page), at, words, inside, named)
        at = end + 1


def parsed(text: str, week: int) -> UOp:
    return read(text, file="<page>", ops=WEEKS[LATEST].ops, week=week)


def simplified(block: Block) -> list[str]:
    program = parsed(block.program, block.week)
    return write(WEEKS[block.week].reference.simplify(program)).splitlines()


def listed(block: Block) -> list[str]:
    program = parsed(block.program, block.week)
    lowered = WEEKS[block.week].pipeline.run(program, until=block.words[1])
    return ["uops 1", *Printer().lines(lowered)]


def emitted(block: Block) -> list[str]:
    program = parsed(block.program, block.week)
    lines = WEEKS[block.week].reference.compile(program, "c").source.splitlines()
    if "unit" in block.words:
        return lines
    start = next(i for i, line in enumerate(lines) if line.startswith("/* k0"))
    ends = (i for i, line in enumerate(lines) if re.match(r"(void|size_t) program", line))
    return _stripped(lines[start : next(ends)])


def _stripped(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def explained(block: Block) -> list[str]:
    page = io.StringIO()
    reporter = Reporter(Console(file=page, width=1000, highlight=False), diffs=True)
    WEEKS[block.week].pipeline.run(parsed(block.program, block.week), [reporter])
    return page.getvalue().splitlines()


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
    "eval": evaluated,
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
