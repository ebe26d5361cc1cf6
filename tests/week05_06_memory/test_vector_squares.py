"""Transpositions: squares of strided loads are rows of memory, transposed in registers."""

import numpy as np
import pytest

from tests.week05_06_memory.vectors import agree, lanes, number, place, text_of
from week01_uops.dtypes import ALL, float16, float32
from week01_uops.linear import Linear
from week01_uops.ops import ADD, MUL, param
from week02_render.ops import AFTER, END, STORE, index, load, loop
from week05_06_memory.c_vector_squares import squares

SIZE = 64


def packed(width, dtype, copies, order=lambda u: u):
    """p0[k + u, j] = p1[j, k + u], with copies for each u and a vector of j."""
    j, k, v = loop(0, SIZE // width), loop(1, SIZE // copies), lanes(width)
    effect = None
    for u in map(order, range(copies)):
        row, column = place(j, v), ADD(MUL(k, number(copies)), number(u))
        value = load(index(param(1, dtype, (SIZE, SIZE)), row, column))
        store = STORE(index(param(0, dtype, (SIZE, SIZE)), column, row), value)
        effect = store if effect is None else AFTER(store, effect)
    return END(effect, j, k, v)


def numbers(dtype):
    return np.arange(SIZE * SIZE).reshape(SIZE, SIZE).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", ALL)
def test_a_square_is_transposed(dtype):
    for width in (4, 8, 16):
        body, x = packed(width, dtype, width), numbers(dtype)
        agree(body, x, watched=width == 8 and dtype is float16)
        assert text_of(body, x).count("  transpose_") == 1


def test_rows_may_come_in_any_order_and_several_squares_at_once():
    body, x = packed(8, float32, 16, lambda u: u * 5 % 16), numbers(float32)
    agree(body, x)
    assert text_of(body, x).count("  transpose_") == 2


@pytest.mark.parametrize(("width", "copies"), [(16, 8), (2, 2), (32, 32)])
def test_no_square(width, copies):
    """Too few loads, or vectors that are not transposed in registers."""
    body, x = packed(width, float32, copies), numbers(float32)
    agree(body, x)
    assert "transpose" not in text_of(body, x)


def test_squares_are_runs_of_offsets_that_have_the_rest_in_common():
    v, i = lanes(4), loop(0, 9)
    loads = [(p, "p1", Linear({v: 9, i: 1}, offset)) for p, offset in enumerate((7, 4, 6, 5, 8))]
    assert squares(loads) == dict.fromkeys((1, 3, 2, 0), (1, 3, 2, 0))
    assert not squares(loads[:3])
    assert not squares([*loads[:2], *[(p, "p2", form) for p, _, form in loads[2:]]])
    assert not squares([(p, "p1", Linear({v: 1}, p)) for p in range(4)])


@pytest.mark.parametrize(("width", "copies"), [(16, 4), (16, 8), (8, 4), (16, 6), (4, 4)])
def test_neighbours_are_stored_by_fours(width, copies):
    """p0[j, k + u] = p1[k + u, j]: rows are read whole, and written to columns."""
    j, k, v = loop(0, SIZE // width), loop(1, 48 // copies), lanes(width)
    stores = []
    for u in range(copies):
        row, column = place(j, v), ADD(MUL(k, number(copies)), number(u))
        value = load(index(param(1, float32, (48, SIZE)), column, row))
        stores.append(STORE(index(param(0, float32, (SIZE, 48)), row, column), ADD(value, 1.0)))
    body = END(AFTER(*stores), j, k, v)
    x = np.arange(48 * SIZE, dtype=np.float32).reshape(48, SIZE)
    agree(body, x)
    assert text_of(body, x).count("  scatter4_") == (copies // 4 if width > 4 else 0)
