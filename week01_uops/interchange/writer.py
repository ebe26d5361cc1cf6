"""Writing a program as text: the canonical form, and listings whose names last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from week01_uops.interchange.jsontext import encode
from week01_uops.node import Op, UOp, toposort
from week01_uops.ops import RETURN


def write(program: UOp) -> str:
    """The canonical form: equal for two programs exactly when they are the same graph.

    Names are %0, %1, … in a depth-first post-order from the outputs, sources left to right.
    """
    return "\n".join(["uops 1", *listing(program), ""])


def listing(program: UOp, names: Mapping[UOp, str] | None = None) -> list[str]:
    """The statements of a program, one a line, under the given names.

    Nodes without a name are called %0, %1, … as far as these are free. A node that is no RETURN
    is listed as a program that returns it.
    """
    order = nodes(program)
    named = {} if names is None else dict(names)
    _name(order, named, _fresh(set(named.values())))
    lines = _statements(order, named)
    return [*lines, "return " + " ".join([named[output] for output in outputs(program)])]


def outputs(program: UOp) -> tuple[UOp, ...]:
    """What a program returns."""
    return program.src if program.op is RETURN else (program,)


def nodes(program: UOp) -> list[UOp]:
    """The nodes that stand in a text, in order."""
    return toposort(outputs(program))


def dump_argument(op: Op, arg: Any) -> Any:  # noqa: ANN401
    """The JSON value of an argument that is not None."""
    return str(arg) if op.argument is None else op.argument.dump(arg)


def _fresh(taken: set[str], start: int = 0) -> Iterator[str]:
    number = start
    while True:
        name = f"%{number}"
        if name not in taken:
            yield name
        number += 1


def _name(order: list[UOp], named: dict[UOp, str], fresh: Iterator[str]) -> None:
    for node in order:
        if node not in named:
            named[node] = next(fresh)


def _statements(order: list[UOp], named: Mapping[UOp, str]) -> list[str]:
    lines = []
    texts: dict[tuple[Op, Any], str] = {}
    for node in order:
        line = " ".join([named[node], "=", node.op.name, *[named[s] for s in node.src]])
        if node.arg is not None:
            key = (node.op, node.arg)
            if key not in texts:
                texts[key] = encode(dump_argument(*key))
            line += " : " + texts[key]
        lines.append(line)
    return lines


class Namer:
    """Names that last over several listings, so that a diff of two shows what changed.

    A node keeps the name it had. A new node inherits the name of the node that stood in its
    position, as far as op and argument agree on the way from the outputs and the old node
    is gone; any other gets a number that was never used.
    """

    def __init__(self) -> None:
        self.names: dict[UOp, str] = {}
        self._before: UOp | None = None
        self._fresh = _fresh(set())

    def listing(self, program: UOp) -> list[str]:
        """The statements of a program, and its return."""
        order = nodes(program)
        if self._before is not None and self._before is not program:
            self._inherit(self._before, program, set(order))
        _name(order, self.names, self._fresh)
        self.names = {node: self.names[node] for node in order}
        self._before = program
        return listing(program, self.names)

    def _inherit(self, before: UOp, after: UOp, present: set[UOp]) -> None:
        pairs = [(before, after)]
        while pairs:
            old, new = pairs.pop()
            if old is new or old.op is not new.op or len(old.src) != len(new.src):
                continue
            if new.op is not RETURN:
                if new in self.names or old in present or old not in self.names:
                    continue
                self.names[new] = self.names.pop(old)
            pairs.extend(reversed(list(zip(old.src, new.src, strict=True))))
