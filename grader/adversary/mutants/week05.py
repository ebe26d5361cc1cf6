"""Mutants of weeks 5 and 6: masks, one-hot sums, scattering, tiles, vectors, running sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from grader.adversary.changes import altered, behind, each, instead, rendering
from grader.adversary.mutant import Change, Mutant, Patch
from grader.verdict import Verdict
from week01_uops.node import Op, UOp, const, make
from week01_uops.ops import ADD, WHERE
from week01_uops.passes import on_kernels
from week01_uops.pattern import RightHandSide
from week01_uops.reference import Reference
from week01_uops.rewrite import Rules
from week02_render.c_text import Terms
from week02_render.c_types import Term
from week02_render.compiler import indices
from week02_render.ops import LOAD, RANGE, STORE
from week02_render.render import render_c
from week03_loops import reduction
from week03_loops.compiler import RULES_OF_LOOPS as LOOPS
from week05_06_memory import (
    blocks,
    c_vector_kernel,
    dependence,
    expand,
    forward,
    numbers,
    outside,
    split,
    staging,
)
from week05_06_memory.absorb import absorb
from week05_06_memory.c_vector import C
from week05_06_memory.c_vector_text import VECTOR_TEXT, VectorRule
from week05_06_memory.compiler import LOOP, compiler_for
from week05_06_memory.machine import detect
from week05_06_memory.nests import number
from week05_06_memory.onehot import ONE_HOT
from week05_06_memory.ops import SQRT
from week05_06_memory.roots import ROOTS
from week05_06_memory.wide import WIDE_SUMS


def _small_caches(reference: Reference) -> Reference:
    """The reference for a machine whose caches hold no long rows, wherever this runs."""
    return compiler_for(replace(detect(), l1=4 << 10, l2=16 << 10, l3=0))


def _rules(rules: Rules) -> Change:
    """Other rules for the bodies of kernels."""
    tidy = indices(rules + WIDE_SUMS, LOOP).run

    def change(reference: Reference) -> Reference:
        changes = {"absorb": absorb(rules), "indices": indices(rules, LOOP).run, "tidy": tidy}
        for name, run in changes.items():
            reference = instead(name, run)(reference)
        return reference

    return change


def _vector(op: Op, row: VectorRule) -> tuple[Patch, ...]:
    """Another text of an op on vectors."""
    return (Patch(c_vector_kernel, "VECTOR_TEXT", {**VECTOR_TEXT, op: row}),)


def _helpers(wrong: Callable[[str, str], str]) -> Change:
    """Other helper functions, made of the right ones by name."""
    prelude = {name: wrong(name, text) for name, text in C.prelude.items()}
    return rendering(partial(render_c, tables=replace(C, prelude=prelude)))


def _rhs(rules: Rules, name: str) -> RightHandSide:
    return next(rule.rhs for rule in rules if rule.name == name)


def _unguarded(node: UOp) -> UOp | None:
    """The sum's one term, whether its position is in range or not."""
    found = _rhs(ONE_HOT, "one_hot")(node)
    if not isinstance(found, UOp) or found.op is not WHERE:
        return None
    return each(found.src[1], lambda n: n.with_src(n.src[:1]) if n.op is LOAD else n)


def _ends_earlier(node: UOp) -> UOp:
    if node.op is not RANGE or not node.src:
        return node
    (bound,) = node.src
    return node.with_src((ADD(bound, const(-1, bound.dtype)),))


def _not_added(node: UOp) -> UOp:
    """STORE(p, p + x) → STORE(p, x)."""
    if node.op is STORE and node.src[1].op is ADD:
        place, total = node.src
        if total.src[0].op is LOAD and total.src[0].src[0] is place:
            return node.with_src((place, total.src[1]))
    return node


def _rest_lost(self: split._Split, node: UOp) -> UOp:
    return self._whole(node, self.size // self.by)


def _terms_but_one(node: UOp) -> tuple[UOp, ...]:
    found = expand.terms(node)
    return found[:-1] or found


def _other_side(node: UOp, terms: Terms) -> Term | None:
    condition, a, b = node.src
    return VECTOR_TEXT[WHERE](node.with_src((condition, b, a)), (terms[0], terms[2], terms[1]))


def _from_the_start(self: staging._Axis, counter: UOp | None) -> UOp:
    return number(0) if counter is None else counter


def _without_nan(name: str, text: str) -> str:
    return text.replace("x != x", "x < x") if name.startswith("max_") else text


def _coarse(name: str, text: str) -> str:
    return text.replace("0x1.c6af7cp-5f", "0x1.c7p-5f") if name.startswith("exp2_f32") else text


def _none_carried(nest: object, still: frozenset[UOp] = frozenset()) -> frozenset[UOp]:
    return frozenset()


_KEY = forward._key


def _elsewhere(place: UOp) -> tuple[object, ...]:
    """Elements of a storage are not told apart."""
    storage, terms, _ = _KEY(place)
    return storage, terms, 0


def _unscaled(self: blocks.Blocks, weight: UOp, old: UOp, new: UOp) -> UOp:
    return const(1.0, reduction.accumulator_dtype(weight.dtype))


MUTANTS = (
    Mutant(
        "one-hot-out-of-range",
        5,
        "A one-hot sum becomes a load whose index is not checked.",
        _rules(LOOPS + altered(ONE_HOT, "one_hot", _unguarded) + ROOTS),
        expected=Verdict.CRASH,
    ),
    Mutant(
        "roots-of-powers",
        5,
        "Any constant power is taken for a square root.",
        _rules(LOOPS + ONE_HOT + altered(ROOTS, "square_root", lambda x, c: make(SQRT, (x,)))),
    ),
    Mutant(
        "wide-sums-missing",
        5,
        "What is left of a tile is added in 16 bits.",
        instead("tidy", indices(LOOPS + ONE_HOT + ROOTS, LOOP).run),
    ),
    Mutant(
        "scatter-overwrites",
        5,
        "What scatters to one place is stored, not added.",
        behind("scatter", _not_added),
    ),
    Mutant(
        "bounds-one-early",
        5,
        "A loop that a mask ends ends one iteration early.",
        behind("bounds", _ends_earlier),
    ),
    Mutant(
        "tiles-lose-the-rest-of-a-sum",
        5,
        "Of a sum only whole tiles are added.",
        patches=(Patch(split._Split, "_peeled", _rest_lost),),
    ),
    Mutant(
        "tiles-lose-the-rest",
        5,
        "What fills no tile is not stored.",
        patches=(
            Patch(split._Split, "_tiled", _rest_lost),
            Patch(split._Split, "_cut", _rest_lost),
        ),
    ),
    Mutant(
        "unroll-loses-the-last",
        5,
        "Of the copies of an unrolled sum the last one is not added.",
        instead(
            "accumulate",
            on_kernels(reduction.accumulate_with(_terms_but_one, expand.by_address)),
        ),
    ),
    Mutant(
        "vector-max-drops-nan",
        5,
        "The maximum of vectors loses NaN.",
        _helpers(_without_nan),
    ),
    Mutant(
        "vector-exp2-coarse",
        5,
        "A coefficient of EXP2 on vectors has 8 bits.",
        _helpers(_coarse),
    ),
    Mutant(
        "vector-select-reversed",
        5,
        "WHERE on vectors takes the other side.",
        patches=_vector(WHERE, _other_side),
    ),
    Mutant(
        "order-of-dependent-loops",
        5,
        "Loops whose iterations depend on one another count as free.",
        patches=(Patch(dependence._Nest, "carried", _none_carried),),
    ),
    Mutant(
        "staging-from-the-wrong-start",
        5,
        "Each packed piece of an operand is the first one.",
        patches=(Patch(staging._Axis, "whole", _from_the_start),),
    ),
    Mutant(
        "maxima-lose-nan",
        5,
        "Every maximum may lose a NaN.",
        patches=(Patch(numbers, "is_free", lambda m, order: True),),
    ),
    Mutant(
        "factors-outside-and-inside",
        5,
        "A factor that is taken out of a sum stays in it.",
        patches=(Patch(outside, "_without", lambda factor, value: value),),
    ),
    Mutant(
        "forwarded-from-elsewhere",
        5,
        "A sum that joins a loop does not tell apart what that one stores.",
        patches=(Patch(forward, "_key", _elsewhere),),
    ),
    Mutant(
        "online-sums-unscaled",
        5,
        "When the running maximum rises, what was summed before keeps its weight.",
        _small_caches,
        (Patch(blocks.Blocks, "_scale", _unscaled),),
    ),
)
