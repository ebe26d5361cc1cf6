"""Rules that merge and drop movement ops, and reductions of nothing."""

from __future__ import annotations

from week01_uops.node import UOp, make
from week01_uops.pattern import Rule, any_of, var
from week01_uops.rewrite import Rules
from week03_loops.ops import (
    EXPAND,
    FLIP,
    MOVEMENT,
    PAD,
    PERMUTE,
    REDUCE,
    RESHAPE,
    SHRINK,
    permute,
    reshape,
    shrink,
)

x = var("x")


def _no_move(node: UOp, x: UOp) -> UOp | None:
    """A movement op that leaves every element where it is → its source."""
    if node.shape != x.shape:
        return None
    if node.op is PERMUTE:
        return x if node.arg == tuple(range(len(node.shape))) else None
    if node.op is FLIP:
        return x if not node.arg else None
    return x


def _no_reduction(node: UOp, x: UOp) -> UOp | None:
    """REDUCE over no axes → its source, as a value."""
    return x if node.arg.axes == 0 and x.place is None else None


def _permute_twice(node: UOp, x: UOp) -> UOp:
    """PERMUTE(PERMUTE(x, p), q) → PERMUTE(x, p∘q)."""
    inner = node.src[0].arg
    return permute(x, [inner[axis] for axis in node.arg])


def _shrink_twice(node: UOp, x: UOp) -> UOp:
    """SHRINK(SHRINK(x, a), b) → SHRINK(x, a shifted into b)."""
    pairs = zip(node.src[0].arg, node.arg, strict=True)
    return shrink(x, [(start + low, start + high) for (start, _), (low, high) in pairs])


def _pad_twice(node: UOp, x: UOp) -> UOp:
    """PAD(PAD(x, a), b) → PAD(x, a + b)."""
    pairs = zip(node.src[0].arg, node.arg, strict=True)
    return make(PAD, (x,), tuple((a + c, b + d) for (a, b), (c, d) in pairs))


def _flip_twice(node: UOp, x: UOp) -> UOp:
    """FLIP(FLIP(x, a), b) → FLIP(x, the axes in one of them)."""
    axes = set(node.src[0].arg) ^ set(node.arg)
    return make(FLIP, (x,), tuple(sorted(axes))) if axes else x


MOVEMENT_RULES = Rules(
    "movement",
    (
        Rule("move_nothing", any_of(MOVEMENT, x), _no_move, proof="evaluator"),
        Rule("reduce_nothing", any_of({REDUCE}, x), _no_reduction, proof="evaluator"),
        Rule(
            "reshape_reshape",
            RESHAPE(RESHAPE(x)),
            lambda node, x: reshape(x, node.shape),
            proof="evaluator",
        ),
        Rule(
            "expand_expand",
            EXPAND(EXPAND(x)),
            lambda node, x: make(EXPAND, (x,), node.arg),
            proof="evaluator",
        ),
        Rule("permute_permute", PERMUTE(PERMUTE(x)), _permute_twice, proof="evaluator"),
        Rule("shrink_shrink", SHRINK(SHRINK(x)), _shrink_twice, proof="evaluator"),
        Rule("pad_pad", PAD(PAD(x)), _pad_twice, proof="evaluator"),
        Rule("flip_flip", FLIP(FLIP(x)), _flip_twice, proof="evaluator"),
    ),
)
