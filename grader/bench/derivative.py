"""A workload whose result is derivatives: the submission's `grad` makes the program that is timed.

The tensor program is a loss, a float scalar. What is timed is the program that `grad --wrt` prints
for it, or a step of training around that program. PyTorch computes the loss, then
`torch.autograd.grad`. In float64 it is the right answer as well; without PyTorch there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np

from grader.bench.contenders import optional
from grader.bench.workload import Array, Grad, Result, Workload, result_of
from grader.run_c import RunError
from grader.structure import interface_fault
from grader.verdict import Verdict
from week01_uops import ops
from week01_uops.dtypes import DType, float32, int64
from week01_uops.node import Shape, UOp

SURE = 5.5
"""Standard errors by which an estimate is too small once in 50 million times."""
TorchLoss = Callable[..., Any]
"""loss(torch, *tensors) → a scalar tensor."""


@dataclass(frozen=True)
class Input:
    """An input and how it is drawn.

    Attributes:
        scale: of a normal distribution.
        positive: drawn from [scale/2, scale) instead.
        below: drawn from the integers 0 to below − 1 instead, as int64; 0 for floats.
    """

    shape: Shape
    scale: float = 1.0
    positive: bool = False
    below: int = 0

    @property
    def dtype(self) -> DType:
        """Of the array."""
        return int64 if self.below else float32

    def draw(self, rng: np.random.Generator) -> Array:
        """An array of the distribution."""
        if self.below:
            return rng.integers(0, self.below, self.shape, dtype=np.int64)
        if self.positive:
            return rng.uniform(self.scale / 2, self.scale, self.shape).astype(np.float32)
        return rng.standard_normal(self.shape, dtype=np.float32) * np.float32(self.scale)


@dataclass(frozen=True)
class Update:
    """What becomes of the derivatives: the results in their stead.

    Attributes:
        build: (loss, derivatives, inputs) → result nodes.
        torch: (torch, loss, derivatives, inputs) → result tensors.
    """

    build: Callable[[UOp, Sequence[UOp], Sequence[UOp]], list[UOp]]
    torch: Callable[[Any, Any, Sequence[Any], Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True)
class Derivative(Workload):
    """Derivatives of a loss by the inputs of the slots `wrt`.

    Attributes:
        inputs: how they are drawn; `shapes` are theirs.
        update: what is computed of loss and derivatives; by default the derivatives are the result.
    """

    inputs: tuple[Input, ...] = field(default=(), kw_only=True)
    update: Update | None = field(default=None, kw_only=True)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """Of the inputs."""
        return tuple(given.dtype for given in self.inputs)

    @cached_property
    def outputs(self) -> tuple[Shape, ...]:
        """Shapes of the results: derivatives have those of their inputs."""
        like = [self.params[slot] for slot in self.wrt]
        return tuple(node.shape for node in self._results(like))

    def _results(self, derivatives: Sequence[UOp]) -> list[UOp]:
        if self.update is None:
            return list(derivatives)
        return self.update.build(self.program.src[0], derivatives, self.params)

    def timed(self, grad: Grad) -> UOp:
        """The program of the derivatives, by the one who is measured, and of what follows.

        Raises:
            RunError: it takes or returns something else than derivatives of this loss do.
        """
        derived = grad(self.program, self.wrt)
        wanted = [self.params[slot] for slot in self.wrt]
        fault = interface_fault(self.program, derived, wanted)
        if fault is not None:
            why = f"grad printed a program of another interface: {fault}"
            raise RunError(Verdict.WRONG, why)
        result: UOp = ops.RETURN(*self._results(derived.src))
        return result

    def draw(self, seed: int) -> list[Array]:
        """Inputs that follow from the seed."""
        rng = np.random.default_rng([seed, crc32(self.name.encode())])
        return [given.draw(rng) for given in self.inputs]


def derivative(
    name: str,
    inputs: Sequence[Input],
    wrt: Sequence[int],
    build: Callable[..., UOp],
    loss: TorchLoss,
    *,
    terms: float,
    size: Callable[..., Result] | None = None,
    update: Update | None = None,
    useful: float = 2.0,
) -> Derivative:
    """A workload from a loss in both forms.

    Args:
        name: of the case.
        inputs: in the order of the slots.
        wrt: slots of those to derive by.
        build: from one PARAM an input to the loss.
        loss: the same in PyTorch's functions.
        terms: roundings on the way to an element; see `Workload`.
        size: see `Workload`; by default `size_of_rows`.
        update: see `Derivative`.
        useful: operations that are needed, over those of the loss: 2 for the loss and one way back
            through it, 3 where each product is derived by both of its factors.
    """

    def torch(t: Any, _: Any, *tensors: Any) -> Any:  # noqa: ANN401
        return _derive(t, loss, wrt, update, tensors)

    def compile_(t: Any) -> Callable[..., Any]:  # noqa: ANN401
        compiled = t.compile(lambda *tensors: loss(t, *tensors), dynamic=False)
        after = None
        if update is not None:
            after = Update(update.build, t.compile(_bound(update), dynamic=False))
        return lambda *tensors: _derive(t, lambda _, *xs: compiled(*xs), wrt, after, tensors)

    def exact(*arrays: Array) -> Result:
        t = optional("torch")
        found = torch(t, None, *map(t.from_numpy, arrays))
        return result_of([x.numpy() for x in (found if isinstance(found, tuple) else (found,))])

    return Derivative(
        name,
        tuple(given.shape for given in inputs),
        build,
        exact,
        {"torch": torch, "compile": compile_},
        size or size_of_rows,
        terms,
        useful=useful,
        wrt=tuple(wrt),
        inputs=tuple(inputs),
        update=update,
    )


def _bound(update: Update) -> Callable[..., Any]:
    """A function that torch.compile names apart from those of other workloads."""
    return lambda *arguments: update.torch(*arguments)


def _derive(
    t: Any,  # noqa: ANN401 - the module
    loss: TorchLoss,
    wrt: Sequence[int],
    update: Update | None,
    tensors: Sequence[Any],
) -> Any:  # noqa: ANN401 - a tensor or a tuple of them
    """Forward, `torch.autograd.grad`, and what is made of it."""
    given = list(tensors)
    for slot in wrt:
        given[slot] = given[slot].detach().requires_grad_()
    value = loss(t, *given)
    found = t.autograd.grad(value, [given[slot] for slot in wrt])
    if update is not None:
        with t.no_grad():
            return tuple(update.torch(t, value.detach(), found, tensors))
    return found[0] if len(found) == 1 else tuple(found)


def size_of_rows(exact: Result, *_: Array) -> Result:
    """Errors are relative to an element plus the root mean square of its row.

    A derivative by a row of a deep net's input is a matrix times the cotangent of a row. Rounding
    disturbs that cotangent by a small part of its norm, in no direction, and so every element by a
    part of the root mean square of all (Higham, "Accuracy and Stability of Numerical Algorithms",
    2002, section 3.5). A few elements may all be small by chance: `SURE` standard errors of that
    root, each 1/√(2n) of it, are added. Rows that are 0, as of words that do not occur, must be 0.
    """
    if isinstance(exact, tuple):
        return tuple(_rows(array) for array in exact)
    return _rows(exact)


def _rows(exact: Array) -> Array:
    if not exact.size:
        return np.abs(exact)
    axis = -1 if exact.ndim else None
    root = np.sqrt(np.mean(np.square(exact), axis, keepdims=True))
    count = exact.shape[-1] if exact.ndim else 1
    size: Array = np.abs(exact) + root * (1 + SURE / math.sqrt(2 * count))
    return size
