"""From the trace of a function to one program.

    RETURN(result…, AFTER(0, STORE(AFTER(b, LOAD b), new)…))

Tensors that were assigned are BUFFERs b; every old value is read before it is replaced. Arguments,
other tensors that were read, and gradients that were there are PARAMs. PARAMs and BUFFERs are
numbered as they are met, so that functions that do the same are one program. The STOREs that
need least come first: each weight is replaced as soon as its gradient is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

from week01_uops.dtypes import int64
from week01_uops.node import UOp, const, make, toposort
from week01_uops.ops import PARAM, RETURN, ParamArg
from week02_render.ops import AFTER, BUFFER, LOAD, STORE, StorageArg
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.later import in_order
from week09_10_autodiff.ops import NAMES, bare
from week09_10_autodiff.storage import storage_of
from week09_10_autodiff.structure import rebuilt
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.tracing import Change, Trace, leaf_below


class Output:
    """The place of a tensor among the program's outputs."""

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass
class Plan:
    """The program of a trace, and what its parts stand for.

    Attributes:
        program: the program.
        arguments: slot → the number of the argument.
        gradients: slot → the tensor whose gradient is the input.
        leaves: slot → the leaf that is the input, and the tensors that have it.
        states: the tensors that are BUFFERs, by slot.
        wanted: how many outputs are results; one more waits for the STOREs.
        result: what is returned, with `Output` where a tensor is.
        values: arguments by number, or other tensors, that get an output as their value.
        made: tensors that get an output as their gradient.
        cleared: tensors whose gradient is gone afterwards.
    """

    program: UOp
    arguments: dict[int, int] = field(default_factory=dict)
    gradients: dict[int, Tensor] = field(default_factory=dict)
    leaves: dict[int, tuple[UOp, list[ref[Tensor]]]] = field(default_factory=dict)
    states: list[Tensor] = field(default_factory=list)
    wanted: int = 0
    result: Any = None
    values: list[tuple[int | ref[Tensor], int]] = field(default_factory=list)
    made: list[tuple[Tensor, int]] = field(default_factory=list)
    cleared: list[Tensor] = field(default_factory=list)


class SharedLeavesError(Exception):
    """Tensors that are changed, but have their value in common with others that are read."""

    def __init__(self, tensors: list[Tensor]) -> None:
        super().__init__("tensors that are changed share their values with others")
        self.tensors = tensors


def plan_of(trace: Trace, arguments: Sequence[Tensor]) -> Plan:
    """The program of what a function did to arguments; the trace gives up its result.

    Raises:
        SharedLeavesError: the values of some tensors have to be moved apart first.
    """
    return _Planner(trace, arguments).plan()


@dataclass
class _State:
    """A tensor that is changed in place."""

    tensor: Tensor
    after: UOp
    place: UOp | None = None


class _Planner:
    """The making of one plan."""

    def __init__(self, trace: Trace, arguments: Sequence[Tensor]) -> None:
        self.trace = trace
        self.numbers = {bare(tensor.node): k for k, tensor in enumerate(arguments)}
        self.fresh = {id(tensor): k for k, tensor in enumerate(arguments)}
        self.wanted: list[UOp] = []
        self.states: dict[UOp, _State] = {}
        self.inputs: dict[UOp, UOp] = {}
        self.done: dict[UOp, UOp] = {}
        self.found = Plan(make(RETURN, (const(0, int64),)))

    def plan(self) -> Plan:
        """The plan."""
        self.found.result = rebuilt(self.trace.result, self._returned)
        self.trace.result = None  # tensors that live in it alone are no state
        for key, change in self.trace.changes.items():
            self._assigned(key, change)
        self._expect_apart()
        self._gradients()
        outputs = [self._rebuilt(node) for node in self.wanted]
        stores = self._stores()
        if stores or not outputs:
            outputs.append(make(AFTER, (const(0, int64), *stores)) if stores else const(0, int64))
        self.found.program = in_order(make(RETURN, tuple(outputs)))
        self.found.wanted = len(self.wanted)
        return self.found

    def _output(self, node: UOp) -> int:
        self.wanted.append(node)
        return len(self.wanted) - 1

    def _returned(self, value: object) -> object:
        """A tensor that is changed in place is returned as it is; of others, their values."""
        if not isinstance(value, Tensor):
            return value
        change = self.trace.changes.get(id(value))
        if change is not None and id(value) not in self.fresh and _is_state(change):
            return value
        after = change.after if change is not None and change.after is not None else value.node
        return Output(self._output(after))

    def _assigned(self, key: int, change: Change) -> None:
        tensor = change.tensor()
        if tensor is None or change.after is None or bare(change.after) is bare(change.before[0]):
            return
        if key in self.fresh:
            self.found.values.append((self.fresh[key], self._output(change.after)))
        elif not _is_state(change):
            self.found.values.append((change.tensor, self._output(change.after)))
        elif (node := bare(change.before[0])) in self.states:
            raise SharedLeavesError([self.states[node].tensor, tensor])
        else:
            self.states[node] = _State(tensor, change.after)

    def _expect_apart(self) -> None:
        """Nobody else whom the function read has the leaf of a tensor that is changed."""
        shared: dict[int, Tensor] = {}
        for reference in self.trace.read.values():
            tensor = reference()
            state = self.states.get(leaf_below(tensor)) if tensor is not None else None  # type: ignore[arg-type]
            if state is not None and state.tensor is not tensor:
                shared[id(state.tensor)] = state.tensor
        if shared:
            raise SharedLeavesError(list(shared.values()))

    def _gradients(self) -> None:
        """A gradient is a result, but not if the tensor that it was for has been changed by it."""
        changed = {id(state.tensor) for state in self.states.values()}
        for tensor, node in self.trace.gradients:
            if node is None or id(tensor) in changed:
                self.found.cleared.append(tensor)
            else:
                self.found.made.append((tensor, self._output(node)))

    # The program

    def _rebuilt(self, root: UOp) -> UOp:
        for node in toposort((root,), self._needed):
            if node not in self.done:
                self.done[node] = self._new(node)
        return self.done[root]

    def _needed(self, node: UOp) -> tuple[UOp, ...]:
        if node in self.done:
            return ()
        return node.src[:1] if node.op in NAMES else node.src

    def _new(self, node: UOp) -> UOp:
        if node in self.states:
            return make(LOAD, (self._place(node),))
        if node.op is PARAM:
            return self._input(node)
        if node.op in NAMES:
            return self.done[node.src[0]]
        return make(node.op, tuple([self.done[s] for s in node.src]), node.arg)

    def _place(self, node: UOp) -> UOp:
        state = self.states[node]
        if state.place is None:
            arg = StorageArg(len(self.found.states), node.dtype, node.shape)
            state.place = make(BUFFER, (), arg)
            self.found.states.append(state.tensor)
        return state.place

    def _input(self, node: UOp) -> UOp:
        slot = len(self.inputs)
        self.inputs[node] = make(PARAM, (), ParamArg(slot, node.dtype, node.shape))
        if node in self.numbers:
            self.found.arguments[slot] = self.numbers[node]
        elif node in self.trace.held:
            self.found.gradients[slot] = self.trace.held[node]
        elif storage_of(node) is not None:
            self.found.leaves[slot] = node, self._readers(node)
        else:
            name = self.trace.name
            raise TensorError(
                f"expected tensors with elements in {name}, got one that a function made while "
                "jit captured it; return what is to be used outside"
            )
        return self.inputs[node]

    def _readers(self, node: UOp) -> list[ref[Tensor]]:
        tensors = [(reference, reference()) for reference in self.trace.read.values()]
        return [r for r, tensor in tensors if tensor is not None and leaf_below(tensor) is node]

    def _stores(self) -> list[UOp]:
        found: list[tuple[int, int, UOp]] = []
        depths: dict[UOp, int] = {}
        for node, state in self.states.items():
            new = self._rebuilt(state.after)
            for below in toposort((new,), lambda n: () if n in depths else n.src):
                depths.setdefault(below, 1 + max([depths[s] for s in below.src], default=0))
            place = self._place(node)
            store = make(STORE, (make(AFTER, (place, make(LOAD, (place,)))), new))
            found.append((depths[new], len(found), store))
        return [store for _, _, store in sorted(found, key=lambda item: item[:2])]


def _is_state(change: Change) -> bool:
    """Whether a tensor had elements before the function changed it."""
    node = bare(change.before[0])
    return not node.src and storage_of(node) is not None
