"""Maxima that cancel: found where they do, not where they only seem to, and what that saves."""

import math

import numpy as np
import pytest
import torch

from tests.week09_10_autodiff.autograd import check, normal, same_program
from tests.week09_10_autodiff.maxima import powers, top, total
from week01_uops.dtypes import bfloat16, float16, float32, float64, int64
from week01_uops.node import const
from week01_uops.ops import (
    ADD,
    CALL,
    CMPLT,
    CMPNE,
    EXP2,
    LOG2,
    MAX,
    MUL,
    NEG,
    RECIP,
    WHERE,
    param,
    program,
)
from week02_render.ops import INDEX, LOAD
from week03_loops import library as lib
from week03_loops.ops import REDUCE, expand, flip, pad, permute, reduce, reshape, shrink
from week04_fusion.ops import stage
from week09_10_autodiff.alignment import View, moved, whole
from week09_10_autodiff.compiler import REFERENCE
from week09_10_autodiff.gradients import gradient
from week09_10_autodiff.invariant import invariant_maxima
from week09_10_autodiff.ops import detach

X = param(0, float64, (3, 4))
SQUARE = param(0, float64, (4, 4))


def logsumexp(x):
    m = lib.reduce_max(x, 1)
    return lib.add(lib.log(lib.reduce_sum(powers(x), 1)), m)


def in_heads(x):
    """A softmax whose parts are split into heads before they are divided."""
    p = reshape(powers(x), (3, 2, 2))
    return MUL(p, reshape(RECIP(total(powers(x))), (3, 1, 1)))


def masked(x):
    mask = lib.lower_triangle(3, 4, 1)
    return lib.softmax(lib.where(mask, x, -math.inf))


def masked_after(x):
    """Masks that come after the maximum: −∞ of a shift, 0 of a scale."""
    mask = lib.lower_triangle(3, 4, 1)
    p = lib.exp(lib.where(mask, lib.sub(x, top(x)), -math.inf))
    q = lib.where(mask, powers(x), 0.0)
    return lib.div(p, total(q))


def within_storage(x):
    p = stage(powers(x))
    return lib.div(LOAD(p), total(p))


def padded(x):
    p = pad(powers(x), ((0, 0), (1, 2)))
    return lib.div(shrink(p, ((0, 3), (1, 5))), total(p))


def turned(x):
    """Rows and columns flipped alike, in numerator and denominator."""
    p, q = flip(powers(x), (0, 1)), total(flip(powers(x), (0,)))
    return MUL(permute(p, (1, 0)), permute(RECIP(q), (1, 0)))


def compared(x):
    """Comparisons with m are steps: they pass nothing on whether or not m does."""
    return WHERE(CMPNE(x, top(x)), lib.softmax(x), const(0.5, float64))


CANCELLING = {
    "softmax": lib.softmax,
    "softmax of columns": lambda x: lib.softmax(x, 0),
    "log_softmax": lib.log_softmax,
    "logsumexp": logsumexp,
    "softmax times something": lambda x: lib.matmul(lib.softmax(x), lib.transpose(x)),
    "in heads": in_heads,
    "masked": masked,
    "masked after": masked_after,
    "in storage": within_storage,
    "padded": padded,
    "flipped": turned,
    "compared": compared,
    "the mean of shifts": lambda x: lib.sub(
        lib.sub(x, top(x)), lib.mean(lib.sub(x, top(x)), 1, keepdim=True)
    ),
    "the product of scales": lambda x: MUL(
        lib.reduce_prod(powers(x), 1, keepdim=True), lib.exp(MUL(top(x), 4.0))
    ),
    "twice": lambda x: lib.softmax(lib.softmax(x)),
    "sigmoid of a difference": lambda x: lib.sigmoid(lib.sub(lib.add(x, top(x)), top(x))),
    "the larger of two": lambda x: lib.div(MAX(powers(x), const(0.0, float64)), total(powers(x))),
}


@pytest.mark.parametrize("name", CANCELLING)
def test_maxima_that_cancel(name):
    function = CANCELLING[name]
    node = function(X)
    assert invariant_maxima(node.toposort())
    (found,) = gradient(lib.reduce_sum(MUL(node, node)), [X])
    assert not counts_equals(found)
    check(function, normal(3, 4))


def counts_equals(node):
    """Whether the equal maxima are counted somewhere: Σ over comparisons with a maximum."""
    maxima = {n for n in node.toposort() if n.op is REDUCE and n.arg.op is MAX}
    return any(
        n.op is REDUCE
        and n.arg.op is ADD
        and any(x.op is CMPNE and x.src[1] in maxima for x in below(n))
        for n in node.toposort()
    )


def below(node):
    return {x for s in node.src for x in (s, *s.src)}


def misaligned(x):
    """The maximum of row i is taken from column i."""
    p = lib.exp(lib.sub(x, lib.reduce_max(x, 1)))
    return lib.div(p, total(p))


def shifted_rows(x):
    """Numerator and denominator use the maxima of rows in another order."""
    m = top(x)
    p, q = powers(x, m), powers(x, flip(m, (0,)))
    return lib.div(p, total(q))


LOOKALIKES = {
    "not divided": powers,
    "the maximum itself": lambda x: top(x),
    "times the maximum": lambda x: MUL(lib.softmax(x), top(x)),
    "plus the maximum": lambda x: lib.add(lib.softmax(x), top(x)),
    "e·m": lambda x: MUL(powers(x), top(x)),
    "subtracted twice": lambda x: lib.div(powers(lib.sub(x, top(x)), top(x)), total(powers(x))),
    "logsumexp without the maximum": lambda x: lib.log(lib.reduce_sum(powers(x), 1)),
    "another base": lambda x: lib.div(powers(x), total(EXP2(lib.sub(x, top(x))))),
    "nearly the same factor": lambda x: lib.div(
        powers(x), total(powers(x, MUL(top(x), 1 + 1e-12)))
    ),
    "an offset": lambda x: lib.div(powers(x), lib.add(total(powers(x)), 1.0)),
    "a floor": lambda x: lib.div(MAX(powers(x), const(0.1, float64)), total(powers(x))),
    "masked by a number": lambda x: lib.softmax(
        WHERE(CMPLT(x, 0.0), lib.sub(x, top(x)), const(-1.0, float64))
    ),
    "padded shift": lambda x: lib.softmax(MUL(pad(lib.sub(x, top(x)), ((0, 0), (0, 1))), 2.0)),
    "squares": lambda x: lib.square(lib.sub(x, top(x))),
    "a shift times an input": lambda x: MUL(lib.sub(x, top(x)), x),
    "misaligned": misaligned,
    "in another order": shifted_rows,
    "sums over rows": lambda x: lib.div(powers(x), total(powers(x), 0)),
    "sums over rows in both": lambda x: lib.div(
        total(powers(x), 0), total(MUL(powers(x), lib.square(x)), 0)
    ),
    "a power and its square": lambda x: lib.div(
        ADD(powers(x), lib.square(powers(x))), total(ADD(powers(x), lib.square(powers(x))))
    ),
    "masked by 0": lambda x: lib.softmax(
        WHERE(CMPLT(x, 0.0), lib.sub(x, top(x)), const(0.0, float64))
    ),
    "a product less a shift": lambda x: lib.sub(MUL(lib.sub(x, top(x)), x), lib.sub(x, top(x))),
    "a detached sum": lambda x: MUL(powers(x), detach(RECIP(total(powers(x))))),
    "the sum of one row": lambda x: lib.div(
        powers(x), LOAD(INDEX(stage(total(powers(x))), const(0, int64)))
    ),
}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_lookalikes_keep_their_derivative(name):
    node = LOOKALIKES[name](SQUARE)
    bases = [n for n in node.toposort() if n.op is REDUCE and n.arg.op is MAX]
    assert any(base not in invariant_maxima(node.toposort()) for base in bases)
    if name != "a detached sum":
        check(LOOKALIKES[name], normal(4, 4))


def test_a_maximum_that_is_asked_for():
    """What is derived with respect to a maximum, or its result, is found all the same."""
    m = top(X)
    p = powers(X, m)
    y = lib.reduce_sum(MUL(MUL(p, RECIP(total(p))), X))
    of_m, of_p, of_x = gradient(y, [m, p, X])
    assert m in of_p.toposort()
    assert counts_equals(of_x) is False
    assert of_m.shape == m.shape


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64])
def test_constants_are_rounded_in_every_dtype(dtype):
    """log₂ e·ln 2 is 1 up to roundings."""
    x = param(0, dtype, (3, 4))
    plain = ADD(x, NEG(reshape(reduce(MAX, permute(x, (1, 0)), 1), (3, 1))))
    powers_ = EXP2(MUL(plain, math.log2(math.e)))
    low = ADD(plain, NEG(MUL(LOG2(total(powers_)), math.log(2))))
    assert invariant_maxima(low.toposort())
    assert invariant_maxima(lib.log_softmax(x).toposort())


def test_only_the_way_to_the_output_counts():
    """Two maxima, of which one cancels."""
    y = MUL(lib.softmax(X), top(EXP2(X)))
    order = y.toposort()
    maxima = [n for n in order if n.op is REDUCE and n.arg.op is MAX]
    assert len(maxima) == 2
    assert invariant_maxima(order) == {maxima[0] if maxima[0].src[0].src[0] is X else maxima[1]}


def test_a_maximum_of_what_is_less_a_maximum():
    """The inner one cancels, the outer one is a value."""
    low = lib.sub(X, top(X))
    maxima = [n for n in top(low).toposort() if n.op is REDUCE]
    assert invariant_maxima(lib.sub(low, top(low)).toposort()) == {maxima[0]}


def test_the_work_is_linear():
    """Of a chain of softmaxes each walk ends at its own quotient."""
    x = X
    for _ in range(300):
        x = lib.softmax(x)
    assert len(invariant_maxima(x.toposort())) == 300


VIEWS = {
    "split": lambda x: reshape(x, (2, 3, 4)),
    "joined": lambda x: reshape(x, (24,)),
    "with ones": lambda x: reshape(x, (6, 1, 4, 1)),
    "permuted": lambda x: permute(x, (1, 0)),
    "permuted and split": lambda x: reshape(permute(x, (1, 0)), (2, 2, 3, 2)),
    "flipped": lambda x: flip(x, (0,)),
    "flipped and split": lambda x: reshape(flip(x, (0, 1)), (2, 3, 2, 2)),
    "cut": lambda x: shrink(x, ((1, 5), (0, 2))),
    "cut to one": lambda x: shrink(x, ((2, 3), (1, 4))),
    "repeated": lambda x: expand(reshape(x, (1, 6, 1, 4)), (2, 6, 3, 4)),
    "repeated and joined": lambda x: reshape(expand(reshape(x, (1, 24)), (1, 24)), (2, 12)),
    "regrouped": lambda x: reshape(reshape(x, (3, 8)), (4, 6)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_what_movement_does(name):
    """Element numbers moved as the ops move them are offset + Σ index·stride."""
    x = param(0, float64, (6, 4))
    y = VIEWS[name](x)
    view = whole(x.shape)
    for node in y.toposort()[1:]:
        view = moved(view, node)
        assert view is not None
    numbers = same_program(VIEWS[name], [np.zeros((6, 4))])(torch.arange(24).reshape(6, 4)).numpy()
    index = np.indices(y.shape).reshape(len(y.shape), -1)
    wanted = view.offset + np.array(view.strides) @ index
    np.testing.assert_array_equal(numbers.ravel(), wanted)


def test_what_is_no_view():
    x = param(0, float64, (6, 4))
    joined = reshape(permute(x, (1, 0)), (24,))
    assert moved(moved(whole((6, 4)), joined.src[0]), joined) is None
    assert moved(whole((6, 4)), pad(x, ((1, 0), (0, 0)))) is None
    repeated = View(0, (4, 0))
    assert moved(repeated, pad(x, ((0, 0), (2, 1)))) == repeated
    assert moved(repeated, pad(x, ((1, 0), (0, 0)))) is None


def kernels_and_sums(loss, *params):
    """How many kernels a loss and its derivatives take, and how many reductions."""
    y = loss(*params)
    both = program(y, *gradient(y, params))
    calls = [node for node in REFERENCE.pipeline.run(both).toposort() if node.op is CALL]
    return len(calls), sum(node.op is REDUCE for node in both.toposort())


def attention_loss(q, k, v):
    return lib.reduce_sum(lib.square(lib.attention(q, k, v, causal=True)))


def test_attention_takes_fewer_kernels(monkeypatch):
    """Forward and backward, against derivatives that go through the maxima."""
    params = [param(n, float32, (2, 128, 32)) for n in range(3)]
    fewer = kernels_and_sums(attention_loss, *params)
    monkeypatch.setattr("week09_10_autodiff.gradients.invariant_maxima", lambda order: set())
    more = kernels_and_sums(attention_loss, *params)
    assert fewer[0] < more[0]
    assert fewer[1] == more[1] - 2  # what m is handed, and the count of its equals


def test_cross_entropy_counts_no_equals():
    logits, target = param(0, float32, (8, 32)), param(1, int64, (8,))
    (found,) = gradient(lib.cross_entropy(logits, target), [logits])
    assert not counts_equals(found)
    softmax = lib.reduce_sum(MUL(lib.softmax(logits), param(2, float32, (8, 32))))
    assert not counts_equals(gradient(softmax, [logits])[0])
    assert counts_equals(gradient(lib.reduce_sum(powers(logits)), [logits])[0])
