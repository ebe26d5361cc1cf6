"""The JSON twin: {"uops": 1, "nodes": [[op, [source indices], argument], …], "return": […]}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from week01_uops.args import Json, brief
from week01_uops.errors import ProgramError
from week01_uops.interchange import checks
from week01_uops.interchange.diagnostics import Diagnostic, ReadErrors
from week01_uops.interchange.jsontext import JsonError, decode
from week01_uops.interchange.statements import Catalog, Limits
from week01_uops.interchange.writer import dump_argument, nodes, outputs
from week01_uops.node import Op, UOp
from week01_uops.ops import RETURN


def to_json(program: UOp) -> dict[str, Json]:
    """The twin of the canonical form; null stands for an absent argument."""
    order = nodes(program)
    index = {node: number for number, node in enumerate(order)}
    rows = [[node.op.name, [index[s] for s in node.src], _dump(node)] for node in order]
    return {"uops": 1, "nodes": rows, "return": [index[output] for output in outputs(program)]}


def _dump(node: UOp) -> Json:
    return None if node.arg is None else dump_argument(node.op, node.arg)


def from_json(
    twin: Json | bytes,
    *,
    file: str = "<stdin>",
    ops: Iterable[Op] | Mapping[str, Op],
    week: int | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> UOp:
    """The program of a twin, given as a decoded object or as its text.

    Raises:
        ReadErrors: all that is wrong; the line of a fault is its node's place in "nodes",
            counted from 1, and the column is 1.
    """
    reader = _TwinReader(file, Catalog(ops, week, limits))
    try:
        program = reader.program(twin)
    except MemoryError:
        program = None
        reader.error(1, "E504", "expected a program that fits into memory")
    if program is None or reader.found:
        raise ReadErrors(reader.found)
    return program


class _TwinReader:
    """The nodes read so far, None for each with a fault, and the faults."""

    def __init__(self, file: str, catalog: Catalog) -> None:
        self.file = file
        self.catalog = catalog
        self.read: list[UOp | None] = []
        self.found: list[Diagnostic] = []

    def error(self, line: int, code: str, message: str, row: Json = "") -> None:
        """Report a fault of a row."""
        self.found.append(Diagnostic(self.file, line, 1, code, message, brief(row) if row else ""))

    def program(self, twin: Json | bytes) -> UOp | None:
        """Read all rows; None if there is no program at all."""
        if isinstance(twin, (str, bytes)):
            twin = self._decode(twin)
        if self.found or not self._check_frame(twin):
            return None
        for number, row in enumerate(twin["nodes"], 1):
            if number > self.catalog.limits.nodes:
                most = self.catalog.limits.nodes
                self.error(number, "E501", f"expected at most {most} nodes")
                return None
            self.read.append(self._row(number, row))
        return self._finish(twin["return"])

    def _decode(self, twin: str | bytes) -> Json:
        try:
            text = twin.decode("utf-8") if isinstance(twin, bytes) else twin
            json, end = decode(text)
            if text[end:].strip(" \t\r\n"):
                raise JsonError("expected one JSON value and nothing after it", end)
        except UnicodeDecodeError:
            self.error(1, "E103", "expected UTF-8 without a byte-order mark")
        except JsonError as error:
            self.error(1, "E105", error.args[0])
        except ProgramError as error:
            self.error(1, error.code, error.args[0])
        else:
            return json
        return None

    def _check_frame(self, twin: Json) -> bool:
        if not isinstance(twin, Mapping) or "uops" not in twin:
            self.error(1, "E101", 'expected an object with the keys "uops", "nodes", "return"')
        elif twin["uops"] != 1 or type(twin["uops"]) is not int:
            self.error(1, "E102", f"expected version 1, got {brief(twin['uops'])}")
        elif set(twin) - {"uops", "nodes", "return"}:
            self.error(1, "E104", 'expected the keys "uops", "nodes", "return" and no other')
        elif not isinstance(twin.get("nodes"), list):
            self.error(1, "E104", 'expected a list of [op, sources, argument] at "nodes"')
        elif "return" not in twin:
            self.error(len(twin["nodes"]), "E203", "expected a return")
        return not self.found

    def _row(self, number: int, row: Json) -> UOp | None:
        if not (isinstance(row, list) and len(row) == 3 and isinstance(row[0], str)):
            self.error(number, "E104", "expected [op, [source indices], argument or null]", row)
            return None
        if not self._check_indices(number, row[1], row):
            return None
        before = len(self.found)
        op = self._try(number, row, lambda: self.catalog.find(row[0]))
        if op is None:
            return None
        src = [self.read[index] for index in row[1]]
        self._try(number, row, lambda: op.check_arity(len(src)))
        arg = self._try(number, row, lambda: self.catalog.load(op, row[2], absent=row[2] is None))
        if len(self.found) > before or None in src:
            return None
        node: UOp | None = self._try(number, row, lambda: self.catalog.build(op, tuple(src), arg))
        return node

    def _try(self, number: int, row: Json, step: Any) -> Any:  # noqa: ANN401
        try:
            return step()
        except ProgramError as error:
            for one in (error, *error.also):
                self.error(number, one.code, one.args[0], row)
            return None

    def _check_indices(self, number: int, indices: Json, row: Json) -> bool:
        if not isinstance(indices, list) or not all(type(i) is int and i >= 0 for i in indices):
            self.error(number, "E104", "expected a list of indices of nodes", row)
            return False
        wrong = [index for index in indices if index >= len(self.read)]
        for index in wrong:
            self.error(number, "E201", f"expected an earlier node, got {brief(index)}", row)
        return not wrong

    def _finish(self, returned: Json) -> UOp | None:
        last = len(self.read) + 1
        if not isinstance(returned, list) or not returned:
            self.error(last, "E106", "expected a list of at least one index to return", returned)
            return None
        if not self._check_indices(last, returned, returned) or self.found:
            return None
        found = [node for index in returned if (node := self.read[index]) is not None]
        for output in found:
            if fault := checks.not_an_output(output):
                self.error(last, "E413", fault, returned)
        if self.found:
            return None
        program: UOp = RETURN(*found)
        rows = {node: number for number, node in reversed(list(enumerate(self.read, 1)))}
        for whole in checks.whole(program):
            line = last if whole.output is not None else rows[whole.node]
            self.error(line, whole.code, whole.message)
        return program
