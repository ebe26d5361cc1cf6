"""One-hot sums over the results as scatter loops, and masks taken into the kernels they go to."""

import numpy as np
import pytest

from week01_uops.dtypes import bool_, float16, float32, float64, int32, int64
from week01_uops.node import UOp, const, make
from week01_uops.ops import ADD, CALL, CAST, CMPLT, FLOORDIV, MUL, RECIP, WHERE, param, program
from week01_uops.passes import top_nodes
from week01_uops.rewrite import Trace
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    INDEX,
    LOAD,
    RANGE,
    STORE,
    WORKSPACE,
    AllocArg,
    loop,
)
from week02_render.runtime import load
from week03_loops.library.gather import one_hot, scatter_add, take
from week03_loops.library.linear_algebra import matmul
from week03_loops.library.reduction import reduce_sum as sum_
from week03_loops.library.scan import arange
from week03_loops.ops import REDUCE, permute, reshape
from week05_06_memory.compiler import COMPILER, REFERENCE
from week05_06_memory.evaluate import evaluate


def passes(program_: UOp, last: str) -> tuple[UOp, Trace]:
    """The program after a pass, each pass verified, and what the last one did."""
    trace = Trace()
    for item in COMPILER.passes[: COMPILER.index(last) + 1]:
        trace = Trace()
        program_ = item.run(program_, trace)
        item.leaves.verify(program_)
    return program_, trace


def kernels(program_: UOp) -> list[UOp]:
    return [node for node in top_nodes(program_) if node.op is CALL]


def names(program_: UOp) -> list[str]:
    return [call.arg.name for call in kernels(program_)]


def has_loop(program_: UOp, op) -> bool:
    return any(op is n.op for call in kernels(program_) for n in call.src[0].toposort())


def inputs(program_: UOp, seed: int = 0) -> list[np.ndarray]:
    """Small integers, so that any order of a sum gives the same; positions also out of range."""
    generator = np.random.default_rng(seed)
    found = {n.arg.slot: n for n in program_.toposort() if n.op.name == "PARAM"}
    return [
        generator.integers(-3, 60, n.shape).astype(n.dtype.numpy) for _, n in sorted(found.items())
    ]


def check(program_: UOp, last: str = "scatter") -> tuple[UOp, Trace]:
    after, trace = passes(program_, last)
    given = inputs(program_)
    expected = evaluate(program_, given)
    compiled = load(REFERENCE.compile(program_, "c"), program_).run(given)
    for a, b, c in zip(expected, evaluate(after, given, state={}), compiled, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    return after, trace


def f(slot: int, *shape: int, dtype=float32) -> UOp:
    return param(slot, dtype, shape)


def transposed(x: UOp) -> UOp:
    return permute(x, (1, 0))


POSITIONS = param(0, int64, (300,))


def scatter_columns() -> UOp:
    """y[v, d] = Σ_n [i[n, d] = v]·x[n, d]."""
    mask = permute(one_hot(param(0, int64, (300, 4)), 50), (0, 2, 1))
    return sum_(MUL(mask, reshape(f(1, 300, 4), (300, 1, 4))), 0)


SCATTERS = {
    "one-hot transposed": lambda: program(
        matmul(transposed(one_hot(POSITIONS, 50)), f(1, 300, 16))
    ),
    "index_add": lambda: program(scatter_add(f(1, 50, 16), POSITIONS, f(2, 300, 16))),
    "another axis": lambda: program(
        scatter_add(f(1, 3, 50, 4), POSITIONS, f(2, 3, 300, 4), axis=1)
    ),
    "integers": lambda: program(
        scatter_add(f(1, 50, 4, dtype=int32), POSITIONS, f(2, 300, 4, dtype=int32))
    ),
    "histogram": lambda: program(sum_(one_hot(POSITIONS, 50, int32), 0)),
    "two axes of positions": lambda: program(
        matmul(transposed(reshape(one_hot(param(0, int32, (4, 75)), 50), (300, 50))), f(1, 300, 16))
    ),
    "a factor that moves with the results": lambda: program(
        sum_(
            MUL(
                MUL(reshape(one_hot(POSITIONS, 50), (300, 50, 1)), f(1, 50, 4)),
                reshape(f(2, 300, 4), (300, 1, 4)),
            ),
            0,
        )
    ),
    "a position in each column": lambda: program(
        sum_(
            MUL(one_hot(param(0, int64, (300, 4)), 50), reshape(f(1, 300, 4), (300, 4, 1))),
            0,
        ),
        scatter_columns(),
    ),
    "a condition on each column": lambda: program(
        sum_(
            WHERE(
                CMPLT(reshape(f(2, 300, 4), (300, 1, 4)), 20.0),
                MUL(
                    reshape(one_hot(POSITIONS, 50), (300, 50, 1)),
                    reshape(f(1, 300, 4), (300, 1, 4)),
                ),
                0.0,
            ),
            0,
        )
    ),
}


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters(name):
    after, trace = check(SCATTERS[name]())
    assert trace.fired["scatter"] == len(after.src)
    assert not has_loop(after, REDUCE)
    parts = [name.rpartition("_")[2] for name in names(after)]
    assert parts.index("clear") + 1 == parts.index("scatter")
    assert len(parts) <= 4 * len(after.src)


def test_an_in_range_position_is_not_tested():
    """Positions n // 6 are below 50, so that no loop with a bound is needed."""
    index = FLOORDIV(arange(300), 6)
    after, _ = check(program(matmul(transposed(one_hot(index, 50)), f(0, 300, 16))))
    ranges = [n for c in kernels(after) for n in c.src[0].toposort() if n.op is RANGE]
    assert not any(r.src for r in ranges)


def test_a_reader_waits_for_all_of_a_sum():
    """Results read where they were added last: the loops are equal, but no sum is complete."""
    n, pair, x = loop(0, 6), loop(1, 3), f(0, 6)
    sums, result = (make(ALLOC, (), AllocArg(k, float32, (size,))) for k, size in ((0, 3), (1, 6)))
    at = FLOORDIV(n, 2)
    clear = END(STORE(INDEX(sums, pair), const(0.0, float32)), pair)
    place = INDEX(AFTER(sums, clear, n), at)
    added = END(STORE(place, ADD(LOAD(place), LOAD(INDEX(x, n)))), n)
    read = END(STORE(INDEX(result, n), LOAD(INDEX(AFTER(sums, added), at))), n)
    check(program(make(AFTER, (result, read))))


DECLINED = {
    "few results": (
        lambda: matmul(transposed(one_hot(POSITIONS, 5)), f(1, 300, 16)),
        "operations a column for 300 terms of each of 5 results cost less than clearing",
    ),
    "short floats": (
        lambda: scatter_add(f(1, 50, 4, dtype=float16), POSITIONS, f(2, 300, 4, dtype=float16)),
        "expected storage that sums of float16 can be held in, got float16",
    ),
    "results of another type": (
        lambda: CAST(
            matmul(transposed(one_hot(POSITIONS, 50, float64)), f(1, 300, 16, dtype=float64)),
            arg=float32,
        ),
        "expected storage that sums of float64 can be held in, got float32",
    ),
}


@pytest.mark.parametrize("name", DECLINED)
def test_declines(name):
    make_value, reason = DECLINED[name]
    _, trace = passes(program(make_value()), "scatter")
    assert not trace.fired["scatter"]
    said = [text for _, text in trace.declined]
    assert len(said) <= 1
    assert all(reason in text for text in said)


LOADS = {
    "embedding": lambda: program(take(f(1, 100, 32), param(0, int64, (4, 16)))),
    "one-hot times matrix": lambda: program(matmul(one_hot(POSITIONS, 50), f(1, 50, 16))),
    "bool": lambda: program(take(f(1, 50, 8, dtype=bool_), POSITIONS)),
    "short positions": lambda: program(take(f(1, 50, 8), param(0, int32, (300,)))),
    "positions computed": lambda: program(take(f(1, 50, 32), ADD(MUL(POSITIONS, 2), -7))),
    "table computed": lambda: program(take(MUL(f(1, 50, 8), f(2, 50, 8)), param(0, int64, (20,)))),
}


@pytest.mark.parametrize("name", LOADS)
def test_selections_are_one_kernel_without_a_loop(name):
    after, _ = check(LOADS[name](), "absorb")
    assert len(kernels(after)) == 1
    assert not has_loop(after, REDUCE)


def test_an_embedding_and_its_derivative_need_no_mask():
    index = param(0, int64, (4, 16))
    mask = reshape(one_hot(index, 100), (64, 100))
    both = program(take(f(1, 100, 32), index), matmul(transposed(mask), f(2, 64, 32)))
    after, _ = check(both)
    assert len(kernels(after)) == 3
    planned, _ = passes(both, "plan")
    assert not any(n.op is WORKSPACE for n in planned.toposort())


def test_a_returned_mask_stays():
    index = param(0, int64, (64,))
    mask = one_hot(index, 100)
    after, _ = check(program(mask, matmul(mask, f(1, 100, 32))), "absorb")
    assert len(kernels(after)) == 2
    assert not has_loop(after, REDUCE)


def test_a_mask_that_ends_no_loop_stays():
    """y = Σ_v [x < v]·w[v, d] visits all v that are large enough, and reads the mask for each d."""
    mask = CAST(CMPLT(reshape(param(0, int64, (64, 1)), (64, 1)), arange(100)), arg=float32)
    after, trace = passes(program(matmul(mask, f(1, 100, 64))), "absorb")
    assert len(kernels(after)) == 2
    assert any("still visits all elements" in text for _, text in trace.declined)


def test_expensive_tables_are_computed_once():
    """200 rows are taken of 50: their reciprocals are held."""
    after, _ = check(program(take(RECIP(f(1, 50, 8)), param(0, int64, (200,)))), "absorb")
    assert len(kernels(after)) == 2
    assert not has_loop(after, REDUCE)
