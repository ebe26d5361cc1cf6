"""What a program must meet as a whole: one declaration a slot, closed loops, inputs not written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from week01_uops.errors import ProgramError
from week01_uops.node import UOp, toposort
from week01_uops.ops import CALL, PARAM

BUDGET = 1 << 33
"""Bits that sets of ranges or inputs may take together before a check gives up with E504."""

_NEW_STORAGE = frozenset({"STAGE", "CALL"})


class Fault(NamedTuple):
    """A fault of the whole program, at a node or, if `output` is set, at that output."""

    code: str
    message: str
    node: UOp
    output: int | None = None


def not_an_output(node: UOp) -> str | None:
    """Why a program cannot return this node, if it cannot."""
    if node.dtype.kind == "void":
        return f"expected a value to return, got the effect {node.op}"
    if node.place is not None and node.place.indexed:
        return "expected a value to return, got a place; LOAD reads it"
    return None


def whole(program: UOp) -> list[Fault]:
    """E408, E414, E415 of a program RETURN(output, …), and E504 where they cannot be decided."""
    order = program.toposort()
    present = {node.op.name for node in order}
    own = toposort((program,), own_sources) if "CALL" in present else order
    faults = list(_one_slot(own, ("PARAM", "ALLOC")))
    if "BUFFER" in present:
        faults += _one_slot(order, ("BUFFER",))
    try:
        if "STORE" in present:
            faults += _written_inputs(order, own)
        if "RANGE" in present:
            faults += _open_ranges(program, order)
    except ProgramError as error:
        faults.append(Fault(error.code, error.args[0], program, 0))
    return faults


def own_sources(node: UOp) -> tuple[UOp, ...]:
    """The sources in the same scope: of a CALL its arguments, not its body."""
    return node.src[1:] if node.op is CALL else node.src


def _one_slot(nodes: Iterable[UOp], ops: tuple[str, ...]) -> Iterator[Fault]:
    """E408 for each second declaration of a slot that differs from the first."""
    first: dict[tuple[str, int], UOp] = {}
    for node in nodes:
        if node.op.name in ops:
            key = (node.op.name, node.arg.slot)
            if first.setdefault(key, node) is not node:
                message = f"expected one {key[0]} of slot {key[1]}, got two that differ"
                yield Fault("E408", message, node)


class Sets:
    """Sets of marked nodes, one for each node of a program, as bits of integers."""

    def __init__(self, marked: Iterable[UOp]) -> None:
        self.marked = list(marked)
        self.bit = {node: 1 << index for index, node in enumerate(self.marked)}
        self.spent = 0

    def union(self, masks: Iterable[int]) -> int:
        """The union; E504 once all unions together are too large to hold."""
        result = 0
        for mask in masks:
            if mask | result != result:
                result |= mask
                self.spent += mask.bit_length()
        if self.spent > BUDGET:
            raise ProgramError("E504", "expected fewer ranges and inputs: their sets fill memory")
        return result

    def members(self, mask: int) -> list[UOp]:
        """The marked nodes of a set."""
        found = []
        while mask:
            low = mask & -mask
            found.append(self.marked[low.bit_length() - 1])
            mask ^= low
        return found


def _open_ranges(program: UOp, order: Sequence[UOp]) -> Iterator[Fault]:
    """E415 for each output that depends on a RANGE that nothing closes on the way.

    open(RANGE) = {it} ∪ open(bound); an op that closes (END, REDUCE, STAGE) takes the union of its
    sources less the ranges that it names; any other the union.
    """
    sets = Sets(node for node in order if node.op.name == "RANGE")
    opened: dict[UOp, int] = {}
    for node in order:
        mask = sets.union(opened[source] for source in node.src) | sets.bit.get(node, 0)
        if node.op.closes:
            mask &= ~sets.union(sets.bit.get(source, 0) for source in node.src[1:])
        opened[node] = mask
    for index, output in enumerate(program.src):
        if opened[output]:
            ids = ", ".join(str(r.arg.id) for r in sets.members(opened[output])[:8])
            message = f"expected END to close RANGE {ids} before the return"
            yield Fault("E415", message, output, index)


def _written_inputs(order: Sequence[UOp], own: Sequence[UOp]) -> Iterator[Fault]:
    """E414 for each STORE, or CALL that stores, into an input of the program.

    written(node) are the PARAMs of a scope that effects below the node store into; a CALL passes
    what its body writes on to the roots of the arguments.
    """
    sets = Sets(node for node in order if node.op is PARAM)
    written: dict[UOp, int] = {}
    direct: dict[UOp, int] = {}
    roots: dict[UOp, UOp] = {}
    for node in order:
        roots[node] = _root(node, roots)
        direct[node] = sum(sets.bit[r] for r in _targets(node, sets, written, roots.__getitem__))
        below = sets.union(written[source] for source in own_sources(node))
        written[node] = sets.union((below, direct[node])) if direct[node] else below
    for node in own:
        if direct[node]:
            slots = ", ".join(str(p.arg.slot) for p in sets.members(direct[node])[:8])
            message = f"expected inputs to stay as they are, got a {node.op} to PARAM {slots}"
            yield Fault("E414", message, node)


def _root(node: UOp, roots: dict[UOp, UOp]) -> UOp:
    """The storage that a place lies in; other nodes are their own."""
    if node.place is None or not node.src or node.op.name in _NEW_STORAGE:
        return node
    return roots[node.src[0]]


def _targets(
    node: UOp, sets: Sets, written: dict[UOp, int], root: Callable[[UOp], UOp]
) -> set[UOp]:
    """The PARAMs that a node itself writes to: those of a STORE, or of a CALL through its body."""
    places: list[UOp] = []
    if node.op.name == "STORE":
        places = [node.src[0]]
    elif node.op is CALL and written[node.src[0]]:
        slots = [param.arg.slot for param in sets.members(written[node.src[0]])]
        places = [node.src[1 + slot] for slot in slots]
    return {found for place in places if (found := root(place)).op is PARAM}
