"""The interpreter of week 2: storage, its reading and writing, and loops.

A value that depends on loops is computed for many iterations at once: its array has one axis in
front for each loop that is open, its lanes, of size 1 where the value does not depend on the loop.
`loops` decides which loops may run so and which must run one iteration after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from week01_uops import evaluate as week01
from week01_uops.errors import ProgramError
from week01_uops.evaluate import Inputs, Meaning, Scope, State, checked, run
from week01_uops.node import Op, UOp
from week01_uops.numerics import Array
from week02_render import ops
from week02_render.places import Place, Storage, index, poison, read, whole, write


class Memory:
    """The storage that outlives a scope: BUFFERs, OUTPUTs and the workspace.

    Attributes:
        state: the contents of each BUFFER by slot, kept from call to call.
        arena: the bytes of the workspace, undefined at first.
    """

    def __init__(self, program: UOp, state: State) -> None:
        self.state = state
        self.outputs: dict[UOp, Place] = {}
        ends = [_end_of(n) for n in program.toposort() if n.op is ops.WORKSPACE]
        self.arena = np.full(max(ends, default=0), 0xFF, np.uint8)  # NaN in every float

    def buffer(self, node: UOp) -> Place:
        """The storage of a BUFFER, zero at first."""
        slot, shape, numpy = node.arg.slot, node.shape, node.dtype.numpy
        array = self.state.setdefault(slot, np.zeros(shape, numpy))
        if array.shape != shape or array.dtype != numpy:
            raise ValueError(
                f"expected {node.dtype}{list(shape)} as the state of BUFFER {slot}, "
                f"got {array.dtype}{list(array.shape)}"
            )
        return Place(Storage(array.reshape(-1)), shape)

    def output(self, node: UOp) -> Place:
        """The storage of a result."""
        if node not in self.outputs:
            self.outputs[node] = Place(Storage(poison(node.dtype, node.size)), node.shape)
        return self.outputs[node]

    def workspace(self, node: UOp) -> Place:
        """A part of the arena; parts may overlap."""
        part = self.arena[node.arg.offset : _end_of(node)]
        return Place(Storage(part.view(node.dtype.numpy)), node.shape)


def _end_of(workspace: UOp) -> int:
    return int(workspace.arg.offset) + workspace.size * workspace.dtype.numpy.itemsize


class LoopScope(Scope):
    """A scope with open loops.

    Attributes:
        memory: storage shared by all scopes.
        parent: the scope around this loop; None for a program and for a CALL's body.
        lanes: the number of open loops, which is the number of axes in front of each value.
        active: which iterations are carried out, one axis for each lane.
    """

    table: Mapping[Op, Meaning]

    def __init__(
        self,
        table: Mapping[Op, Meaning],
        arguments: Mapping[int, Any],
        memory: Memory,
        active: Array,
        parent: LoopScope | None = None,
    ) -> None:
        super().__init__(table, arguments)
        self.memory = memory
        self.parent = parent
        self.active = active
        self.lanes = active.ndim

    def raw(self, node: UOp) -> Any:  # noqa: ANN401 - an array, a Place, or None of an effect
        """What the node was computed to be, in this scope or around it."""
        scope: LoopScope | None = self
        while scope is not None:
            if node in scope.values:
                return self._lift(scope.values[node], scope.lanes)
            scope = scope.parent
        raise KeyError(node)

    def _lift(self, found: Any, lanes: int) -> Any:  # noqa: ANN401
        """Axes of size 1 for the loops opened since."""
        if lanes == self.lanes or found is None:
            return found
        shape = (*found.shape[:lanes], *(1,) * (self.lanes - lanes), *found.shape[lanes:])
        if isinstance(found, Place):
            numbers = None if found.numbers is None else found.numbers.reshape(shape)
            return Place(found.storage, shape, numbers, found.faults)
        return found.reshape(shape)

    def place(self, node: UOp) -> Place:
        """The place that the node names; a value that is never written is one too."""
        found = self.raw(node)
        return found if isinstance(found, Place) else whole(found, found.shape)

    def value(self, node: UOp, rank: int = 0) -> Array:
        """The value of the node, lanes in front, with at least `rank` axes behind them.

        A place is read whole, now.
        """
        found = self.raw(node)
        array = read(found, self.wanted(found), node) if isinstance(found, Place) else found
        new = max(rank - len(node.shape), 0)
        shape: tuple[int, ...] = array.shape
        return array.reshape(*shape[: self.lanes], *(1,) * new, *shape[self.lanes :])

    def operands(self, node: UOp) -> list[Array]:
        """The values of the sources, aligned to broadcast."""
        return [self.value(source, len(node.shape)) for source in node.src]

    def wanted(self, place: Place, gate: UOp | None = None) -> Array:
        """Which elements of a place are accessed: of active iterations, where the gate is true."""
        rank = len(place.shape) - self.lanes
        active = self.active.reshape(*self.active.shape, *(1,) * rank)
        return active if gate is None else active & self.value(gate, rank)

    def enter(self, call: UOp) -> LoopScope:
        """A scope for the body of a CALL, which sees its arguments and none of these values."""
        arguments = {slot: self.raw(source) for slot, source in enumerate(call.src[1:])}
        return LoopScope(self.table, arguments, self.memory, self.active)


def _alloc(scope: LoopScope, node: UOp) -> Place:
    return Place(Storage(poison(node.dtype, node.size)), (*(1,) * scope.lanes, *node.shape))


def _index(scope: LoopScope, node: UOp) -> Place:
    indices = [scope.value(item) for item in node.src[1:]]
    return index(scope.place(node.src[0]), node, scope.lanes, indices)


def _load(scope: LoopScope, node: UOp) -> Array:
    place = scope.place(node.src[0])
    if len(node.src) == 1:
        return read(place, scope.wanted(place), node)
    rank = len(node.shape)
    found = read(place, scope.wanted(place, node.src[1]), node)
    otherwise = scope.value(node.src[2], rank) if len(node.src) > 2 else np.zeros_like(found)
    return np.where(scope.value(node.src[1], rank), found, otherwise)


def _store(scope: LoopScope, node: UOp) -> None:
    place = scope.raw(node.src[0])
    if not isinstance(place, Place):
        raise ProgramError("E414", "expected a writable place, got an input", (node,))
    gate = node.src[2] if len(node.src) > 2 else None
    write(place, scope.value(node.src[1]), scope.wanted(place, gate), node)


def _first(scope: LoopScope, node: UOp) -> Any:  # noqa: ANN401
    return scope.raw(node.src[0])


def _stored(find: str) -> Meaning:
    def meaning(scope: LoopScope, node: UOp) -> Any:  # noqa: ANN401
        return scope._lift(getattr(scope.memory, find)(node), 0)

    return meaning


MEANING: Mapping[Op, Meaning] = {
    **week01.MEANING,
    ops.BUFFER: _stored("buffer"),
    ops.OUTPUT: _stored("output"),
    ops.WORKSPACE: _stored("workspace"),
    ops.ALLOC: _alloc,
    ops.INDEX: _index,
    ops.LOAD: _load,
    ops.STORE: _store,
    ops.AFTER: _first,
    ops.KEEP: lambda scope, node: scope.value(node.src[0]),
}


def evaluate(
    program: UOp,
    inputs: Inputs,
    table: Mapping[Op, Meaning] | None = None,
    state: State | None = None,
) -> list[Array]:
    """The outputs of a program for inputs by PARAM slot.

    Args:
        program: a RETURN node.
        inputs: an array for each PARAM, by slot or in order of slots.
        table: what each op means; this week's by default.
        state: the contents of BUFFERs by slot; the same dict, passed again, keeps them.

    Raises:
        ValueError: an input is missing, or has another dtype, shape or range than its PARAM.
        OutOfBoundsError: an index out of range was read or written.
    """
    memory = Memory(program, {} if state is None else state)
    arguments = checked(program, inputs)
    scope = LoopScope(MEANING if table is None else table, arguments, memory, np.asarray(True))
    with np.errstate(all="ignore"):
        run(scope, scope.order(program))
    outputs: list[Array] = scope.values[program]
    return outputs
