"""The default scheduler: its schedules can be replayed, keep the meaning, and are sensible."""

import json
import math
from dataclasses import replace

import pytest

from tests.week05_06_memory.bodies import (
    agree,
    column_sums,
    copy,
    number,
    overwritten,
    place,
    product,
    row_sums,
    running,
    total,
    values,
)
from tests.week05_06_memory.test_arrange import scattered
from week01_uops.dtypes import bfloat16, float32
from week01_uops.node import make
from week01_uops.ops import ADD, MAX, MUL, param
from week02_render.ops import ALLOC, END, INDEX, RANGE, STORE, load, loop
from week03_loops.library import cast
from week03_loops.ops import REDUCE, ReduceArg, reduce
from week05_06_memory.machine import BALANCE, detect
from week05_06_memory.ops import kind_of
from week05_06_memory.plan import Planner
from week05_06_memory.schedule import (
    Hoist,
    Join,
    Kind,
    Stage,
    Stream,
    apply,
    from_json,
    to_json,
)

MACHINE = replace(detect(), vector_bytes=32, vector_registers=16, l1=32 << 10, l2=1 << 20)
SMALL = {"l1": 256, "l2": 1 << 10, "l3": 4 << 10}


def transposed(rows, columns):
    """p0[j, i] = p1[i, j]."""
    i, j = loop(0, rows), loop(1, columns)
    return END(STORE(place(0, (columns, rows), j, i), load(place(1, (rows, columns), i, j))), i, j)


BODIES = {
    "copy": copy(17, 13),
    "transposed": transposed(17, 13),
    "sum": total(131),
    "maximum": total(67, MAX),
    "rows": row_sums(17, 29),
    "triangle": row_sums(13, 13, bound=lambda i: ADD(i, number(1))),
    "product": product(13, 17, 37),
    "row by matrix": product(1, 29, 37),
    "matrix by column": product(37, 29, 1),
    "columns": column_sums(17, 29),
    "running": running(17),
    "overwritten": overwritten(5, 17),
    "nothing": copy(0, 3),
    "one": copy(1, 1),
    "scalar": STORE(param(0, float32, ()), load(place(1, (1,), number(0)))),
}


def planned(body, machine=MACHINE):
    return Planner(body, machine).run()


def steps_of(body, kind, machine=MACHINE):
    return [p.step for p in planned(body, machine).steps if isinstance(p.step, kind)]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("width", BALANCE)
def test_the_meaning_stays(name, width):
    body = BODIES[name]
    machine = replace(MACHINE, vector_bytes=width, **SMALL)
    agree(body, planned(body, machine).body)


def test_a_scatter_keeps_its_order():
    body = scattered(11, 13)
    arrays = [values(11, 13), abs(values(11)).astype("int64") % 4]
    agree(body, planned(body).body, arrays=arrays)


@pytest.mark.parametrize("name", BODIES)
def test_a_plan_is_a_schedule_that_can_be_replayed(name):
    body = BODIES[name]
    plan = planned(body)
    steps = from_json(json.loads(json.dumps(to_json(p.step for p in plan.steps))))
    assert apply(body, steps) is plan.body
    assert all(p.because for p in plan.steps)
    assert planned(body).steps == plan.steps


def test_where_there_is_nothing_to_choose_nothing_is_done():
    for name in ("one", "scalar"):
        assert planned(BODIES[name]).steps == []
    assert all(step.range for step in steps_of(BODIES["running"], Kind))


def test_a_product_has_a_tile_of_vectors_in_registers():
    body = product(256, 256, 256)
    tile = {kind_of(r): [] for r in planned(body).body.src[1:]}
    for item in planned(body).body.src[1:]:
        tile[kind_of(item)].append(item.arg.size)
    assert tile["vector"] == [MACHINE.vector_bytes // 4]
    assert 8 <= math.prod(tile["unroll"]) < MACHINE.vector_registers
    (packed,) = steps_of(body, Stage)
    assert packed.slot == 2


def test_what_fits_the_first_cache_is_not_packed():
    assert not steps_of(product(16, 16, 16), Stage)


def test_sums_of_columns_stay_in_the_cache():
    """A matrix that no cache holds is read as it lies."""
    j, k = loop(0, 1024), loop(1, 1024)
    term = load(place(1, (1024, 1024), k, j))
    from_rows = END(STORE(place(0, (1024,), j), reduce(ADD, term, 0, k)), j)
    assert steps_of(from_rows, Hoist)
    assert not steps_of(row_sums(1024, 1024), Hoist)


def matrix_by_vector(rows, columns, dtype):
    """p0[i] = Σ p1[k]·p2[i, k]."""
    i, k = loop(0, rows), loop(1, columns)
    element = load(INDEX(param(2, dtype, (rows, columns)), i, k))
    term = MUL(load(place(1, (columns,), k)), cast(element, float32))
    return END(STORE(place(0, (rows,), i), reduce(ADD, term, 0, k)), i)


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_a_matrix_that_comes_from_memory_is_read_row_by_row(dtype):
    """One that a cache holds is read several rows at a time, for the sake of the vector."""
    for rows, expected in ((64, True), (4096, False)):
        machine = replace(MACHINE, abreast=MACHINE.apart)
        body = planned(matrix_by_vector(rows, 2048, dtype), machine).body
        copied = {r.arg.id for r in body.toposort() if r.op is RANGE and kind_of(r) == "unroll"}
        of_rows = [r for r in body.src[1:] if r.arg.id in copied]
        assert bool(of_rows) is expected


def test_results_larger_than_the_caches_are_streamed():
    large = replace(MACHINE, l3=2 << 20)
    assert steps_of(copy(1024, 1024), Stream, large)
    assert not steps_of(copy(1024), Stream, large)
    assert not steps_of(column_sums(1024, 1024), Stream, large)


def test_temporaries_are_small():
    """What is packed fits a cache."""
    found = planned(product(512, 512, 512)).body
    held = [n for n in found.toposort() if n.op is ALLOC]
    assert held
    assert all(n.size * 4 <= MACHINE.l2 for n in held)


def columns_by_columns(rows, width, columns):
    """p0[i, j] = Σₖ p1[k, i]·p2[k, j]."""
    i, j, k = loop(0, width), loop(1, columns), loop(2, rows)
    left, right = place(1, (rows, width), k, i), place(2, (rows, columns), k, j)
    value = make(REDUCE, (MUL(load(left), load(right)), k), ReduceArg(ADD, 0))
    return END(STORE(place(0, (width, columns), i, j), value), i, j)


def test_rows_that_drive_each_other_out_of_the_cache_are_turned_at_once():
    """1024 rows that lie 4 KiB apart share 32 of the 2048 sets of the second cache."""
    machine = replace(MACHINE, vector_bytes=64, vector_registers=32, datapath=32, ways=8)
    turned = [
        s for s in steps_of(columns_by_columns(1024, 1024, 512), Stage, machine) if s.slot == 1
    ]
    assert turned == [Stage(1, None, (1, 0))]
    for rows, width, drive in ((1024, 1024, True), (1024, 1000, False), (200, 1024, False)):
        found = planned(columns_by_columns(rows, width, 512), machine).steps
        reasons = [p.because for p in found if isinstance(p.step, Stage) and p.step.slot == 1]
        assert any("stay in the cache" in reason for reason in reasons) is drive


def turned_of(*sizes):
    return [s for s in steps_of(columns_by_columns(*sizes), Stage) if s.at is None]


def test_columns_that_are_read_often_are_turned_at_once():
    (done,) = turned_of(2048, 704, 256)
    assert done == Stage(1, None, (1, 0))
    assert not turned_of(2048, 64, 256), "the second cache holds all of it"
    assert not turned_of(64, 2816, 256), "the first cache holds a line of each row"
    assert not turned_of(2048, 704, 32), "read once or twice"


def test_turned_rows_keep_the_meaning():
    machine = replace(MACHINE, **SMALL, ways=2)
    body = columns_by_columns(37, 64, 48)
    assert Stage(1, None, (1, 0)) in steps_of(body, Stage, machine)
    agree(body, planned(body, machine).body)


def test_of_two_operands_down_their_columns_one_alone_can_be_packed_once():
    """Σ over (8, 256) of p1[a, b, i]·p2[a, b, j]: the vector is j and not the sum."""
    i, j, a, b = loop(0, 704), loop(1, 256), loop(2, 8), loop(3, 256)
    left, right = place(1, (8, 256, 704), a, b, i), place(2, (8, 256, 256), a, b, j)
    value = make(REDUCE, (MUL(load(left), load(right)), a, b), ReduceArg(ADD, 0))
    body = END(STORE(place(0, (704, 256), i, j), value), i, j)
    machine = replace(MACHINE, vector_bytes=64, vector_registers=32, datapath=32)
    kinds = [kind_of(r) for r in planned(body, machine).body.src[1:]]
    assert kinds.count("vector") == 1


def test_loops_of_a_sum_that_lie_as_one_are_one():
    i, a, b = loop(0, 37), loop(1, 8), loop(2, 16)
    value = make(REDUCE, (load(place(1, (37, 8, 16), i, a, b)), a, b), ReduceArg(ADD, 0))
    body = END(STORE(place(0, (37,), i), value), i)
    assert [(s.outer, s.inner) for s in steps_of(body, Join)] == [(1, 2)]
    agree(body, planned(body).body)
