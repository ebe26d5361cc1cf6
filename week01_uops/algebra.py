"""Algebraic identities, each right in the exact arithmetic of its dtypes.

Integers wrap, so they form a ring, and every identity of rings holds. Of floats only those hold
that change no bit but the sign of a zero, which the format leaves open. x·0, x/x and (a+b)−a are
not among them. Neither is x+x → x·2, although doubling is exact: a product may be fused into a
sum that uses it (fma), and then an overflow of 2x would be lost. For the same reason no rule
turns the NEG of a product into a product.
"""

from __future__ import annotations

from week01_uops.dtypes import DType, bool_
from week01_uops.node import CONST, UOp, const
from week01_uops.ops import (
    ADD,
    CAST,
    CMPLT,
    CMPNE,
    FLOORDIV,
    FLOORMOD,
    MAX,
    MUL,
    NEG,
    WHERE,
)
from week01_uops.order import order
from week01_uops.pattern import Rule, any_of, constant_var, var
from week01_uops.rewrite import Rules
from week01_uops.signatures import floating, integer


def boolean(dtype: DType) -> bool:
    """Bool alone."""
    return dtype is bool_


def discrete(dtype: DType) -> bool:
    """Integers and bool: no NaN, no rounding."""
    return not dtype.is_float


def _opposite(c: UOp) -> UOp:
    return const(c.dtype.wrap(-c.arg.value) if c.dtype.is_int else -c.arg.value, c.dtype)


def commuted(node: UOp) -> UOp | None:
    """Swap y ∘ x → x ∘ y for a commuting op ∘: constants to the right, else by structure.

    Sums and inequalities of integers have an order of their own (`symbolic`, `compare`).
    """
    left, right = node.src
    if left.op is CONST or right.op is CONST:
        swaps = right.op is not CONST
    elif left.dtype.is_int and (node.op is ADD or node.op is CMPNE):
        swaps = False
    else:
        swaps = order(right) < order(left)
    return node.with_src((right, left)) if swaps else None


x, y, z, n, d = var("x"), var("y"), var("z"), var("n", integer), var("d", discrete)
c1, c2 = constant_var("c1"), constant_var("c2")

COMMUTE = Rules(
    "one order for the sources of a commuting op",
    (Rule("commute", any_of((ADD, MUL, MAX, CMPNE), name="node"), commuted),),
)

ARITHMETIC = Rules(
    "identities of every dtype",
    (
        Rule("add_zero", ADD(x, 0), lambda x: x),
        Rule("multiply_one", MUL(x, 1), lambda x: x),
        Rule("multiply_minus_one", MUL(x, -1), lambda x: NEG(x)),
        Rule("negate_twice", NEG(NEG(x)), lambda x: x),
        Rule("multiply_negated", MUL(NEG(x), NEG(y)), lambda x, y: MUL(x, y)),
        Rule("multiply_negated_constant", MUL(NEG(x), c1), lambda x, c1: MUL(x, _opposite(c1))),
        Rule("max_same", MAX(x, x), lambda x: x),
        Rule("max_absorbs", MAX(MAX(x, y).named("m"), y), lambda m: m, keeps_shape=True),
        Rule("max_constants", MAX(MAX(x, c1), c2), lambda x, c1, c2: MAX(x, MAX(c1, c2))),
        Rule("less_same", CMPLT(x, x), lambda x: const(False, bool_), keeps_shape=True),
    ),
)

INTEGER = Rules(
    "identities of integers",
    (
        Rule("multiply_zero", MUL(n, 0), lambda n: const(0, n.dtype), keeps_shape=True),
        Rule("add_opposite", ADD(n, NEG(n)), lambda n: const(0, n.dtype), keeps_shape=True),
        Rule("add_constants", ADD(ADD(n, c1), c2), lambda n, c1, c2: ADD(n, ADD(c1, c2))),
        Rule("multiply_constants", MUL(MUL(n, c1), c2), lambda n, c1, c2: MUL(n, MUL(c1, c2))),
        Rule("divide_by_one", FLOORDIV(x, 1), lambda x: x),
        Rule("divide_by_minus_one", FLOORDIV(x, -1), lambda x: NEG(x)),
        Rule("divide_by_zero", FLOORDIV(x, 0), lambda x: const(0, x.dtype), keeps_shape=True),
        Rule("modulo_one", FLOORMOD(x, 1), lambda x: const(0, x.dtype), keeps_shape=True),
        Rule("modulo_minus_one", FLOORMOD(x, -1), lambda x: const(0, x.dtype), keeps_shape=True),
        Rule("modulo_zero", FLOORMOD(x, 0), lambda x: x),
        Rule("differ_same", CMPNE(d, d), lambda d: const(False, bool_), keeps_shape=True),
    ),
)

b, p, q = var("b", boolean), var("p", boolean), var("q", boolean)

BOOLEAN = Rules(
    "identities of bools: MUL is and, MAX is or, CMPNE is xor",
    (
        Rule("and_true", MUL(b, True), lambda b: b),
        Rule("and_false", MUL(b, False), lambda b: const(False, bool_), keeps_shape=True),
        Rule("and_same", MUL(b, b), lambda b: b),
        Rule("or_true", MAX(b, True), lambda b: const(True, bool_), keeps_shape=True),
        Rule("or_false", MAX(b, False), lambda b: b),
        Rule("xor_false", CMPNE(b, False), lambda b: b),
        Rule("not_not", CMPNE(CMPNE(b, True), True), lambda b: b),
        Rule("and_not", MUL(b, CMPNE(b, True)), lambda b: const(False, bool_), keeps_shape=True),
        Rule("or_not", MAX(b, CMPNE(b, True)), lambda b: const(True, bool_), keeps_shape=True),
        Rule("and_absorbs", MUL(b, MAX(b, p)), lambda b: b, keeps_shape=True),
        Rule("or_absorbs", MAX(b, MUL(b, p)), lambda b: b, keeps_shape=True),
        Rule("and_repeated", MUL(MUL(b, p).named("m"), b), lambda m: m, keeps_shape=True),
    ),
)

f = var("f", floating)

FLOAT = Rules(
    "exact identities of floats",
    (
        Rule("max_minus_infinity", MAX(f, float("-inf")), lambda f: f),
        Rule("less_negated", CMPLT(NEG(f), NEG(y)), lambda f, y: CMPLT(y, f)),
        Rule("less_than_negated", CMPLT(c1, NEG(f)), lambda c1, f: CMPLT(f, _opposite(c1))),
        Rule("negated_less_than", CMPLT(NEG(f), c1), lambda f, c1: CMPLT(_opposite(c1), f)),
        Rule("differ_negated", CMPNE(NEG(f), NEG(y)), lambda f, y: CMPNE(f, y)),
        Rule("differ_from_negated", CMPNE(NEG(f), c1), lambda f, c1: CMPNE(f, _opposite(c1))),
    ),
)

SELECT = Rules(
    "WHERE",
    (
        Rule("where_true", WHERE(True, x, y), lambda x: x, keeps_shape=True),
        Rule("where_false", WHERE(False, x, y), lambda y: y, keeps_shape=True),
        Rule("where_same", WHERE(p, x, x), lambda x: x, keeps_shape=True),
        Rule("where_not", WHERE(CMPNE(p, True), x, y), lambda p, x, y: WHERE(p, y, x)),
        Rule(
            "where_nested_true",
            WHERE(p, WHERE(p, x, y), z),
            lambda p, x, z: WHERE(p, x, z),
            keeps_shape=True,
        ),
        Rule(
            "where_nested_false",
            WHERE(p, x, WHERE(p, y, z)),
            lambda p, x, z: WHERE(p, x, z),
            keeps_shape=True,
        ),
        Rule("where_and", WHERE(p, WHERE(q, x, y), y), lambda p, q, x, y: WHERE(MUL(p, q), x, y)),
        Rule("where_itself", WHERE(p, True, False), lambda p: p),
        Rule("where_negation", WHERE(p, False, True), lambda p: CMPNE(p, True)),
        Rule("where_is_and", WHERE(p, b, False), lambda p, b: MUL(p, b)),
        Rule("where_is_or", WHERE(p, True, b), lambda p, b: MAX(p, b)),
    ),
)


def holds(wide: DType, narrow: DType) -> bool:
    """Every value of `narrow` is one of `wide`, so that a CAST to it is exact."""
    if narrow is wide or narrow is bool_:
        return True
    if narrow.is_float:
        return (
            wide.is_float
            and wide.precision >= narrow.precision
            and wide.max_exponent + wide.precision >= narrow.max_exponent + narrow.precision
            and wide.max_exponent >= narrow.max_exponent
        )
    if wide.is_float:
        magnitude = max(-narrow.min, narrow.max)
        return magnitude.bit_length() <= min(wide.precision, wide.max_exponent)
    return wide.is_int and wide.min <= narrow.min and narrow.max <= wide.max


def _keeps(cast: UOp) -> bool:
    """A CAST that changes no value: its dtype holds all of the source's, or all of its interval."""
    dtype, source = cast.dtype, cast.src[0]
    if dtype.is_int and source.dtype.is_int:
        low, high = source.interval
        return dtype.min <= low and high <= dtype.max
    return holds(dtype, source.dtype)


def cast_cast(node: UOp, inner: UOp, x: UOp) -> UOp | None:
    """CAST(CAST(x, m), d) → CAST(x, d), if m keeps x, or integers only narrow to d."""
    middle, final = inner.dtype, node.dtype
    narrows = x.dtype.is_int and middle.is_int and final.is_int and final.bits <= middle.bits
    return CAST(x, arg=final) if narrows or _keeps(inner) else None


def compared_casts(node: UOp, left: UOp, right: UOp) -> UOp | None:
    """CAST(x, m) ∘ CAST(y, m) → x ∘ y for a comparison ∘, if m keeps both, of one dtype."""
    x, y = left.src[0], right.src[0]
    same = x.dtype is y.dtype and (x.dtype is not bool_ or node.op is CMPNE)
    return node.with_src((x, y)) if same and _keeps(left) and _keeps(right) else None


left, right = CAST(x).named("left"), CAST(y).named("right")

CASTS = Rules(
    "CAST",
    (
        Rule("cast_nothing", CAST(x), lambda node, x: x if x.dtype is node.dtype else None),
        Rule("cast_cast", CAST(CAST(x).named("inner")), cast_cast),
        Rule("less_of_casts", CMPLT(left, right), compared_casts),
        Rule("differ_of_casts", CMPNE(left, right), compared_casts),
        Rule("differ_from_zero", CMPNE(CAST(b), 0), lambda b: b),
    ),
)

ALGEBRA = COMMUTE + ARITHMETIC + INTEGER + BOOLEAN + FLOAT + SELECT + CASTS
