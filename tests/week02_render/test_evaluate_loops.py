"""Loops, interpreted: by hand, against NumPy, and against a scalar interpreter."""

import numpy as np
import pytest

from tests.week02_render.sequential import Program, run
from week01_uops import dtypes
from week01_uops.dtypes import float32, int32, int64
from week01_uops.node import const
from week01_uops.ops import ADD, CALL, CAST, CMPLT, MUL, param, program
from week02_render import carried
from week02_render.evaluate import evaluate
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    END,
    LOAD,
    OUTPUT,
    STORE,
    WORKSPACE,
    AllocArg,
    StorageArg,
    WorkspaceArg,
    index,
    load,
    loop,
)
from week02_render.places import OutOfBoundsError


def output(dtype, *shape):
    return OUTPUT(arg=StorageArg(0, dtype, shape))


def register(dtype, *shape, slot=0):
    return ALLOC(arg=AllocArg(slot, dtype, shape, "REG"))


def stored(place, effect, inputs=(), **more):
    (result,) = evaluate(program(AFTER(place, effect)), inputs, **more)
    return result


def number(value):
    return const(value, int64)


def test_the_order_of_writes_is_that_of_the_iterations():
    out = output(int64, 2)
    i = loop(0, 5)
    assert stored(out, END(STORE(index(AFTER(out, i), number(0)), i), i)).tolist()[0] == 4
    j = loop(1, 3)
    store = STORE(index(AFTER(out, i, j), number(0)), ADD(MUL(i, number(10)), j))
    assert stored(out, END(store, i, j)).tolist()[0] == 42
    assert stored(out, END(store, j, i)).tolist()[0] == 42


def test_an_effect_that_does_not_depend_on_its_loop_is_repeated():
    buffer = BUFFER(arg=StorageArg(0, int64, ()))
    i, empty = loop(0, 5), loop(1, 0)
    for ranges, want in [((i,), 5), ((empty,), 0), ((i, loop(2, 3)), 15), ((i, empty), 0)]:
        place = AFTER(buffer, *ranges)
        twice = STORE(place, ADD(LOAD(place), number(1)))
        assert stored(buffer, END(twice, *ranges)).tolist() == want
        held = STORE(buffer, ADD(LOAD(buffer), number(1)))  # reads once, before the loops
        assert stored(buffer, END(held, *ranges)).tolist() == min(want, 1)


def test_effects_joined_by_after_share_the_loop():
    a, b = (BUFFER(arg=StorageArg(k, int64, (4,))) for k in range(2))
    i = loop(0, 4)
    first = STORE(index(a, i), MUL(i, i))
    second = STORE(index(b, i), ADD(LOAD(index(AFTER(a, first), i)), number(1)))
    third = STORE(index(b, number(0)), number(7))
    got = stored(b, END(AFTER(third, second), i))
    assert got.tolist() == [7, 2, 5, 10]


def test_a_bound_may_depend_on_an_outer_loop_and_on_data():
    out = output(int64, 4, 4)
    clear = STORE(out, param(0, int64, (4, 4)))
    i = loop(0, 4)
    j = loop(1, 10, ADD(i, number(1)))
    store = STORE(index(AFTER(out, clear), i, j), number(1))
    zeros = np.zeros((4, 4), np.int64)
    assert np.array_equal(stored(out, END(store, i, j), [zeros]), np.tri(4, dtype=np.int64))
    for dtype in (dtypes.int8, dtypes.uint64, int32):
        for bound in (0, 2, 100, *([-3] if dtype.min else [])):
            k = loop(2, 4, param(1, dtype))
            store = STORE(index(AFTER(out, clear), k, k), number(1))
            got = stored(out, END(store, k), [zeros, np.asarray(bound, dtype.numpy)])
            assert got.trace() == min(max(bound, 0), 4)


def test_iterations_outside_a_bound_do_not_access():
    x, out = param(0, int64, (3,)), output(int64, 3)
    i = loop(0, 100, param(1, int64))
    copy = END(STORE(index(out, i), LOAD(index(x, i))), i)
    inputs = [np.array([1, 2, 3]), np.int64(3)]
    assert stored(out, copy, inputs).tolist() == [1, 2, 3]
    inputs[1] = np.int64(4)
    with pytest.raises(OutOfBoundsError, match=r"in \[0, 3\), got 3"):
        stored(out, copy, inputs)


def test_a_load_outside_an_empty_loop_is_carried_out_and_one_inside_is_not():
    x, out = param(0, int64, (3,)), output(int64, 3)
    i, empty = loop(0, 3), loop(1, 0)
    outside = LOAD(index(x, number(5)))
    with pytest.raises(OutOfBoundsError):
        stored(out, END(STORE(index(out, empty), outside), empty), [np.zeros(3, np.int64)])
    inside = LOAD(index(AFTER(x, empty), number(5)))
    stored(out, END(STORE(index(out, i), inside), empty, i), [np.zeros(3, np.int64)])


def gemm(m, k, n):
    a, b, out = param(0, float32, (m, k)), param(1, float32, (k, n)), output(float32, m, n)
    return a, b, out, loop(0, m), loop(1, n), loop(2, k)


def random_matrices(m, k, n):
    rng = np.random.default_rng(0)
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n))]


def test_matrix_product_with_a_register():
    a, b, out, i, j, k = gemm(32, 32, 32)
    acc = register(float32)
    start = STORE(AFTER(acc, i, j), const(0.0, float32))
    inside = AFTER(acc, start, k)
    step = ADD(LOAD(inside), MUL(load(index(a, i, k)), load(index(b, k, j))))
    total = LOAD(AFTER(acc, END(STORE(inside, step), k)))
    store = END(STORE(index(out, i, j), total), i, j)
    x, y = random_matrices(32, 32, 32)
    assert np.array_equal(stored(out, store, [x, y]), x @ y)


def test_matrix_product_in_place():
    a, b, out, i, j, k = gemm(7, 6, 5)
    x, y = random_matrices(7, 6, 5)
    for order in ((i, j, k), (k, i, j), (i, k, j)):
        clear = END(STORE(index(out, i, j), const(0.0, float32)), i, j)
        place = index(AFTER(out, clear, k), i, j)
        step = ADD(LOAD(place), MUL(load(index(a, i, k)), load(index(b, k, j))))
        assert np.array_equal(stored(out, END(STORE(place, step), *order), [x, y]), x @ y)


def test_a_register_tile_is_private_to_its_block():
    x, out = param(0, int64, (6, 4)), output(int64, 6, 4)
    block, u, v = loop(0, 3), loop(1, 2), loop(2, 4)
    tile = register(int64, 2, 4)
    row = ADD(MUL(block, number(2)), u)
    fill = END(STORE(index(AFTER(tile, block), u, v), MUL(load(index(x, row, v)), number(3))), u, v)
    back = END(STORE(index(out, row, v), LOAD(index(AFTER(tile, fill), u, v))), u, v)
    values = np.arange(24).reshape(6, 4)
    assert np.array_equal(stored(out, END(back, block), [values]), values * 3)


def test_an_alloc_that_carries_a_value_is_shared():
    x, out = param(0, int64, (6,)), output(int64, 6)
    i = loop(0, 6)
    last = register(int64)
    first = CMPLT(i, number(1))
    start = STORE(AFTER(last, i), number(100), first)
    before = LOAD(AFTER(last, start))
    store = STORE(index(out, i), before)
    update = STORE(AFTER(last, store), load(index(x, i)))
    got = stored(out, END(update, i), [np.arange(6)])
    assert got.tolist() == [100, 0, 1, 2, 3, 4]


def test_prefix_sums_run_in_order():
    out, i = output(int64, 9), loop(0, 8)
    start = STORE(index(out, number(0)), number(1))
    source = LOAD(index(AFTER(out, start), i))
    store = STORE(index(AFTER(out, start), ADD(i, number(1))), ADD(source, source))
    assert stored(out, END(store, i)).tolist() == [2**k for k in range(9)]


def test_scatter_through_loaded_indices_runs_in_order():
    at, out, i = param(0, int64, (6,)), output(int64, 3), loop(0, 6)
    clear = STORE(out, param(1, int64, (3,)))
    place = index(AFTER(out, clear, i), load(index(at, i)))
    store = STORE(place, ADD(LOAD(place), ADD(i, number(1))))
    got = stored(out, END(store, i), [np.array([0, 1, 0, 2, 2, 0]), np.zeros(3, np.int64)])
    assert got.tolist() == [10, 2, 9]


def test_loops_larger_than_the_limit_are_cut(monkeypatch):
    x, out = param(0, int64, (50, 7)), output(int64, 50, 7)
    i, j = loop(0, 50), loop(1, 7)
    store = STORE(index(out, i, j), MUL(load(index(x, i, j)), number(2)))
    values = np.arange(350).reshape(50, 7)
    for limit in (1, 5, 40, 100, 10_000):
        monkeypatch.setattr(carried, "LIMIT", limit)
        assert np.array_equal(stored(out, END(store, i, j), [values]), values * 2)


def test_two_parameters_of_one_storage_are_seen_to_be_one():
    buffer = BUFFER(arg=StorageArg(0, int64, (5,)))
    a, b, i = param(0, int64, (5,)), param(1, int64, (5,)), loop(0, 4)
    shift = STORE(index(a, ADD(i, number(1))), ADD(LOAD(index(b, i)), number(1)))
    call = CALL(END(shift, i), buffer, buffer)
    assert stored(buffer, call).tolist() == [0, 1, 2, 3, 4]
    low = WORKSPACE(arg=WorkspaceArg(0, int64, (5,)))
    high = WORKSPACE(arg=WorkspaceArg(8, int64, (5,)))
    start = STORE(index(low, number(0)), number(0))
    move = STORE(index(high, i), ADD(LOAD(index(AFTER(low, start), i)), number(1)))
    assert stored(low, END(move, i)).tolist() == [0, 1, 2, 3, 4]


# Deep and random programs


def test_a_deep_chain_of_stores():
    buffer = BUFFER(arg=StorageArg(0, int64, ()))
    place = buffer
    for _ in range(20_000):
        place = AFTER(buffer, STORE(place, ADD(LOAD(place), number(1))))
    assert evaluate(program(place), [])[0] == 20_000


def test_a_deep_chain_in_a_loop():
    out, i = output(int64, 4), loop(0, 4)
    value = i
    for _ in range(20_000):
        value = ADD(value, number(1))
    assert stored(out, END(STORE(index(out, i), value), i)).tolist() == [
        20_000 + k for k in range(4)
    ]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_against_the_scalar_interpreter(seed):
    random = Program(seed)
    outputs = [AFTER(place, random.effect) for place in random.outputs]
    got = [result.tolist() for result in evaluate(program(*outputs), [])]
    assert got == run(random.effect, random.outputs)


def test_casts_in_loops_keep_their_lanes():
    x, out, i = param(0, float32, (4,)), output(dtypes.int8, 4), loop(0, 4)
    store = STORE(index(out, i), CAST(load(index(x, i)), arg=dtypes.int8))
    got = stored(out, END(store, i), [np.array([1.5, -2.5, 3, 4], np.float32)])
    assert got.tolist() == [1, -2, 3, 4]


def test_many_inner_loops_are_looked_at_one_by_one():
    """All their iterations together are 300⁸, too many for any array."""
    out, i = output(int64, 8, 4, 300), loop(0, 4)
    inner = [loop(1 + n, 300) for n in range(8)]
    stores = [
        END(STORE(index(out, number(n), i, j), ADD(MUL(i, number(1000)), j)), j)
        for n, j in enumerate(inner)
    ]
    expected = np.arange(4)[:, None] * 1000 + np.arange(300)
    assert (stored(out, END(AFTER(*stores), i)) == expected).all()
