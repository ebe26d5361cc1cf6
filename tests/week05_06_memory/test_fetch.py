"""Fetch: what the next iteration of a loop reads comes while this one computes."""

import json
import re
from dataclasses import replace

import pytest

from tests.week05_06_memory.bodies import agree, copy, number, place, text
from week01_uops.dtypes import float32
from week01_uops.node import make
from week01_uops.ops import ADD, FLOORDIV, MAX, NEG, param, program
from week02_render.ops import END, STORE, load, loop
from week03_loops.library import layernorm, matmul, softmax
from week03_loops.ops import reduce
from week05_06_memory.arrange import set_kind
from week05_06_memory.compiler import compiler_for
from week05_06_memory.fetch import fetch
from week05_06_memory.machine import detect
from week05_06_memory.nests import ScheduleError
from week05_06_memory.ops import FETCH
from week05_06_memory.schedule import read
from week05_06_memory.split import split

CACHES = {"l1": 32 << 10, "l2": 512 << 10, "l3": 32 << 20, "line": 64}
VECTORS = {"vector_bytes": 32, "vector_registers": 16, "datapath": 32}
AHEAD = {"ahead": 2048, "ahead_written": 2048}
MACHINE = replace(detect(), **VECTORS, **CACHES, **AHEAD)


def centred(rows, columns):
    """p0[i, j] = p1[i, j] − max p1[i, k], for ranges i, j, k."""
    i, j, k = loop(0, rows), loop(1, columns), loop(2, columns)
    x = load(place(1, (rows, columns), i, j))
    largest = reduce(MAX, load(place(1, (rows, columns), i, k)), 0, k)
    return END(STORE(place(0, (rows, columns), i, j), ADD(x, NEG(largest))), i, j)


def source(function, *shapes, machine=MACHINE):
    params = [param(k, float32, shape) for k, shape in enumerate(shapes)]
    return compiler_for(machine).compile(program(function(*params)), "c").source


def test_the_last_pass_asks_for_the_next_row():
    body = centred(4, 64)
    after = fetch(body, 1, 0, 16)
    assert [n.arg.ahead for n in after.toposort() if n.op is FETCH] == [64]
    assert "p1[i0, i1] and 64 ahead" in text(after)
    assert fetch(after, 1, 0, 16) is after
    agree(body, after, set_kind(after, 1, "vector"), fetch(split(body, 0, 2), 1, 3, 16))


def test_once_for_each_line():
    text = source(softmax, (256, 4096))
    inside = text[text.index("fetch_ahead(&p1") :].split("for (")[0]
    assert inside.count("fetch_ahead(") == 4
    assert inside.count("exp2_f32x8(") == 8


@pytest.mark.parametrize(
    ("l3", "ahead", "near", "written", "expected"),
    [
        (4 << 20, 2048, 16385, 2048, {"p0", "p1"}),
        (4 << 20, 16384, 2048, 16385, {"p1"}),
        (4 << 20, 16385, 2048, 2048, {"p0"}),
        (8 << 20, 16385, 2048, 2048, {"p0", "p1"}),
        (8 << 20, 2048, 16385, 2048, {"p0"}),
    ],
)
def test_rows_that_come_by_themselves_are_not_fetched(l3, ahead, near, written, expected):
    machine = replace(MACHINE, l3=l3, ahead=ahead, ahead_near=near, ahead_written=written)
    text = source(softmax, (256, 4096), machine=machine)
    assert set(re.findall(r"fetch_ahead\(&(p\d)", text)) == expected


@pytest.mark.parametrize("function", [softmax, layernorm], ids=["softmax", "layernorm"])
def test_long_rows_from_memory_are_fetched(function):
    assert "fetch_ahead(&p1[i0 * 4096" in source(function, (256, 4096))


@pytest.mark.parametrize(
    ("rows", "columns", "because"),
    [(32, 2048, "a cache holds all"), (65536, 32, "rows are short"), (2, 1 << 20, "rows are long")],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_others_are_not(rows, columns, because):
    assert "fetch_ahead(" not in source(softmax, (rows, columns)), because


def test_what_is_used_often_is_not():
    assert "fetch_ahead(" not in source(lambda x, w: matmul(softmax(x), w), (512, 1024), (1024, 64))


def test_a_checked_build_asks_for_nothing():
    x = param(0, float32, (256, 4096))
    checked = compiler_for(MACHINE).compile(program(softmax(x)), "c", checked=True)
    assert "fetch_ahead(" not in checked.source


def test_refusals():
    body = centred(4, 8)
    with pytest.raises(ScheduleError, match="expected a loop that reads p2, to fetch what it rea"):
        fetch(body, 2, 0, 16)
    with pytest.raises(ScheduleError, match="expected one of the ranges 0, 1, 2, got 7"):
        fetch(body, 1, 7, 16)
    i = loop(0, 8)
    halved = END(STORE(place(0, (8,), i), load(place(1, (4,), make(FLOORDIV, (i, number(2)))))), i)
    with pytest.raises(ScheduleError, match="expected a loop that moves on in p1 by a fixed str"):
        fetch(halved, 1, 0, 16)
    agree(copy(4, 16), fetch(copy(4, 16), 1, 0, 16))


def test_a_schedule_file_may_ask_for_it():
    (steps,) = read(
        json.dumps({"k": [{"step": "fetch", "slot": 1, "range": 0, "line": 16}]})
    ).values()
    body = centred(4, 64)
    agree(body, steps[0].apply(body))
