"""A function carried out once, to see what it computes of what, and what it changes.

The function is given tensors over placeholders, of which nobody knows the elements. When it is
done, every tensor is what it was before; what became of each is in the `Trace`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

from week01_uops.node import UOp, toposort
from week01_uops.ops import PARAM
from week09_10_autodiff.context import traced_by
from week09_10_autodiff.core import variables
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.ops import bare
from week09_10_autodiff.storage import placeholder, storage_of
from week09_10_autodiff.tensor import Tensor

Look = tuple[UOp, bool, bool]
"""A tensor's node, whether it requires grad, and whether it is a leaf."""


@dataclass
class Change:
    """A tensor that a function assigned.

    Attributes:
        tensor: weakly, for it may be the function's own.
        before: what it was.
        after: its node when the function was done.
    """

    tensor: ref[Tensor]
    before: Look
    after: UOp | None = None


@dataclass
class Trace:
    """What a function did.

    Attributes:
        name: of the function, for errors.
        changes: the tensors that it assigned, by identity, in the order of their first change.
        read: the tensors that operations read.
        held: placeholders for gradients that were there → whose gradient.
        gradients: tensors of which the gradient is another one afterwards, or none.
        result: what the function returned.
    """

    name: str
    changes: dict[int, Change] = field(default_factory=dict)
    read: dict[int, ref[Tensor]] = field(default_factory=dict)
    held: dict[UOp, Tensor] = field(default_factory=dict)
    gradients: list[tuple[Tensor, UOp | None]] = field(default_factory=list)
    result: Any = None

    # What tensors tell

    def used(self, tensors: Sequence[object]) -> None:
        """An operation reads these tensors."""
        for tensor in tensors:
            assert isinstance(tensor, Tensor)
            known = self.read.get(id(tensor))
            if known is None or known() is not tensor:
                self.read[id(tensor)] = ref(tensor)

    def assigning(self, tensor: object) -> None:
        """A tensor is about to be changed."""
        assert isinstance(tensor, Tensor)
        known = self.changes.get(id(tensor))
        if known is None or known.tensor() is not tensor:
            look = tensor._node, tensor._requires_grad, tensor._is_leaf
            self.changes[id(tensor)] = Change(ref(tensor), look)

    def realizing(self, nodes: Sequence[UOp]) -> None:
        """Nobody knows the elements yet."""
        wanted = "no elements to be asked for (item, numpy, tolist, print, if, realize)"
        raise TensorError(f"expected {wanted} while jit captures {self.name}: they come later")

    # Carrying out

    def run(self, function: Callable[[], Any]) -> Trace:
        """Carry out a function, and take back what it changed."""
        owners = [tensor for tensor in variables() if isinstance(tensor, Tensor)]
        gradients = [owner.grad for owner in owners]
        try:
            shown = [self._held(owner) for owner in owners]
            with traced_by(self):
                self.result = function()
            for change in self.changes.values():
                changed = change.tensor()
                change.after = None if changed is None else changed.node
            for owner, before in zip(owners, shown, strict=True):
                if owner.grad is not before:
                    self.gradients.append((owner, None if owner.grad is None else owner.grad.node))
        finally:
            self._take_back()
            for owner, gradient in zip(owners, gradients, strict=True):
                owner.grad = gradient
        return self

    def _held(self, tensor: Tensor) -> Tensor | None:
        """Show a placeholder for the gradient that a tensor has."""
        if tensor.grad is not None:
            node = placeholder(tensor.grad.dtype, tensor.grad.shape)
            self.held[node] = tensor
            tensor.grad = Tensor._of(node)
        return tensor.grad

    def _take_back(self) -> None:
        for change in self.changes.values():
            tensor = change.tensor()
            if tensor is not None:
                tensor._node, tensor._requires_grad, tensor._is_leaf = change.before

    # What is found out

    def pending(self) -> list[Tensor]:
        """Tensors that are read or assigned and outlive the function, and are not computed yet."""
        found = [reference() for reference in self.read.values()]
        found += [change.tensor() for change in self.changes.values()]
        return [t for t in found if t is not None and not t.is_realized and is_known(t.node)]


def is_known(node: UOp) -> bool:
    """Whether an expression depends on nothing but what has elements."""
    return all(n.op is not PARAM or storage_of(n) is not None for n in toposort((node,)))


def leaf_below(tensor: Tensor) -> UOp | None:
    """The leaf that a tensor's elements are known by; None if it is an expression."""
    node = bare(tensor.node)
    return node if not node.src and storage_of(node) is not None else None
