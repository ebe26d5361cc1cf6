"""The prover finds the faults of rules that are wrong."""

import pytest

from tests.week01_uops.meaning import INT4, UINT4
from tests.week01_uops.prove import by_z3, check, exhaustively, from_pattern
from week01_uops.dtypes import int8, int64
from week01_uops.node import const
from week01_uops.ops import ADD, CMPLT, FLOORDIV, MAX, MUL, NEG, WHERE, param
from week01_uops.pattern import Rule, constant_var, var
from week01_uops.rewrite import Rules
from week01_uops.signatures import floating, integer

x, y, p, c1, c2 = var("x"), var("y"), var("p"), constant_var("c1"), constant_var("c2")
n, f = var("n", integer), var("f", floating)

WRONG = (
    Rule("divide_and_multiply", MUL(FLOORDIV(n, c1), c1), lambda n: n),
    Rule("drop_common_term", CMPLT(ADD(n, c1), ADD(x, c1)), lambda n, x: CMPLT(n, x)),
    Rule("float_times_zero", MUL(f, 0), lambda f: const(0.0, f.dtype)),
    Rule("cancel", ADD(ADD(f, x), NEG(x)), lambda f: f),
    Rule("reassociate", ADD(ADD(f, c1), c2), lambda f, c1, c2: ADD(f, ADD(c1, c2)), exact=False),
    Rule("max_forgets_nan", WHERE(CMPLT(f, y), y, f), lambda f, y: MAX(f, y)),
    Rule("wrong_arm", WHERE(p, x, y), lambda y: y),
)


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.name)
def test_wrong_rule_is_found_out(rule):
    with pytest.raises(AssertionError, match=f"{rule.name}: .* became "):
        check(rule, from_pattern(rule), exhaustively)


def test_inexact_rules_do_not_run():
    table = Rules("wrong", WRONG)
    assert [rule.name for rule in table if not rule.exact] == ["reassociate"]
    assert "reassociate" not in [rule.name for rule in table.exact]


@pytest.mark.parametrize("dtype", [int8, int64])
def test_z3_finds_overflow(dtype):
    before = CMPLT(ADD(param(0, dtype), 1), ADD(param(1, dtype), 1))
    assert by_z3(before, CMPLT(param(0, dtype), param(1, dtype)))
    a, b = param(0, dtype, (), (0, 100)), param(1, dtype, (), (-5, 7))
    assert by_z3(CMPLT(ADD(a, 1), ADD(b, 1)), CMPLT(a, b)) is None


@pytest.mark.parametrize("dtype", [int8, int64])
def test_z3_rounds_down(dtype):
    a = param(0, dtype)
    assert by_z3(FLOORDIV(a, 4), NEG(FLOORDIV(NEG(a), 4)))
    assert by_z3(FLOORDIV(FLOORDIV(a, 4), 5), FLOORDIV(a, 20)) is None


def test_another_shape_is_a_fault():
    rule = Rule("where_same", WHERE(p, x, x), lambda x: x)
    program = WHERE(CMPLT(param(0, INT4, (3,)), 2), param(1, UINT4), param(1, UINT4))
    with pytest.raises(AssertionError, match="where_same"):
        check(rule, [program], lambda before, after: None)


def test_a_rule_that_never_fires_proves_nothing():
    assert check(Rule("never", NEG(x), lambda x: None), from_pattern(WRONG[0]), exhaustively) == 0
