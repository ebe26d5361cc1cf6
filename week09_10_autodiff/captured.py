"""A captured function, to be carried out as often as wanted: one call of one compiled program.

The arrays of the tensors that it changes are the program's BUFFERs. Before each call it is seen to
it that they are still there and that nobody else looks at them (`owning`), that inputs are where
the tensors are, and that what the function found out of gradients still holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

from week01_uops.node import UOp
from week02_render.buffers import Array, aligned_empty
from week02_render.runtime import BoundCall
from week09_10_autodiff.owning import Cell, cell_of, take, unowned
from week09_10_autodiff.planning import Output, Plan
from week09_10_autodiff.realize import PROGRAMS
from week09_10_autodiff.storage import LOCK, Storage, leaf, storage_of
from week09_10_autodiff.structure import Kind, rebuilt
from week09_10_autodiff.tensor import Tensor


class RecaptureError(Exception):
    """The program does not fit what tensors have become; says why."""


class _Read(NamedTuple):
    """A tensor that is an input, and the leaf that it had when it was last looked at."""

    tensor: ref[Tensor]
    leaf: ref[UOp]
    slot: int


class Captured:
    """The program of a plan, with its arrays.

    Args:
        plan: what was captured.
        pinned: objects that have to live as long as this.
    """

    def __init__(self, plan: Plan, pinned: Sequence[object]) -> None:
        self.pinned = pinned
        self.program = plan.program
        self._loaded = PROGRAMS.get(plan.program)
        self._arguments, self._gradients = plan.arguments, plan.gradients
        self._result, self._values = plan.result, plan.values
        self._made, self._cleared = plan.made, plan.cleared
        self._had = [(t, t.grad is not None) for t in (*(t for t, _ in plan.made), *plan.cleared)]
        self._wanted = plan.wanted
        self._states = plan.states
        self._cells: list[Cell] = []
        self._arrays: list[Array] = []
        self._changed: set[int] = set()
        self._reads: list[_Read] = []
        self._inputs: dict[int, Array] = {}
        for slot, (node, tensors) in plan.leaves.items():
            storage = storage_of(node)
            assert storage is not None
            self._inputs[slot] = storage.array
            self._reads += [_Read(tensor, ref(node), slot) for tensor in tensors]
        self._call: BoundCall | None = None

    def __call__(self, arguments: Sequence[Tensor]) -> Any:  # noqa: ANN401 - what the function returns
        """Carry it out.

        Raises:
            RecaptureError: it has to be captured again; nothing was done.
        """
        with LOCK:
            for tensor, had in self._had:
                if (tensor.grad is not None) is not had:
                    raise RecaptureError(_gradient_reason(tensor, had))
            inputs = self._computed(arguments)
            self._read_again()
            self._settle_states()
            given = [(slot, self._apart(tensor)) for slot, tensor in inputs]
            call = self._call
            if call is None:
                call = self._call = self._bound(given)
            for slot, array in given:
                if call.inputs[slot] is not array:
                    call.set_input(slot, array)
            outputs = call.renew_outputs(self._wanted)
            call()
            return self._returned(arguments, outputs)

    def _bound(self, given: Sequence[tuple[int, Array]]) -> BoundCall:
        inputs = {**self._inputs, **dict(given)}
        return self._loaded.bind(inputs, buffers=dict(enumerate(self._arrays)))

    # Inputs

    def _computed(self, arguments: Sequence[Tensor]) -> list[tuple[int, Tensor]]:
        """Arguments and gradients by slot, with their elements."""
        tensors = [(slot, arguments[k]) for slot, k in self._arguments.items()]
        for slot, owner in self._gradients.items():
            if owner.grad is None:
                raise RecaptureError(_gradient_reason(owner, True))
            tensors.append((slot, owner.grad))
        missing = [tensor for _, tensor in tensors if storage_of(tensor.node) is None]
        if missing:
            missing[0].realize(*missing[1:])
        return tensors

    def _apart(self, tensor: Tensor) -> Array:
        """Where an input lies; a copy if it is changed in place."""
        storage = storage_of(tensor.node)
        assert storage is not None
        array = storage.array
        if id(array) not in self._changed:
            return array
        copy = aligned_empty(array.shape, tensor.dtype)
        copy[...] = array
        return copy

    def _read_again(self) -> None:
        """Tensors that were assigned since: the inputs are where they are now."""
        changed = set()
        for tensor_of, leaf_of, slot in self._reads:
            tensor = tensor_of()
            if tensor is not None and tensor._node is not leaf_of():
                changed.add(slot)
        for slot in changed:
            self._look(slot)

    def _look(self, slot: int) -> None:
        wanted = self._loaded.signature.inputs[slot]
        reads = [r for r in self._reads if r.slot == slot and r.tensor() is not None]
        tensors = [tensor for r in reads if (tensor := r.tensor()) is not None]
        for tensor in tensors:
            if (tensor.dtype, tensor.shape) != (wanted.dtype, wanted.shape):
                now = Kind(tensor.dtype, tensor.shape)
                raise RecaptureError(f"a tensor that it reads was {wanted} and is {now}")
        arrays = [tensor.storage().array for tensor in tensors]
        if any(array is not arrays[0] for array in arrays):
            raise RecaptureError(f"two tensors {wanted} that had one value have two by now")
        self._reads = [r for r in self._reads if r.slot != slot]
        self._reads += [_Read(ref(tensor), ref(tensor.node), slot) for tensor in tensors]
        self._inputs[slot] = arrays[0]
        if self._call is not None:
            self._call.set_input(slot, arrays[0])

    # State

    def _settle_states(self) -> None:
        """All tensors that will be changed lie in arrays of their own."""
        if len(self._cells) < len(self._states):
            self._cells = [cell_of(tensor) for tensor in self._states]
            self._arrays = [cell.array for cell in self._cells]
            moved = list(range(len(self._states)))
        else:
            moved = unowned(self._states, self._cells, self._arrays)
        for slot in moved:
            array = self._arrays[slot] = take(self._states[slot], self._cells[slot])
            if self._call is not None:
                self._call.set_buffer(slot, array)
        if moved:
            self._changed = set(map(id, self._arrays))

    # Results

    def _returned(self, arguments: Sequence[Tensor], outputs: Sequence[Array]) -> Any:  # noqa: ANN401
        def tensor(value: object) -> object:
            if isinstance(value, Output):
                return Tensor._of(leaf(Storage(outputs[value.number])))
            return value

        for target, number in self._values:
            changed = arguments[target] if isinstance(target, int) else target()
            if changed is not None:
                changed._lie_in(Storage(outputs[number]))
        for owner, number in self._made:
            owner.grad = Tensor._of(leaf(Storage(outputs[number])))
        for owner in self._cleared:
            owner.grad = None
        return rebuilt(self._result, tensor)


def _gradient_reason(tensor: Tensor, had: bool) -> str:
    kind = Kind(tensor.dtype, tensor.shape)
    return f"a tensor {kind} had {'a' if had else 'no'} gradient and has {'none' if had else 'one'}"
