"""How the errors of a text are reported: where, which code, in which words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 160
"""Characters of a source line that a report shows; a longer line is cut around the fault."""


@dataclass(frozen=True)
class Diagnostic:
    """One fault of a text.

    Attributes:
        file: the name of the text, `<stdin>` for standard input.
        line: from 1; in the JSON twin, the position of the node in `nodes`, from 1.
        col: from 1, in characters.
        code: a number of `week01_uops.errors.CODES`.
        message: what was expected, and what came.
        source_line: the whole line.
    """

    file: str
    line: int
    col: int
    code: str
    message: str
    source_line: str

    def __str__(self) -> str:
        """`FILE:LINE:COL: CODE message`, the source line, and a caret below the column."""
        head = f"{self.file}:{self.line}:{self.col}: {self.code} {self.message}"
        start = max(0, self.col - WIDTH // 2) if len(self.source_line) > WIDTH else 0
        shown = "".join(map(_printable, self.source_line[start : start + WIDTH]))
        before = shown[: self.col - 1 - start]
        caret = "".join("\t" if char == "\t" else " " for char in before) + "^"
        return f"{head}\n{shown}\n{caret}"


def _printable(char: str) -> str:
    return char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}"


class ReadErrors(Exception):  # noqa: N818 - it holds several
    """A text is not a program: everything that is wrong with it, in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: (d.line, d.col)))
        super().__init__(f"{len(self.diagnostics)} error(s)")

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))
