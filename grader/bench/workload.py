"""A workload: a tensor program, how others do the same, and what its right answer is."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from week01_uops import ops
from week01_uops.dtypes import DType, float32
from week01_uops.node import Shape, UOp
from week02_render.buffers import aligned_empty
from week03_loops.ops import REDUCE

Array = NDArray[Any]
Result = Array | tuple[Array, ...]
"""What a workload gives: an array, or a tuple of several."""
Grad = Callable[[UOp, Sequence[int]], UOp]
"""The verb `grad`: the derivatives of a program's one output by slots, as a program."""
Way = Callable[..., Any]
"""way(module, out, *inputs) → the result; it is `out` where the library can write to an array.

The way "compile" is another: way(torch) → a compiled function of the inputs.
"""

COUNTED = frozenset({ops.ADD, ops.MUL, ops.MAX, ops.EXP2, ops.LOG2, ops.RECIP})
UNIT = 2.0**-24
SAFETY = 4.0
"""λ of Higham and Mary, "A new approach to probabilistic rounding error analysis" (2019)."""


def size_of_result(exact: Array, *inputs: Array) -> Array:
    """Errors are relative to the result."""
    return np.abs(exact)


@dataclass(frozen=True)
class Workload:
    """One case of a suite; all arrays are float32 here.

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
        wrt: slots of the inputs whose derivatives are the result; none, and it is the value.
    """

    name: str
    shapes: tuple[Shape, ...]
    build: Callable[..., UOp]
    exact: Callable[..., Result]
    ways: Mapping[str, Way] = field(default_factory=dict)
    size: Callable[..., Result] = size_of_result
    terms: float = 16
    positive: bool = False
    useful: float = 1.0
    wrt: tuple[int, ...] = ()

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """Of the inputs."""
        return (float32,) * len(self.shapes)

    @cached_property
    def params(self) -> tuple[UOp, ...]:
        """The inputs of the program."""
        types = enumerate(zip(self.dtypes, self.shapes, strict=True))
        return tuple(ops.param(slot, dtype, shape) for slot, (dtype, shape) in types)

    @cached_property
    def program(self) -> UOp:
        """The tensor program."""
        result: UOp = ops.RETURN(self.build(*self.params))
        return result

    def timed(self, grad: Grad) -> UOp:
        """The program that is compiled and timed; `grad` is the verb of who is measured."""
        return self.program

    @property
    def shape(self) -> Shape:
        """Of the value."""
        return self.program.src[0].shape

    @property
    def outputs(self) -> tuple[Shape, ...]:
        """Shapes of the results, which are float32."""
        return (self.shape,)

    @property
    def flops(self) -> float:
        """Float operations that the result needs."""
        return self.useful * sum(map(_operations, self.program.toposort()))

    @property
    def bytes(self) -> int:
        """What any program must read and write at least."""
        types = [*zip(self.dtypes, self.shapes, strict=True)]
        types += [(float32, shape) for shape in self.outputs]
        return sum(dtype.numpy.itemsize * math.prod(shape) for dtype, shape in types)

    def arrays(self) -> list[Array]:
        """Aligned memory for the inputs."""
        return [aligned_empty(s, d) for s, d in zip(self.shapes, self.dtypes, strict=True)]

    def results(self) -> list[Array]:
        """Aligned memory for the results."""
        return [aligned_empty(shape, float32) for shape in self.outputs]

    def draw(self, seed: int) -> list[Array]:
        """Inputs that follow from the seed."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        drawn = rng.random if self.positive else rng.standard_normal
        return [drawn(shape, dtype=np.float32) for shape in self.shapes]

    def answer(self, inputs: list[Array]) -> Answer | Answers:
        """The right result for these inputs."""
        wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs]
        exact = self.exact(*wide)
        size = self.size(exact, *wide)
        if isinstance(exact, tuple):
            return Answers(tuple(map(self._answer, exact, size)))
        return self._answer(exact, size)

    def _answer(self, exact: Array, size: Any) -> Answer:  # noqa: ANN401 - an array
        return Answer(np.asarray(exact), SAFETY * np.sqrt(self.terms) * UNIT * size)


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

    def fault(self, got: Result) -> str:
        """What is wrong with a result, in words; empty if it is right."""
        if isinstance(got, tuple):
            return f"expected one result, got {len(got)}"
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


@dataclass(frozen=True, eq=False)
class Answers:
    """Right results, one for each output.

    Attributes:
        parts: the answer of each.
    """

    parts: tuple[Answer, ...]

    def fault(self, got: Result) -> str:
        """What is wrong with the first wrong result, in words; empty if all are right."""
        if not isinstance(got, tuple) or len(got) != len(self.parts):
            count = len(got) if isinstance(got, tuple) else 1
            return f"expected {len(self.parts)} results, got {count}"
        for number, (part, array) in enumerate(zip(self.parts, got, strict=True)):
            if why := part.fault(array):
                return f"output {number}: {why}"
        return ""


def result_of(arrays: Sequence[Array]) -> Result:
    """One array itself; several as a tuple."""
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
