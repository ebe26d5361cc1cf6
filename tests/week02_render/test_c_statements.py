"""What the emitted statements do: registers, gates, loops, local arrays."""

import numpy as np
import pytest

from tests.week02_render.by_hand import elementwise, loaded, one_kernel, out, run, sum_of_rows
from week01_uops.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint64,
)
from week01_uops.errors import CompilerError
from week01_uops.node import const, make
from week01_uops.ops import (
    ADD,
    CALL,
    CAST,
    CMPLT,
    EXP2,
    FLOORDIV,
    FLOORMOD,
    MUL,
    NEG,
    WHERE,
    param,
    program,
)
from week02_render.buffers import dense
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    LINEAR,
    LOAD,
    STORE,
    index,
    load,
    loop,
)
from week02_render.render import render_c
from week03_loops.ops import SHRINK

N = 8
ZERO = const(0, int64)
X = np.linspace(-2, 2, N, dtype=np.float32)


def test_an_accumulator_is_read_in_the_sum():
    text = render_c(one_kernel(sum_of_rows(3, 5), param(0, float32, (3, 5))))
    assert "r0 = r0 + x0;" in text
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert np.array_equal(run(sum_of_rows(3, 5), x), x.sum(1))


def test_an_accumulator_of_halves_rounds_each_sum():
    x = np.full((1, 4096), 1, float16.numpy)
    assert run(sum_of_rows(1, 4096, float16), x)[0] == 2048


def test_a_register_changed_before_its_use_is_read_before():
    """x = LOAD r; STORE r; … x: the old value."""
    total = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    start = STORE(total, const(1.0, float32))
    old = LOAD(AFTER(total, start))
    change = STORE(AFTER(total, start), ADD(old, const(1.0, float32)))
    new = LOAD(AFTER(total, change))
    i = loop(0, 1)
    body = END(
        STORE(index(param(0, float32, (1,)), i), ADD(MUL(old, const(10.0, float32)), new)), i
    )
    assert run(body)[0] == 12


def test_a_register_changed_in_between_is_read_before():
    """y = LOAD r; STORE r; p0[0] = −y: the order of a LINEAR stands."""
    r = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    place = index(param(0, float32, (1,)), ZERO)
    start, old = STORE(r, const(1.0, float32)), LOAD(r)
    change = STORE(r, const(2.0, float32))
    nodes = (r, ZERO, place.src[0], place, start.src[1], start, old, NEG(old), change.src[1])
    body = make(LINEAR, (*nodes, change, STORE(place, NEG(old))))
    assert run(body)[0] == -1


def test_a_variable_first_stored_in_a_loop_or_under_a_gate_is_declared_before():
    """The last of x; and 1 if the gate is true."""
    r = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (), "addrspace": "REG"})
    i = loop(0, N)
    last = END(STORE(r, load(index(param(1, float32, (N,)), i))), i)
    body = STORE(index(param(0, float32, (1,)), ZERO), LOAD(AFTER(r, last)))
    assert run(body, X)[0] == X[-1]
    gated = STORE(r, const(1.0, float32), CMPLT(LOAD(param(1, float32)), const(3.0, float32)))
    body = STORE(index(param(0, float32, (1,)), ZERO), LOAD(AFTER(r, gated)))
    assert run(body, np.float32(2))[0] == 1


def test_gated_loads_and_stores():
    i = loop(0, N)
    shifted = ADD(i, const(-3, int64))
    gate = CMPLT(const(-1, int64), shifted)
    value = LOAD(index(param(1, float32, (N,)), shifted), gate, const(9.0, float32))
    body = END(STORE(index(param(0, float32, (N,)), i), value), i)
    assert np.array_equal(run(body, X), np.concatenate([[9, 9, 9], X[:-3]]).astype(np.float32))
    small = CMPLT(i, const(2, int64))
    body = END(STORE(index(param(0, float32, (N,)), i), const(1.0, float32), small), i)
    result = np.full(N, 5, np.float32)
    whole = one_kernel(body)
    given = loaded(whole).run([], out=[dense(result, float32)])[0]
    assert np.array_equal(given, [1, 1, 5, 5, 5, 5, 5, 5])


@pytest.mark.parametrize(
    ("dtype", "limit"), [(int64, 3), (int8, -5), (uint8, 200), (uint64, 2**63 + 5), (int32, 8)]
)
def test_a_bound_ends_a_loop(dtype, limit):
    i = loop(0, N, LOAD(param(1, dtype)))
    j = loop(1, N)
    clear = END(STORE(index(param(0, float32, (N,)), j), const(0.0, float32)), j)
    place = AFTER(param(0, float32, (N,)), clear)
    body = END(STORE(index(place, i), const(1.0, float32)), i)
    whole = one_kernel(body, param(0, dtype))
    result = loaded(whole).run([np.array(limit, dtype.numpy)])[0]
    assert result.sum() == min(max(limit, 0), N)


def test_a_triangular_loop():
    i = loop(0, 4)
    j = loop(1, 4, ADD(i, const(1, int64)))
    place = param(0, int64, (4, 4))
    zeros = END(STORE(index(place, loop(2, 4), loop(3, 4)), ZERO), loop(2, 4), loop(3, 4))
    body = END(STORE(index(AFTER(place, zeros), i, j), const(1, int64)), i, j)
    text = render_c(one_kernel(body))
    assert "int64_t x0 = i2 + 1;" in text
    assert np.array_equal(run(body), np.tri(4, dtype=int))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_empty_arrays_are_not_touched(shape):
    ranges = [loop(k, size) for k, size in enumerate(shape)]
    body = END(
        STORE(
            index(param(0, float32, shape), *ranges), load(index(param(1, float32, shape), *ranges))
        ),
        *ranges,
    )
    assert run(body, np.zeros(shape, np.float32)).shape == shape


def test_loads_of_empty_storage_read_nothing():
    """Out of an empty loop, a load may stand where the loop does not reach; its pointer is null."""
    body = elementwise(lambda: load(index(param(1, float32, (0,)), ZERO)), 3, (), float32)
    whole = one_kernel(body, param(0, float32, (0,)))
    assert np.array_equal(loaded(whole).run([np.zeros(0, np.float32)])[0], np.zeros(3))


@pytest.mark.parametrize(
    ("space", "dtype"), [("LOCAL", float32), ("REG", float16), ("LOCAL", bfloat16), (None, bool_)]
)
def test_local_arrays(space, dtype):
    """Reversed through an array inside the kernel."""
    array = ALLOC(
        arg={"slot": 0, "dtype": dtype, "shape": (4,), **({"addrspace": space} if space else {})}
    )
    i, j = loop(0, 4), loop(1, 4)
    fill = END(STORE(index(array, i), load(index(param(1, dtype, (4,)), i))), i)
    back = LOAD(index(AFTER(array, fill), ADD(const(3, int64), NEG(j))))
    body = END(STORE(index(param(0, dtype, (4,)), j), back), j)
    given = np.array([0, 1, 1, 0]).astype(dtype.numpy) * np.array(1, dtype.numpy)
    given[0] = 1
    assert np.array_equal(run(body, given), given[::-1])


def test_a_large_local_array_lies_in_scratch_memory():
    i = loop(0, 1 << 15)
    array = ALLOC(arg={"slot": 0, "dtype": float32, "shape": (1 << 15,), "addrspace": "LOCAL"})
    fill = make(END, (STORE(index(array, i), CAST(i, arg=float32)), i))
    place = param(0, float32, (2,))
    picked = [LOAD(index(make(AFTER, (array, fill)), const(k, int64))) for k in (7, 32767)]
    first, last = (STORE(index(place, const(k, int64)), v) for k, v in enumerate(picked))
    result = out(0, float32, (2,))
    whole = program(AFTER(result, CALL(make(AFTER, (last, first)), result)))
    assert "return 131072;" in render_c(whole)
    assert loaded(whole).run([])[0].tolist() == [7.0, 32767.0]


def test_scalars_and_storage_read_as_a_value():
    body = STORE(param(0, float32), MUL(LOAD(param(1, float32)), param(2, float32)))
    whole = one_kernel(body, param(0, float32), param(1, float32))
    assert loaded(whole).run([np.float32(3), np.float32(4)])[0] == 12


def test_indices_of_other_dtypes_are_widened():
    size = 300
    table = np.arange(size * size, dtype=np.float32).reshape(size, size)
    i = loop(0, 4)
    row = load(index(param(2, int16, (4,)), i))
    body = END(
        STORE(
            index(param(0, float32, (4,)), i),
            load(index(param(1, float32, (size, size)), row, row)),
        ),
        i,
    )
    rows = np.array([0, 150, 298, 299], np.int16)
    whole = one_kernel(body, param(0, float32, (size, size)), param(1, int16, (4,)))
    assert np.array_equal(loaded(whole).run([table, rows])[0], table[rows, rows])


def test_proven_indices_are_plain_and_others_wrap():
    i = loop(0, N)
    half = FLOORDIV(i, const(2, int64))
    known = END(
        STORE(index(param(0, float32, (N,)), i), load(index(param(1, float32, (N,)), half))), i
    )
    assert "p1[i0 / 2]" in render_c(one_kernel(known, param(0, float32, (N,))))
    data = load(index(param(1, int64, (N,)), i))
    free = END(
        STORE(index(param(0, int64, (N,)), i), ADD(FLOORMOD(data, const(3, int64)), data)), i
    )
    text = render_c(one_kernel(free, param(0, int64, (N,))))
    assert "floormod_i64(x0, 3L)" in text
    assert "(int64_t)((uint64_t)" in text


def test_expressions_stay_shallow():
    value = load(index(param(1, float32, (N,)), loop(0, N)))
    for k in range(3000):
        value = NEG(EXP2(value)) if k % 2 else ADD(value, const(0.5, float32))
    body = END(STORE(index(param(0, float32, (N,)), loop(0, N)), value), loop(0, N))
    assert max(map(len, render_c(one_kernel(body, param(0, float32, (N,)))).splitlines())) < 200


def test_a_value_used_in_an_inner_loop_is_computed_outside():
    i, j = loop(0, N), loop(1, N)
    x = EXP2(load(index(param(1, float32, (N,)), i)))
    body = END(STORE(index(param(0, float32, (N, N)), i, j), ADD(x, CAST(j, arg=float32))), i, j)
    text = render_c(one_kernel(body, param(0, float32, (N,))))
    assert text.index("exp2f") < text.index("int64_t i1")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            lambda: index(SHRINK(param(1, float32, (N,)), arg=((0, 4),)), ZERO),
            "expected storage behind INDEX and AFTER",
        ),
        (lambda: index(param(1, float32, (2, N)), ZERO), "one element"),
    ],
)
def test_other_places_are_refused(place, message):
    value = place()
    body = STORE(param(0, float32, value.shape), LOAD(value))
    with pytest.raises(CompilerError, match=message):
        render_c(
            program(
                AFTER(
                    out(0, float32, value.shape),
                    CALL(body, out(0, float32, value.shape), param(0, float32, param_shape(body))),
                )
            )
        )


def param_shape(body):
    return next(n.shape for n in body.toposort() if n.op.name == "PARAM" and n.arg.slot == 1)


def test_where_and_casts_are_grouped():
    def function(a):
        one, zero = const(1.0, float32), const(0.0, float32)
        chosen = WHERE(CMPLT(a, zero), const(-1.0, float32), a)
        return ADD(chosen, CAST(CMPLT(a, one), arg=float32))

    expected = np.where(X < 0, -1, X) + (X < 1)
    result = run(elementwise(function, N, (float32,), float32), X)
    assert np.array_equal(result, expected.astype(np.float32))
