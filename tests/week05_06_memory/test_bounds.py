"""Masks become bounds: less is computed, and the rest is what it was, NaN included."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.week05_06_memory.loops import SMALL, agree, before, inputs_of, kernels, run_plain
from week01_uops.dtypes import float32, int64
from week01_uops.node import UOp, const, make
from week01_uops.ops import (
    ADD,
    CALL,
    CMPLT,
    CMPNE,
    EXP2,
    MAX,
    MUL,
    NEG,
    RECIP,
    RETURN,
    WHERE,
    CallArg,
    param,
    program,
)
from week01_uops.passes import on_kernels
from week01_uops.rewrite import Trace, rewrite
from week01_uops.simplify import SIMPLIFY
from week02_render.linearize import linearize
from week02_render.ops import AFTER, END, INDEX, LOAD, OUTPUT, RANGE, STORE, StorageArg, loop
from week02_render.render import render_c
from week02_render.runtime import load
from week03_loops.library import attention, conv, softmax, where
from week03_loops.library.attention import lower_triangle
from week03_loops.ops import REDUCE, ReduceArg
from week03_loops.reduction import accumulate
from week04_fusion.ops import STAGE, stage
from week05_06_memory.bounds import bound_masks
from week05_06_memory.evaluate import evaluate
from week05_06_memory.masks import uppers
from week05_06_memory.share import share
from week05_06_memory.strips import hold_strips

I, J, K, S, T = loop(0, 12), loop(1, 12), loop(2, 12), loop(3, 12), loop(4, 12)
X = param(1, float32, (12, 12))
LOWEST, NOTHING = const(-math.inf, float32), const(0.0, float32)


def at(*indices: UOp) -> UOp:
    return LOAD(INDEX(X, *indices))


def total(value: UOp, *ranges: UOp, op=ADD) -> UOp:
    return make(REDUCE, (value, *ranges), ReduceArg(op, 0))


def by_hand(value: UOp, *ranges: UOp, more=()) -> UOp:
    """A program of one kernel that stores a value in each of its ranges."""
    shape = tuple(r.arg.size for r in ranges)
    output = make(OUTPUT, (), StorageArg(0, value.dtype, shape))
    body = END(STORE(INDEX(param(0, value.dtype, shape), *ranges), value), *ranges)
    call = make(CALL, (body, output, X, *more), CallArg("k"))
    return make(RETURN, (make(AFTER, (output, call)),))


def bounded(whole: UOp) -> tuple[UOp, Trace]:
    trace = Trace()
    return on_kernels(bound_masks)(whole, trace), trace


def bounds_in(whole: UOp) -> list[UOp]:
    """The bounds of all ranges of the kernels."""
    return [
        n.src[0] for c in kernels(whole) for n in c.src[0].toposort() if n.op is RANGE and n.src
    ]


def run(value: UOp, *ranges: UOp) -> tuple[UOp, Trace]:
    whole = by_hand(value, *ranges)
    after, trace = bounded(whole)
    agree(whole, after)
    return after, trace


def masks_left(whole: UOp) -> int:
    return sum(n.op is WHERE for c in kernels(whole) for n in c.src[0].toposort())


NEXT = ADD(I, 1)


def softmax_of(mask, read=at) -> UOp:
    """One element, J, of a masked row's softmax, with its exponentials held."""

    def masked(r: UOp) -> UOp:
        return WHERE(mask(r), read(I, r), LOWEST)

    held = stage(EXP2(MUL(ADD(masked(S), NEG(total(masked(T), T, op=MAX))), 1.4)), S)
    return MUL(LOAD(INDEX(held, J)), RECIP(total(LOAD(INDEX(held, K)), K)))


@pytest.mark.parametrize(
    ("value", "edge"),
    [
        (total(WHERE(CMPLT(K, NEXT), at(I, K), NOTHING), K), NEXT),
        (total(WHERE(CMPLT(I, K), NOTHING, at(I, K)), K), NEXT),
        (total(WHERE(CMPLT(K, I), at(I, K), LOWEST), K, op=MAX), I),
        (total(WHERE(CMPNE(CMPLT(I, K), True), at(I, K), NOTHING), J, K), NEXT),
        (total(WHERE(CMPLT(K, ADD(I, -4)), at(I, K), const(1.0, float32)), K, op=MUL), ADD(I, -4)),
    ],
)
def test_a_reduction_ends_where_its_mask_does(value, edge):
    after, trace = run(value, I)
    assert trace.fired["bound reductions"] == 1
    assert bounds_in(after) == [edge]
    assert not masks_left(after)


def test_other_conditions_of_a_mask_stay():
    mask = MUL(CMPLT(K, NEXT), CMPLT(I, ADD(K, 3)))
    after, _ = run(total(WHERE(mask, at(I, K), NOTHING), K), I)
    assert bounds_in(after) == [NEXT]
    assert masks_left(after) == 1


def test_two_conditions_are_two_bounds():
    mask = MUL(CMPLT(K, NEXT), CMPLT(K, ADD(NEG(I), 9)))
    after, _ = run(total(WHERE(mask, at(I, K), NOTHING), K), I)
    (bound,) = bounds_in(after)
    ranges = [n for n in kernels(after)[0].src[0].toposort() if n.op is RANGE and n.src]
    assert len(uppers(ranges[0])) == 2
    assert bound.op is WHERE


def test_a_length_that_is_loaded():
    length = LOAD(INDEX(param(2, int64, (12,)), I))
    value = total(WHERE(CMPLT(K, length), at(I, K), NOTHING), K)
    whole = by_hand(value, I, more=[param(0, int64, (12,))])
    whole = make(RETURN, (whole.src[0],))
    after, trace = bounded(whole)
    assert trace.fired["bound reductions"] == 1
    given = {1: inputs_of(by_hand(at(I, J), I, J))[1], 0: np.array([*range(-3, 6), 12, 13, 99])}
    agree(whole, after, inputs=given)


def test_reductions_over_one_range_keep_sharing_it():
    masked = WHERE(CMPLT(K, NEXT), at(I, K), NOTHING)
    after, _ = run(ADD(total(masked, K), RECIP(total(MUL(masked, masked), K))), I)
    sums = [n for n in kernels(after)[0].src[0].toposort() if n.op is REDUCE]
    assert len(sums) == 2
    assert sums[0].src[1] is sums[1].src[1]


@pytest.mark.parametrize(
    "value",
    [
        total(WHERE(CMPLT(K, NEXT), at(I, K), const(1.0, float32)), K),
        total(WHERE(CMPLT(K, NEXT), at(I, K), const(-1e9, float32)), K, op=MAX),
        total(WHERE(CMPLT(at(I, K), 0.0), at(I, K), NOTHING), K),
        total(WHERE(CMPLT(K, ADD(I, 11)), at(I, K), NOTHING), K),
        total(WHERE(CMPLT(I, 5), at(I, K), NOTHING), K),
    ],
)
def test_what_does_not_end_a_loop(value):
    whole = by_hand(value, I)
    after, trace = bounded(whole)
    assert not trace.fired
    assert after is whole


def test_padded_windows_keep_their_loops():
    whole = program(
        conv(param(0, float32, (1, 2, 8, 8)), param(1, float32, (2, 2, 3, 3)), padding=1)
    )
    after, trace = bounded(before("bounds", whole))
    assert not bounds_in(after)
    assert not trace.fired


def test_a_causal_softmax_neither_computes_nor_reads_beyond_the_diagonal():
    after, trace = run(softmax_of(lambda r: CMPLT(r, NEXT)), I, J)
    assert trace.fired == {"bound reductions": 1, "select": 1}
    (held,) = (n for n in kernels(after)[0].src[0].toposort() if n.op is STAGE)
    assert uppers(held.src[1]) == {NEXT}
    assert len(set(bounds_in(after))) == 1
    assert masks_left(after) == 1


@pytest.mark.parametrize("offset", [-3, 0, 1, 4])
@pytest.mark.parametrize("special", [None, math.nan, math.inf, -math.inf])
def test_a_row_without_elements_stays_nan(offset, special):
    whole = by_hand(softmax_of(lambda r: CMPLT(r, ADD(I, offset))), I, J)
    after, trace = bounded(whole)
    assert trace.fired["bound reductions"]
    given = inputs_of(whole)
    x = np.random.default_rng(2).standard_normal((12, 12)).astype(np.float32)
    if special is not None:
        x[4, 1] = x[9] = special
    given = {1: x}
    agree(whole, after, inputs=given)
    empty = np.isnan(evaluate(after, given, state={})[0]).all(1)
    assert empty[: max(1 - offset, 0)].all()
    assert special is not None or not empty[max(1 - offset, 0) :].any()


def attended(queries: int, keys: int, **options) -> UOp:
    q, k, v = (param(i, float32, (2, 2, n, 8)) for i, n in enumerate((queries, keys, keys)))
    return program(attention(q, k, v, causal=True, **options))


@pytest.mark.parametrize(("queries", "keys"), [(32, 32), (32, 48), (48, 32), (1, 64), (7, 31)])
def test_causal_attention(queries, keys):
    whole = attended(queries, keys)
    loops, trace = before("strips", whole), Trace()
    rows = share(SMALL)(hold_strips(SMALL)(loops, trace), trace)
    after, trace = bounded(rows)
    if queries > 8:
        assert trace.fired["bound reductions"]
        assert len(set(bounds_in(after))) == 1 + (queries > keys)
        assert len(kernels(after)) == 1
    inputs = inputs_of(whole)
    expected = evaluate(whole, inputs)[0]
    for form in (rows, after):
        np.testing.assert_allclose(evaluate(form, inputs)[0], expected, rtol=1e-5, atol=1e-6)
    assert np.isnan(expected).any() == (queries > keys)


@pytest.mark.parametrize("whole", [attended(48, 48), attended(48, 32)], ids=["square", "tall"])
def test_the_compiled_kernel_gives_the_same(whole):
    inputs = inputs_of(whole)
    expected = evaluate(whole, inputs)[0]
    np.testing.assert_allclose(run_plain(whole, inputs)[0], expected, rtol=1e-4, atol=1e-6)


def test_compiled_bounds_that_are_loaded():
    length = LOAD(INDEX(param(2, int64, (12,)), I))
    value = total(WHERE(CMPLT(K, length), at(I, K), NOTHING), K)
    whole = by_hand(value, I, more=[param(0, int64, (12,))])
    after, _ = bounded(whole)
    lowered = on_kernels(linearize)(on_kernels(accumulate)(after, Trace()), Trace())
    x = np.random.default_rng(2).standard_normal((12, 12)).astype(np.float32)
    lengths = np.array([*range(-3, 6), 12, 13, 99])
    (got,) = load(render_c(lowered), whole).run({0: lengths, 1: x})
    expected = [row[: max(n, 0)].sum() for row, n in zip(x, lengths, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_triangle_of_weights_is_returned_whole():
    x = param(0, float32, (12, 12))
    scores = where(lower_triangle(12, 12, 0), x, -math.inf)
    whole = program(softmax(scores, 1))
    after, _ = bounded(before("bounds", whole))
    agree(whole, after)


terms = st.sampled_from(
    [
        lambda v: EXP2(MUL(ADD(v, -0.5), 0.25)),
        lambda v: MUL(v, at(J, I)),
        lambda v: MUL(v, -2.0),
        lambda v: ADD(v, at(I, I)),
        NEG,
    ]
)
sides = st.tuples(st.sampled_from([-2, -1, 1, 2]), st.integers(-2, 2), st.integers(-9, 14))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(sides, min_size=1, max_size=2),
    st.sampled_from([-math.inf, 0.0, 1.0]),
    st.lists(terms, max_size=3),
    st.sampled_from([ADD, MAX]),
    st.booleans(),
    st.booleans(),
)
def test_any_mask(comparisons, nothing, chain, op, swap, held):
    def value(r: UOp) -> UOp:
        mask = None
        for a, b, c in comparisons:
            part = CMPLT(ADD(MUL(r, a), ADD(MUL(I, b), c)), const(0, int64))
            mask = part if mask is None else MUL(mask, part)
        x, z = at(I, r), const(nothing, float32)
        masked = WHERE(mask, z, x) if swap else WHERE(mask, x, z)
        for step in chain:
            masked = step(masked)
        return masked

    element = MUL(LOAD(INDEX(stage(value(S), S), K)), at(K, J)) if held else value(K)
    simplified = on_kernels(lambda body, trace: rewrite(body, SIMPLIFY))
    whole = by_hand(ADD(total(element, K, op=op), at(J, I)), I, J)
    after, _ = bounded(simplified(whole, Trace()))
    agree(whole, after)
