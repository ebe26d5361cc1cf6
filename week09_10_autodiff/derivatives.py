"""`backward` and `grad`: derivatives of tensors with respect to tensors, as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from week01_uops.errors import ProgramError
from week01_uops.node import UOp, toposort
from week03_loops.library import add
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.core import Core, owner
from week09_10_autodiff.errors import TensorError, converted
from week09_10_autodiff.gradients import gradient as gradients_of
from week09_10_autodiff.ops import DETACH
from week09_10_autodiff.pending import realize_later

T = TypeVar("T", bound=Core)


class Derivatives(Core):
    """`backward`, on tensors."""

    __slots__ = ()

    def backward(
        self,
        gradient: Core | None = None,
        *,
        retain_graph: bool = True,
        create_graph: bool = False,
    ) -> None:
        """Add the derivatives of this value to `grad` of every variable that it depends on.

        For a value y of any shape and ȳ of the same shape, x.grad += ∂⟨y, ȳ⟩/∂x; ȳ is 1 if it is
        not given and y is a scalar. Nothing is computed: the derivatives are expressions.

        Args:
            gradient: ȳ.
            retain_graph: accepted as PyTorch's; expressions are kept in any case.
            create_graph: the derivatives can be derived again.

        Raises:
            TensorError: nothing requires grad, or an operation has no derivative.
        """
        found = _variables(self._node)
        bars = _derived("backward", self, [node for node, _ in found], gradient)
        for (_, tensor), bar in zip(found, bars, strict=True):
            part = tensor._of(bar, requires_grad=True)
            part = part if create_graph else part.detach()
            known = tensor.grad
            tensor.grad = part if known is None else known._binary("backward", add, part)
        realize_later(self)


def grad(y: Core, xs: T | Sequence[T], gradient: Core | None = None) -> T | list[T]:
    """The derivatives ∂⟨y, ȳ⟩/∂x of a tensor with respect to others, which can be derived again.

    One tensor for one x, a list for several. An x on which y does not depend gets zeros. ȳ is 1
    if it is not given and y is a scalar.

    Raises:
        TensorError: y does not depend on what requires grad, or has no derivative.
    """
    wanted = [xs] if isinstance(xs, Core) else list(xs)
    nodes = [_versions(y._node, x) for x in wanted]
    flat = [node for versions in nodes for node in versions]
    bars = dict(zip(flat, _derived("grad", y, flat, gradient), strict=True))
    results = [_total(x, [bars[node] for node in of]) for x, of in zip(wanted, nodes, strict=True)]
    return results[0] if isinstance(xs, Core) else results


def _total(x: T, bars: Sequence[UOp]) -> T:
    total = bars[0]
    for bar in bars[1:]:
        total = add(total, bar)
    return x._of(total, requires_grad=True)


def _versions(root: UOp, x: Core) -> list[UOp]:
    """The nodes below the root that are values of x, which may have been changed since."""
    return [node for node, tensor in _variables(root) if tensor is x] or [x._node]


def _variables(root: UOp) -> list[tuple[UOp, Core]]:
    """The variables that a node depends on, with the tensors that they belong to."""
    order = toposort((root,), lambda node: () if node.op is DETACH else node.src)
    found = [(node, owner(node)) for node in order]
    return [(node, tensor) for node, tensor in found if tensor is not None]


def _derived(name: str, y: Core, nodes: Sequence[UOp], bar: Core | None) -> list[UOp]:
    """The derivatives of ⟨y, ȳ⟩ with respect to nodes; TensorErrors say what stands against it."""
    if CONTEXT.tracer is not None:
        CONTEXT.tracer.used((y,) if bar is None else (y, bar))
    if not y._requires_grad:
        raise TensorError(f"{name}: expected a tensor that depends on one that requires grad")
    if bar is None and y._node.shape:
        got = f"got the shape {list(y.shape)}; sum it, or give the gradient to start from"
        raise TensorError(f"{name}: expected a scalar, {got}")
    if bar is not None and (bar.shape, bar.dtype) != (y.shape, y.dtype):
        wanted = f"a gradient of {y.dtype}{list(y.shape)}"
        raise TensorError(f"{name}: expected {wanted}, got {bar.dtype}{list(bar.shape)}")
    try:
        return gradients_of(y._node, nodes, None if bar is None else bar._node)
    except ProgramError as error:
        raise converted(error, name) from None
