"""Loads and stores of vectors: steps, gates, dtypes, streams."""

import re

import numpy as np
import pytest

from tests.week05_06_memory.vectors import agree, lanes, number, place, program_of, text_of
from week01_uops.dtypes import ALL, bool_, float16, float32, int32, int64
from week01_uops.errors import CompilerError
from week01_uops.node import const
from week01_uops.ops import ADD, CAST, CMPLT, FLOORDIV, FLOORMOD, MUL, NEG, param
from week02_render.ops import AFTER, END, LOAD, STORE, index, load, loop
from week02_render.runtime import CheckError
from week02_render.sanitize import run_sanitized
from week05_06_memory.c_vector import render_vector_c
from week05_06_memory.ops import STREAM

WIDTHS = [2, 8, 16]
SIZE = 64


def values(*shape, dtype=float32, seed=0):
    """Small numbers: sums of them are exact."""
    low = 0 if dtype.kind in ("uint", "bool") else -4
    return np.random.default_rng(seed).integers(low, 5, shape).astype(dtype.numpy)


def out(at, dtype=float32, size=SIZE):
    return index(param(0, dtype, (size,)), at)


def moved(width, source, target=lambda at: at, dtype=float32, size=SIZE):
    """p0[target(i)] = p1[source(i)] for i < 64, a vector at a time."""
    i, v = loop(0, SIZE // width), lanes(width)
    at = place(i, v)
    value = load(index(param(1, dtype, (256,)), source(at)))
    return END(STORE(out(target(at), dtype, size), value), i, v)


INDICES = {
    "consecutive": lambda at: ADD(at, number(5)),
    "strided": lambda at: ADD(MUL(at, number(3)), number(2)),
    "reversed": lambda at: ADD(number(70), NEG(at)),
    "halved": lambda at: FLOORDIV(at, number(2)),
    "in a cycle": lambda at: FLOORMOD(ADD(MUL(at, number(5)), number(3)), number(7)),
    "the same": lambda at: number(9),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", INDICES)
def test_loads(name, width):
    body = moved(width, INDICES[name])
    agree(body, np.arange(256, dtype=np.float32), watched=width == 8)
    wide = re.search(r"= \*\(const f32x\d+_u \*\)&p1\[i0 \* \d+ \+ 5\]", text_of(body, values(256)))
    assert bool(wide) == (name == "consecutive")


@pytest.mark.parametrize("dtype", ALL)
def test_loads_and_stores_of_every_dtype(dtype):
    """All lanes at once, and one by one."""
    x = values(256, dtype=dtype)
    for width in (4, 16):
        agree(moved(width, INDICES["consecutive"], dtype=dtype), x)
        back = moved(width, INDICES["reversed"], lambda at: ADD(number(63), NEG(at)), dtype)
        agree(back, x, watched=width == 4 and dtype in (bool_, float16, int64))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_transposition_is_strided_on_one_side(width):
    i, j, v = loop(0, 32), loop(1, 32 // width), lanes(width)
    at = place(j, v)
    for row, column in ((i, at), (at, i)):
        value = load(index(param(1, float32, (32, 32)), row, column))
        body = END(STORE(index(param(0, float32, (32, 32)), column, row), value), i, j, v)
        agree(body, values(32, 32))


def test_a_table_is_read_at_indices_from_memory():
    i, v = loop(0, 4), lanes(8)
    which = load(index(param(2, int32, (32,)), place(i, v)))
    value = load(index(param(1, float32, (16, 3)), which, number(1)))
    body = END(STORE(out(place(i, v), size=32), value), i, v)
    rows = np.random.default_rng(1).integers(0, 16, 32).astype(np.int32)
    agree(body, values(16, 3), rows, watched=True)


def test_the_last_lane_that_stores_to_a_place_wins():
    agree(moved(8, INDICES["consecutive"], INDICES["halved"], size=32), values(256), watched=True)


def test_a_scalar_is_stored_in_every_lane():
    i, v = loop(0, 4), lanes(8)
    value = load(index(param(1, float32, (4,)), i))
    agree(END(STORE(out(place(i, v), size=32), value), i, v), values(4))


def test_the_range_itself_and_indices_as_values():
    i, v = loop(0, 8), lanes(8)
    at = place(i, v)
    whole = ADD(MUL(at, const(1 << 33, int64)), v)  # needs 64 bits
    body = END(STORE(out(at, int64), ADD(whole, FLOORMOD(at, number(3)))), i, v)
    agree(body, watched=True)
    assert "i64x8" in text_of(body)
    body = END(STORE(out(at), CAST(FLOORDIV(ADD(at, number(-7)), number(5)), arg=float32)), i, v)
    agree(body, watched=True)
    assert "i64x8" not in text_of(body)


GATES = {
    "of the loop": lambda i, at: CMPLT(i, number(2)),
    "of the lane": lambda i, at: CMPLT(FLOORMOD(at, number(3)), number(1)),
    "that guards": lambda i, at: CMPLT(number(6), at),
}


def gated_load(gate, shift, other):
    i, v = loop(0, 8), lanes(8)
    at = place(i, v)
    value = LOAD(index(param(1, float32, (SIZE,)), ADD(at, number(shift))), gate(i, at), *other(at))
    return END(STORE(out(at), value), i, v)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize(
    "other",
    [
        lambda at: (),
        lambda at: (const(9.0, float32),),
        lambda at: (load(index(param(2, float32, (SIZE,)), at)),),
    ],
)
def test_gated_loads(name, other):
    shift = -7 if name == "that guards" else 0
    body = gated_load(GATES[name], shift, other)
    agree(body, values(SIZE), values(SIZE, seed=1), watched=True)


def test_a_gate_of_lanes_selects_where_every_index_is_in_range():
    x = values(SIZE)
    text = text_of(gated_load(GATES["of the lane"], 0, lambda at: ()), x)
    assert "select_f32x8(" in text
    assert "*(const f32x8_u *)&p1[i0 * 8]" in text


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
def test_gated_stores(gate):
    i, j, v = loop(0, 8), loop(1, SIZE), lanes(8)
    at = place(i, v)
    zeros = END(STORE(out(j), const(0.0, float32)), j)
    target = index(AFTER(param(0, float32, (SIZE,)), zeros), at)
    value = load(index(param(1, float32, (SIZE,)), at))
    agree(END(STORE(target, value, gate(i, at)), i, v), values(SIZE), watched=True)
    agree(END(STORE(target, const(2.0, float32), gate(i, at)), i, v), watched=True)


def test_empty_arrays_are_not_touched():
    i, v = loop(0, 0), lanes(8)
    value = load(index(param(1, float32, (0, 8)), i, v))
    agree(END(STORE(index(param(0, float32, (0, 8)), i, v), value), i, v), values(0, 8))


def streamed(width, shift, size=SIZE + 8):
    i, v = loop(0, SIZE // width), lanes(width)
    value = load(index(param(1, float32, (SIZE,)), place(i, v)))
    target = STREAM(index(param(0, float32, (size,)), ADD(place(i, v), number(shift))))
    rest = loop(1, 8)
    end = AFTER(
        param(0, float32, (size,)), END(STORE(target, MUL(value, const(2.0, float32))), i, v)
    )
    first = ADD(rest, number(SIZE if shift == 0 else 0))
    return END(STORE(index(end, first), const(0.0, float32)), rest)


@pytest.mark.parametrize("width", [4, 8, 16, 32])
def test_streams(width):
    """Past the caches where the place is aligned; the fence stands behind the loop."""
    aligned = streamed(width, 0)
    agree(aligned, values(SIZE), watched=True)
    lines = text_of(aligned, values(SIZE)).splitlines()
    store = next(k for k, line in enumerate(lines) if f" stream_f32x{width}(&p0[" in line)
    assert lines[store + 1 : store + 3] == ["    }", "    stream_fence();"]


def test_a_stream_to_a_place_that_is_not_aligned_is_a_plain_store():
    shifted = streamed(16, 8)
    agree(shifted, values(SIZE), watched=True)
    assert "stream" not in text_of(shifted, values(SIZE))


def test_a_load_with_two_users_is_kept_in_a_register():
    i, v = loop(0, 4), lanes(16)
    x = load(index(param(1, float32, (SIZE,)), place(i, v)))
    twice = MUL(ADD(x, const(1.0, float32)), x)
    used = text_of(END(STORE(out(place(i, v)), twice), i, v), values(SIZE))
    assert "pin64(x0);" in used
    once = text_of(END(STORE(out(place(i, v)), NEG(x)), i, v), values(SIZE))
    assert "pin64" not in once


def test_every_lane_is_checked():
    i, v = loop(0, 8), lanes(8)
    at = place(i, v)
    for shift, wrong in ((3, 64), (-2, -2)):
        value = load(index(param(1, float32, (SIZE,)), ADD(at, number(shift))))
        whole = program_of(END(STORE(out(at), value), i, v), values(SIZE))
        with pytest.raises(CheckError, match=rf"LOAD of p1, .* index {wrong} is outside"):
            run_sanitized(render_vector_c(whole, checked=True), whole, [values(SIZE)])
    target = out(ADD(at, number(1)))
    whole = program_of(END(STORE(target, const(0.0, float32)), i, v))
    with pytest.raises(CheckError, match=r"STORE of p0, .* index 64 is outside"):
        run_sanitized(render_vector_c(whole, checked=True), whole, [])


def test_masks_in_memory_are_bytes():
    i, v = loop(0, 8), lanes(8)
    x = load(index(param(1, float32, (SIZE,)), place(i, v)))
    mask = CMPLT(x, const(0.0, float32))
    body = END(STORE(out(place(i, v), bool_), mask), i, v)
    assert "*(u8x8_u *)&p0[" in text_of(body, values(SIZE))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: END(STORE(out(lanes(3)), const(0.0, float32)), lanes(3)), "2, 4, 8, 16, 32, 64"),
        (
            lambda: END(STORE(out(lanes(8, 1)), const(0.0, float32)), lanes(8, 2), lanes(8, 1)),
            "in another",
        ),
        (
            lambda: END(
                STORE(out(number(0)), load(index(param(1, float32, (8,)), lanes(8)))), lanes(8)
            ),
            "every lane stores to the same place",
        ),
        (
            lambda: END(
                END(STORE(out(loop(0, 8, lanes(8))), const(0.0, float32)), loop(0, 8, lanes(8))),
                lanes(8),
            ),
            "the same for all lanes",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(body, message):
    with pytest.raises(CompilerError, match=message):
        text_of(body(), values(8))
