"""Scopes with open loops, and the storage that all scopes share.

A value that depends on loops is computed for many iterations at once: its array has one axis in
front for each loop that is open, its lanes, of size 1 where the value does not depend on the loop.
`carried` decides how many iterations may run so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from week01_uops.errors import CompilerError
from week01_uops.evaluate import Meaning, Scope, State
from week01_uops.node import Op, UOp
from week01_uops.numerics import Array
from week02_render import ops
from week02_render.nests import Body
from week02_render.places import Place, Storage, poison, read, whole


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
        self.bodies: dict[UOp, Body] = {}
        self.arena = np.full(max(ends, default=0), 0xFF, np.uint8)  # NaN in every float

    def body(self, root: UOp) -> Body:
        """What is known of the loops of a program or of a CALL's body."""
        if root not in self.bodies:
            self.bodies[root] = Body(root)
        return self.bodies[root]

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
        body: the program or CALL body that it belongs to.
        active: which iterations are carried out, one axis for each lane.
        outer: the number of lanes of the arguments.
        lanes: the number of open loops, which is the number of axes in front of each value.
        parent: the scope around this loop; None for a program and for a CALL's body.
        start: the first iteration of this loop that the scope stands for.
        watched: ALLOCs whose contents must be written before they are read.
    """

    def __init__(
        self,
        table: Mapping[Op, Meaning],
        arguments: Mapping[int, Any],
        memory: Memory,
        body: Body,
        active: Array,
    ) -> None:
        super().__init__(table, arguments)
        self.memory = memory
        self.body = body
        self.active = active
        self.lanes = self.outer = active.ndim
        self.parent: LoopScope | None = None
        self.start = 0
        self.watched: frozenset[UOp] = frozenset()

    def needs(self, node: UOp) -> tuple[UOp, ...]:
        """The nodes that are computed before this one."""
        return self.body.needs(node)

    def forget(self, node: UOp) -> None:
        """Drop a value after its last use; in a loop, inner loops may use it once more."""
        if self.parent is None:
            super().forget(node)

    def inner(self, active: Array) -> LoopScope:
        """A scope that knows what this one knows, and keeps all that is computed in it."""
        inner = LoopScope(self.table, self.arguments, self.memory, self.body, active)
        inner.parent = self
        inner.outer = self.outer
        return inner

    def open(self, counter: UOp, start: int, count: int) -> LoopScope:
        """A scope for `count` iterations of a loop from `start` on."""
        numbers = np.arange(start, start + count)
        active = np.repeat(self.active[..., None], count, axis=-1)
        if counter.src:
            active &= numbers < self.bound(counter)[..., None]
        inner = self.inner(active)
        inner.start = start
        inner.values[counter] = numbers.reshape((*(1,) * self.lanes, count))
        return inner

    def slices(self, outer: LoopScope) -> tuple[slice, ...]:
        """The iterations that the scope stands for, of each loop opened since `outer`."""
        found: list[slice] = []
        scope: LoopScope | None = self
        while scope is not outer and scope is not None:
            found.insert(0, slice(scope.start, scope.start + scope.active.shape[-1]))
            scope = scope.parent
        return tuple(found)

    def bound(self, counter: UOp) -> Array:
        """Where the loop ends, in each lane, as int64."""
        end = np.asarray(counter.arg.size)
        if not counter.src:
            return end
        (source,) = counter.src
        given = self.value(source)
        limit = min(counter.arg.size, source.dtype.max)
        return np.asarray(np.minimum(given, given.dtype.type(limit)).astype(np.int64))

    def trial(self, counters: Sequence[UOp], start: int, count: int) -> LoopScope:
        """A scope in which nothing is active, to compute indices in.

        The first loop stands at `count` iterations from `start` on, the others at all of theirs.
        """
        numbers = [np.arange(start, start + count), *(np.arange(c.arg.size) for c in counters[1:])]
        shape = (*self.active.shape, *map(len, numbers))
        inner = self.inner(np.broadcast_to(False, shape))
        for axis, (counter, values) in enumerate(zip(counters, numbers, strict=True), self.lanes):
            around = [1] * len(shape)
            around[axis] = len(values)
            inner.values[counter] = values.reshape(around)
        return inner

    def raw(self, node: UOp) -> Any:  # noqa: ANN401 - an array, a Place, or None of an effect
        """What the node was computed to be, in this scope or around it."""
        scope: LoopScope | None = self
        while scope is not None:
            if node in scope.values:
                return self.lift(scope.values[node], scope.lanes)
            scope = scope.parent
        raise CompilerError(f"expected {node!r} to be computed before it is used")

    def lift(self, found: Any, lanes: int) -> Any:  # noqa: ANN401
        """What was found where fewer loops were open, with axes of size 1 for the others."""
        if lanes == self.lanes or found is None:
            return found
        shape = (*found.shape[:lanes], *(1,) * (self.lanes - lanes), *found.shape[lanes:])
        if isinstance(found, Place):
            numbers = None if found.numbers is None else found.numbers.reshape(shape)
            return Place(found.storage, shape, numbers, found.faults)
        return found.reshape(shape)

    def knows(self, node: UOp) -> bool:
        """Whether the node was computed, here or around."""
        scope: LoopScope | None = self
        while scope is not None and node not in scope.values:
            scope = scope.parent
        return scope is not None

    def storage(self, place: UOp) -> Storage | None:
        """The storage that a place lies in, of which it may be still to be computed which part.

        None where nothing can be written: an input, or a value that is indexed.
        """
        while not self.knows(place):
            place = place.src[0]
        found = self.raw(place)
        return found.storage if isinstance(found, Place) else None

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
        return array.reshape((*shape[: self.lanes], *(1,) * new, *shape[self.lanes :]))

    def operands(self, node: UOp) -> list[Array]:
        """The values of the sources, aligned to broadcast."""
        return [self.value(source, len(node.shape)) for source in node.src]

    def wanted(self, place: Place, gate: UOp | None = None) -> Array:
        """Which elements of a place are accessed: of active iterations, where the gate is true."""
        rank = len(place.shape) - self.lanes
        active = self.active.reshape((*self.active.shape, *(1,) * rank))
        return active if gate is None else active & self.value(gate, rank)

    def enter(self, call: UOp) -> LoopScope:
        """A scope for the body of a CALL, which sees its arguments and none of these values."""
        arguments = {slot: self.raw(source) for slot, source in enumerate(call.src[1:])}
        return LoopScope(
            self.table, arguments, self.memory, self.memory.body(call.src[0]), self.active
        )
