"""The engine: order, sharing, fixed points, and rules that do not end."""

import pytest

from week01_uops.dtypes import float32, int32
from week01_uops.errors import CompilerError
from week01_uops.node import const
from week01_uops.ops import ADD, EXP2, LOG2, MAX, MUL, NEG, RECIP, param, program
from week01_uops.pattern import Rule, any_of, var
from week01_uops.rewrite import Rules, Trace, rewrite

x, y = var("x"), var("y")
f, g = param(0, float32), param(1, float32)

NO_NEG = Rules("double negation", (Rule("negate_twice", NEG(NEG(x)), lambda x: x),))


def test_everything_below_is_rewritten():
    assert rewrite(ADD(EXP2(NEG(NEG(f))), NEG(NEG(g))), NO_NEG) is ADD(EXP2(f), g)


def test_results_are_rewritten_too():
    rules = Rules("chain", (Rule("a", EXP2(x), lambda x: LOG2(x)), Rule("b", LOG2(x), lambda x: x)))
    assert rewrite(EXP2(EXP2(f)), rules) is f


def test_nothing_to_do_is_the_same_program():
    root = program(ADD(f, g))
    assert rewrite(root, NO_NEG) is root


def test_shared_nodes_are_rewritten_once():
    fired = Trace()
    shared = NEG(NEG(f))
    root = ADD(EXP2(shared), LOG2(shared))
    assert rewrite(root, NO_NEG, trace=fired) is ADD(EXP2(f), LOG2(f))
    assert fired.fired == {"negate_twice": 1}
    assert fired.events == [(NO_NEG.rows[0], shared, f)]


def test_bottom_up_sees_sources_in_their_final_form():
    seen = []
    rules = Rules(
        "watch",
        (
            Rule("zero", EXP2(x), lambda x: NEG(x)),
            Rule("watch", ADD(x, y), lambda node: seen.append(node)),
        ),
    )
    assert rewrite(ADD(EXP2(f), g), rules) is ADD(NEG(f), g)
    assert set(seen) == {ADD(NEG(f), g)}


def test_top_down_sees_a_node_before_its_sources():
    """MAX(EXP2(x), …) is recognized only as long as EXP2 stands."""
    rules = Rules(
        "order",
        (
            Rule("outer", MAX(EXP2(x), y), lambda x, y: ADD(x, y)),
            Rule("inner", EXP2(x), lambda x: LOG2(x)),
        ),
    )
    program_ = MAX(EXP2(f), g)
    assert rewrite(program_, rules, order="top_down") is ADD(f, g)
    assert rewrite(program_, rules) is MAX(LOG2(f), g)


def test_deep_programs_do_not_recurse():
    node = f
    for _ in range(20_000):
        node = NEG(EXP2(node))
    assert rewrite(NEG(node), NO_NEG).op is EXP2


def test_rules_that_undo_one_another_are_named():
    rules = Rules(
        "circle",
        (
            Rule("there", EXP2(x), lambda x: LOG2(x)),
            Rule("back", LOG2(x), lambda x: EXP2(x)),
        ),
    )
    with pytest.raises(CompilerError, match="undo one another: back, there"):
        rewrite(ADD(EXP2(f), g), rules)
    with pytest.raises(CompilerError, match="undo one another"):
        rewrite(ADD(EXP2(f), g), rules, order="top_down")


def test_rules_that_grow_without_end_are_named():
    rules = Rules("growth", (Rule("grow", NEG(x), lambda x: ADD(NEG(ADD(x, 1)), 1)),))
    with pytest.raises(CompilerError, match="rewrite without end: grow"):
        rewrite(NEG(param(0, int32)), rules)


def test_many_firings_on_a_large_program_are_no_growth():
    node = f
    for _ in range(20_000):
        node = NEG(NEG(EXP2(node)))
    assert len(rewrite(node, NO_NEG).toposort()) == 20_001


def test_tables_are_values():
    one = Rules("one", (Rule("a", NEG(x), lambda x: x),))
    two = Rules("two", (Rule("b", RECIP(x), lambda x: x, exact=False),))
    both = one + two
    assert [rule.name for rule in both] == ["a", "b"]
    assert both.subject == "one + two"
    assert [rule.name for rule in both.exact] == ["a"]
    assert len(one.rows) == 1
    assert rewrite(RECIP(NEG(f)), both) is f
    assert rewrite(RECIP(NEG(f)), both.exact) is RECIP(f)


def test_a_known_fixed_point_is_not_tried_again():
    tried = []
    rules = Rules("watch", (Rule("watch", any_of((EXP2,), x), lambda node: tried.append(node)),))
    root = ADD(EXP2(f), EXP2(g))
    rewrite(root, rules)
    rewrite(MUL(root, EXP2(ADD(f, g))), rules)
    assert tried == [EXP2(f), EXP2(g), EXP2(ADD(f, g))]
    other = Rules("watch", rules.rows)
    rewrite(root, other)
    assert len(tried) == 5


def test_traces_keep_a_bounded_number_of_events():
    trace = Trace(keep=2)
    rewrite(ADD(ADD(NEG(NEG(f)), NEG(NEG(g))), NEG(NEG(EXP2(f)))), NO_NEG, trace=trace)
    assert trace.fired["negate_twice"] == 3
    assert len(trace.events) == 2


def test_constants_are_nodes_like_others():
    rules = Rules("constants", (Rule("two", ADD(x, 1), lambda x: ADD(x, 2)),))
    assert rewrite(ADD(f, 1.0), rules) is ADD(f, const(2.0, float32))
