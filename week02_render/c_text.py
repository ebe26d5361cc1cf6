"""The C expression of each elementwise op: a table from op to text.

A row takes a node and the terms of its sources, which have the C type of their dtype, and gives
a term of that type (or `int` where C promotes a smaller integer of the same value). A later
week extends the table: `{**C_TEXT, OP: row}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from week01_uops import dtypes
from week01_uops import ops as week01
from week01_uops.dtypes import DType
from week01_uops.node import CONST, Op, UOp
from week02_render.access import access
from week02_render.c_types import (
    ATOM,
    BITS,
    CHOICE,
    EQUAL,
    HALVES,
    ORDER,
    PRODUCT,
    SHORT,
    SUM,
    UNARY,
    VALUE_TYPE,
    Term,
    at,
    literal,
)
from week02_render.ops import KEEP, LOAD

Terms = tuple[Term, ...]
TextRule = Callable[[UOp, Terms], Term]


def call(function: str, *arguments: Term) -> Term:
    """function(argument, …)."""
    lanes = max((a.lanes for a in arguments), default=1)
    return Term(f"{function}({', '.join(a.text for a in arguments)})", ATOM, lanes)


def convert(c_type: str, x: Term) -> Term:
    """(type)x."""
    return Term(f"({c_type}){at(UNARY, x)}", UNARY)


def infix(operator: str, level: int, a: Term, b: Term) -> Term:
    """A ∘ b, grouped from the left."""
    return Term(f"{at(level, a)} {operator} {at(level + 1, b)}", level, max(a.lanes, b.lanes))


def rounded(dtype: DType, x: Term) -> Term:
    """The term as a value of dtype: a half rounds what was computed in float."""
    return call(f"round_{SHORT[dtype]}", x) if dtype in HALVES else x


def wide(dtype: DType) -> DType:
    """The dtype that C computes in: that of a half is float32."""
    return dtypes.float32 if dtype in HALVES else dtype


def is_exact(node: UOp) -> bool:
    """An integer op whose result is known to fit without wrapping."""
    if node.op.interval is None:
        return False
    low, high = node.op.interval(node)
    return node.dtype.min <= low and high <= node.dtype.max


def is_variable(node: UOp) -> bool:
    """Whether a value is read from a local variable."""
    return node.op is LOAD and access(node.src[0]).is_variable


def bare_constants(node: UOp, terms: Terms) -> Terms:
    """Drop the suffix of an int64 constant beside a source that is none: C widens it."""
    if node.src[0].dtype is not dtypes.int64 or all(s.op is CONST for s in node.src):
        return terms
    pairs = zip(node.src, terms, strict=True)
    plain = [t._replace(text=t.text.removesuffix("L")) if s.op is CONST else t for s, t in pairs]
    return tuple(plain)


def wrapping(operator: str, level: int, node: UOp, terms: Terms) -> Term:
    """An integer sum or product modulo 2^n, through unsigned where C may not overflow."""
    dtype = node.dtype
    if is_exact(node):
        return infix(operator, level, *bare_constants(node, terms))
    if dtype.kind == "uint" and dtype.bits >= 32:
        return infix(operator, level, *terms)
    unsigned = f"uint{max(dtype.bits, 32)}_t"
    a, b = (convert(unsigned, t) for t in terms)
    return convert(VALUE_TYPE[dtype], infix(operator, level, a, b))


def _add(node: UOp, terms: Terms) -> Term:
    if node.dtype.is_int:
        a, b = terms
        if (
            is_exact(node)
            and b.text.startswith("-")
            and node.src[1].op is CONST
            and b.level == UNARY
        ):
            minus = Term(b.text[1:], ATOM)
            return infix("-", SUM, *bare_constants(node, (a, minus)))
        return wrapping("+", SUM, node, terms)
    total = infix("+", SUM, *terms)
    # gcc takes x + x for 2·x, and would fuse that product, which may overflow, into a sum.
    return rounded(node.dtype, _kept(node, total) if node.src[0] is node.src[1] else total)


def _multiply(node: UOp, terms: Terms) -> Term:
    if node.dtype is dtypes.bool_:
        return infix("&", BITS, *(Term(at(UNARY, t), UNARY) for t in terms))
    if node.dtype.is_int:
        return wrapping("*", PRODUCT, node, terms)
    return rounded(node.dtype, infix("*", PRODUCT, *terms))


def _negate(node: UOp, terms: Terms) -> Term:
    (x,) = terms
    if node.dtype.is_float or is_exact(node):
        return Term(f"-{at(ATOM, x)}", UNARY)
    unsigned = f"uint{max(node.dtype.bits, 32)}_t"
    return convert(VALUE_TYPE[node.dtype], infix("-", SUM, Term("0", ATOM), convert(unsigned, x)))


def _maximum(node: UOp, terms: Terms) -> Term:
    if node.dtype is dtypes.bool_:
        return infix("|", BITS, *(Term(at(UNARY, t), UNARY) for t in terms))
    if is_variable(node.src[0]):  # a running maximum stands second, where its chain is short
        terms = terms[::-1]
    return call(f"max_{SHORT[wide(node.dtype)]}", *terms)


def _divide(operator: str, helper: str) -> TextRule:
    def row(node: UOp, terms: Terms) -> Term:
        x, y = node.src
        if x.interval[0] >= 0 and y.interval[0] > 0:
            return infix(operator, PRODUCT, *bare_constants(node, terms))
        return call(f"{helper}_{SHORT[node.dtype]}", *terms)

    return row


def _compare(operator: str, level: int) -> TextRule:
    def row(node: UOp, terms: Terms) -> Term:
        a, b = bare_constants(node, terms)
        return Term(f"{at(ORDER + 1, a)} {operator} {at(ORDER + 1, b)}", level)

    return row


def _select(node: UOp, terms: Terms) -> Term:
    condition, a, b = (at(CHOICE + 1, t) for t in terms)
    return Term(f"{condition} ? {a} : {b}", CHOICE)


def _of_float(name: str) -> TextRule:
    """A function of the C library, of a half in float."""

    def row(node: UOp, terms: Terms) -> Term:
        suffix = "" if node.dtype is dtypes.float64 else "f"
        return rounded(node.dtype, call(f"__builtin_{name}{suffix}", *terms))

    return row


def _reciprocal(node: UOp, terms: Terms) -> Term:
    one = literal(1.0, wide(node.dtype))
    return rounded(node.dtype, infix("/", PRODUCT, one, *terms))


def _kept(node: UOp, x: Term) -> Term:
    return call(f"keep_{SHORT[wide(node.dtype)]}", x)


def _keep(node: UOp, terms: Terms) -> Term:
    return _kept(node, *terms)


def _cast(node: UOp, terms: Terms) -> Term:
    (x,), dtype, source = terms, node.dtype, node.src[0].dtype
    if dtype is source:
        return x
    if dtype is dtypes.bool_:
        return Term(f"{at(ORDER + 1, x)} != 0", EQUAL)
    if dtype.is_int:
        if source.is_float:
            return call(f"{SHORT[dtype]}_from_{SHORT[wide(source)]}", x)
        return convert(VALUE_TYPE[dtype], x)
    return _to_float(dtype, source, x)


def _to_float(dtype: DType, source: DType, x: Term) -> Term:
    """To a float, rounded once."""
    if dtype not in HALVES:
        return x if VALUE_TYPE[dtype] == VALUE_TYPE[source] else convert(VALUE_TYPE[dtype], x)
    if dtype is dtypes.float16 and source is dtypes.float64:
        return call("round_f16_f64", x)
    # An integer that float32 does not hold overflows float16, but not bfloat16.
    if dtype is dtypes.bfloat16:
        if source.is_int and source.bits == 64:
            x = call(f"odd_{SHORT[source]}", x)
        if source.bits >= 32 and source is not dtypes.float32:
            x = call("odd_f32", x)
    if VALUE_TYPE[source] != "float" and not x.text.startswith("odd_f32"):
        x = convert("float", x)
    return x if source is dtypes.bool_ else rounded(dtype, x)


def _constant(node: UOp, terms: Terms) -> Term:
    return literal(node.arg.value, node.dtype)


C_TEXT: Mapping[Op, TextRule] = {
    CONST: _constant,
    week01.CAST: _cast,
    week01.NEG: _negate,
    week01.RECIP: _reciprocal,
    week01.EXP2: _of_float("exp2"),
    week01.LOG2: _of_float("log2"),
    week01.ADD: _add,
    week01.MUL: _multiply,
    week01.MAX: _maximum,
    week01.FLOORDIV: _divide("/", "floordiv"),
    week01.FLOORMOD: _divide("%", "floormod"),
    week01.CMPLT: _compare("<", ORDER),
    week01.CMPNE: _compare("!=", EQUAL),
    week01.WHERE: _select,
    KEEP: _keep,
}
