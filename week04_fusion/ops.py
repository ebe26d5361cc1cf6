"""The op of week 4: STAGE, a value held in a temporary that is indexed by loops.

A STAGE between two kernels is a buffer; within one it is whatever the loops around it make it: a
packed panel, a row, an accumulator. Fusion is the removal of a STAGE.
"""

from __future__ import annotations

from dataclasses import dataclass

from week01_uops import intervals
from week01_uops.args import Record, key, word
from week01_uops.node import MANY, Op, Place, Type, UOp
from week01_uops.signatures import expect_value
from week02_render.ops import SPACES, expect_ranges
from week03_loops import ops as week03


@dataclass(frozen=True)
class StageArg:
    """Where the temporary lives."""

    addrspace: str | None = key(word("an address space", SPACES), optional=True)


def _stage(src: tuple[UOp, ...], arg: StageArg | None) -> Type:
    """One axis for each range that it closes, then the value's own."""
    x, ranges = src[0], src[1:]
    expect_value(x)
    expect_ranges(ranges)
    space = (arg.addrspace if arg is not None else None) or "MEM"
    return Type(x.dtype, (*(r.arg.size for r in ranges), *x.shape), Place(space, writable=False))


STAGE = Op(
    "STAGE", 4, (1, MANY), _stage, Record(StageArg), intervals.same, optional=True, closes=True
)

OPS = week03.OPS | {STAGE}
INTERNAL = week03.INTERNAL


def stage(x: UOp, *ranges: UOp) -> UOp:
    """X held in a temporary indexed by the ranges, then by x's own axes."""
    return UOp.apply_to(STAGE, (x, *ranges), None)
