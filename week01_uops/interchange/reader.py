"""Reading a program from text: one statement a line, every error reported, nothing repaired."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from week01_uops.args import brief
from week01_uops.errors import ProgramError
from week01_uops.interchange import checks, fields
from week01_uops.interchange.decoding import decode_text
from week01_uops.interchange.diagnostics import Diagnostic, ReadErrors
from week01_uops.interchange.jsontext import JsonError, decode
from week01_uops.interchange.statements import Catalog, Limits
from week01_uops.node import Op, UOp
from week01_uops.ops import RETURN


def read(
    text: str | bytes,
    *,
    file: str = "<stdin>",
    ops: Iterable[Op] | Mapping[str, Op],
    week: int | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> UOp:
    """The program that a text holds, as RETURN(output, …).

    Args:
        text: a program; bytes must be UTF-8.
        file: its name in error reports.
        ops: the ops that the reader knows.
        week: ops of later weeks are errors.
        limits: programs past these are errors.

    Raises:
        ReadErrors: everything that is wrong with the text.
    """
    reader = _Reader(text, file, Catalog(ops, week, limits))
    try:
        program = reader.program()
    except MemoryError:
        program = None
        reader.error(1, "E504", "expected a program that fits into memory")
    if program is None or reader.found:
        raise ReadErrors(reader.found)
    return program


class _StopError(Exception):
    """Nothing after this error can be understood."""


_FAILED: Any = object()
_REST = re.compile(r"[ \t]*+(?:#.*)?\Z")


class _Reader:
    """The state of one reading: the names defined so far and the errors found so far.

    A name whose statement is wrong is defined as None, so that its uses are no errors.
    """

    def __init__(self, text: str | bytes, file: str, catalog: Catalog) -> None:
        self.file = file
        self.catalog = catalog
        self.lines, self.undecodable = decode_text(text)
        self.names: dict[str, UOp | None] = {}
        self.arguments: dict[tuple[Op, str], Any] = {}
        self.found: list[Diagnostic] = []
        self.number = 0
        self.headless = False
        self.outputs: list[tuple[re.Match[str], UOp | None]] | None = None
        self.return_number = 0

    # Errors ---------------------------------------------------------------------------------

    def error(self, col: int, code: str, message: str, number: int | None = None) -> None:
        """Report a fault at a column of the current line, or of line `number`."""
        number = number or self.number
        if number in self.undecodable and code != "E103":
            return
        line = self.lines[number - 1] if number <= len(self.lines) else ""
        self.found.append(Diagnostic(self.file, number, col, code, message, line))

    def fault(self, col: int, error: ProgramError) -> None:
        """Report a fault, and those found along with it, at a column of the current line."""
        for one in (error, *error.also):
            self.error(col, one.code, one.args[0])

    # The text -------------------------------------------------------------------------------

    def program(self) -> UOp | None:
        """Read all lines; None if the return cannot be built."""
        for number, col in self.undecodable.items():
            self.error(col, "E103", "expected UTF-8 without a byte-order mark", number)
        try:
            self._lines()
        except _StopError:
            return None
        if self.outputs is None:
            last = max(1, len(self.lines))
            end = len(self.lines[-1]) + 1 if self.lines else 1
            self.error(end, "E203", "expected a return at the end of the program", last)
            return None
        return None if self.found else self._finish(self.outputs)

    def _lines(self) -> None:
        self.number = 1
        begin = self._header(self.lines[0] if self.lines else "")
        match_statement = fields.STATEMENT.match
        for number in range(begin, len(self.lines)):
            self.number = number + 1
            line = self.lines[number]
            match = match_statement(line)
            if match and match[1] not in fields.RESERVED and self.outputs is None:
                self._statement(line, match)
            elif not _REST.match(line):
                self._other(line)

    def _header(self, line: str) -> int:
        """Check the first line; the index of the first line to read as a statement."""
        words = list(fields.WORD.finditer(line.partition("#")[0]))
        if not words or words[0][0] != "uops":
            self.headless = True
            col = words[0].start() + 1 if words else 1
            self.error(col, "E101", 'expected the header "uops 1" on the first line')
            return 0
        if len(words) == 1 or words[1][0] != "1":
            at = words[1] if len(words) > 1 else words[0]
            self.error(at.start() + 1, "E102", f'expected the header "uops 1", got {brief(line)}')
            raise _StopError
        if len(words) > 2:
            self.error(words[2].start() + 1, "E104", "expected nothing after the header")
        return 1

    def _other(self, line: str) -> None:
        """A line that is neither blank nor a statement in good form."""
        first = fields.WORD.search(line)
        assert first is not None
        word = first[0].partition("#")[0]
        if word == "uops" and self.headless:
            self.headless = False
        elif self.outputs is not None:
            self.error(first.start() + 1, "E107", "expected nothing after the return")
        elif word == "return":
            self._return(line)
        else:
            fault = fields.explain(line)
            self.error(fault.col, "E104", fault.message)
            if fault.name is not None:
                self.names.setdefault(fault.name, None)

    # A statement ----------------------------------------------------------------------------

    def _statement(self, line: str, match: re.Match[str]) -> None:
        name = match[1]
        op = self._op(match)
        src = self._sources(op, match)
        arg = self._written(op, line, match.end()) if match[4] else self._unwritten(op, match)
        node = None
        if op is not None and src is not None and arg is not _FAILED:
            node = self._build(op, src, arg, match)
        if name in self.names:
            self.error(match.start(1) + 1, "E202", f"expected a new name, got {name} again")
            return
        self.names[name] = node
        if len(self.names) > self.catalog.limits.nodes:
            most = self.catalog.limits.nodes
            self.error(match.start(1) + 1, "E501", f"expected at most {most} nodes")
            raise _StopError

    def _build(
        self,
        op: Op,
        src: tuple[UOp, ...],
        arg: Any,  # noqa: ANN401
        match: re.Match[str],
    ) -> UOp | None:
        try:
            return self.catalog.build(op, src, arg)
        except ProgramError as error:
            self.fault(match.start(2) + 1, error)
            if error.code == "E501":
                raise _StopError from None
            return None

    def _op(self, match: re.Match[str]) -> Op | None:
        """The op of this name, None after an error."""
        try:
            return self.catalog.find(match[2])
        except ProgramError as error:
            self.fault(match.start(2) + 1, error)
            return None

    def _sources(self, op: Op | None, match: re.Match[str]) -> tuple[UOp, ...] | None:
        """The nodes that the names stand for; None if one is not known or their number is wrong."""
        words = match[3].split()
        names = self.names
        try:
            if op is not None:
                op.check_arity(len(words))
            src = tuple([names[word] for word in words])
        except (ProgramError, KeyError) as error:
            if isinstance(error, ProgramError):
                self.fault(match.start(2) + 1, error)
            for word in fields.WORD.finditer(match.string, match.start(3), match.end(3)):
                self._defined(word, "E104")
            return None
        return None if None in src else src  # type: ignore[return-value]

    def _defined(self, word: re.Match[str], reserved: str) -> bool:
        """Whether a word is a name defined above; E201 or the code `reserved` if not."""
        if word[0] in self.names:
            return True
        if word[0] in fields.RESERVED:
            self.error(word.start() + 1, reserved, f"expected a name, got {word[0]}")
        else:
            message = f"expected a name that is defined above, got {word[0]}"
            self.error(word.start() + 1, "E201", message)
        return False

    def _unwritten(self, op: Op | None, match: re.Match[str]) -> Any:  # noqa: ANN401
        """The argument of a statement without a colon; _FAILED after an error."""
        try:
            return _FAILED if op is None else op.load_argument(None)
        except ProgramError as error:
            self.fault(match.start(2) + 1, error)
            return _FAILED

    def _written(self, op: Op | None, line: str, start: int) -> Any:  # noqa: ANN401
        """The argument after the colon, which ends at `start`; _FAILED after an error."""
        tail = line[start:]
        if op is not None and (op, tail) in self.arguments:
            return self.arguments[op, tail]
        try:
            json, end = decode(line, start)
            if not _REST.match(line, end):
                end = len(line) - len(line[end:].lstrip(" \t"))
                raise JsonError("expected one JSON value and nothing after it", end)
            if op is not None:
                arg = self.arguments[op, tail] = self.catalog.load(op, json)
                return arg
        except JsonError as error:
            self.error(error.position + 1, "E105", error.args[0])
        except ProgramError as error:
            self.fault(start + len(tail) - len(tail.lstrip(" \t")) + 1, error)
        return _FAILED

    # The end --------------------------------------------------------------------------------

    def _return(self, line: str) -> None:
        self.outputs = []
        match = fields.RETURN.match(line)
        if match is None:
            fault = fields.explain_return(line)
            self.error(fault.col, "E106", fault.message)
            return
        words = list(fields.WORD.finditer(line, match.start(1), match.end(1)))
        if not words:
            self.error(match.end(1) + 1, "E106", "expected at least one name after return")
        for word in words:
            if self._defined(word, "E106"):
                self.outputs.append((word, self.names[word[0]]))
        self.return_number = self.number

    def _finish(self, outputs: list[tuple[re.Match[str], UOp | None]]) -> UOp | None:
        """Build the program and check it as a whole."""
        for word, output in outputs:
            if output is not None and (message := checks.not_an_output(output)):
                self.error(word.start() + 1, "E413", message, self.return_number)
        if self.found:
            return None
        program: UOp = RETURN(*[output for _, output in outputs])
        faults = checks.whole(program)
        where = self._positions() if faults else {}
        for fault in faults:
            if fault.output is not None:
                col = outputs[fault.output][0].start() + 1
                self.error(col, fault.code, fault.message, self.return_number)
            else:
                number, col = where[fault.node]
                self.error(col, fault.code, fault.message, number)
        return program

    def _positions(self) -> dict[UOp, tuple[int, int]]:
        """Line and column of the op of the statement that first defines each node."""
        found: dict[UOp, tuple[int, int]] = {}
        for number, line in enumerate(self.lines, 1):
            match = fields.STATEMENT.match(line)
            node = self.names.get(match[1]) if match else None
            if match and node is not None:
                found.setdefault(node, (number, match.start(2) + 1))
        return found
