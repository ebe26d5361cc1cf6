"""Masks on places become where something is stored."""

import numpy as np
import pytest

from week01_uops.dtypes import bool_, float32, int64
from week01_uops.node import make
from week01_uops.ops import ADD, CMPLT, CMPNE, MUL, WHERE, param, program
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, BUFFER, END, INDEX, LOAD, STORE, StorageArg, load, loop
from week02_render.runtime import load as loaded
from week03_loops import library as lib
from week03_loops.ops import expand
from week05_06_memory.compiler import COMPILER, REFERENCE
from week05_06_memory.overwrite import overwrite

ROWS, COLUMNS = 5, 7
P, Q = param(0, float32, (ROWS, COLUMNS)), param(1, float32, (COLUMNS,))
AT = load(param(2, int64, ()))
I, J = loop(0, ROWS), loop(1, COLUMNS)
HERE = INDEX(P, I, J)
NEW = load(INDEX(Q, J))
ELSEWHERE = CMPNE(I, AT)
IS_HERE = CMPNE(ELSEWHERE, True)


def body(value):
    return END(STORE(HERE, value), I, J)


def stored(made):
    return next(n for n in made.toposort() if n.op is STORE)


@pytest.mark.parametrize(
    "value",
    [WHERE(IS_HERE, NEW, load(HERE)), WHERE(ELSEWHERE, load(HERE), NEW)],
    ids=["here", "elsewhere"],
)
def test_one_row_is_stored(value):
    trace = Trace()
    made = overwrite(body(value), trace)
    assert stored(made).src == (INDEX(P, AT, J), NEW)
    assert I not in made.src
    assert sorted(r.arg.size for r in made.src[1:]) == [1, COLUMNS]
    assert trace.fired["overwrite"] == 1
    assert overwrite(made, Trace()) is made


def test_other_conditions_decide_whether_it_is_stored():
    allowed = load(INDEX(param(3, bool_, (ROWS,)), I))
    made = overwrite(body(WHERE(MUL(IS_HERE, allowed), NEW, load(HERE))), Trace())
    assert stored(made).src[0] is INDEX(P, AT, J)
    (test,) = [r for r in made.src[1:] if r.arg.size == 1]
    assert param(3, bool_, (ROWS,)) in test.toposort()


@pytest.mark.parametrize(
    "value",
    [
        WHERE(CMPLT(I, AT), NEW, load(HERE)),
        WHERE(IS_HERE, NEW, load(INDEX(P, J, I))),
        WHERE(IS_HERE, load(INDEX(P, I, ADD(J, -1))), load(HERE)),
        WHERE(IS_HERE, NEW, NEW),
        ADD(WHERE(IS_HERE, NEW, load(HERE)), NEW),
    ],
    ids=["many rows", "another place", "reads others", "not the old", "not a mask"],
)
def test_what_is_left_alone(value):
    assert overwrite(body(value), Trace()) is body(value)


def cache_program():
    """A BUFFER whose row at a position is exchanged, returned whole."""
    buffer = make(BUFFER, (), StorageArg(0, float32, (ROWS, COLUMNS)))
    row, at = param(0, float32, (COLUMNS,)), param(1, int64, ())
    mask = lib.unsqueeze(lib.eq(lib.arange(ROWS), at), 1)
    changed = lib.where(mask, expand(row, (ROWS, COLUMNS)), LOAD(buffer))
    return program(AFTER(buffer, STORE(buffer, changed)))


def test_a_cache_keeps_its_other_rows():
    run = loaded(REFERENCE.compile(cache_program(), "c"), cache_program()).run
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    for position in (3, 0, ROWS, 4, -1, 3):
        row = np.full(COLUMNS, 10 + position, np.float32)
        if 0 <= position < ROWS:
            expected[position] = row
        (found,) = run([row, np.asarray(position, np.int64)])
        np.testing.assert_array_equal(found, expected)


def test_no_kernel_loops_over_the_rows_that_stay():
    made = COMPILER.run(cache_program(), until="loop")
    stores = [n for n in made.toposort() if n.op is STORE and n.src[0].op is INDEX]
    assert any(n.src[0].src[1].op is LOAD for n in stores)
