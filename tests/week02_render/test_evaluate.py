"""Storage, places, kernels and their lists, interpreted."""

import numpy as np
import pytest

from week01_uops import dtypes
from week01_uops.dtypes import float32, int32, int64
from week01_uops.errors import CompilerError, ProgramError
from week01_uops.node import const, make
from week01_uops.ops import ADD, CALL, MUL, NEG, param, program
from week02_render.evaluate import evaluate
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    END,
    INDEX,
    KEEP,
    LINEAR,
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


# Storage


def test_a_buffer_is_zero_at_first_and_kept_in_the_state():
    buffer = BUFFER(arg=StorageArg(3, int32, (4,)))
    step = STORE(buffer, ADD(buffer, param(0, int32, (4,))))
    state = {}
    x = np.array([1, 2, 3, 4], np.int32)
    assert stored(buffer, step, [x], state=state).tolist() == [1, 2, 3, 4]
    result = stored(buffer, step, [x], state=state)
    assert result.tolist() == [2, 4, 6, 8]
    assert state[3].tolist() == [2, 4, 6, 8]
    result[0] = 99  # outputs are copies
    assert state[3][0] == 2
    assert stored(buffer, step, [x]).tolist() == [1, 2, 3, 4]


def test_a_state_of_another_shape_is_refused():
    buffer = BUFFER(arg=StorageArg(0, int32, (4,)))
    with pytest.raises(
        ValueError, match=r"expected int32\[4\] as the state of BUFFER 0, got int32"
    ):
        stored(buffer, STORE(buffer, buffer), state={0: np.zeros(3, np.int32)})


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_fresh_storage_is_poisoned(dtype):
    for place in (
        register(dtype, 3),
        output(dtype, 3),
        WORKSPACE(arg=WorkspaceArg(8, dtype, (3,))),
    ):
        (found,) = evaluate(program(place), [])
        assert found.dtype == dtype.numpy
        assert np.isnan(found.astype(float)).all() if dtype.is_float else (found != 0).all()


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_workspace_holds_every_dtype_and_overlaps_by_bytes(dtype):
    x = param(0, dtype, (3,))
    inside = WORKSPACE(arg=WorkspaceArg(0, dtype, (3,)))
    values = np.array([0, 1, 1]).astype(dtype.numpy)
    assert stored(inside, STORE(inside, x), [values]).astype(float).tolist() == [0, 1, 1]
    behind = WORKSPACE(arg=WorkspaceArg(dtype.numpy.itemsize, dtype, (3,)))
    both = AFTER(behind, STORE(inside, x))
    assert evaluate(program(both), [values])[0][:2].astype(float).tolist() == [1, 1]


def test_a_place_is_read_when_it_is_used():
    buffer = BUFFER(arg=StorageArg(0, int32, ()))
    before = NEG(buffer)
    after = AFTER(buffer, STORE(buffer, ADD(before, const(5, int32))))
    assert [r.tolist() for r in evaluate(program(before, after), [])] == [0, 5]


def test_inputs_are_not_written():
    p = param(0, int32, (2,))
    with pytest.raises(ProgramError, match="expected a writable place, got an input"):
        stored(p, STORE(p, p), [np.zeros(2, np.int32)])


def test_keep_is_the_value():
    assert evaluate(program(KEEP(const(2.5, float32))), [])[0] == 2.5


# INDEX, LOAD, STORE


def test_index_is_orthogonal_and_leaves_axes_whole():
    x = np.arange(120).reshape(4, 5, 6)
    p, rows, at = param(0, int64, (4, 5, 6)), param(1, int64, (2,)), param(2, int64)
    columns = param(3, dtypes.uint8, (3,))
    inputs = [x, np.array([3, 1]), np.array(2), np.array([0, 5, 5], np.uint8)]
    for node, want in [
        (INDEX(p, rows), x[[3, 1]]),
        (INDEX(p, rows, at), x[[3, 1], 2]),
        (INDEX(p, at, rows), x[2, [3, 1]]),
        (INDEX(p, rows, rows, columns), x[np.ix_([3, 1], [3, 1], [0, 5, 5])]),
        (INDEX(p, rows, at, columns), x[np.ix_([3, 1], [2], [0, 5, 5])][:, 0]),
        (INDEX(INDEX(p, at), rows, columns), x[2][np.ix_([3, 1], [0, 5, 5])]),
        (INDEX(INDEX(p, rows), number(1)), x[1]),
        (INDEX(p), x),
    ]:
        (got,) = evaluate(program(LOAD(node)), inputs)
        assert np.array_equal(got, want)


def test_store_through_indices_keeps_the_last_of_equal_ones():
    out = output(int64, 4)
    zero = STORE(out, param(1, int64, (4,)))
    to = INDEX(AFTER(out, zero), param(0, int64, (3,)))
    store = STORE(to, param(2, int64, (3,)))
    got = stored(out, store, [np.array([1, 1, 3]), np.zeros(4, np.int64), np.array([7, 8, 9])])
    assert got.tolist() == [0, 8, 0, 9]


@pytest.mark.parametrize("bad", [-1, 3, -(2**63), 2**63 - 1])
def test_out_of_bounds_names_index_and_size(bad):
    place = INDEX(param(0, float32, (2, 3)), number(1), param(1, int64))
    with pytest.raises(
        OutOfBoundsError, match=rf"of axis 1 in \[0, 3\), got {bad}, at <INDEX"
    ) as e:
        evaluate(program(LOAD(place)), [np.zeros((2, 3), np.float32), np.int64(bad)])
    assert e.value.nodes[1] is place


def test_out_of_bounds_of_unsigned_and_of_stores():
    out = output(int64, 3)
    place = INDEX(out, param(0, dtypes.uint64, (2,)))
    with pytest.raises(OutOfBoundsError, match=f"got {2**64 - 1}"):
        stored(
            out,
            STORE(place, param(1, int64, (2,))),
            [np.array([0, 2**64 - 1], np.uint64), np.zeros(2, np.int64)],
        )
    with pytest.raises(OutOfBoundsError, match=r"in \[0, 0\), got 0"):
        evaluate(program(LOAD(INDEX(param(0, int64, (0,)), number(0)))), [np.zeros(0, np.int64)])


def test_an_index_out_of_range_that_is_only_named_is_no_fault():
    out = output(int64, 3)
    unused = AFTER(number(1), INDEX(out, number(7)))
    assert evaluate(program(unused), [])[0] == 1


def test_gates_of_loads():
    x, gate = param(0, int64, (3,)), param(1, dtypes.bool_, (4,))
    place = INDEX(x, param(2, int64, (4,)))
    inputs = [np.array([5, 6, 7]), np.array([True, False, True, False]), np.array([2, 99, 0, -1])]
    with_zero = evaluate(program(make(LOAD, (place, gate))), inputs)[0]
    assert with_zero.tolist() == [7, 0, 5, 0]
    with_other = evaluate(program(LOAD(place, gate, number(-3))), inputs)[0]
    assert with_other.tolist() == [7, -3, 5, -3]
    never = LOAD(place, const(False, dtypes.bool_), number(1))
    assert evaluate(program(never), inputs)[0].tolist() == [1, 1, 1, 1]
    inputs[1] = ~inputs[1]
    with pytest.raises(OutOfBoundsError, match="got 99"):
        evaluate(program(LOAD(place, gate, number(-3))), inputs)


def test_gates_of_stores():
    out = output(int64, 3)
    zero = STORE(out, param(3, int64, (3,)))
    to = INDEX(AFTER(out, zero), param(0, int64, (4,)))
    store = STORE(to, param(1, int64, (4,)), param(2, dtypes.bool_, (4,)))
    inputs = [
        np.array([0, 9, 2, 2]),
        np.array([5, 6, 7, 8]),
        np.array([1, 0, 1, 0], bool),
        np.zeros(3, np.int64),
    ]
    assert stored(out, store, inputs).tolist() == [5, 0, 7]
    scalar = STORE(AFTER(out, zero), param(3, int64, (3,)), const(False, dtypes.bool_))
    assert stored(out, scalar, inputs).tolist() == [0, 0, 0]


# CALL and LINEAR


def test_a_kernel_stores_to_the_places_it_is_given():
    x, out = param(0, int32, (4,)), output(int32, 4)
    target, source, i = param(0, int32, (4,)), param(1, int32, (4,)), loop(0, 4)
    body = END(STORE(index(target, i), MUL(load(index(source, i)), const(3, int32))), i)
    call = CALL(body, out, x)
    assert stored(out, call, [np.arange(4, dtype=np.int32)]).tolist() == [0, 3, 6, 9]
    middle = WORKSPACE(arg=WorkspaceArg(0, int32, (4,)))
    chained = CALL(body, out, AFTER(middle, CALL(body, middle, x)))
    assert stored(out, chained, [np.arange(4, dtype=np.int32)]).tolist() == [0, 9, 18, 27]


def test_a_value_call_inside_a_loop():
    x, out, i = param(0, int64, (4,)), output(int64, 4), loop(0, 4)
    square = MUL(param(0, int64), param(0, int64))
    store = STORE(index(out, i), CALL(square, ADD(load(index(x, i)), i)))
    assert stored(out, END(store, i), [np.arange(4)]).tolist() == [0, 4, 16, 36]


def test_a_kernel_called_in_a_loop_runs_once_for_each_iteration():
    out, i = output(int64, 4), loop(0, 3)
    target, at = param(0, int64, (4,)), param(1, int64)
    old = LOAD(index(target, at))
    body = STORE(index(target, ADD(at, number(1))), ADD(old, number(1)))
    start = STORE(index(out, number(0)), number(5))
    call = CALL(body, AFTER(out, start), i)
    assert stored(out, END(call, i)).tolist() == [5, 6, 7, 8]


def test_a_kernel_called_in_a_loop_has_constants_inputs_and_loops_of_its_own():
    x, out, i = param(0, int64, (3, 2)), output(int64, 3, 2), loop(0, 3)
    target, row, j = param(0, int64, (3, 2)), param(1, int64), loop(1, 2)
    place = index(target, row, j)
    value = ADD(load(index(param(2, int64, (3, 2)), row, number(1))), j)
    body = END(STORE(place, ADD(value, load(index(param(3, int64, (2,)), j)))), j)
    call = CALL(body, out, i, x, LOAD(INDEX(x, number(0))))
    got = stored(out, END(call, i), [np.array([[1, 2], [3, 4], [5, 6]])])
    assert got.tolist() == [[3, 5], [5, 7], [7, 9]]


def test_an_alloc_is_new_in_every_call():
    out = output(int64, 2)
    target, held = param(0, int64, (2,)), register(int64)
    first = CALL(STORE(held, number(5)))
    second = CALL(STORE(index(target, number(0)), LOAD(held)), AFTER(out, first))
    assert stored(out, second).tolist()[0] != 5


def linear_sum(out, x, order):
    """The nodes of out[0] = Σ x[i], by name, for lists in several orders."""
    i = loop(0, 4)
    acc = register(int64)
    nodes = {"zero": number(0), "acc": acc, "out": out, "x": x, "i": i}
    nodes["init"] = STORE(acc, nodes["zero"])
    nodes["inside"] = AFTER(acc, nodes["init"], i)
    nodes["old"] = LOAD(nodes["inside"])
    nodes["at"] = index(x, i)
    nodes["value"] = LOAD(nodes["at"])
    nodes["new"] = ADD(nodes["old"], nodes["value"])
    nodes["step"] = STORE(nodes["inside"], nodes["new"])
    nodes["end"] = END(nodes["step"], i)
    nodes["after"] = AFTER(acc, nodes["end"])
    nodes["total"] = LOAD(nodes["after"])
    nodes["to"] = index(out, nodes["zero"])
    nodes["store"] = STORE(nodes["to"], nodes["total"])
    return LINEAR(*(nodes[name] for name in order.split()))


GOOD = "zero acc out x init i inside old at value new step end after total to store"


def linear_result(order):
    x, out = param(0, int64, (4,)), output(int64, 1)
    return stored(out, linear_sum(out, x, order), [np.array([1, 2, 3, 4])]).tolist()


def test_a_linear_is_carried_out_as_it_stands():
    assert linear_result(GOOD) == [10]
    assert linear_result(GOOD.replace("zero acc out x ", "acc ")) == [
        10
    ]  # constants may be left out
    assert linear_result(GOOD.replace("init i", "i init")) == [4]  # started over every time
    late = GOOD.replace("out x init i", "init i x out").replace("zero acc", "acc zero")
    assert linear_result(late) == [10]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (GOOD.replace("old at value new step", "at value new old step"), "to be computed before"),
        (GOOD.replace(" end", ""), "expected an END for"),
        (GOOD.replace(" i ", " "), "to close the last of"),
        (GOOD.replace("value ", ""), "to stand in the list"),
        (GOOD.replace("at ", ""), "to stand in the list"),
    ],
)
def test_a_linear_out_of_order_is_refused(order, message):
    with pytest.raises(CompilerError, match=message):
        linear_result(order)


def test_an_alloc_in_a_loop_of_a_linear_is_private():
    out, i, acc = output(int64, 3), loop(0, 3), register(int64)
    one = number(1)
    store = STORE(acc, i)
    after = AFTER(acc, store)
    value, to = LOAD(after), index(out, i)
    back = STORE(to, value)
    nodes = (one, i, acc, store, after, value, to, back, END(back, i))
    assert stored(out, LINEAR(*nodes)).tolist() == [0, 1, 2]
    assert stored(out, LINEAR(acc, *(n for n in nodes if n is not acc))).tolist() == [0, 1, 2]
