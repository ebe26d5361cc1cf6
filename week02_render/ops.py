"""The ops of week 2: storage, reading and writing it, order, and the loop that C needs.

RANGE and END are here because a C program over an array is a loop; programs handed in may
contain them from week 3 on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from week01_uops import intervals
from week01_uops import ops as week01
from week01_uops.args import DTYPE, SHAPE, SLOT, Record, integer, key, word
from week01_uops.dtypes import DType, bool_, int64, void
from week01_uops.errors import ProgramError
from week01_uops.node import (
    MANY,
    Interval,
    Op,
    Place,
    Shape,
    Type,
    UOp,
    const,
    make,
    recursive,
)
from week01_uops.signatures import broadcast, expect_value, floating, unary

LARGEST_LOCAL = 1 << 16
"""Bytes of one array that is local to a kernel: the stacks of threads are small."""

SPACES = {"MEM": "MEM", "LOCAL": "LOCAL", "REG": "REG"}

KINDS = {name: name for name in ("loop", "vector", "unroll", "parallel")}
"""How the iterations of a RANGE are carried out; its meaning is the same in any of them."""


@dataclass(frozen=True)
class StorageArg:
    """Storage: its slot, element type and shape."""

    slot: int = key(SLOT)
    dtype: DType = key(DTYPE)
    shape: Shape = key(SHAPE)


@dataclass(frozen=True)
class AllocArg(StorageArg):
    """Storage for the length of a call, and the address space that it lives in."""

    addrspace: str | None = key(word("an address space", SPACES), optional=True)


@dataclass(frozen=True)
class WorkspaceArg:
    """Scratch storage at an offset, in bytes, of the one workspace that a call is given."""

    offset: int = key(integer("an offset ≥ 0", 0))
    dtype: DType = key(DTYPE)
    shape: Shape = key(SHAPE)


@dataclass(frozen=True)
class RangeArg:
    """A loop counter: its number, one past its largest value, and from week 5 its kind.

    Attributes:
        kind: how the iterations are carried out: one after the other (loop, the default), as
            the lanes of a vector, as copies of the body (unroll), or by threads (parallel).
    """

    id: int = key(integer("an id ≥ 0", 0))
    size: int = key(integer("a size ≥ 0", 0))
    kind: str | None = key(word("a kind", KINDS), optional=True, week=5)


def expect_place(node: UOp) -> Place:
    """The node's place; E409 if it is not one."""
    if node.place is None:
        raise ProgramError("E409", f"expected a place, got the value {node.op}", (node,))
    return node.place


def expect_effect(node: UOp) -> None:
    """E409 unless the node is an effect."""
    if node.dtype is not void:
        raise ProgramError("E409", f"expected an effect, got the value {node.op}", (node,))


def _storage(src: tuple[UOp, ...], arg: StorageArg | WorkspaceArg) -> Type:
    return Type(arg.dtype, arg.shape, Place(getattr(arg, "addrspace", None) or "MEM"))


def _index(src: tuple[UOp, ...], arg: None) -> Type:
    place = expect_place(src[0])
    shape = src[0].shape
    indices = src[1:]
    if len(indices) > len(shape):
        raise ProgramError(
            "E405",
            f"expected at most {len(shape)} indices for {list(shape)}, got {len(indices)}",
            src,
        )
    kept: list[int] = []
    for item in indices:
        if not item.dtype.is_int or len(item.shape) > 1:
            raise ProgramError(
                "E411",
                f"expected an integer index, scalar or (n,), got {item.dtype}{list(item.shape)}",
                (item,),
            )
        expect_value(item)
        kept.extend(item.shape)
    return Type(src[0].dtype, (*kept, *shape[len(indices) :]), place._replace(indexed=True))


def _expect_gate(gate: UOp, shape: Shape) -> None:
    expect_value(gate)
    if gate.dtype is not bool_:
        raise ProgramError("E402", f"expected a bool gate, got {gate.dtype}", (gate,))
    if gate.shape not in ((), shape):
        raise ProgramError(
            "E403", f"expected a gate of shape [] or {list(shape)}, got {list(gate.shape)}", (gate,)
        )


def _load(src: tuple[UOp, ...], arg: None) -> Type:
    place = src[0]
    expect_place(place)
    if len(src) > 1:
        _expect_gate(src[1], place.shape)
    if len(src) > 2:
        expect_value(src[2])
        _expect_same_dtype(place, src[2])
        if broadcast((src[2].shape, place.shape)) != place.shape:
            raise ProgramError(
                "E403",
                f"expected an alternative that broadcasts to {list(place.shape)}, "
                f"got {list(src[2].shape)}",
                (src[2],),
            )
    return Type(place.dtype, place.shape)


def _expect_same_dtype(place: UOp, value: UOp) -> None:
    if place.dtype is not value.dtype:
        raise ProgramError(
            "E401", f"expected a value of the place's {place.dtype}, got {value.dtype}", (value,)
        )


def _store(src: tuple[UOp, ...], arg: None) -> Type:
    place, value = src[:2]
    if not expect_place(place).writable:
        said = "expected a writable place, not one behind EXPAND or PAD"
        raise ProgramError("E414", said, (place,))
    expect_value(value)
    _expect_same_dtype(place, value)
    if place.shape != value.shape:
        raise ProgramError(
            "E403",
            f"expected a value of the place's shape {list(place.shape)}, got {list(value.shape)}",
            (value,),
        )
    if len(src) > 2:
        _expect_gate(src[2], place.shape)
    return Type(void)


def _after(src: tuple[UOp, ...], arg: None) -> Type:
    return Type(src[0].dtype, src[0].shape, src[0].place)


def _range(src: tuple[UOp, ...], arg: RangeArg) -> Type:
    for bound in src:
        expect_value(bound)
        if not bound.dtype.is_int or bound.shape:
            raise ProgramError(
                "E411",
                f"expected an integer scalar as bound, got {bound.dtype}{list(bound.shape)}",
                (bound,),
            )
    return Type(int64)


def _range_interval(node: UOp) -> Interval:
    size = min([node.arg.size, *(bound.interval[1] for bound in node.src)])
    return 0, max(size - 1, 0)


def expect_ranges(ranges: tuple[UOp, ...]) -> None:
    """E409 unless all are RANGEs, E415 if one stands twice."""
    for item in ranges:
        if item.op is not RANGE:
            raise ProgramError("E409", f"expected a RANGE, got {item.op}", (item,))
    if len(set(ranges)) != len(ranges):
        raise ProgramError("E415", "expected each RANGE to be closed once", ranges)


def _end(src: tuple[UOp, ...], arg: None) -> Type:
    expect_effect(src[0])
    expect_ranges(src[1:])
    return Type(void)


def _load_interval(node: UOp) -> Interval:
    if len(node.src) == 1:
        return node.src[0].interval
    return node.dtype.min, node.dtype.max


def _linear(src: tuple[UOp, ...], arg: None) -> Type:
    return Type(void)


BUFFER = Op("BUFFER", 2, (0, 0), _storage, Record(StorageArg))
ALLOC = Op("ALLOC", 2, (0, 0), _storage, Record(AllocArg), local=True)
OUTPUT = Op("OUTPUT", 2, (0, 0), _storage, Record(StorageArg), internal=True)
WORKSPACE = Op("WORKSPACE", 2, (0, 0), _storage, Record(WorkspaceArg), internal=True)
INDEX = Op("INDEX", 2, (1, MANY), _index)
LOAD = Op("LOAD", 2, (1, 3), _load, interval=_load_interval)
STORE = Op("STORE", 2, (2, 3), _store)
AFTER = Op("AFTER", 2, (1, MANY), _after, interval=intervals.same)
RANGE = Op("RANGE", 3, (0, 1), _range, Record(RangeArg), _range_interval)
END = Op("END", 3, (2, MANY), _end, closes=True)
KEEP = Op("KEEP", 2, (1, 1), unary(floating), internal=True)
LINEAR = Op("LINEAR", 2, (0, MANY), _linear, internal=True)

STORAGE = frozenset({week01.PARAM, BUFFER, ALLOC, OUTPUT, WORKSPACE})
OPS = week01.OPS | {BUFFER, ALLOC, INDEX, LOAD, STORE, AFTER}
INTERNAL = frozenset({OUTPUT, WORKSPACE, RANGE, END, KEEP, LINEAR})


def loop(number: int, size: int, bound: UOp | None = None, kind: str | None = None) -> UOp:
    """RANGE `number` over [0, size), or [0, min(size, bound))."""
    return make(RANGE, () if bound is None else (bound,), RangeArg(number, size, kind))


def storage_of(place: UOp) -> UOp:
    """The PARAM, BUFFER, ALLOC or OUTPUT that a place lies in."""
    while place.op not in STORAGE and place.src:
        place = place.src[0]
    return place


@recursive
def open_ranges(node: UOp) -> frozenset[UOp]:
    """The RANGEs that a node depends on and that nothing below it has closed."""
    found: frozenset[UOp] = frozenset().union(*map(open_ranges, node.src))
    if node.op is RANGE:
        return found | {node}
    if node.op.closes and len(node.src) > 1:
        return found.difference(node.src[1:])
    return found


def in_each(place: UOp, ranges: Iterable[UOp]) -> UOp:
    """AFTER: the place in each iteration of loops, by their numbers; itself if there are none."""
    order = sorted(ranges, key=lambda r: int(r.arg.id))
    return make(AFTER, (place, *order)) if order else place


def index(place: UOp, *indices: UOp) -> UOp:
    """INDEX, or the place itself if there are no indices."""
    return make(INDEX, (place, *indices)) if indices else place


def load(place: UOp, gate: UOp | None = None) -> UOp:
    """LOAD of a place; where the gate is false, 0."""
    if gate is None:
        return make(LOAD, (place,))
    return make(LOAD, (place, gate, const(zero(place.dtype), place.dtype)))


def zero(dtype: DType) -> Any:  # noqa: ANN401
    """0 of a dtype, as CONST wants it."""
    return False if dtype is bool_ else 0.0 if dtype.is_float else 0
