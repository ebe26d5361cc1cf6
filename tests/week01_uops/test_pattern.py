"""Patterns match what they are written like; tables compile to Python that a reader can follow."""

import math

import pytest

from week01_uops.dtypes import bool_, float32, int32
from week01_uops.node import const
from week01_uops.ops import ADD, CMPNE, MAX, MUL, NEG, RETURN, WHERE, param, program
from week01_uops.pattern import Pattern, Rule, Skip, any_of, constant_var, orders, var, walk
from week01_uops.rewrite import Rules, Trace
from week01_uops.signatures import floating, integer

x, y = var("x"), var("y")
f, g, i, p = param(0, float32), param(1, float32), param(2, int32), param(3, bool_)


def bound(pattern, node):
    """What the pattern binds at the node, in the order of its names; None if it does not match."""
    names = sorted({item.name for item in walk(pattern) if item.name})
    seen = []
    rhs = eval(f"lambda {', '.join(names)}: seen.append(({', '.join(names)},))", {"seen": seen})  # noqa: S307
    Rules("one", (Rule("it", pattern, rhs),)).apply(node)
    return seen[0] if seen else None


def test_a_pattern_is_written_like_a_program():
    assert bound(ADD(x, MUL(y, 2)), ADD(f, MUL(g, 2.0))) == (f, g)
    assert bound(ADD(x, MUL(y, 2)), ADD(f, MUL(g, 3.0))) is None
    assert bound(ADD(x, MUL(y, 2)), MAX(f, MUL(g, 2.0))) is None


def test_a_repeated_name_is_one_node():
    assert bound(ADD(x, x), ADD(f, f)) == (f,)
    assert bound(ADD(x, x), ADD(f, g)) is None
    assert bound(ADD(NEG(x), x), ADD(f, NEG(f))) == (f,)


def test_sources_of_commuting_ops_match_in_both_orders():
    assert bound(MUL(NEG(x), y), MUL(f, NEG(g))) == (g, f)
    assert bound(ADD(x, 0), ADD(0.0, f)) == (f,)
    assert len(orders(ADD(MUL(x, y), MUL(x, 1)))) == 8
    assert len(orders(ADD(x, x))) == 1


def test_numbers_match_in_any_dtype_and_bools_only_as_bools():
    assert bound(MUL(x, 1), MUL(f, 1.0)) == (f,)
    assert bound(MUL(x, 1), MUL(i, 1)) == (i,)
    assert bound(MUL(x, 1), MUL(p, True)) is None
    assert bound(CMPNE(x, True), CMPNE(p, True)) == (p,)
    assert bound(CMPNE(x, True), CMPNE(i, 1)) is None
    assert bound(WHERE(True, x, y), WHERE(const(True, bool_), f, g)) == (f, g)
    assert bound(MAX(x, -math.inf), MAX(f, -math.inf)) == (f,)
    assert bound(ADD(x, 0), ADD(f, -0.0)) == (f,)


def test_constants_and_dtypes():
    c = constant_var("c")
    assert bound(ADD(x, c), ADD(i, 7)) == (const(7, int32), i)
    assert bound(ADD(x, c), ADD(f, g)) is None
    assert bound(NEG(var("x", integer)), NEG(i)) == (i,)
    assert bound(NEG(var("x", integer)), NEG(f)) is None
    assert bound(any_of((NEG,), name="n").where(floating), NEG(f)) == (NEG(f),)
    assert bound(any_of((NEG,), name="n").where(floating), NEG(i)) is None


def test_any_of():
    either = any_of((ADD, MUL), x, y)
    assert bound(either, MUL(f, g)) == (f, g)
    assert bound(either, MAX(f, g)) is None
    assert bound(NEG(any_of((ADD, MUL), name="n")), NEG(MUL(f, g))) == (MUL(f, g),)


def test_ops_of_any_arity():
    root = program(f, g)
    assert bound(any_of((RETURN,), x, y), root) == (f, g)
    assert bound(any_of((RETURN,), x), root) is None
    assert bound(any_of((RETURN,), x).with_more(), root) == (f,)


def test_the_match_is_called_node():
    rule = Rule("it", ADD(x, 1), lambda node, x: MUL(node, x))
    found = Rules("one", (rule,)).apply(ADD(f, 1.0))
    assert found == (MUL(ADD(f, 1.0), f), rule)


def test_faults_of_rules_are_told():
    with pytest.raises(TypeError, match="rule bad: z not in its pattern"):
        Rule("bad", ADD(x, 1), lambda z: z)
    with pytest.raises(TypeError, match="rule bad: the root of its pattern must name an op"):
        _ = Rules("one", (Rule("bad", x, lambda x: x),)).matchers
    with pytest.raises(TypeError, match="named twice in one: same"):
        Rules("one", (Rule("same", NEG(x), lambda x: x),) * 2)
    with pytest.raises(TypeError, match="has no argument"):
        NEG(x, arg=3)
    with pytest.raises(TypeError, match="expected a pattern or a number"):
        NEG.__call__(Pattern(), "x")


def test_the_compiled_text_can_be_read():
    rules = Rules("one", (Rule("add_zero", ADD(x, 0), lambda x: x),))
    text = rules.source
    assert "def match_ADD(n, t):" in text
    assert "    # add_zero\n    if o_1 is CONST:\n        if n_1.arg.value == 0" in text


def test_names_of_rules_need_not_be_names_of_python():
    rules = Rules("some", (Rule("no-name", NEG(x), lambda x: x), Rule("n", ADD(x, 0), lambda x: x)))
    assert rules.apply(NEG(f))[0] is f
    assert rules.apply(ADD(f, 0.0))[0] is f


def test_the_first_row_that_applies_wins():
    rows = (
        Rule("declines", NEG(x), lambda x: None),
        Rule("skips", NEG(x), lambda x: Skip("not today")),
        Rule("same", NEG(x), lambda node, x: node),
        Rule("fires", NEG(x), lambda x: x),
        Rule("too_late", NEG(x), lambda x: ADD(x, x)),
    )
    trace = Trace()
    after, rule = Rules("some", rows).apply(NEG(f), trace)
    assert (after, rule.name) == (f, "fires")
    assert list(trace.declined) == [("skips", "not today")]


def test_a_result_of_another_shape_is_dropped():
    wide = MAX(param(0, float32, (3,)), f)
    drop = Rule("drop", MAX(x, y), lambda y: y)
    kept = Rule("drop", MAX(x, y), lambda y: y, keeps_shape=True)
    assert Rules("one", (drop,)).apply(wide)[0] is f
    assert Rules("one", (kept,)).apply(wide)[0].shape == (3,)
