"""Mutants of week 1: folding, rules, CALLs, reading and writing."""

from __future__ import annotations

import math
from typing import Any

from grader.adversary.changes import altered, before, first, rewriting
from grader.adversary.mutant import Change, Mutant, Patch
from grader.verdict import Verdict
from week01_uops.algebra import ALGEBRA
from week01_uops.compare import COMPARE, not_less
from week01_uops.conditions import CONDITIONS
from week01_uops.dtypes import DType, Value
from week01_uops.fold import FOLD, FOLDING, Fold, add, cast, folding, maximum, negate, quotient
from week01_uops.interchange import checks, reader, writer
from week01_uops.interchange.diagnostics import Diagnostic
from week01_uops.node import CONST, Op, UOp, const
from week01_uops.ops import (
    ADD,
    CALL,
    CAST,
    CMPLT,
    CMPNE,
    FLOORDIV,
    FLOORMOD,
    LOG2,
    MAX,
    MUL,
    NEG,
    RECIP,
    WHERE,
)
from week01_uops.pattern import Rule, var
from week01_uops.signatures import floating
from week01_uops.simplify import SIMPLIFY
from week01_uops.symbolic import SYMBOLIC

f, x, y = var("f", floating), var("x"), var("y")


def _folding(op: Op, fold: Fold) -> Change:
    """Constants of one op are folded in another way."""
    others = (ALGEBRA + SYMBOLIC + COMPARE + CONDITIONS).exact
    return rewriting("simplify", folding({**FOLD, op: fold}) + others)


def _rule(name: str, rhs: Any) -> Change:  # noqa: ANN401 - a right-hand side of any arity
    return rewriting("simplify", altered(SIMPLIFY, name, rhs))


def _more(rule: Rule) -> Change:
    return rewriting("simplify", first(rule, SIMPLIFY))


def _saturated(dtype: DType, a: Any, b: Any) -> Value:  # noqa: ANN401
    return min(max(a + b, dtype.min), dtype.max) if dtype.is_int else add(dtype, a, b)


def _clamped(dtype: DType, a: Any) -> Value | None:  # noqa: ANN401
    integers = dtype.is_int and isinstance(a, int)
    return min(max(int(a), dtype.min), dtype.max) if integers else cast(dtype, a)


def _toward_zero(dtype: DType, a: int, b: int) -> Value:
    return dtype.wrap(int(math.copysign(abs(a) // abs(b), a * b))) if b else quotient(dtype, a, b)


def _number(dtype: DType, a: Any, b: Any) -> Value:  # noqa: ANN401
    return maximum(dtype, b, a) if a != a else a if b != b else maximum(dtype, a, b)


def _signed(dtype: DType, a: Any) -> Value:  # noqa: ANN401
    return max(-a, dtype.min) if dtype.kind == "uint" else negate(dtype, a)


def _term_by_term(x: UOp, d: UOp) -> UOp | None:
    if x.op is not ADD:
        return None
    result: UOp = ADD(*[FLOORDIV(term, d) for term in x.src])
    return result


def _reversed_arguments(node: UOp) -> UOp:
    if node.op is not CALL:
        return node
    body, *arguments = node.src
    alike = len({(a.dtype, a.shape) for a in arguments}) == 1
    return node.with_src((body, *reversed(arguments))) if alike else node


def _first_part(node: UOp) -> UOp | None:
    compared = all(s.op is CMPLT and s.src[0].dtype.is_int for s in node.src)
    return node.src[0] if compared else None


def _less_or_equal(a: UOp, b: UOp) -> UOp | None:
    """NOT (a < c) → c < a, as if equal values did not exist."""
    found = not_less(a, b)
    swapped: UOp = CMPLT(b, a)
    return None if found is None else swapped


def _above(self: Any, col: int, code: str, message: str, number: int | None = None) -> None:  # noqa: ANN401
    line = (number or self.number) - 1
    self.found.append(Diagnostic(self.file, line, col, code, message, ""))


def _named_backwards(order: list[UOp], named: dict[UOp, str], fresh: Any) -> None:  # noqa: ANN401
    for number, node in enumerate(reversed(order)):
        named.setdefault(node, f"%{number}")


MUTANTS = (
    Mutant(
        "fold-add-saturates",
        1,
        "A constant sum of integers stops at the ends of the dtype instead of wrapping.",
        _folding(ADD, _saturated),
    ),
    Mutant(
        "fold-divides-toward-zero",
        1,
        "FLOORDIV of constants rounds toward zero, as C does.",
        _folding(FLOORDIV, _toward_zero),
    ),
    Mutant(
        "fold-modulo-zero",
        1,
        "FLOORMOD of a constant by 0 is folded to 0, not to the constant.",
        _folding(FLOORMOD, lambda dtype, a, b: dtype.wrap(a % b) if b else 0),
    ),
    Mutant(
        "fold-max-drops-nan",
        1,
        "MAX of a number and NaN is folded to the number.",
        _folding(MAX, _number),
    ),
    Mutant(
        "fold-equal-nan",
        1,
        "NaN is folded to be equal to itself.",
        _folding(CMPNE, lambda dtype, a, b: a != b and not (a != a and b != b)),
    ),
    Mutant(
        "fold-cast-saturates",
        1,
        "A constant integer that a CAST's dtype does not hold becomes its nearest value.",
        _folding(CAST, _clamped),
    ),
    Mutant(
        "fold-negates-unsigned",
        1,
        "NEG of an unsigned constant is folded to 0.",
        _folding(NEG, _signed),
    ),
    Mutant(
        "fold-reciprocal-of-zero",
        1,
        "RECIP of the constant 0 is folded to NaN.",
        _folding(RECIP, lambda dtype, a: dtype.round(1 / a) if a else math.nan),
    ),
    Mutant(
        "fold-log2-natural",
        1,
        "LOG2 of a constant is folded to the natural logarithm.",
        _folding(LOG2, lambda dtype, a: dtype.round(math.log(a)) if a > 0 else math.nan),
    ),
    Mutant(
        "rule-float-times-zero",
        1,
        "x·0 → 0 for floats too, where it may be NaN.",
        _more(Rule("float_zero", MUL(f, 0), lambda f: const(0.0, f.dtype), keeps_shape=True)),
    ),
    Mutant(
        "rule-float-cancels",
        1,
        "x + (−x) → 0 for floats too, where it may be NaN.",
        _more(
            Rule("float_cancels", ADD(f, NEG(f)), lambda f: const(0.0, f.dtype), keeps_shape=True)
        ),
    ),
    Mutant(
        "rule-float-reassociates",
        1,
        "(x + c) + d → x + (c + d) for floats too.",
        _more(
            Rule(
                "float_sums",
                ADD(ADD(f, x), y),
                lambda f, x, y: ADD(f, ADD(x, y)) if x.op is CONST and y.op is CONST else None,
            )
        ),
    ),
    Mutant(
        "rule-where-not",
        1,
        "WHERE(NOT p, x, y) → WHERE(p, x, y), the sides not exchanged.",
        _rule("where_not", lambda p, x, y: WHERE(p, x, y)),
    ),
    Mutant(
        "rule-or-absorbs",
        1,
        "b OR (b AND p) → p instead of b.",
        _rule("or_absorbs", lambda p: p),
    ),
    Mutant(
        "rule-cast-cast",
        1,
        "CAST(CAST(x, m), d) → CAST(x, d), whatever m cuts off.",
        _rule("cast_cast", lambda node, x: CAST(x, arg=node.dtype)),
    ),
    Mutant(
        "rule-max-constants",
        1,
        "MAX(MAX(x, c), d) → MAX(x, c), the second constant forgotten.",
        _rule("max_constants", lambda x, c1: MAX(x, c1)),
    ),
    Mutant(
        "rule-divide-by-minus-one",
        1,
        "x // −1 → x.",
        _rule("divide_by_minus_one", lambda x: x),
    ),
    Mutant(
        "symbolic-divides-terms",
        1,
        "(a + b) // d → a // d + b // d.",
        _rule("divide", _term_by_term),
    ),
    Mutant(
        "symbolic-modulo-edge",
        1,
        "x mod y → x where x ≤ y, not x < y.",
        _rule(
            "modulo_smaller",
            lambda x, y: x if x.interval[0] >= 0 and x.interval[1] <= y.interval[0] else None,
        ),
    ),
    Mutant(
        "symbolic-multiple-wraps",
        1,
        "x·y // y → x also where the product wraps.",
        _rule("divide_multiple", lambda x, y: x if y.interval[0] > 0 else None),
    ),
    Mutant(
        "symbolic-interval-edge",
        1,
        "An integer known to be one of two neighbours is taken for the smaller one.",
        _rule(
            "bounded",
            lambda node: (
                const(node.interval[0], node.dtype)
                if node.dtype.is_int and node.interval[1] - node.interval[0] <= 1
                else None
            ),
        ),
    ),
    Mutant(
        "compare-not-less",
        1,
        "NOT (a < c) → c < a, which loses a = c.",
        _rule("not_less", _less_or_equal),
    ),
    Mutant(
        "compare-where-larger",
        1,
        "WHERE(a < b, b, a) → a instead of MAX(a, b).",
        _rule("where_larger", lambda a: a),
    ),
    Mutant(
        "conditions-first-bound",
        1,
        "Of two bounds joined by AND only the first is kept.",
        _rule("condense_and", _first_part),
    ),
    Mutant(
        "symbolic-missing",
        1,
        "The rules of integers with ranges are left out.",
        rewriting("simplify", (FOLDING + ALGEBRA + COMPARE + CONDITIONS).exact),
        expected=Verdict.BOUND,
    ),
    Mutant(
        "call-arguments-reversed",
        1,
        "CALL binds its arguments to the PARAMs in reverse.",
        before("inline", _reversed_arguments),
    ),
    Mutant(
        "reader-checks-lines-alone",
        1,
        "What a program must meet as a whole, such as one declaration a slot, is not checked.",
        patches=(Patch(checks, "whole", lambda program: []),),
        expected=Verdict.ACCEPTED,
    ),
    Mutant(
        "reader-line-off-by-one",
        1,
        "A diagnostic names the line above the fault.",
        patches=(Patch(reader._Reader, "error", _above),),
    ),
    Mutant(
        "writer-names-backwards",
        1,
        "The nodes of a printed program are numbered from the last to the first.",
        patches=(Patch(writer, "_name", _named_backwards),),
        expected=Verdict.PROTOCOL,
    ),
)
