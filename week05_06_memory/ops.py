"""What weeks 5 and 6 add to the ops: nothing that a file may hold, and six internal ops.

STREAM marks a place that is written past the caches: `STORE(STREAM(p), v)`. FETCH marks one from
which on, some elements ahead, is read soon: `LOAD(FETCH(p))`. SQRT is √x, rounded once and of −0
equal to 0, which machines compute faster than 2^(½·log₂ x). TILE is the first iteration of a tile,
of which the last one overlaps the one before it: TILE(r) = min(r·by, size − by). NUMBER(x) is x, of
which a maximum may lose a NaN. LARGER(x, y) is x if x > y, else y: their maximum if x is no NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

from week01_uops.args import Record, integer, key
from week01_uops.node import Interval, Op, Type, UOp
from week01_uops.signatures import binary, expect_value, floating, unary
from week02_render.ops import RANGE, expect_place
from week04_fusion import ops as week04


def _same_place(src: tuple[UOp, ...], arg: object) -> Type:
    return Type(src[0].dtype, src[0].shape, expect_place(src[0]))


STREAM = Op("STREAM", 5, (1, 1), _same_place, internal=True)


@dataclass(frozen=True)
class FetchArg:
    """How far on it lies, and how much comes at once; both are numbers of elements."""

    ahead: int = key(integer("a distance ≥ 1", 1))
    line: int = key(integer("a size of a line ≥ 1", 1))


FETCH = Op("FETCH", 5, (1, 1), _same_place, Record(FetchArg), internal=True)
MARKS = frozenset({STREAM, FETCH})
"""What says how a place is accessed, not which it is."""


@dataclass(frozen=True)
class TileArg:
    """Iterations of a tile, and of the loop that is divided into tiles."""

    by: int = key(integer("a size of a tile ≥ 1", 1))
    size: int = key(integer("a size ≥ 1", 1))


def _tile(src: tuple[UOp, ...], arg: TileArg) -> Type:
    expect_value(src[0])
    return Type(src[0].dtype)


def _tile_interval(node: UOp) -> Interval:
    last = node.arg.size - node.arg.by
    low, high = (min(end * node.arg.by, last) for end in node.src[0].interval)
    return low, high


TILE = Op("TILE", 5, (1, 1), _tile, Record(TileArg), _tile_interval, internal=True)
SQRT = Op("SQRT", 5, (1, 1), unary(floating), internal=True)
NUMBER = Op("NUMBER", 5, (1, 1), unary(floating), internal=True)
LARGER = Op("LARGER", 5, (2, 2), binary(floating), internal=True)

OPS = week04.OPS
INTERNAL = week04.INTERNAL | MARKS | {SQRT, TILE, NUMBER, LARGER}


def kind_of(item: UOp) -> str:
    """How the iterations of a RANGE are carried out; "loop" if it does not say."""
    assert item.op is RANGE
    return item.arg.kind or "loop"
