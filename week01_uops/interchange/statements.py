"""What text and JSON twin share: finding ops, checking arguments and limits, building nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from week01_uops.args import Json, brief, later_keys
from week01_uops.errors import ProgramError
from week01_uops.interchange.checks import own_sources
from week01_uops.node import Op, UOp, make, toposort
from week01_uops.ops import CALL

WEEKS: Mapping[str, int] = {
    "BUFFER": 2,
    "ALLOC": 2,
    "INDEX": 2,
    "LOAD": 2,
    "STORE": 2,
    "AFTER": 2,
    "RESHAPE": 3,
    "EXPAND": 3,
    "PERMUTE": 3,
    "FLIP": 3,
    "PAD": 3,
    "SHRINK": 3,
    "REDUCE": 3,
    "RANGE": 3,
    "END": 3,
    "STAGE": 4,
    "KERNEL": 7,
    "SPECIAL": 7,
    "BARRIER": 7,
    "MMA": 7,
}
"""Ops of the format that a reader of an earlier week was not given, for its messages."""


BODIES = 8
"""How often, on average, a node may stand in the bodies of different CALLs."""


@dataclass(frozen=True)
class Limits:
    """How large a program may be.

    Attributes:
        nodes: statements that define a name.
        rank: axes of a tensor.
        elements: of a tensor, each size of 0 counted as 1.
    """

    nodes: int = 1_000_000
    rank: int = 32
    elements: int = 1 << 47


class Catalog:
    """The ops that a reader knows, and the one way from an op's name to a checked node."""

    def __init__(
        self, ops: Iterable[Op] | Mapping[str, Op], week: int | None, limits: Limits
    ) -> None:
        values = ops.values() if isinstance(ops, Mapping) else ops
        self.known = {op.name: op for op in values if not op.internal}
        self.week = week
        self.limits = limits
        self._bodies: set[UOp] = set()
        self._body_nodes = 0

    def find(self, name: str) -> Op:
        """The op of this name; E301 if there is none, E302 if it is of a later week."""
        op = self.known.get(name)
        week = WEEKS.get(name) if op is None else op.week
        if self.week is not None and week is not None and week > self.week:
            message = f"{name} is an op of week {week}, expected one of week {self.week} at most"
            raise ProgramError("E302", message)
        if op is None:
            if week is None:
                raise ProgramError("E301", f"expected an op, got {name}")
            raise ProgramError("E301", f"{name} is an op of week {week}, not implemented yet")
        return op

    def build(self, op: Op, src: tuple[UOp, ...], arg: Any) -> UOp:  # noqa: ANN401
        """The node; E4xx for its type, E5xx where it is too large."""
        if op is CALL:
            self._count_body(src[0])
        node = make(op, src, arg)
        if op is CALL:
            self._bodies.add(src[0])
        shape = node.shape
        if shape:
            if len(shape) > self.limits.rank:
                most = self.limits.rank
                raise ProgramError("E502", f"expected at most {most} axes, got {len(shape)}")
            if math.prod(shape) > self.limits.elements or 0 in shape:
                self._check_size(shape)
        return node

    def load(self, op: Op, json: Json, *, absent: bool = False) -> Any:  # noqa: ANN401
        """The argument that is written as `json`; null is not the same as an absent one."""
        if json is None and not absent:
            if op.argument is None:
                raise ProgramError("E305", f"{op} takes no argument, got null")
            raise ProgramError("E306", f"expected {op.argument.expects}, got null")
        arg = op.load_argument(None if absent else json)
        for name, week in later_keys(arg):
            if self.week is not None and week > self.week:
                raise ProgramError("E308", f"{brief(name)} is a key of week {week}")
        return arg

    def _count_body(self, body: UOp) -> None:
        """E501 once the bodies, checked one by one, would take too long."""
        if body not in self._bodies:
            self._body_nodes += len(toposort((body,), own_sources))
            most = BODIES * self.limits.nodes
            if self._body_nodes > most:
                raise ProgramError("E501", f"expected at most {most} nodes in the bodies of CALLs")

    def _check_size(self, shape: tuple[int, ...]) -> None:
        if math.prod(size or 1 for size in shape) > self.limits.elements:
            most = self.limits.elements
            raise ProgramError(
                "E503", f"expected at most {most} elements, got the shape {brief(list(shape))}"
            )
