"""Programs at every level as text for people: listings, kernels with their loops, diffs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from week01_uops.interchange import Namer
from week01_uops.node import UOp
from week01_uops.ops import CALL
from week01_uops.passes import top_nodes
from week02_render.ops import END, LINEAR, RANGE
from week05_06_memory.scheduling import kernel_names as names_of


class Printer:
    """Prints programs with names that stay the same from one pass to the next."""

    def __init__(self) -> None:
        self.namer = Namer()

    def lines(self, program: UOp) -> list[str]:
        """The statements of a program, a heading before each kernel, loops indented."""
        listed = self.namer.listing(program)
        if not any(node.op is LINEAR for node in program.toposort()):
            return listed
        return list(self._kernels(program, listed))

    def _kernels(self, program: UOp, listed: list[str]) -> Iterator[str]:
        statement = {line.split(" ", 1)[0]: line for line in listed}
        names = self.namer.names
        for body, name in names_of(program).items():
            yield f"# kernel {name}"
            yield from self._body(body, statement)
            yield ""
        yield "# program"
        for node in top_nodes(program):
            if node in names:
                yield statement[names[node]]
        yield listed[-1]

    def _body(self, body: UOp, statement: dict[str, str]) -> Iterator[str]:
        depth = 0
        names = self.namer.names
        for node in body.src:
            if node.op is END:
                depth -= len(node.src) - 1
            yield "  " * (depth + 1) + statement[names[node]]
            if node.op is RANGE:
                depth += 1


def difference(before: list[str], after: list[str], *, numbers: bool = True) -> list[str]:
    """The lines that a pass took out and put in, with three lines around each change.

    Args:
        before: the text before the pass.
        after: the text after it.
        numbers: head each place with the numbers of its lines; else only tell them apart.
    """
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    if numbers:
        return lines
    return ["⋮" if line.startswith("@@") else line for line in lines[1:]]


def kernel_names(program: UOp) -> list[str]:
    """The kernels of a program in the order in which they run."""
    names = names_of(program)
    return [names[node.src[0]] for node in top_nodes(program) if node.op is CALL]
