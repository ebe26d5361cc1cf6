"""Registers with lanes, sums over lanes, and tiles of registers."""

import subprocess

import numpy as np
import pytest

from tests.week05_06_memory.vectors import agree, lanes, number, place, register, text_of
from week01_uops.dtypes import FLOATS, INTEGERS, bool_, float16, float32, int8
from week01_uops.node import const
from week01_uops.ops import ADD, CMPLT, MAX, MUL, NEG, WHERE, param
from week02_render.ops import AFTER, ALLOC, END, LOAD, STORE, index, load, loop
from week02_render.toolchain import find_toolchain

ZERO = const(0.0, float32)


def integers(*shape, dtype=float32, seed=0):
    """Small numbers: sums of them are exact."""
    low = 0 if dtype.kind in ("uint", "bool") else -2
    return np.random.default_rng(seed).integers(low, 3, shape).astype(dtype.numpy)


def start_of(op, dtype):
    if dtype is bool_:
        return const(op is MUL, bool_)
    if op is MAX:
        return const(-np.inf if dtype.is_float else dtype.min, dtype)
    return const(
        (1.0 if dtype.is_float else 1) if op is MUL else 0.0 if dtype.is_float else 0, dtype
    )


def sum_of_columns(op, dtype, width):
    """p0[j] = ⊕ᵢ p1[i, j]: a register with lanes."""
    j, v, i = loop(0, 32 // width), lanes(width), loop(1, 5)
    total = register(0, dtype)
    start = STORE(AFTER(total, j, v), start_of(op, dtype))
    inside = AFTER(total, start, i)
    x = load(index(param(1, dtype, (5, 32)), i, place(j, v)))
    end = END(STORE(inside, op(LOAD(inside), x)), i)
    return END(STORE(index(param(0, dtype, (32,)), place(j, v)), LOAD(AFTER(total, end))), j, v)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("op", [ADD, MUL, MAX])
def test_registers_with_lanes(op, dtype):
    body, x = sum_of_columns(op, dtype, 16), integers(5, 32, dtype=dtype)
    agree(body, x)
    assert "x16 r0" in text_of(body, x)


@pytest.mark.parametrize("op", [MUL, MAX])
def test_masks_in_registers(op):
    agree(sum_of_columns(op, bool_, 8), integers(5, 32, dtype=bool_), watched=True)


def sum_of_rows(op, dtype, width, accumulators=1):
    """p0[i] = ⊕ⱼ p1[i, j]: registers with lanes, then their lanes and all of them together."""
    i, j, v = loop(0, 3), loop(1, 4), lanes(width)
    total = register(9, dtype)
    registers = [register(k, dtype) for k in range(accumulators)]
    effect, insides = None, []
    for k, place_of in enumerate(registers):
        inside = AFTER(place_of, STORE(AFTER(place_of, i, v), start_of(op, dtype)), j)
        at = place(ADD(MUL(j, number(accumulators)), number(k)), v)
        x = load(index(param(1, dtype, (3, 4 * accumulators * width)), i, at))
        update = STORE(inside, op(LOAD(inside), x))
        effect = update if effect is None else AFTER(update, effect)
        insides.append(inside)
    end = END(effect, j)
    inside = AFTER(total, STORE(AFTER(total, i), start_of(op, dtype)), v)
    value = LOAD(inside)
    for place_of in registers:
        value = op(value, LOAD(AFTER(place_of, end)))
    across = END(STORE(inside, value), v)
    return END(STORE(index(param(0, dtype, (3,)), i), LOAD(AFTER(total, across))), i)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, bool_])
@pytest.mark.parametrize("op", [ADD, MUL, MAX])
def test_sums_over_lanes(op, dtype):
    if dtype is bool_ and op is ADD:
        return
    for width in (2, 8, 16):
        x = integers(3, 4 * width, dtype=dtype)
        agree(
            sum_of_rows(op, dtype, width),
            x,
            ulps=4,
            watched=width == 8 and dtype in (bool_, int8, float16),
        )


def test_several_registers_are_summed_one_after_the_other():
    body, x = sum_of_rows(ADD, float32, 8, 2), integers(3, 64)
    agree(body, x)
    assert "r0 = r0 + sum_f32x8(r1) + sum_f32x8(r2);" in text_of(body, x)


def test_a_maximum_over_lanes_keeps_nan():
    x = integers(3, 64)
    x[1, 37] = np.nan
    assert np.isnan(agree(sum_of_rows(MAX, float32, 16), x)[1])


@pytest.mark.parametrize(
    ("op", "dtype", "first"),
    [
        (MAX, float32, "r0 = largest_f32x16("),
        (MAX, int8, "r0 = max_i8("),
        (ADD, float32, "r0 = r0 + sum_f32x16("),
    ],
)
def test_a_maximum_begins_with_its_first_terms(op, dtype, first):
    """A sum does not: 0 + (−0) is 0."""
    x = np.full((3, 64), dtype.min if dtype is int8 else -np.inf, dtype.numpy)
    x[1, 5], x[2] = 3, -0.0
    body = sum_of_rows(op, dtype, 16)
    agree(body, x)
    assert first in text_of(body, x)


def test_a_maximum_that_has_begun_goes_on():
    """p0 = max(max p1, max p2), in one register."""
    total, v, w = register(), lanes(8), lanes(8, 8)
    x, y = (load(index(param(k, float32, (8,)), r)) for k, r in ((1, v), (2, w)))
    inside = AFTER(total, STORE(total, start_of(MAX, float32)), v)
    first = END(STORE(inside, MAX(LOAD(inside), x)), v)
    again = AFTER(total, first, w)
    second = END(STORE(again, MAX(LOAD(again), y)), w)
    body = STORE(param(0, float32, ()), LOAD(AFTER(total, second)))
    agree(body, integers(8) + 9, integers(8))


def test_what_is_the_same_in_every_lane_is_summed_as_often():
    """Σᵥ p1[0], straight into memory."""
    v = lanes(8)
    p0 = param(0, float32, (1,))
    inside = index(AFTER(p0, STORE(index(p0, number(0)), ZERO), v), number(0))
    x = load(index(param(1, float32, (4,)), number(0)))
    body = END(STORE(inside, ADD(LOAD(inside), x)), v)
    agree(body, np.array([3, 0, 0, 0], np.float32))


def test_a_register_without_lanes_in_a_vector_range_is_a_scalar():
    """p0[v] = Σᵢ p1[i] · p2[v]."""
    v, i = lanes(8), loop(1, 5)
    total = register()
    inside = AFTER(total, STORE(total, ZERO), i)
    end = END(STORE(inside, ADD(LOAD(inside), load(index(param(1, float32, (5,)), i)))), i)
    value = MUL(LOAD(AFTER(total, end)), load(index(param(2, float32, (8,)), v)))
    body = END(STORE(index(param(0, float32, (8,)), v), value), v)
    agree(body, integers(5), integers(8))
    assert "float r0" in text_of(body, integers(5), integers(8))


def test_a_lane_that_is_gated_keeps_its_register():
    v = lanes(8)
    total = register()
    start = STORE(AFTER(total, v), ZERO)
    x = load(index(param(1, float32, (8,)), v))
    change = STORE(AFTER(total, start), x, CMPLT(ZERO, x))
    body = END(STORE(index(param(0, float32, (8,)), v), LOAD(AFTER(total, change))), v)
    agree(body, integers(8))


def test_a_local_array_that_lanes_share():
    """t[v] = p1[v]; p0[i] = t[7 − i]."""
    array = ALLOC(arg={"slot": 0, "dtype": float16, "shape": (8,), "addrspace": "LOCAL"})
    v, i = lanes(8), loop(0, 8)
    end = END(STORE(index(array, v), load(index(param(1, float16, (8,)), v))), v)
    back = LOAD(index(AFTER(array, end), ADD(number(7), NEG(i))))
    agree(END(STORE(index(param(0, float16, (8,)), i), back), i), integers(8, dtype=float16))


def test_a_select_by_a_scalar():
    i, v = loop(0, 2), lanes(8)
    x = load(index(param(1, float32, (16,)), place(i, v)))
    value = WHERE(CMPLT(i, number(1)), NEG(x), const(2.0, float32))
    agree(END(STORE(index(param(0, float32, (16,)), place(i, v)), value), i, v), integers(16))


def tile(rows, vectors, width, depth):
    """p0 = p1 · p2 in tiles of registers, all of them unrolled."""
    i, j, k, v = loop(0, 2), loop(1, 2), loop(2, depth), lanes(width)
    a = param(1, float32, (2 * rows, depth))
    b = param(2, float32, (depth, 2 * vectors * width))
    c = param(0, float32, (2 * rows, 2 * vectors * width))
    sums, results, updates = {}, None, None
    for r in range(rows):
        row = ADD(MUL(i, number(rows)), number(r))
        for n in range(vectors):
            column = ADD(place(ADD(MUL(j, number(vectors)), number(n)), v), number(0))
            total = register(r * vectors + n)
            inside = AFTER(total, STORE(AFTER(total, i, j, v), ZERO), k)
            product = MUL(load(index(a, row, k)), load(index(b, k, column)))
            update = STORE(inside, ADD(LOAD(inside), product))
            updates = update if updates is None else AFTER(update, updates)
            sums[total] = index(c, row, column)
    end = END(updates, k)
    for total, where in sums.items():
        store = STORE(where, LOAD(AFTER(total, end)))
        results = store if results is None else AFTER(store, results)
    return END(results, j, i, v)


def test_a_tile_of_registers():
    agree(tile(3, 2, 8, 7), integers(6, 7), integers(7, 32))


def test_the_inner_loop_of_a_tile_has_no_more_than_it_needs(tmp_path):
    """Of 6 × 64: 24 multiply-adds, 4 loads, 6 broadcasts, and nothing on the stack."""
    chain = find_toolchain()
    text = text_of(tile(6, 4, 16, 64), integers(12, 64), integers(64, 128))
    flags = [f.replace("native", "skylake-avx512") for f in chain.flags if f != "-shared"]
    source, target = tmp_path / "tile.c", tmp_path / "tile.s"
    source.write_text(text)
    subprocess.run([*chain.command, *flags, "-S", "-o", target, source], check=True)
    blocks = target.read_text().split("\n.L")
    inner = max(blocks, key=lambda block: block.count("vfmadd"))
    assert [inner.count(word) for word in ("vfmadd231ps", "vbroadcastss", "%rsp")] == [24, 6, 0]
    assert inner.partition("jne")[0].count("vmovups") == 4
