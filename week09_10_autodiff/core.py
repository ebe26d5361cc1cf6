"""What every tensor has: an expression, its value when it is asked for, and derivatives.

The methods that compute something are in the classes that `tensor.Tensor` is put together from;
each of them makes a new expression with `_apply` or `_binary` and computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self
from weakref import WeakKeyDictionary, ref

import numpy as np

from week01_uops.dtypes import DType, Value, float32
from week01_uops.errors import ProgramError
from week01_uops.node import Shape, UOp
from week01_uops.ops import PARAM
from week02_render.buffers import Array
from week03_loops.library import cast
from week03_loops.library.arithmetic import number
from week03_loops.ops import expand
from week09_10_autodiff.arrays import copied
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.errors import TensorError, TensorTypeError, converted
from week09_10_autodiff.ops import bare, detach, variable
from week09_10_autodiff.promotion import (
    DTypeLike,
    dtype_of,
    promote,
    promote_weak,
)
from week09_10_autodiff.realize import realize
from week09_10_autodiff.storage import Storage, leaf, leaf_of, remember, storage_of

Function = Callable[..., UOp]
_owners: WeakKeyDictionary[UOp, ref[Core]] = WeakKeyDictionary()
"""Which tensor wants the derivatives with respect to a node."""


class Core:
    """An expression of a dtype and a shape; see `tensor.Tensor`.

    Attributes:
        grad: what `backward` added up, or None.
    """

    __slots__ = ("__weakref__", "_is_leaf", "_node", "_requires_grad", "grad")
    __array_priority__ = 1000

    grad: Self | None

    def __init__(
        self, data: object, dtype: DTypeLike | None = None, *, requires_grad: bool = False
    ) -> None:
        wanted = None if dtype is None else dtype_of(dtype)
        node = bare(data.node) if isinstance(data, Core) else leaf_of(copied(data, wanted))
        self._set(node if wanted is None else cast(node, wanted))
        if requires_grad:
            self.requires_grad_()

    def _set(self, node: UOp, *, requires_grad: bool = False) -> None:
        self._node, self._requires_grad, self._is_leaf = node, requires_grad, not requires_grad
        self.grad = None

    @classmethod
    def _of(cls, node: UOp, *, requires_grad: bool = False) -> Self:
        """A tensor over a node."""
        result = cls.__new__(cls)
        result._set(node, requires_grad=requires_grad)
        return result

    @property
    def node(self) -> UOp:
        """The expression: a leaf if the value is known and no derivative needs its origin."""
        return self._node

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._node.dtype

    @property
    def shape(self) -> Shape:
        """The size of each axis."""
        return self._node.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._node.shape)

    # Making expressions

    def _apply(
        self, name: str, function: Function, *others: Core | None, **options: object
    ) -> Self:
        """function(nodes of self and others, **options) as a tensor."""
        nodes = [None if t is None else t._node for t in others]
        try:
            node = function(self._node, *nodes, **options)
        except ProgramError as error:
            raise converted(error, name) from None
        return self._result(name, node, others)

    def _result(self, name: str, node: UOp, others: Sequence[Core | None] = ()) -> Self:
        """A tensor over a node that `name` made of self and others."""
        if CONTEXT.tracer is not None:
            CONTEXT.tracer.used((self, *[t for t in others if t is not None]))
        wanted = node.dtype.is_float and (
            self._requires_grad or any(t is not None and t._requires_grad for t in others)
        )
        if wanted and not CONTEXT.derives:
            node, wanted = detach(node), False
        for watcher in CONTEXT.watchers:
            watcher.saw(name, node)
        return self._of(node, requires_grad=wanted)

    def _binary(
        self,
        name: str,
        function: Function,
        other: object,
        *,
        swapped: bool = False,
        floats: bool = False,
        also: Sequence[Core] = (),
    ) -> Self:
        """function(self, other, *also) in the dtype that the first two promote to.

        `floats`: at least float32. NotImplemented, as operators want it, if the other one is no
        operand of a tensor.
        """
        if isinstance(other, np.generic):
            other = other.item()
        if isinstance(other, (bool, int, float)):
            return self._with_number(name, function, other, swapped, floats, also)
        tensor = self._operand(other)
        if tensor is None:
            missing: Self = NotImplemented
            return missing
        dtype = promote(self.dtype, tensor.dtype)
        dtype = float32 if floats and not dtype.is_float else dtype

        def promoted(a: UOp, b: UOp, *rest: UOp) -> UOp:
            a, b = cast(a, dtype), cast(b, dtype)
            return function(b, a, *rest) if swapped else function(a, b, *rest)

        return self._apply(name, promoted, tensor, *also)

    def _with_number(
        self,
        name: str,
        function: Function,
        other: Value,
        swapped: bool,
        floats: bool,
        also: Sequence[Core],
    ) -> Self:
        dtype = promote_weak(self.dtype, (other,))
        dtype = float32 if floats and not dtype.is_float else dtype
        value = other if dtype.kind == "bool" or dtype.is_float else int(other)

        def promoted(a: UOp, *rest: UOp) -> UOp:
            a, b = cast(a, dtype), number(value, dtype)
            return function(b, a, *rest) if swapped else function(a, b, *rest)

        return self._apply(name, promoted, *also)

    def _operand(self, other: object) -> Self | None:
        """A tensor from what may stand beside one; None if it is no such thing."""
        if isinstance(other, type(self)):
            return other
        if isinstance(other, (list, tuple, np.ndarray)) or hasattr(other, "__dlpack__"):
            return type(self)(other)
        return None

    def _tensor(self, name: str, other: object) -> Self:
        """A tensor from an operand of a function that takes nothing else."""
        found = type(self)(other) if isinstance(other, (int, float)) else self._operand(other)
        if found is None:
            raise TensorTypeError(f"{name}: expected a tensor, got {type(other).__name__}")
        return found

    # Values

    def realize(self, *others: Core) -> Self:
        """Compute the values of these tensors, in one program, and keep them."""
        tensors: tuple[Core, ...] = (self, *others)
        try:
            storages = realize([tensor._node for tensor in tensors])
        except ProgramError as error:
            raise converted(error, "realize") from None
        for tensor, storage in zip(tensors, storages, strict=True):
            tensor._settle(storage)
        return self

    def _settle(self, storage: Storage) -> None:
        """The value is known: let go of the expression, unless derivatives need it."""
        if self._node.op is not PARAM and (self._is_leaf or not self._requires_grad):
            self._lie_in(storage)
        elif storage_of(self._node) is None:
            remember(self._node, storage)

    def _lie_in(self, storage: Storage) -> None:
        """Be the value that lies there, by a leaf of its own."""
        self._node = leaf(storage)
        if self._requires_grad:
            _owners[self._node] = ref(self)

    @property
    def is_realized(self) -> bool:
        """Whether the value is known, so that asking for it computes nothing."""
        return storage_of(self._node) is not None

    def storage(self) -> Storage:
        """Where the elements lie; computes them."""
        self.realize()
        found = storage_of(self._node)
        assert found is not None
        return found

    def numpy(self) -> Array:
        """The elements as a NumPy array: a view that cannot be written."""
        storage = self.storage()
        storage.shared = True
        view = storage.array.view()
        view.flags.writeable = False
        return view

    def item(self) -> Value:
        """The one element as a Python number."""
        if self._node.size != 1:
            raise TensorError(f"item: expected one element, got the shape {list(self.shape)}")
        value: Value = self.storage().array.item()
        return value

    def tolist(self) -> Any:  # noqa: ANN401 - lists as deep as the tensor has axes
        """The elements as nested lists of Python numbers; one number if there are no axes."""
        return self.storage().array.tolist()

    # Derivatives

    @property
    def requires_grad(self) -> bool:
        """Whether it is a variable to derive for, or depends on one."""
        return self._requires_grad

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user rather than derived from what requires grad."""
        return self._is_leaf

    def requires_grad_(self, wanted: bool = True) -> Self:
        """Make it a variable that `backward` derives for, or a constant."""
        if not self._is_leaf:
            raise TensorError("requires_grad_: expected a leaf, got a result; detach() it first")
        if wanted and not self.dtype.is_float:
            raise TensorError(f"requires_grad_: expected a float tensor, got {self.dtype}")
        if wanted and not self._requires_grad:
            self._requires_grad = True
            self._own(self._node)
        self._requires_grad = wanted
        return self

    def _own(self, node: UOp) -> None:
        """Take a node of its own with this value, so that derivatives find this tensor."""
        storage = storage_of(node)
        self._node = variable(bare(node)) if storage is None else leaf(storage)
        _owners[self._node] = ref(self)

    def detach(self) -> Self:
        """The same value as a constant of derivatives."""
        if CONTEXT.tracer is not None:
            CONTEXT.tracer.used((self,))
        return self._of(detach(self._node) if self._requires_grad else self._node)

    def _changed(self, name: str, value: Core) -> Self:
        """Assign what was computed in place of the value."""
        if self._is_leaf and self._requires_grad and CONTEXT.derives:
            said = f"{name}: expected a tensor that does not require grad, or no_grad()"
            raise TensorError(f"{said}; derivatives of a variable that changes are not defined")
        return self.assign(value)

    def assign(self, value: Core | Value | Array | Sequence[Any]) -> Self:
        """Change the value, to one that broadcasts to the shape, in this dtype.

        Expressions that were made before keep the old value. A variable stays one, and nothing is
        derived through the assignment.
        """
        given = self._tensor("assign", value)
        try:
            node = expand(cast(given._node, self.dtype), self.shape)
        except ProgramError as error:
            raise converted(error, "assign") from None
        if CONTEXT.tracer is not None:
            CONTEXT.tracer.assigning(self)
        if self._is_leaf and self._requires_grad:
            self._own(node)
        else:
            result = given._result("assign", node)
            self._node, self._requires_grad = result._node, result._requires_grad
            self._is_leaf = not self._requires_grad
        return self


def variables() -> list[Core]:
    """All tensors that want derivatives."""
    found = dict.fromkeys(
        tensor for item in list(_owners.values()) if (tensor := item()) is not None
    )
    return [tensor for tensor in found if tensor._requires_grad]


def owner(node: UOp) -> Core | None:
    """The variable whose value a node is, if it wants derivatives."""
    found = _owners.get(node)
    tensor = None if found is None else found()
    return tensor if tensor is not None and tensor._requires_grad else None
