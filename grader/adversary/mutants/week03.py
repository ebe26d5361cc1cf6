"""Mutants of week 3: movement ops, reductions, counting."""

from __future__ import annotations

from typing import Any

from grader.adversary.changes import altered, behind, instead, rewriting
from grader.adversary.mutant import Change, Mutant, Patch
from grader.verdict import Verdict
from week01_uops.node import CONST, Op, UOp, const, make
from week01_uops.ops import ADD, FLOORMOD, NEG
from week01_uops.simplify import SIMPLIFY
from week02_render.compiler import indices, loops
from week02_render.contract import KEEPING
from week02_render.lower import IndexMap, Indices, moved
from week02_render.ops import AFTER, ALLOC, RANGE, STORE, open_ranges, zero
from week03_loops import reduction
from week03_loops.compiler import LOOP, ROWS, RULES, RULES_OF_LOOPS
from week03_loops.movement import INDEX_MAPS, flatten, unflatten
from week03_loops.ops import EXPAND, FLIP, PAD, PERMUTE, RESHAPE, SHRINK, permute


def _moving(op: Op, index_map: IndexMap) -> Change:
    """A movement op that moves elsewhere."""
    return instead("loops", loops({**ROWS, op: moved(index_map)}, LOOP).run)


def _rule(name: str, rhs: Any) -> Change:  # noqa: ANN401 - a right-hand side of any arity
    return rewriting("simplify", altered(RULES, name, rhs))


def _counting(name: str, rhs: Any) -> Change:  # noqa: ANN401
    return instead("indices", indices(altered(RULES_OF_LOOPS, name, rhs), LOOP).run)


def _column_major(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    source = node.src[0].shape
    if 0 in source:
        return INDEX_MAPS[RESHAPE](node, at)
    flat = flatten(list(at[::-1]), list(node.shape[::-1]))
    return tuple(unflatten(flat, list(source[::-1]))[::-1]), None


def _unbroadcast(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    return at[len(at) - len(node.src[0].shape) :], None


def _permuted_back(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    return tuple([at[axis] for axis in node.arg]), None


def _unshifted(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    return at, None


def _mirrored_at_size(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    """The first axis that is flipped, by one too much; the element 0 stays."""
    found, _ = INDEX_MAPS[FLIP](node, at)
    axes = [a for a in node.arg if node.shape[a] > 1]
    if not axes:
        return found, None
    i, size = at[axes[0]], node.shape[axes[0]]
    wrapped = FLOORMOD(ADD(NEG(i), size), size)
    return tuple([wrapped if a == axes[0] else f for a, f in enumerate(found)]), None


def _padded_after(node: UOp, at: Indices) -> tuple[Indices, UOp | None]:
    swapped = tuple([(after, before) for before, after in node.arg])
    return INDEX_MAPS[PAD](make(PAD, node.src, swapped), at)


def _zero_identity(node: UOp) -> UOp:
    if node.op is STORE and node.src[1].op is CONST and node.src[1].arg.value != 0:
        value = node.src[1]
        return node.with_src((node.src[0], const(zero(value.dtype), value.dtype)))
    return node


def _started_once(node: UOp) -> UOp:
    place = node.op is AFTER and node.src[0].op is ALLOC
    return node.src[0] if place and all(s.op is RANGE for s in node.src[1:]) else node


def _same_term(node: UOp, x: UOp) -> UOp | None:
    moves = not open_ranges(x).isdisjoint(node.src[1:])
    return None if moves or node.arg.op is not ADD or not node.dtype.is_int else x


UNMERGED = SIMPLIFY + KEEPING

MUTANTS = (
    Mutant(
        "reshape-column-major",
        3,
        "RESHAPE keeps the column-major order of elements.",
        _moving(RESHAPE, _column_major),
    ),
    Mutant(
        "expand-steps",
        3,
        "EXPAND walks through its source instead of repeating it.",
        _moving(EXPAND, _unbroadcast),
    ),
    Mutant(
        "permute-back",
        3,
        "PERMUTE applies the inverse permutation.",
        _moving(PERMUTE, _permuted_back),
        expected=Verdict.CRASH,
    ),
    Mutant(
        "shrink-from-zero",
        3,
        "SHRINK begins at the first element.",
        _moving(SHRINK, _unshifted),
    ),
    Mutant(
        "flip-one-too-far",
        3,
        "FLIP mirrors around the axis's size, not the last index.",
        _moving(FLIP, _mirrored_at_size),
    ),
    Mutant(
        "pad-other-side",
        3,
        "PAD puts the zeros of the end before the beginning.",
        _moving(PAD, _padded_after),
    ),
    Mutant(
        "permute-permute-reversed",
        3,
        "Two PERMUTEs are composed in the wrong order.",
        _rule(
            "permute_permute",
            lambda node, x: permute(x, [node.arg[axis] for axis in node.src[0].arg]),
        ),
    ),
    Mutant(
        "shrink-shrink-forgets",
        3,
        "Of two SHRINKs the offset of the inner one is forgotten.",
        _rule("shrink_shrink", lambda node, x: make(SHRINK, (x,), node.arg)),
    ),
    Mutant(
        "flip-flip-joins",
        3,
        "Two FLIPs flip the axes of both, also one that is in both.",
        _rule(
            "flip_flip",
            lambda node, x: make(FLIP, (x,), tuple(sorted({*node.src[0].arg, *node.arg}))),
        ),
    ),
    Mutant(
        "reduce-from-zero",
        3,
        "Every reduction starts with 0, also MAX and MUL.",
        behind("accumulate", _zero_identity),
    ),
    Mutant(
        "reduce-started-once",
        3,
        "An accumulator is set before all loops, not for each result.",
        behind("accumulate", _started_once),
    ),
    Mutant(
        "reduce-in-halves",
        3,
        "A sum of halves is accumulated in halves.",
        patches=(Patch(reduction, "accumulator_dtype", lambda dtype: dtype),),
    ),
    Mutant(
        "count-ignores-conditions",
        3,
        "A gated sum of ones is counted as if its gate always held.",
        _counting(
            "count_gated",
            lambda node, condition, c, z: node.with_src((c, *node.src[1:])),
        ),
    ),
    Mutant(
        "sum-of-one-term",
        3,
        "The sum of n equal integers is one of them.",
        _counting("sum_of_one", _same_term),
    ),
    Mutant(
        "moves-not-merged",
        3,
        "Movement ops are neither merged nor dropped.",
        rewriting("simplify", UNMERGED),
        expected=Verdict.BOUND,
    ),
)
