"""Mutants of week 2: the C text, gates, the order of reads and writes, scratch memory."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from grader.adversary.changes import altered, behind, instead, printing, rendering, without
from grader.adversary.mutant import Change, Mutant
from grader.verdict import Verdict
from week01_uops import dtypes
from week01_uops.node import CONST, Op, UOp, make
from week01_uops.ops import ADD, CALL, CAST, CMPLT, MUL, WHERE
from week01_uops.simplify import SIMPLIFY
from week02_render.c_prelude import PRELUDE
from week02_render.c_statements import C
from week02_render.c_text import C_TEXT, Terms, TextRule, convert, infix
from week02_render.c_types import ATOM, ORDER, PRODUCT, SUM, Term
from week02_render.compiler import LOOP, indices
from week02_render.gates import GATES
from week02_render.ops import KEEP, LOAD, STORE, WORKSPACE, storage_of
from week02_render.render import render_c


def text(op: Op, row: TextRule) -> Change:
    """Another C expression of an op."""
    return rendering(partial(render_c, tables=replace(C, text={**C_TEXT, op: row})))


def helper(name: str, change: tuple[str, str]) -> Change:
    """Another definition of a helper function."""
    prelude = {**PRELUDE, name: PRELUDE[name].replace(*change)}
    return rendering(partial(render_c, tables=replace(C, prelude=prelude)))


def _unwrapped(node: UOp, terms: Terms) -> Term:
    return infix("+", SUM, *terms) if node.dtype.is_int else C_TEXT[ADD](node, terms)


def _unrounded(node: UOp, terms: Terms) -> Term:
    return infix("*", PRODUCT, *terms) if node.dtype.is_float else C_TEXT[MUL](node, terms)


def _uncut(node: UOp, terms: Terms) -> Term:
    source = node.src[0].dtype
    return terms[0] if node.dtype.is_int and source.is_int else C_TEXT[CAST](node, terms)


def _truth_of_integer(node: UOp, terms: Terms) -> Term:
    if node.dtype is dtypes.bool_ and node.src[0].dtype.is_float:
        return C_TEXT[CAST](node, (convert("int", terms[0]),))
    return C_TEXT[CAST](node, terms)


def _signed_comparison(node: UOp, terms: Terms) -> Term:
    if node.src[0].dtype.kind == "uint":
        terms = tuple([convert("int32_t", t) for t in terms])
    return infix("<", ORDER, *terms)


def _five_digits(node: UOp, terms: Terms) -> Term:
    value = node.arg.value
    plain = node.dtype is dtypes.float32 and abs(value) < 1e9
    return Term(f"(float){value:.4e}", ATOM) if plain else C_TEXT[CONST](node, terms)


def _gateless(op: Op) -> Change:
    count = {LOAD: 1, STORE: 2}[op]
    return behind("simplify", lambda n: n.with_src(n.src[:count]) if n.op is op else n)


def _waiting_for_nothing(node: UOp) -> UOp:
    return node.with_src((node.src[0], *map(storage_of, node.src[1:]))) if node.op is CALL else node


def at_offset_zero(node: UOp) -> UOp:
    """All scratch storage in one place."""
    return make(WORKSPACE, (), replace(node.arg, offset=0)) if node.op is WORKSPACE else node


def _half_of_workspace(source: str) -> str:
    return re.sub(r"return (\d+);", lambda found: f"return {int(found[1]) // 2};", source)


CARELESS = altered(SIMPLIFY + GATES, "gate_repeated", lambda node: node.src[1])

MUTANTS = (
    Mutant(
        "c-divides-toward-zero",
        2,
        "FLOORDIV by what is not 0 is C's /, which rounds toward zero.",
        helper("floordiv_i32", (" - (x % y != 0 && (x < 0) != (y < 0))", "")),
    ),
    Mutant(
        "c-modulo-sign",
        2,
        "FLOORMOD by what is not 0 is C's %, with the sign of the dividend.",
        helper("floormod_i32", ("r + y", "r")),
    ),
    Mutant(
        "c-max-drops-nan",
        2,
        "MAX is x > y ? x : y, which loses NaN in x.",
        helper("max_f32", ("x != x ? x : ", "")),
    ),
    Mutant(
        "c-add-does-not-wrap",
        2,
        "The sum of two int8 is left as the int that C computes.",
        text(ADD, _unwrapped),
    ),
    Mutant(
        "c-cast-does-not-cut",
        2,
        "An integer CAST to a narrower dtype keeps its value.",
        text(CAST, _uncut),
    ),
    Mutant(
        "c-bool-of-integer-part",
        2,
        "A float CAST to bool is cut to an integer first, so that 0.5 is false.",
        text(CAST, _truth_of_integer),
    ),
    Mutant(
        "c-half-unrounded",
        2,
        "A product of halves is not rounded to a half.",
        text(MUL, _unrounded),
    ),
    Mutant(
        "c-compares-as-signed",
        2,
        "Unsigned integers are compared as signed ones.",
        text(CMPLT, _signed_comparison),
    ),
    Mutant(
        "c-constants-of-five-digits",
        2,
        "Float constants are printed with five digits.",
        text(CONST, _five_digits),
    ),
    Mutant(
        "c-select-reversed",
        2,
        "WHERE takes the other side where both are bools.",
        text(
            WHERE,
            lambda node, terms: C_TEXT[WHERE](
                node, (terms[0], *terms[:0:-1]) if node.dtype is dtypes.bool_ else terms
            ),
        ),
    ),
    Mutant(
        "c-keeps-nothing",
        2,
        "A product with several uses is written like any other, so that gcc makes fma of it.",
        text(KEEP, lambda node, terms: terms[0]),
    ),
    Mutant(
        "contract-missing",
        2,
        "No product is kept out of fma.",
        without("contract"),
    ),
    Mutant(
        "order-missing",
        2,
        "A write does not wait for what is read before it.",
        without("order"),
    ),
    Mutant(
        "reads-missing",
        2,
        "What is read before it is written is not stored first.",
        without("reads"),
    ),
    Mutant(
        "kernels-wait-for-nothing",
        2,
        "A kernel does not wait for those that fill what it reads.",
        behind("kernels", _waiting_for_nothing),
    ),
    Mutant(
        "gates-of-stores-lost",
        2,
        "A STORE is done whether its gate holds or not.",
        _gateless(STORE),
        expected=Verdict.CRASH,
    ),
    Mutant(
        "gates-of-loads-lost",
        2,
        "A LOAD is done whether its gate holds or not.",
        _gateless(LOAD),
        expected=Verdict.CRASH,
    ),
    Mutant(
        "gate-rule-ignores-condition",
        2,
        "WHERE(g, LOAD(p, h, z), z) → LOAD(p, h, z) also where h does not imply g.",
        instead("indices", indices(CARELESS, LOOP).run),
    ),
    Mutant(
        "temporaries-overlap",
        2,
        "All temporaries lie at offset 0 of the workspace.",
        behind("temporaries", at_offset_zero),
    ),
    Mutant(
        "workspace-too-small",
        2,
        "`program_workspace` asks for half of what is used.",
        printing(_half_of_workspace),
        expected=Verdict.CRASH,
    ),
)
