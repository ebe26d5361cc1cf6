"""`gradient` and the verb `grad`: what they take and refuse, storage, and compiled derivatives."""

import math

import numpy as np
import pytest

from tests.week09_10_autodiff.autograd import agree, normal, ours
from week01_uops.dtypes import bool_, float16, float32, float64, int32, int64
from week01_uops.errors import ProgramError
from week01_uops.interchange import read, write
from week01_uops.node import CONST, const, make
from week01_uops.ops import ADD, CALL, CAST, EXP2, MUL, NEG, WHERE, CallArg, param, program
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    END,
    INDEX,
    LOAD,
    RANGE,
    STORE,
    AllocArg,
    StorageArg,
    loop,
)
from week02_render.runtime import load
from week03_loops import library as lib
from week03_loops.ops import REDUCE, ReduceArg, expand, reshape
from week04_fusion.evaluate import evaluate
from week04_fusion.ops import OPS, stage
from week09_10_autodiff.compiler import REFERENCE
from week09_10_autodiff.gradients import grad, gradient
from week09_10_autodiff.ops import detach, variable

X = param(0, float64, (3,))
Y = param(1, float64, (3,))


def value(node, *arrays):
    return np.asarray(evaluate(program(node), list(arrays))[0])


def test_a_scalar_starts_with_one():
    (found,) = gradient(lib.reduce_sum(MUL(X, X)), [X])
    assert found is MUL(X, 2.0)
    assert gradient(const(3.0, float64), [X]) == [lib.full(0.0, float64, (3,))]


def test_a_cotangent_is_given_to_anything_else():
    with pytest.raises(ValueError, match=r"cotangent for a value of shape \[3\]"):
        gradient(X, [X])
    assert gradient(MUL(X, 3.0), [X], Y) == [MUL(Y, 3.0)]
    assert gradient(X, [X], Y) == [Y]


def test_what_does_not_depend_gets_zeros_of_its_dtype_and_shape():
    other = param(1, float16, (2, 0))
    assert gradient(lib.reduce_sum(X), [other]) == [lib.full(0.0, float16, (2, 0))]


def test_values_on_the_way():
    """Inner nodes too: what reaches them, in total, and through them."""
    middle = MUL(X, X)
    y = lib.reduce_sum(ADD(MUL(middle, middle), X))
    of_middle, of_x, again = gradient(y, [middle, X, middle])
    assert of_middle is again is MUL(middle, 2.0)
    np.testing.assert_allclose(value(of_x, np.array([1.0, 2, 3])), [5, 33, 109])
    (of_y,) = gradient(y, [y])
    assert of_y is const(1.0, float64)


def test_powers_whose_parts_are_asked_for():
    log = lib.log(X).src[0]
    product = MUL(log, 0.5)
    y = lib.reduce_sum(EXP2(product))
    x = np.array([1.0, 4.0, 9.0])
    of_product, of_log = (value(node, x) for node in gradient(y, [product, log]))
    np.testing.assert_allclose(of_product, np.sqrt(x) * math.log(2))
    np.testing.assert_allclose(of_log, np.sqrt(x) * math.log(2) / 2)
    of_x, _ = gradient(y, [X, product])
    np.testing.assert_allclose(value(of_x, x), 0.5 / np.sqrt(x))


def test_detached_values_are_constants_and_variables_are_found():
    (found,) = gradient(lib.reduce_sum(MUL(X, detach(X))), [X])
    assert found is detach(X)
    named = variable(MUL(X, 2.0))
    of_named, of_x = gradient(lib.reduce_sum(MUL(named, named)), [named, X])
    assert of_named is MUL(named, 2.0)
    assert of_x is lib.full(0.0, float64, (3,))


def test_small_programs_stay_small():
    """No products by 1, no NEG of NEG, no sums of what was repeated, constants joined."""
    x = param(0, float32, (4, 5))
    (found,) = gradient(lib.mean(lib.square(lib.sub(1.0, x))), [x])
    assert found is MUL(lib.sub(1.0, x), -0.1)
    row = param(1, float32, (5,))
    (found,) = gradient(lib.reduce_sum(lib.add(x, row)), [row])
    assert found is expand(const(4.0, float32), (5,))
    (found,) = gradient(lib.reduce_sum(lib.exp(x)), [x])
    assert found is lib.exp(x)
    (found,) = gradient(lib.reduce_sum(lib.log(x)), [x])
    assert found.op.name == "RECIP"
    (found,) = gradient(lib.reduce_sum(lib.rsqrt(x)), [x])
    assert len(found.toposort()) <= 9


def test_simplify_folds_what_a_constant_cotangent_leaves():
    x = param(0, float32, (4, 5))
    simple = REFERENCE.grad(program(lib.reduce_sum(WHERE(lib.lt(x, 0.0), x, NEG(x)))), [0])
    assert sum(node.op is MUL for node in simple.toposort()) == 0
    simple = REFERENCE.grad(program(lib.reduce_sum(MUL(x, lib.full(1.0, float32, (4, 5))))), [0])
    assert [n.op for n in simple.src[0].toposort() if not n.shape] == [CONST]


# What has no derivative ------------------------------------------------------------------------


def storage(op=ALLOC, shape=(3,)):
    return op(arg=AllocArg(0, float64, shape) if op is ALLOC else StorageArg(0, float64, shape))


def stored(x, op=ALLOC):
    """X, put into storage and read from it."""
    place = storage(op)
    return LOAD(AFTER(place, STORE(place, x)))


R = loop(0, 3)

REFUSED = {
    "STORE": (stored(X), "STORE"),
    "BUFFER": (MUL(X, stored(X, BUFFER)), "STORE"),
    "AFTER": (MUL(AFTER(X, STORE(storage(), Y)), 2.0), "AFTER"),
    "REDUCE over a RANGE": (
        expand(make(REDUCE, (LOAD(INDEX(X, R)), R), ReduceArg(ADD, 0)), (3,)),
        "REDUCE",
    ),
    "STAGE over a RANGE": (stage(LOAD(INDEX(X, R)), R), "STAGE"),
    "a loop": (
        LOAD(
            AFTER(
                storage(),
                make(END, (STORE(INDEX(storage(), R), MUL(LOAD(INDEX(X, R)), 2.0)), R)),
            )
        ),
        "STORE",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_storage_and_loops_on_the_way_are_refused(name):
    node, op = REFUSED[name]
    with pytest.raises(ProgramError) as caught:
        grad(program(lib.reduce_sum(node)), [0])
    assert caught.value.code == "E416"
    assert f"got {op}: nothing is derived through storage or loops" in str(caught.value)
    assert caught.value.nodes[0].op.name == op


@pytest.mark.parametrize("name", [n for n in REFUSED if n not in ("AFTER", "BUFFER")])
def test_but_as_constants_they_are_fine(name):
    """What is stored or looped over without depending on the slot is a factor like any other."""
    node, _ = REFUSED[name]
    simple = grad(program(lib.reduce_sum(MUL(node, Y))), [1])
    x = normal(3)
    wanted = value(node, x, x)
    np.testing.assert_array_equal(np.asarray(evaluate(simple, [x, x])[0]), wanted)


def test_positions_from_a_range_are_constants():
    """The position may depend on what is derived for, by steps."""
    at = CAST(MUL(X, 0.0), arg="int64")
    node = LOAD(INDEX(Y, at))
    found = ours(
        lambda x, y: LOAD(INDEX(y, CAST(MUL(x, 0.0), arg="int64"))), [normal(3), normal(3)]
    )
    np.testing.assert_array_equal(found[0], np.zeros(3))
    assert gradient(lib.reduce_sum(node), [X]) == [lib.full(0.0, float64, (3,))]


SCALAR = lib.reduce_sum(X)
WRONG = {
    "not a scalar": (program(X), [0], r"a float scalar, got float64\[3\]"),
    "an integer": (program(lib.reduce_sum(param(0, int32, (3,)))), [0], r"got int32\[\]"),
    "two outputs": (program(SCALAR, SCALAR), [0], r"one output, .*got float64\[\], float64\[\]"),
    "no such slot": (program(SCALAR), [1], r"slots \[0\], got slot 1"),
    "an integer slot": (
        program(lib.reduce_sum(MUL(X, CAST(param(1, int64, (3,)), arg="float64")))),
        [0, 1],
        r"slots \[0\], got int64 in slot 1",
    ),
    "a bool slot": (
        program(lib.reduce_sum(WHERE(param(2, bool_, (3,)), X, 0.0))),
        [2],
        r"slots \[0\], got bool in slot 2",
    ),
    "a slot twice": (program(SCALAR), [0, 0], r"each slot once, got \[0, 0\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_questions(name):
    text, slots, words = WRONG[name]
    with pytest.raises(ProgramError, match=words) as caught:
        grad(text, slots)
    assert caught.value.code == "E416"


def test_calls_are_inlined():
    a = param(0, float64, (3,))
    body = MUL(a, a)
    called = make(CALL, (body, MUL(X, 3.0)), CallArg("square"))
    result = grad(program(lib.reduce_sum(called)), [0])
    np.testing.assert_allclose(np.asarray(evaluate(result, [np.arange(3.0)])[0]), [0, 18, 36])


def test_slots_come_in_the_order_that_was_asked_for():
    node = program(lib.reduce_sum(MUL(X, MUL(Y, Y))))
    first, second = evaluate(grad(node, [1, 0]), [np.array([1.0, 2, 3]), np.array([4.0, 5, 6])])
    np.testing.assert_array_equal(first, [8, 20, 36])
    np.testing.assert_array_equal(second, [16, 25, 36])


def test_the_result_is_a_program_of_the_format():
    node = program(lib.cross_entropy(param(0, float32, (3, 4)), param(1, int64, (3,))))
    result = REFERENCE.grad(node, [0])
    assert read(write(result), ops=OPS) is result


# Compiled --------------------------------------------------------------------------------------


def conv_loss(x, w):
    return lib.reduce_sum(lib.square(lib.conv(x, w, padding=1)))


def mlp_loss(x, w, v, target):
    return lib.cross_entropy(lib.matmul(lib.gelu(lib.matmul(x, w)), v), target)


def attention_loss(q, k, v):
    return lib.mean(lib.square(lib.attention(q, k, v, causal=True)))


def embedding_loss(table, index):
    return lib.reduce_sum(lib.square(lib.take(table, index)))


def look_up_loss(table, index):
    return lib.reduce_sum(lib.square(LOAD(INDEX(table, index))))


def norm_loss(x, weight, bias):
    return lib.reduce_sum(lib.silu(lib.layernorm(x, weight, bias)))


COMPILED = {
    "a convolution": (conv_loss, normal(1, 2, 6, 5), normal(3, 2, 3, 3)),
    "a perceptron": (mlp_loss, normal(5, 7), normal(7, 9), normal(9, 4), np.array([0, 3, 3, 1, 2])),
    "attention": (
        attention_loss,
        normal(2, 9, 4),
        normal(2, 9, 4, seed=1),
        normal(2, 9, 4, seed=2),
    ),
    "an embedding": (embedding_loss, normal(50, 6), np.array([3, 49, 3, 0])),
    "a look-up": (look_up_loss, normal(50, 6), np.array([3, 49, 3, 0])),
    "a norm": (norm_loss, normal(6, 8), normal(8), normal(8, seed=1)),
    "a product": (lambda x: lib.reduce_sum(lib.reduce_prod(x, 1)), normal(3, 5)),
    "a pool": (lambda x: lib.reduce_sum(lib.square(lib.max_pool(x, (2, 2)))), normal(2, 6, 6)),
    "a scan": (lambda x: lib.reduce_sum(lib.square(lib.cumsum(x, 1))), normal(3, 8)),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_derivatives(name):
    """In float32, of the compiled program: those of float64 up to rounding."""
    loss, *arrays = COMPILED[name]
    narrow = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]
    dtypes = [float32 if a.dtype.kind == "f" else int64 for a in arrays]
    params = [
        param(k, dtype, a.shape) for k, (dtype, a) in enumerate(zip(dtypes, narrow, strict=True))
    ]
    wrt = [k for k, a in enumerate(arrays) if a.dtype.kind == "f"]
    result = REFERENCE.grad(program(loss(*params)), wrt)
    found = load(REFERENCE.compile(result, "c"), result).run(narrow)
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in narrow]
    (scale,) = np.random.default_rng(1).standard_normal((1,))  # `ours` weighs the scalar with this
    wanted = [array / scale for array in ours(loss, wide)]
    agree(found, wanted, 2e-5)


@pytest.mark.parametrize("loss", [embedding_loss, look_up_loss])
def test_an_embedding_costs_its_tokens(loss):
    """Its backward pass is no sum of vocabulary × tokens terms: one loop adds where it hits."""
    table, index = param(0, float32, (5000, 16)), param(1, int64, (64,))
    (found,) = gradient(loss(table, index), [table])
    lowered = REFERENCE.pipeline.run(program(found))
    work = [iterations(call.src[0]) for call in lowered.toposort() if call.op is CALL]
    assert sum(work) < 3 * (5000 + 64) * 16


def iterations(body):
    """The turns of the innermost loops of a kernel in execution order."""
    total, opened = 0, {}
    for node in body.src:
        if node.op is RANGE:
            opened[node] = node.arg.size
        elif node.op is END:
            total += math.prod(opened.values())
            for item in node.src[1:]:
                del opened[item]
    return total


def test_reshaped_places():
    found = ours(
        lambda x, i: LOAD(INDEX(stage(reshape(MUL(x, x), (6, 2))), i)),
        [normal(4, 3), np.array([5, 0, 5])],
    )
    x = normal(4, 3)
    weights = np.random.default_rng(1).standard_normal((3, 2))
    wanted = np.zeros((6, 2))
    np.add.at(wanted, [5, 0, 5], weights)
    agree(found, [wanted.reshape(4, 3) * 2 * x])


# Where the derivatives are others than PyTorch's, since the ops are -----------------------------


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (lib.relu, [0.0, 1.0, -1.0], [0.5, 1, 0]),
        (lambda x: lib.clamp(x, -1.0, 1.0), [-1.0, 1.0, 0.0, 2.0], [0.5, 0.5, 1, 0]),
        (lambda x: lib.max_pool(x, (2,)), [3.0, 3.0, 1.0, 2.0], [0.5, 0.5, 0, 1]),
        (lambda x: lib.div(1.0, x), [1e-320], [-math.inf]),
        (lib.sqrt, [0.0, 4.0], [math.inf, 0.25]),
        (lib.absolute, [0.0, -2.0], [0, -1]),
    ],
)
def test_derivatives_that_the_rules_document(function, x, slope):
    node = param(0, float64, (len(x),))
    y = function(node)
    (found,) = gradient(y, [node], lib.full(1.0, float64, y.shape))
    np.testing.assert_allclose(value(found, np.array(x)), slope)
