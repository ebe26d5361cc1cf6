"""A workload: a tensor program, how others do the same, and what its right answer is."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from week01_uops import ops
from week01_uops.dtypes import float32
from week01_uops.node import Shape, UOp
from week03_loops.ops import REDUCE

Array = NDArray[Any]
Way = Callable[..., Any]
"""way(module, out, *inputs) → the result; it is `out` where the library can write to an array."""

COUNTED = frozenset({ops.ADD, ops.MUL, ops.MAX, ops.EXP2, ops.LOG2, ops.RECIP})
UNIT = 2.0**-24
SAFETY = 4.0
"""λ of Higham and Mary, "A new approach to probabilistic rounding error analysis" (2019)."""


def size_of_result(exact: Array, *inputs: Array) -> Array:
    """Errors are relative to the result."""
    return np.abs(exact)


@dataclass(frozen=True)
class Workload:
    """One case of a suite; all arrays are float32.

    Attributes:
        name: words and sizes, the family first: "softmax.1024x4096".
        shapes: of the inputs.
        build: from one PARAM an input to the value.
        exact: from float64 inputs to the float64 result.
        ways: how NumPy, PyTorch and others do it, by their names.
        size: (exact, *inputs) → the size of the terms that each element is made from.
        terms: roundings on the way to an element: it may be off by SAFETY·√terms·2⁻²⁴·size.
        positive: inputs are drawn from [0, 1) and not from a normal distribution.
        useful: the part of the counted operations that the result needs.
    """

    name: str
    shapes: tuple[Shape, ...]
    build: Callable[..., UOp]
    exact: Callable[..., Array]
    ways: Mapping[str, Way] = field(default_factory=dict)
    size: Callable[..., Array] = size_of_result
    terms: float = 16
    positive: bool = False
    useful: float = 1.0

    @cached_property
    def program(self) -> UOp:
        """The tensor program."""
        params = [ops.param(slot, float32, shape) for slot, shape in enumerate(self.shapes)]
        result: UOp = ops.RETURN(self.build(*params))
        return result

    @property
    def shape(self) -> Shape:
        """Of the result."""
        return self.program.src[0].shape

    @property
    def flops(self) -> float:
        """Float operations that the result needs."""
        return self.useful * sum(map(_operations, self.program.toposort()))

    @property
    def bytes(self) -> int:
        """What any program must read and write at least."""
        return 4 * sum(int(np.prod(shape)) for shape in (*self.shapes, self.shape))

    def draw(self, seed: int) -> list[Array]:
        """Inputs that follow from the seed."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        drawn = rng.random if self.positive else rng.standard_normal
        return [drawn(shape, dtype=np.float32) for shape in self.shapes]

    def answer(self, inputs: list[Array]) -> Answer:
        """The right result for these inputs."""
        wide = [x.astype(np.float64) for x in inputs]
        exact = np.asarray(self.exact(*wide))
        allowed = SAFETY * np.sqrt(self.terms) * UNIT * self.size(exact, *wide)
        return Answer(exact, allowed)


def _operations(node: UOp) -> int:
    if not node.dtype.is_float:
        return 0
    if node.op is REDUCE:
        return node.src[0].size
    return node.size if node.op in COUNTED else 0


@dataclass(frozen=True, eq=False)
class Answer:
    """A right result in float64, and how far off each element may be."""

    exact: Array
    allowed: Array

    def fault(self, got: Array) -> str:
        """What is wrong with a result, in words; empty if it is right."""
        if got.shape != self.exact.shape or got.dtype != np.float32:
            shape = list(self.exact.shape)
            return f"expected float32{shape}, got {got.dtype}{list(got.shape)}"
        with np.errstate(invalid="ignore", over="ignore"):
            right = np.abs(got - self.exact) <= self.allowed
        if right.all():
            return ""
        at = tuple(int(i) for i in np.argwhere(~right)[0])
        wrong = right.size - int(np.count_nonzero(right))
        return (
            f"element {list(at)}: expected {self.exact[at]:.8g} within {self.allowed[at]:.2g}, "
            f"got {got[at]:.8g} ({wrong} of {right.size} are wrong)"
        )
