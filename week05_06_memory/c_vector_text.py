"""The C expression of each elementwise op on vectors: a table from op to text.

A row takes what a row of week 2's table takes, terms of which at least one has lanes, and gives a
vector of `held` elements; or None where the scalar text, lane by lane, is what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from week01_uops import dtypes
from week01_uops import ops as week01
from week01_uops.dtypes import DType
from week01_uops.node import CONST, Op, UOp
from week02_render.c_text import Terms, call, infix, is_exact, is_variable
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
    Term,
    at,
    literal,
)
from week02_render.ops import KEEP
from week05_06_memory.c_vector_types import (
    UNSIGNED,
    converted,
    held,
    reinterpreted,
    spread,
    vector_type,
)
from week05_06_memory.ops import LARGER, SQRT

VectorRule = Callable[[UOp, Terms], Term | None]


def lanes_in(terms: Terms) -> int:
    """The lanes of the vectors among terms; 1 if there are none."""
    return max((t.lanes for t in terms), default=1)


def widest(*nodes: UOp) -> DType:
    """The element type that holds all of the values, which have one dtype."""
    return max(map(held, nodes), key=lambda dtype: dtype.bits)


def all_spread(node: UOp, terms: Terms, to: DType) -> Terms:
    """The sources as vectors of one element type."""
    lanes = lanes_in(terms)
    return tuple([spread(s, t, lanes, to) for s, t in zip(node.src, terms, strict=True)])


def rounded(dtype: DType, x: Term) -> Term:
    """The term as a value of dtype: a half rounds what was computed in float32."""
    return call(f"round_{SHORT[dtype]}x{x.lanes}", x) if dtype in HALVES else x


def _kept(node: UOp, x: Term) -> Term:
    return call(f"keep_{vector_type(held(node), x.lanes)}", x)


def _keep(node: UOp, terms: Terms) -> Term:
    return _kept(node, *terms)


def _wrapping(operator: str, level: int, node: UOp, terms: Terms) -> Term:
    """A sum or product of integers modulo 2^n."""
    dtype = widest(node, *node.src)
    sources = all_spread(node, terms, dtype)
    if is_exact(node):
        result = infix(operator, level, *sources)
    else:
        a, b = (reinterpreted(t, UNSIGNED[dtype]) for t in sources)
        result = reinterpreted(infix(operator, level, a, b), dtype)
    return converted(result, dtype, held(node))


def _add(node: UOp, terms: Terms) -> Term:
    if node.dtype.is_int:
        return _wrapping("+", SUM, node, terms)
    total = infix("+", SUM, *terms)
    return rounded(node.dtype, _kept(node, total) if node.src[0] is node.src[1] else total)


def _multiply(node: UOp, terms: Terms) -> Term:
    if node.dtype is dtypes.bool_:
        return infix("&", BITS, *_bits(node, terms))
    if node.dtype.is_int:
        return _wrapping("*", PRODUCT, node, terms)
    return rounded(node.dtype, infix("*", PRODUCT, *terms))


def _bits(node: UOp, masks: Terms) -> Terms:
    """Masks as operands of & and |."""
    masks = all_spread(node, masks, dtypes.int32)
    return tuple([t._replace(text=at(UNARY, t), level=UNARY) for t in masks])


def _negate(node: UOp, terms: Terms) -> Term:
    dtype = held(node) if node.dtype.is_float else widest(node, *node.src)
    (x,) = all_spread(node, terms, dtype)
    if node.dtype.is_float or is_exact(node):
        result = Term(f"-{at(ATOM, x)}", UNARY, x.lanes)
    else:
        unsigned = reinterpreted(x, UNSIGNED[dtype])
        result = reinterpreted(Term(f"-{at(UNARY, unsigned)}", UNARY, x.lanes), dtype)
    return converted(result, dtype, held(node))


def _maximum(node: UOp, terms: Terms) -> Term:
    if node.dtype is dtypes.bool_:
        return infix("|", BITS, *_bits(node, terms))
    dtype = widest(*node.src)
    terms = all_spread(node, terms, dtype)
    vector = vector_type(dtype, terms[0].lanes)
    if dtype.is_float and (size := _absolute(node, terms)):
        return converted(call(f"abs_{vector}", size), dtype, held(node))
    if is_variable(node.src[0]):  # a running maximum stands second, where its chain is short
        terms = terms[::-1]
    return converted(call(f"max_{vector}", *terms), dtype, held(node))


def _larger(node: UOp, terms: Terms) -> Term:
    dtype = held(node)
    return call(f"larger_{vector_type(dtype, lanes_in(terms))}", *all_spread(node, terms, dtype))


def _absolute(node: UOp, terms: Terms) -> Term | None:
    """The term of x if the node is the larger of x and −x."""
    for x, y, term in zip(node.src, node.src[::-1], terms, strict=True):
        if y.op is week01.NEG and y.src[0] is x:
            return term
    return None


def _divide(operator: str) -> VectorRule:
    """Of what is not negative by what is positive: as unsigned numbers."""

    def row(node: UOp, terms: Terms) -> Term | None:
        x, y = node.src
        if x.interval[0] < 0 or y.interval[0] <= 0:
            return None
        dtype = widest(node, x, y)
        unsigned = UNSIGNED[dtype]
        a, b = (reinterpreted(t, unsigned) for t in all_spread(node, terms, dtype))
        if y.op is CONST:
            b = literal(y.arg.value, unsigned)
        return converted(reinterpreted(infix(operator, PRODUCT, a, b), dtype), dtype, held(node))

    return row


def mask(comparison: Term, compared: DType) -> Term:
    """A comparison, which has the lanes' width, as a mask of 32 bits."""
    width = next(d for d in dtypes.INTEGERS if d.kind == "int" and d.bits == compared.bits)
    return converted(comparison, width, dtypes.int32)


def _compare(operator: str, level: int) -> VectorRule:
    def row(node: UOp, terms: Terms) -> Term:
        dtype = widest(*node.src)
        if not node.src[0].dtype.is_float:
            terms = all_spread(node, terms, dtype)
        a, b = (t._replace(text=at(ORDER + 1, t), level=ORDER + 1) for t in terms)
        return mask(infix(operator, level, a, b), dtype)

    return row


def _select(node: UOp, terms: Terms) -> Term:
    condition, a, b = terms
    dtype, lanes = held(node), lanes_in(terms)
    a, b = spread(node.src[1], a, lanes, dtype), spread(node.src[2], b, lanes, dtype)
    if condition.lanes == 1:
        text = " ".join([at(CHOICE + 1, condition), "?", at(CHOICE + 1, a), ":", at(CHOICE + 1, b)])
        return Term(text, CHOICE, lanes)
    return call(f"select_{vector_type(dtype, lanes)}", condition, a, b)


def _of_float32(name: str) -> VectorRule:
    """A polynomial in float32."""

    def row(node: UOp, terms: Terms) -> Term | None:
        if node.dtype is dtypes.float64:
            return None
        return rounded(node.dtype, call(f"{name}_f32x{lanes_in(terms)}", *terms))

    return row


def _reciprocal(node: UOp, terms: Terms) -> Term:
    return rounded(node.dtype, infix("/", PRODUCT, literal(1.0, held(node)), *terms))


def _square_root(node: UOp, terms: Terms) -> Term:
    (x,) = terms
    return rounded(node.dtype, call(f"sqrt_{vector_type(held(node), x.lanes)}", x))


def _cast(node: UOp, terms: Terms) -> Term | None:
    (x,), dtype = terms, node.dtype
    (source,) = node.src
    elements = held(source)
    if source.dtype is dtypes.bool_ and dtype is not dtypes.bool_:  # −1 is true
        x = infix("&", BITS, Term(at(UNARY, x), UNARY, x.lanes), Term("1", ATOM))
    if dtype is dtypes.bool_ and source.dtype is not dtypes.bool_:
        return mask(infix("!=", EQUAL, x, literal(0, elements)), elements)
    if dtype.is_int and source.dtype.is_float:
        name = f"{SHORT[dtype]}_from_{vector_type(elements, x.lanes)}"
        return converted(call(name, x), dtype, held(node))
    if dtype in HALVES and _is_rounded_twice(source.dtype, dtype):
        return None
    x = converted(x, elements, held(node))
    return x if dtype is source.dtype else rounded(dtype, x)


def _is_rounded_twice(source: DType, dtype: DType) -> bool:
    """Whether the conversion to float32 would round what the one to a half rounds again."""
    if source.is_int:
        return dtype is dtypes.bfloat16 and source.bits >= 32
    return source is dtypes.float64


VECTOR_TEXT: Mapping[Op, VectorRule] = {
    week01.CAST: _cast,
    week01.NEG: _negate,
    week01.RECIP: _reciprocal,
    week01.EXP2: _of_float32("exp2"),
    week01.LOG2: _of_float32("log2"),
    week01.ADD: _add,
    week01.MUL: _multiply,
    week01.MAX: _maximum,
    LARGER: _larger,
    week01.FLOORDIV: _divide("/"),
    week01.FLOORMOD: _divide("%"),
    week01.CMPLT: _compare("<", ORDER),
    week01.CMPNE: _compare("!=", EQUAL),
    week01.WHERE: _select,
    KEEP: _keep,
    SQRT: _square_root,
}
