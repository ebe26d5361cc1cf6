"""What a program takes and gives, and the arrays for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from week01_uops.dtypes import DType
from week01_uops.node import Shape, UOp
from week01_uops.ops import parameters
from week02_render.buffers import Array, address, aligned_empty, as_array, dense, is_dense
from week02_render.ops import BUFFER

Inputs = Mapping[int, object] | Sequence[object]
NO_BUFFERS: Mapping[int, object] = MappingProxyType({})


@dataclass(frozen=True)
class TensorType:
    """Element type and shape of an input or an output."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Signature:
    """What a program takes, by slot, what it gives, in order, and the BUFFERs it keeps, by slot."""

    inputs: Mapping[int, TensorType]
    outputs: tuple[TensorType, ...]
    buffers: Mapping[int, TensorType] = field(default_factory=dict)

    @classmethod
    def of(cls, program: UOp) -> Signature:
        """The signature of a program, a RETURN at any level that still has all its PARAMs."""
        slots = sorted(parameters(program).items())
        kept = {n.arg.slot: n for n in program.toposort() if n.op is BUFFER}
        return cls(
            {slot: TensorType(node.dtype, node.shape) for slot, node in slots},
            tuple([TensorType(node.dtype, node.shape) for node in program.src]),
            {slot: TensorType(node.dtype, node.shape) for slot, node in sorted(kept.items())},
        )

    def arrays(self, inputs: Inputs) -> list[Array | None]:
        """Inputs by slot as arrays that compiled code can read; None in a gap.

        Raises:
            ValueError: one is missing, or has another shape.
            TypeError: one has another element type.
        """
        given = inputs if isinstance(inputs, Mapping) else dict(enumerate(inputs))
        found: list[Array | None] = [None] * (max(self.inputs, default=-1) + 1)
        for slot, wanted in self.inputs.items():
            value = given.get(slot)
            if value is None:
                raise ValueError(f"input {slot}: expected {wanted}, got nothing")
            found[slot] = dense(_checked(value, wanted, f"input {slot}"), wanted.dtype)
        return found

    def results(self, out: Sequence[object] | None) -> list[Array]:
        """New arrays for the outputs, or those of `out`, which are used in place."""
        if out is None:
            return [aligned_empty(wanted.shape, wanted.dtype) for wanted in self.outputs]
        if len(out) != len(self.outputs):
            raise ValueError(f"expected {len(self.outputs)} output arrays, got {len(out)}")
        return [
            _in_place(value, wanted, f"output {number}")
            for number, (value, wanted) in enumerate(zip(out, self.outputs, strict=True))
        ]

    def kept(self, buffers: Mapping[int, object]) -> dict[int, Array]:
        """Arrays for BUFFERs by slot, which are read and written in place.

        Raises:
            ValueError, TypeError: there is no such BUFFER, or it cannot lie in the array.
        """
        return {
            slot: _in_place(value, self.buffer(slot), f"buffer {slot}")
            for slot, value in buffers.items()
        }

    def buffer(self, slot: int) -> TensorType:
        """What a BUFFER holds; ValueError if there is none of this slot."""
        if slot not in self.buffers:
            known = ", ".join(map(str, self.buffers)) or "none"
            raise ValueError(f"expected BUFFERs of the slots {known}, got slot {slot}")
        return self.buffers[slot]


def _in_place(value: object, wanted: TensorType, what: str) -> Array:
    """The array that is to be written."""
    if isinstance(value, (bool, int, float, list, tuple)):
        raise TypeError(f"{what}: expected an array to write to, got {type(value).__name__}")
    array = _checked(value, wanted, what)
    if not array.flags.writeable or not is_dense(array):
        raise ValueError(
            f"{what}: expected a writable contiguous array at a multiple of "
            "64 bytes; aligned_empty makes one"
        )
    return array


class _Span(NamedTuple):
    """The addresses of an array, and what it is called."""

    start: int
    end: int
    kind: str
    number: int


def _spans(kind: str, arrays: Iterable[tuple[int, Array | None]]) -> Iterator[_Span]:
    for number, array in arrays:
        if array is not None and array.size:
            start = address(array)
            yield _Span(start, start + array.nbytes, kind, number)


def expect_apart(
    inputs: Sequence[Array | None], outputs: Sequence[Array], buffers: Mapping[int, Array]
) -> None:
    """ValueError if an output or a BUFFER lies where anything else does; inputs may overlap."""
    read, written = (
        list(_spans("input", enumerate(inputs))),
        list(_spans("buffer", buffers.items())),
    )
    written += _spans("output", enumerate(outputs))
    ends: dict[bool, _Span] = {}  # of what came so far, read or written, that which ends last
    for span in sorted([*read, *written]):
        mine = span.kind != "input"
        for other in (ends[k] for k in ends if mine or k):
            if span.start < other.end:
                order = ("output", "buffer", "input")
                names = sorted((span, other), key=lambda s: (order.index(s.kind), -s.number))
                first, second = (f"{s.kind} {s.number}" for s in names)
                raise ValueError(f"{first}: expected an array apart from {second}")
        if mine not in ends or span.end > ends[mine].end:
            ends[mine] = span


def _checked(value: object, wanted: TensorType, what: str) -> Array:
    try:
        array = as_array(value, wanted.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{what}: {error}") from error
    if array.shape != wanted.shape:
        raise ValueError(f"{what}: expected {wanted}, got the shape {list(array.shape)}")
    return array
