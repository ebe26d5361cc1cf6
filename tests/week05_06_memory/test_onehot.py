"""One-hot sums: every rule fires, declines where it must, and keeps the meaning."""

import numpy as np
import pytest

from tests.rules import check_rule
from week01_uops.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    int8,
    int16,
    int64,
    uint8,
    uint64,
)
from week01_uops.node import UOp, const, make
from week01_uops.ops import ADD, CAST, CMPLT, CMPNE, FLOORDIV, MAX, MUL, NEG, WHERE, param, program
from week01_uops.rewrite import rewrite
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, AllocArg, loop
from week03_loops.compiler import RULES_OF_LOOPS
from week03_loops.ops import REDUCE, ReduceArg
from week05_06_memory.evaluate import evaluate
from week05_06_memory.onehot import ONE_HOT, masked, position

I, R, Q = loop(0, 6), loop(1, 5), loop(2, 3)
X = param(0, float32, (5,))
AT = LOAD(INDEX(param(1, int64, (6,)), I))
ZERO = const(0.0, float32)
XR = LOAD(INDEX(X, R))


def filled(value: UOp) -> UOp:
    """A program of the values for each value of the outer loop."""
    place = make(ALLOC, (), AllocArg(0, value.dtype, (6,)))
    return program(make(AFTER, (place, END(STORE(INDEX(place, I), value), I))))


def total(value: UOp, *ranges: UOp, op=ADD) -> UOp:
    return make(REDUCE, (value, *ranges), ReduceArg(op, 0))


def equal(a: UOp, b) -> UOp:
    return CMPNE(CMPNE(a, b), True)


def other_dtypes():
    for slot, dtype in enumerate((int8, int16, uint8, uint64), 2):
        at = LOAD(INDEX(param(slot, dtype, (6,)), I))
        yield filled(total(WHERE(CMPNE(CAST(ADD(R, 1), arg=dtype), at), ZERO, XR), R))


def one_hot_sums():
    yield filled(total(WHERE(equal(R, AT), XR, ZERO), R))
    yield filled(total(WHERE(CMPNE(R, AT), ZERO, XR), R))
    yield filled(total(WHERE(CMPNE(ADD(R, 2), NEG(AT)), ZERO, XR), R))
    yield filled(total(WHERE(CMPNE(NEG(R), AT), ZERO, XR), R))
    yield filled(total(WHERE(CMPNE(MUL(Q, 2), ADD(R, AT)), ZERO, XR), Q, R))
    yield filled(total(WHERE(MUL(equal(R, AT), CMPLT(R, 3)), XR, ZERO), R))
    yield filled(total(WHERE(MUL(equal(R, AT), CMPLT(ZERO, XR)), XR, ZERO), R))
    yield filled(total(WHERE(CMPNE(R, I), ZERO, WHERE(CMPLT(R, AT), ZERO, XR)), R))
    yield filled(total(CAST(equal(R, AT), arg=int64), R))
    yield filled(total(MUL(CAST(equal(R, AT), arg=int64), ADD(R, 7)), R))
    yield filled(total(MUL(NEG(R), WHERE(equal(R, AT), ADD(R, 7), const(0, int64))), R))
    yield filled(total(WHERE(equal(R, AT), XR, const(-np.inf, float32)), R, op=MAX))
    yield filled(total(WHERE(CMPNE(R, AT), const(1.0, float32), XR), R, op=MUL))
    yield filled(total(MUL(equal(R, AT), CMPLT(XR, ZERO)), R, op=MAX))
    yield filled(total(WHERE(CMPNE(R, AT), const(False, bool_), CMPLT(XR, ZERO)), R, op=MAX))
    bounded = loop(1, 5, I)
    yield filled(total(WHERE(CMPNE(bounded, AT), ZERO, LOAD(INDEX(X, bounded))), bounded))
    gated = LOAD(INDEX(X, ADD(R, I)), CMPLT(ADD(R, I), 5), const(2.0, float32))
    yield filled(total(WHERE(CMPNE(R, AT), ZERO, gated), R))
    inner = total(MUL(LOAD(INDEX(X, Q)), CAST(ADD(R, Q), arg=float32)), Q)
    yield filled(total(WHERE(CMPNE(R, AT), ZERO, inner), R))
    yield from other_dtypes()


PROGRAMS = {
    "one_hot": lambda: list(one_hot_sums()),
    "sum_of_float": lambda: [
        filled(total(LOAD(INDEX(param(2, float32, (6,)), I)), R)),
        filled(total(LOAD(INDEX(param(2, float16, (6,)), I)), R, Q)),
        filled(total(LOAD(INDEX(param(2, bfloat16, (6,)), I)), R, Q)),
        filled(total(XR, Q, R)),
        filled(total(LOAD(INDEX(param(2, float32, (6,)), I)), loop(1, 0))),
    ],
}


def test_every_rule_has_programs():
    assert {rule.name for rule in ONE_HOT} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rule_fires_and_keeps_the_meaning(name):
    for case in PROGRAMS[name]():
        assert check_rule(ONE_HOT, name, case)


@pytest.mark.parametrize(
    "sum_",
    [
        total(WHERE(CMPNE(MUL(R, 2), AT), ZERO, XR), R),  # every second position
        total(WHERE(CMPNE(MUL(R, R), AT), ZERO, XR), R),  # not linear
        total(WHERE(CMPNE(FLOORDIV(R, 2), AT), ZERO, XR), R),  # two values of r
        total(WHERE(equal(R, AT), ZERO, XR), R),  # all values of r but one
        total(WHERE(CMPNE(R, AT), const(1.0, float32), XR), R),  # not 0 elsewhere
        total(WHERE(CMPNE(R, AT), ZERO, XR), R, op=MAX),  # 0 changes a maximum
        total(WHERE(CMPNE(R, LOAD(INDEX(param(2, int64, (5,)), R))), ZERO, XR), R),
        total(WHERE(CMPNE(CAST(R, arg=float32), XR), ZERO, XR), R),  # floats
        total(
            WHERE(CMPNE(CAST(loop(1, 500), arg=int8), CAST(AT, arg=int8)), ZERO, ZERO), loop(1, 500)
        ),
        total(XR, R),
        total(CAST(LOAD(INDEX(param(2, bfloat16, (6,)), I)), arg=bfloat16), loop(1, 300)),
    ],
)
def test_rules_decline(sum_):
    for rule in ONE_HOT:
        assert not check_rule(ONE_HOT, rule.name, filled(sum_), seeds=1)


def test_bounds_of_other_ranges_keep_their_range():
    inner = loop(2, 3, R)
    value = WHERE(CMPNE(R, AT), ZERO, LOAD(INDEX(X, inner)))
    assert not check_rule(ONE_HOT, "one_hot", filled(total(value, R, inner)))


def test_nothing_is_read_out_of_range():
    value = total(WHERE(CMPNE(R, AT), ZERO, XR), R)
    after = rewrite(filled(value), RULES_OF_LOOPS + ONE_HOT)
    assert all(node.op is not REDUCE for node in after.toposort())
    far = np.array([0, 4, 5, -1, 2**62, -(2**63)])
    (got,) = evaluate(after, [np.arange(1, 6, dtype=np.float32), far], state={})
    assert got.tolist() == [1, 5, 0, 0, 0, 0]


def test_a_masked_element_does_not_matter():
    value = total(MUL(CAST(equal(R, AT), arg=float32), XR), R)
    after = rewrite(filled(value), ONE_HOT)
    table = np.float32([np.inf, np.nan, 3, -np.inf, 5])
    (got,) = evaluate(after, [table, np.array([0, 1, 2, 3, 4, 9])], state={})
    np.testing.assert_array_equal(got, np.float32([np.inf, np.nan, 3, -np.inf, 5, 0]))


def test_masks_are_found_among_factors():
    mask, low = equal(R, AT), CMPLT(R, 3)
    found = masked(MUL(NEG(WHERE(low, XR, ZERO)), CAST(mask, arg=float32)))
    assert set(found.conditions) == {mask, low}
    assert found.value is MUL(NEG(XR), 1.0)


def test_positions_modulo_the_width():
    """In int8, 3 − r = 127 + i wraps; r = 3 − (127 + i) wraps back."""
    small, shift = CAST(R, arg=int8), ADD(CAST(I, arg=int8), 127)
    e = position(equal(ADD(NEG(small), 3), shift), R)
    (got,) = evaluate(filled(e), [], state={})
    assert got.tolist() == [(3 - (127 + i) + 128) % 256 - 128 for i in range(6)]
