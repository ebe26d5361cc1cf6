"""A proof of every rule of every table of week 1.

`python -m tests.week01_uops.test_proofs` prints the rules, their proofs, and how often each fired.
"""

import itertools
import random
from collections.abc import Iterator

import pytest

from tests.week01_uops.meaning import FLOAT8, INT3, INT4, INT5, UINT3, UINT4, constants
from tests.week01_uops.prove import (
    CASTABLE,
    SMALL,
    by_z3,
    check,
    exhaustively,
    from_pattern,
    sums,
)
from week01_uops import ops
from week01_uops.algebra import (
    ARITHMETIC,
    BOOLEAN,
    CASTS,
    COMMUTE,
    FLOAT,
    INTEGER,
    SELECT,
)
from week01_uops.compare import COMPARE
from week01_uops.conditions import CONDITIONS
from week01_uops.dtypes import bool_, int8, int64, uint8, uint64
from week01_uops.fold import FOLDING
from week01_uops.node import UOp, const
from week01_uops.ops import ADD, CMPLT, CMPNE, FLOORDIV, FLOORMOD, MAX, MUL, NEG, param
from week01_uops.pattern import Rule, walk
from week01_uops.simplify import SIMPLIFY
from week01_uops.symbolic import SYMBOLIC

ALGEBRA = (COMMUTE, ARITHMETIC, INTEGER, BOOLEAN, FLOAT, SELECT, CASTS)
TABLES = (FOLDING, *ALGEBRA, SYMBOLIC, COMPARE, CONDITIONS)
RULES = [rule for table in TABLES for rule in table]
SHORT = (INT4, UINT4, INT5)
WORDS = (int8, uint8, int64, uint64)


def pairs(build, dtypes=(INT3, UINT3)) -> Iterator[UOp]:
    """build(x, y) for x and y of every pair of ranges."""
    for dtype in dtypes:
        ranges = [(a, b) for a in range(dtype.min, dtype.max + 1) for b in range(a, dtype.max + 1)]
        for first in ranges:
            for second in ranges:
                yield build(param(0, dtype, (), first), param(1, dtype, (), second))


def by_every_constant(op) -> Iterator[UOp]:
    """op(x, c) for x of every range and every c."""
    for dtype in (INT4, UINT4):
        for low in range(dtype.min, dtype.max + 1):
            for high in range(low, dtype.max + 1):
                for value in range(dtype.min, dtype.max + 1):
                    yield op(param(0, dtype, (), (low, high)), const(value, dtype))


def conditions(op, number: int = 400) -> Iterator[UOp]:
    """Conjunctions and disjunctions of bounds on two integers, of a bool, and of negations."""
    rng = random.Random(f"{op}")
    for _ in range(number):
        dtype = rng.choice(SHORT)
        x, y, flag = param(0, dtype), param(1, dtype, (), (0, 5)), param(2, bool_)
        parts = []
        for _ in range(rng.randint(2, 4)):
            left = rng.choice((x, y, ADD(y, rng.randint(0, 2)), MUL(y, 2)))
            right = rng.choice((y, const(rng.randint(dtype.min, dtype.max), dtype)))
            part = rng.choice((CMPLT(left, right), CMPLT(right, left), flag))
            parts.append(CMPNE(part, True) if rng.random() < 0.2 else part)
        condition = parts[0]
        for part in parts[1:]:
            condition = op(condition, part) if rng.random() < 0.7 else op(part, condition)
        yield condition


def exchanged() -> Iterator[UOp]:
    """Commuting ops with their sources the wrong way round, where the op takes the dtype."""
    for op in (ADD, MUL, MAX, CMPNE):
        for dtype in (INT3, UINT3, FLOAT8, *([] if op is ADD else [bool_])):
            yield op(param(1, dtype), param(0, dtype))
            for value in constants(dtype):
                yield op(const(value, dtype), param(0, dtype))


def casts() -> Iterator[UOp]:
    """CAST(CAST(x)) between integer dtypes, for x of every range."""
    dtypes = (INT3, UINT3, INT4, UINT4)
    for source, middle, final in itertools.product(dtypes, repeat=3):
        for low in range(source.min, source.max + 1):
            for high in range(low, source.max + 1):
                x = param(0, source, (), (low, high))
                yield ops.CAST(ops.CAST(x, arg=middle), arg=final)


def several(*groups) -> Iterator[UOp]:
    for group in groups:
        yield from group


SUMS = {
    "collect_sum": ADD,
    "collect_multiple": MUL,
    "collect_negative": NEG,
    "divide": FLOORDIV,
    "modulo": FLOORMOD,
    "less": CMPLT,
    "differ": CMPNE,
    "larger": MAX,
}
"""Rules that look into sums, and the op that they look at."""

CASES = {
    "commute": exchanged,
    "bounded": lambda: several(*[sums(op, SHORT, 100) for op in (*SUMS.values(), FLOORDIV)]),
    "collect_sum": lambda: sums(ADD, SHORT, 600),
    "collect_multiple": lambda: sums(MUL, SHORT, 300),
    "collect_negative": lambda: sums(NEG, SHORT, 300),
    "divide": lambda: several(sums(FLOORDIV, SHORT, 1500), by_every_constant(FLOORDIV)),
    "modulo": lambda: several(sums(FLOORMOD, SHORT, 1500), by_every_constant(FLOORMOD)),
    "less": lambda: several(sums(CMPLT, SHORT, 1500), by_every_constant(CMPLT)),
    "differ": lambda: several(sums(CMPNE, SHORT, 1500), by_every_constant(CMPNE)),
    "larger": lambda: several(sums(MAX, SHORT, 600), by_every_constant(MAX)),
    "not_less": lambda: several(
        by_every_constant(lambda x, c: CMPNE(CMPLT(x, c), True)),
        by_every_constant(lambda x, c: CMPNE(CMPLT(c, x), True)),
    ),
    "modulo_smaller": lambda: pairs(FLOORMOD),
    "divide_multiple": lambda: pairs(lambda x, y: FLOORDIV(MUL(x, y), y)),
    "modulo_multiple": lambda: pairs(lambda x, y: FLOORMOD(MUL(x, y), y)),
    "condense_and": lambda: conditions(MUL),
    "condense_or": lambda: conditions(MAX),
    "cast_cast": lambda: several(from_pattern(rule_named("cast_cast"), CASTABLE), casts()),
}
"""Programs for the rules whose patterns alone say too little."""


def rule_named(name: str) -> Rule:
    return next(rule for rule in RULES if rule.name == name)


def proved(rule: Rule) -> dict[str, int]:
    """How often a rule fired, by kind of proof. An AssertionError shows where it is wrong."""
    casts = any(ops.CAST in (item.ops or ()) for item in walk(rule.pattern))
    programs = CASES.get(rule.name, lambda: from_pattern(rule, CASTABLE if casts else SMALL))()
    fired = {"exhaustive": check(rule, programs, exhaustively)}
    if rule.proof == "z3":
        fired["z3"] = check(rule, sums(SUMS[rule.name], WORDS, 40), by_z3)
    return fired


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_is_right(rule):
    for kind, times in proved(rule).items():
        assert times, f"the {kind} proof of {rule.name} never fired it"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_keeps_the_shape(rule):
    """Sources that are broadcast against one another: no result loses or gains an axis."""
    programs = from_pattern(rule, (bool_, INT3, FLOAT8), ((), (3,), (2, 1)))
    check(rule, programs, lambda before, after: None)


def test_no_rule_is_missing():
    assert {rule.name for rule in SIMPLIFY} == {rule.name for rule in RULES if rule.exact}
    assert {rule.proof for rule in RULES} <= {"exhaustive", "z3"}
    assert {rule.name for rule in RULES if rule.proof == "z3"} == set(SUMS)
    assert set(CASES) <= {rule.name for rule in RULES}


def test_tables_have_one_screen():
    assert all(len(table.rows) <= 20 for table in TABLES)


def test_only_exact_rules_touch_floats():
    """What fires on floats is tagged exact, and is proved so bit by bit; no other rule runs."""
    assert all(rule.exact for rule in SIMPLIFY)


if __name__ == "__main__":
    for table in TABLES:
        print(f"\n{table.subject}\n")  # noqa: T201
        for row in table:
            counts = ", ".join(f"{kind} {times}" for kind, times in proved(row).items())
            print(f"{row.name:28}{row.proof:12}fired: {counts}")  # noqa: T201
