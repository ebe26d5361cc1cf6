"""Stage: packed panels, padded copies, windows that move, and what cannot be held."""

import numpy as np
import pytest

from tests.week05_06_memory.bodies import (
    agree,
    column_sums,
    copy,
    number,
    place,
    product,
    row_sums,
    text,
    total,
    values,
)
from week01_uops.dtypes import float32, int32, int64
from week01_uops.node import const
from week01_uops.ops import ADD, CAST, CMPLT, FLOORDIV, FLOORMOD, MUL, NEG, param
from week02_render.ops import ALLOC, END, LOAD, STORE, index, load, loop
from week03_loops.ops import reduce
from week05_06_memory.arrange import reorder, set_kind
from week05_06_memory.nests import ScheduleError
from week05_06_memory.split import split
from week05_06_memory.staging import stage


def temporaries(body):
    """The shapes of what a body holds."""
    return [n.shape for n in body.toposort() if n.op is ALLOC]


def test_a_panel_is_packed_in_the_loop_that_decides_it():
    body = product(4, 3, 6)
    tiled = reorder(split(body, 1, 2, (3, 4)), (3, 0, 4))
    after = stage(tiled, 2, 3)
    assert text(after) == (
        "for i3 in 0..3:\n"
        "  t0 = local float32[3, 2]\n"
        "  for i5 in 0..3:\n"
        "    for i6 in 0..2:\n"
        "      t0[i5, i6] = p2[i5, i3*2 + i6]\n"
        "  for i0 in 0..4:\n"
        "    for i4 in 0..2:\n"
        "      p0[i0, i3*2 + i4] = Σ[i2 in 0..3] p1[i0, i2] * t0[i2, i4]\n"
    )
    agree(body, after, stage(after, 1, 0), set_kind(after, 4, "vector"))


def test_the_layout_orders_the_axes():
    body = product(4, 3, 6)
    after = stage(body, 2, None, (1, 0))
    assert temporaries(after) == [(6, 3)]
    assert "t0[i3, i4] = p2[i4, i3]" in text(after)
    agree(body, after)


@pytest.mark.parametrize("at", [None, 0, 1, 2])
@pytest.mark.parametrize("slot", [1, 2])
def test_a_temporary_in_any_loop(slot, at):
    """What does not move in the loop is read before it; a single element is a variable."""
    body = product(4, 3, 6)
    agree(body, stage(body, slot, at))


def test_in_a_loop_of_the_reduction():
    """A block of the rows at a time."""
    body = split(product(2, 8, 4), 2, 4, (3, 4))
    after = stage(body, 2, 3)
    assert temporaries(after) == [(4,)]
    agree(body, after, stage(body, 1, 3))


def padded(size, margin, width):
    """p0[i] = Σ p1[i + k − margin]·p2[k], p1 padded with 0."""
    i, k = loop(0, size + 2 * margin - width + 1), loop(1, width)
    at = ADD(ADD(i, k), number(-margin))
    gate = MUL(CMPLT(number(-1), at), CMPLT(at, number(size)))
    term = MUL(load(place(1, (size,), at), gate), load(place(2, (width,), k)))
    return END(STORE(place(0, (i.arg.size,), i), reduce(ADD, term, 0, k)), i)


@pytest.mark.parametrize(("size", "margin", "width"), [(5, 1, 3), (4, 2, 5), (1, 1, 2), (2, 0, 1)])
def test_a_padded_copy_holds_the_zeros(size, margin, width):
    body = padded(size, margin, width)
    after = stage(body, 1, None)
    assert temporaries(after) == [(size + 2 * margin,)] if margin else [(size,)]
    assert "if" not in text(after).splitlines()[-1]
    agree(body, after, stage(body, 1, 0), stage(split(body, 0, 1, (2, 3)), 1, 2))


def test_a_window_of_a_tile_moves():
    """Of a tile of results, the windows overlap: they are read once."""
    body = padded(9, 1, 3)
    tiled = split(body, 0, 4, (2, 3))
    after = stage(tiled, 1, 2)
    assert temporaries(after) == [(6,)]
    agree(body, after)


def test_the_step_of_a_window():
    """Of every other element, those between are held too."""
    i, k = loop(0, 4), loop(1, 3)
    term = load(place(1, (10,), ADD(MUL(i, number(2)), k)))
    body = END(STORE(place(0, (4,), i), reduce(ADD, term, 0, k)), i)
    agree(body, stage(body, 1, None), stage(body, 1, 0))


def backwards():
    """p0[i] = Σ p1[5 − i + k]."""
    i, k = loop(0, 4), loop(1, 3)
    at = ADD(ADD(NEG(i), k), number(5))
    return END(STORE(place(0, (4,), i), reduce(ADD, load(place(1, (8,), at)), 0, k)), i)


def taken_apart():
    """p0[i] = p1[i // 4, i % 4] for i < 12."""
    i = loop(0, 12)
    at = FLOORDIV(i, number(4)), FLOORMOD(i, number(4))
    return END(STORE(place(0, (12,), i), load(place(1, (3, 4), *at))), i)


def narrow():
    """p0[i] = p1[i + 2], the index an int32."""
    i = loop(0, 6)
    at = ADD(CAST(i, arg=int32), const(2, int32))
    return END(STORE(place(0, (6,), i), load(place(1, (9,), at))), i)


@pytest.mark.parametrize("make", [backwards, taken_apart, narrow])
def test_indices_of_every_form(make):
    body = make()
    tiled = split(body, 0, 2, (3, 4))
    agree(body, stage(body, 1, None), stage(body, 1, 0), stage(tiled, 1, 3))


def test_joined_axes_are_one_axis_of_the_temporary():
    tiled = split(taken_apart(), 0, 6, (3, 4))
    after = stage(tiled, 1, 3)
    assert temporaries(after) == [(6,)]
    agree(tiled, after)


def test_rows_that_are_looked_up_are_held_whole():
    i, j = loop(0, 5), loop(1, 3)
    row = load(place(2, (5,), i, dtype=int64))
    body = END(STORE(place(0, (5, 3), i, j), load(place(1, (4, 3), row, j))), i, j)
    after = stage(body, 1, None)
    assert temporaries(after) == [(4, 3)]
    arrays = [values(4, 3), np.array([3, 0, 1, 1, 2])]
    agree(body, after, stage(body, 1, 0), stage(body, 2, None), arrays=arrays)


def test_a_triangle_is_not_read_outside():
    """The loop that is staged in may end early: what is held may begin before the array."""
    i = loop(0, 4)
    k = loop(1, 4, ADD(i, number(1)))
    term = load(place(1, (4,), ADD(i, NEG(k))))
    body = END(STORE(place(0, (4,), i), reduce(ADD, term, 0, k)), i)
    agree(body, stage(body, 1, 0), stage(body, 1, None))


def test_a_gate_that_depends_on_other_loads_of_the_same_indices():
    """p0[i] = p1[i] where p2[i] < 0, else p3[i]."""
    i = loop(0, 6)
    gate = CMPLT(load(place(2, (6,), i)), const(0.0, float32))
    value = LOAD(place(1, (6,), i), gate, load(place(3, (6,), i)))
    body = END(STORE(place(0, (6,), i), value), i)
    for slot in (1, 2, 3):
        agree(body, stage(body, slot, None), stage(split(body, 0, 2, (1, 2)), slot, 1))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (1, 1)])
def test_arrays_of_nothing_and_of_one(shape):
    body = copy(*shape)
    agree(body, *[stage(body, 1, at) for at in (None, *range(len(shape)))])


def test_nothing_is_read_for_results_that_there_are_not():
    """A matrix without columns: the loops do not run, what is staged before them may."""
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        body = product(*shape)
        agree(body, stage(body, 1, None), stage(body, 2, None), stage(body, 2, 0))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: stage(copy(4), 5, None), "expected a PARAM that is loaded with indices, got slot"),
        (lambda: stage(copy(4), 1, 3), "expected one of the ranges 0, got 3"),
        (lambda: stage(copy(4, 2), 1, 0, (0,)), "expected the axes 0 to 1 in some order, got"),
        (lambda: stage(copy(4, 2), 1, 0, (1, 1)), "expected the axes 0 to 1 in some order, got"),
        (lambda: stage(column_sums(4, 2), 0, None), "expected a PARAM that the kernel does not wr"),
        (
            lambda: stage(set_kind(copy(4, 8), 1, "vector"), 1, 1),
            "expected a temporary for all iterations of range 1, which is of kind vector",
        ),
        (lambda: stage(other_gate(), 1, None), "expected gates that follow from the indices of"),
        (lambda: stage(row_sums(3, 4, bound=from_memory), 2, 1), "expected a PARAM that is loade"),
    ],
)
def test_refusals(step, message):
    with pytest.raises(ScheduleError, match=message):
        step()


def other_gate():
    """p0[i, j] = p1[i] where j < 2."""
    i, j = loop(0, 3), loop(1, 4)
    value = load(place(1, (3,), i), CMPLT(j, number(2)))
    return END(STORE(place(0, (3, 4), i, j), value), i, j)


def from_memory(i):
    return load(param(2, int64, ()))


def test_a_temporary_of_a_scalar():
    body = total(4)
    k = loop(0, 4)
    factor = load(place(2, (2,), number(1)))
    scaled = STORE(param(0, float32, ()), reduce(ADD, MUL(factor, load(place(1, (4,), k))), 0, k))
    agree(scaled, stage(scaled, 2, None), stage(scaled, 2, 0))
    agree(body, stage(body, 1, 0))
    assert index(param(0, float32, ())) is param(0, float32, ())
