"""What a program means: an interpreter over NumPy arrays, slow and obvious.

It is the oracle of every test, so it shares nothing with the rewriting rules. A row of the
table says what one op computes from the values of its sources; a week extends the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from week01_uops import numerics, ops
from week01_uops.dtypes import DType
from week01_uops.errors import CompilerError
from week01_uops.node import CONST, Op, UOp, toposort
from week01_uops.numerics import Array

Inputs = Mapping[int, Any] | Sequence[Any]
State = dict[int, Array]


class Scope:
    """The values known while a program, or the body of one CALL, runs.

    Attributes:
        table: what each op means.
        values: of the nodes computed so far; each is dropped after its last use.
    """

    def __init__(self, table: Mapping[Op, Meaning], arguments: Mapping[int, Any]) -> None:
        self.table = table
        self.arguments = arguments
        self.values: dict[UOp, Any] = {}

    def operands(self, node: UOp) -> list[Array]:
        """The values of a node's sources."""
        return [self.values[source] for source in node.src]

    def needs(self, node: UOp) -> tuple[UOp, ...]:
        """The nodes that are computed before this one."""
        return node.src[1:] if node.op is ops.CALL else node.src

    def forget(self, node: UOp) -> None:
        """Drop a value after its last use."""
        self.values.pop(node, None)

    def order(self, root: UOp) -> list[UOp]:
        """The nodes to compute for `root`: sources first, from left to right."""
        return toposort((root,), self.needs)

    def enter(self, call: UOp) -> Scope:
        """A scope for the body of a CALL, its PARAMs bound to the arguments."""
        return Scope(self.table, {k: self.values[s] for k, s in enumerate(call.src[1:])})

    def compute(self, node: UOp) -> Any:  # noqa: ANN401 - a value, or from week 2 on a place
        """The value of a node whose sources are known."""
        meaning = self.table.get(node.op)
        if meaning is None:
            raise CompilerError(f"expected an op with a meaning, got {node.op}, at {node!r}")
        return meaning(self, node)


Meaning = Callable[[Any, UOp], Any]
"""From the scope and a node of the op to the node's value."""

Task = tuple[Scope, Sequence[UOp]]


def run(scope: Scope, nodes: Sequence[UOp]) -> None:
    """Compute the nodes in order. Bodies of CALLs are entered without recursion."""
    tasks = [_steps(scope, nodes)]
    while tasks:
        deeper = next(tasks[-1], None)
        if deeper is None:
            tasks.pop()
        else:
            tasks.append(_steps(*deeper))


def _steps(scope: Scope, nodes: Sequence[UOp]) -> Iterator[Task]:
    """Compute the nodes; yield the bodies of CALLs that must be run in between."""
    uses = Counter(source for node in nodes for source in scope.needs(node))
    for node in nodes:
        if node.op is ops.CALL:
            inner = scope.enter(node)
            yield inner, inner.order(node.src[0])
            scope.values[node] = inner.values[node.src[0]]
        else:
            scope.values[node] = scope.compute(node)
        for source in scope.needs(node):
            uses[source] -= 1
            if not uses[source]:
                scope.forget(source)


def elementwise(function: Callable[..., Array]) -> Meaning:
    """The meaning of an op that computes each element from the sources' elements and dtype."""
    return lambda scope, node: function(node.src[-1].dtype, *scope.operands(node))


def _const(scope: Scope, node: UOp) -> Array:
    return numerics.constant(node.arg.value, node.dtype)


def _param(scope: Scope, node: UOp) -> Any:  # noqa: ANN401
    return scope.arguments[node.arg.slot]


def _cast(scope: Scope, node: UOp) -> Array:
    return numerics.cast(scope.operands(node)[0], node.dtype)


def _return(scope: Scope, node: UOp) -> list[Array]:
    return [np.array(output) for output in scope.operands(node)]


MEANING: Mapping[Op, Meaning] = {
    CONST: _const,
    ops.PARAM: _param,
    ops.RETURN: _return,
    ops.CAST: _cast,
    ops.NEG: elementwise(numerics.negate),
    ops.RECIP: elementwise(numerics.reciprocal),
    ops.EXP2: elementwise(numerics.exp2),
    ops.LOG2: elementwise(numerics.log2),
    ops.ADD: elementwise(numerics.add),
    ops.MUL: elementwise(numerics.multiply),
    ops.MAX: elementwise(numerics.maximum),
    ops.FLOORDIV: elementwise(numerics.floor_divide),
    ops.FLOORMOD: elementwise(numerics.floor_modulo),
    ops.CMPLT: elementwise(numerics.less),
    ops.CMPNE: elementwise(numerics.differ),
    ops.WHERE: elementwise(numerics.select),
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
        state: unused before week 2.

    Raises:
        ValueError: an input is missing, or has another dtype, shape or range than its PARAM.
    """
    scope = Scope(MEANING if table is None else table, checked(program, inputs))
    with np.errstate(all="ignore"):
        run(scope, scope.order(program))
    outputs: list[Array] = scope.values[program]
    return outputs


def checked(program: UOp, inputs: Inputs) -> dict[int, Array]:
    """The arrays of a program's PARAMs by slot; ValueError where one does not fit."""
    given = inputs if isinstance(inputs, Mapping) else dict(enumerate(inputs))
    return {
        slot: _checked_input(param, given)
        for slot, param in sorted(ops.parameters(program).items())
    }


def _checked_input(param: UOp, given: Mapping[int, Any]) -> Array:
    slot, dtype = param.arg.slot, param.dtype
    wanted = f"expected {dtype}{list(param.shape)} for slot {slot}"
    if slot not in given:
        raise ValueError(f"{wanted}, got no input")
    array = np.asarray(given[slot])
    if array.dtype != dtype.numpy or array.shape != param.shape:
        raise ValueError(f"{wanted}, got {array.dtype}{list(array.shape)}")
    low, high = param.arg.range or (dtype.min, dtype.max)
    if _may_leave(param) and not all(low <= int(v) <= high for v in np.unique(array)):
        raise ValueError(f"{wanted} within [{low}, {high}], got {np.unique(array)[[0, -1]]}")
    return array


def _may_leave(param: UOp) -> bool:
    """Whether an array of the right NumPy type may hold a value that the PARAM may not."""
    dtype: DType = param.dtype
    return dtype.is_int and (param.arg.range is not None or dtype.numpy.itemsize * 8 != dtype.bits)
