"""What weeks 5 and 6 add to the ops: nothing that a file may hold, and two internal ops.

STREAM marks a place that is written past the caches: `STORE(STREAM(p), v)`. SQRT is √x, rounded
once, which machines compute faster than 2^(½·log₂ x).
"""

from __future__ import annotations

from week01_uops.node import Op, Type, UOp
from week01_uops.signatures import floating, unary
from week02_render.ops import RANGE, expect_place
from week04_fusion import ops as week04


def _stream(src: tuple[UOp, ...], arg: None) -> Type:
    return Type(src[0].dtype, src[0].shape, expect_place(src[0]))


STREAM = Op("STREAM", 5, (1, 1), _stream, internal=True)
SQRT = Op("SQRT", 5, (1, 1), unary(floating), internal=True)

OPS = week04.OPS
INTERNAL = week04.INTERNAL | {STREAM, SQRT}


def kind_of(item: UOp) -> str:
    """How the iterations of a RANGE are carried out; "loop" if it does not say."""
    assert item.op is RANGE
    return item.arg.kind or "loop"
