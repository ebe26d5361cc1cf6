"""Where masks leave a constant; rules that drop masked elements, and bounded comparisons."""

import pytest

from tests.rules import check_rule
from week01_uops.calls import substitute
from week01_uops.dtypes import float32, float64, int16, int64
from week01_uops.node import UOp, const, make
from week01_uops.ops import ADD, CAST, CMPLT, CMPNE, EXP2, MAX, MUL, NEG, WHERE, param, program
from week01_uops.rewrite import rewrite
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, AllocArg, loop, open_ranges
from week03_loops.ops import REDUCE, ReduceArg
from week04_fusion.ops import stage
from week05_06_memory.masks import BOUNDED, MASKED, at_least_one, cuts, ended, uppers

I, K, J = loop(0, 8), loop(1, 8), loop(9, 8)
LOW = loop(2, 8, ADD(I, 1))
BOTH = loop(3, 8, WHERE(CMPLT(I, const(5, int64)), I, const(5, int64)))
N = LOAD(INDEX(param(0, int16, (8,)), I))
X = LOAD(INDEX(param(1, float32, (8,)), K))
LOWEST, NOTHING = const(float("-inf"), float32), const(0.0, float32)


def filled(value: UOp) -> UOp:
    """A program of the values for each value of the outer loop."""
    place = make(ALLOC, (), AllocArg(0, value.dtype, (8,)))
    return program(make(AFTER, (place, END(STORE(INDEX(place, I), value), I))))


def total(value: UOp, *ranges: UOp, op=ADD) -> UOp:
    return make(REDUCE, (value, *ranges), ReduceArg(op, 0))


def finite(dtype=float32) -> UOp:
    return CAST(N, arg=dtype)


def bounded():
    for r in (LOW, BOTH):
        for other in (I, ADD(I, 1), ADD(NEG(I), 3), const(5, int64)):
            for condition in (CMPLT(other, r), CMPLT(r, other), CMPLT(MUL(r, 2), ADD(other, r))):
                yield filled(total(CAST(condition, arg=int64), r))


PROGRAMS = {
    "decided_by_bound": lambda: list(bounded()),
    "masked_sum": lambda: [
        filled(ADD(const(float("-inf"), d), finite(d))) for d in (float32, float64)
    ],
    "masked_product": lambda: [filled(MUL(finite(d), const(0.0, d))) for d in (float32, float64)],
    "masked_terms": lambda: [filled(total(NOTHING, K)), filled(total(LOWEST, K, op=MAX))],
}


def test_every_rule_has_programs():
    assert {rule.name for rule in BOUNDED + MASKED} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rule_keeps_the_meaning(name):
    fired = [check_rule(BOUNDED + MASKED, name, case, seeds=2) for case in PROGRAMS[name]()]
    assert sum(fired) >= min(len(fired), 4)


@pytest.mark.parametrize(
    ("condition", "decided"),
    [
        (CMPLT(I, LOW), False),
        (CMPLT(LOW, ADD(I, 1)), True),
        (CMPLT(BOTH, I), True),
        (CMPLT(BOTH, const(5, int64)), True),
        (CMPLT(LOW, I), None),
        (CMPLT(K, I), None),
    ],
)
def test_a_bound_decides_what_it_implies(condition, decided):
    after = rewrite(condition, BOUNDED)
    assert (after.arg.value if after is not condition else None) == decided


def test_only_what_is_masked_is_dropped():
    for kept in (
        ADD(const(1.0, float32), X),
        MUL(LOWEST, X),
        total(LOWEST, K),
        total(NOTHING, I, op=MAX),
    ):
        assert rewrite(kept, MASKED) is kept


def softmax_term(mask: UOp) -> UOp:
    masked = WHERE(mask, X, LOWEST)
    largest = total(substitute(masked, {K: J}), J, op=MAX)
    return EXP2(MUL(ADD(masked, NEG(largest)), 1.5))


def found(value: UOp, item: UOp = K):
    return [(c.edge, c.constant, c.certain) for c in cuts(value, item, frozenset({I}))]


NEXT = ADD(I, 1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (WHERE(CMPLT(K, NEXT), X, NOTHING), [(NEXT, 0.0, True)]),
        (WHERE(CMPLT(K, I), X, NOTHING), [(I, 0.0, True)]),
        (WHERE(CMPLT(I, K), NOTHING, X), [(NEXT, 0.0, True)]),
        (WHERE(CMPNE(CMPLT(I, K), True), X, LOWEST), [(NEXT, float("-inf"), True)]),
        (WHERE(MUL(CMPLT(K, NEXT), CMPLT(I, ADD(K, 3))), X, NOTHING), [(NEXT, 0.0, True)]),
        (WHERE(CMPLT(MUL(K, 2), I), X, NOTHING), 1),
        (softmax_term(CMPLT(K, NEXT)), [(NEXT, 0.0, True)]),
        (softmax_term(CMPLT(K, I)), [(at_least_one(I), 0.0, False)]),
        (MUL(softmax_term(CMPLT(K, NEXT)), X), [(NEXT, 0.0, True)]),
        (WHERE(CMPLT(K, NEXT), X, const(-1e9, float32)), [(NEXT, -1e9, True)]),
        (EXP2(ADD(WHERE(CMPLT(K, NEXT), X, const(-1e9, float32)), X)), []),
        (WHERE(MAX(CMPLT(K, NEXT), CMPLT(X, 0.0)), X, NOTHING), []),
        (WHERE(CMPLT(I, NEXT), X, NOTHING), []),
        (X, []),
    ],
)
def test_edges_of_masks(value, expected):
    got = found(value)
    assert len(got) == expected if isinstance(expected, int) else got == expected


def test_an_edge_may_be_loaded_but_not_depend_on_other_counters():
    length = CAST(N, arg=int64)
    assert found(WHERE(CMPLT(K, length), X, NOTHING)) == [(length, 0.0, True)]
    assert found(WHERE(CMPLT(K, loop(7, 8)), X, NOTHING)) == []


def test_stages_are_looked_into():
    s = loop(5, 8)
    masked = WHERE(CMPLT(s, NEXT), LOAD(INDEX(param(1, float32, (8,)), s)), NOTHING)
    read = LOAD(INDEX(stage(masked, s), K))
    assert found(MUL(read, X)) == [(NEXT, 0.0, True)]
    twice = LOAD(INDEX(stage(MUL(LOAD(INDEX(stage(masked, s), loop(6, 8))), 2.0), loop(6, 8)), K))
    assert found(twice) == [(NEXT, 0.0, True)]


def test_the_part_that_an_edge_ends():
    assert ended(K, NEXT) == pytest.approx(sum(8 - e for e in range(1, 9)) / 64)
    assert ended(K, ADD(I, 7)) == pytest.approx(1 / 64)
    assert ended(K, ADD(I, 8)) == 0
    assert ended(K, ADD(I, -8)) == 1
    assert ended(K, ADD(I, -3)) == pytest.approx((3 * 8 + sum(8 - e for e in range(5))) / 64)


def test_uppers_of_a_least():
    assert uppers(K) == set()
    assert uppers(LOW) == {NEXT}
    assert uppers(BOTH) == {I, const(5, int64)}
    assert open_ranges(LOW) == {LOW, I}


def test_a_range_that_is_closed_inside_is_another():
    masked = WHERE(CMPLT(K, NEXT), X, NOTHING)
    assert found(MUL(masked, total(masked, K))) == []
    s = loop(5, 8)
    held = stage(total(WHERE(CMPLT(K, NEXT), X, ADD(CAST(s, arg=float32), X)), K), s)
    assert found(LOAD(INDEX(held, K))) == []
