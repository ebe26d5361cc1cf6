"""Rows that are held where they become an output."""

import numpy as np
import pytest

from projects.uopc.checking import Checker
from week01_uops.closeness import within
from week01_uops.dtypes import float16, float32
from week01_uops.node import UOp, make
from week01_uops.ops import ADD, CAST, EXP2, MUL, RECIP, param, program
from week01_uops.passes import verifier
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, ALLOC, END, INDEX, LOAD, STORE, loop, storage_of
from week02_render.runtime import load
from week03_loops.error_model import evaluate_with_error
from week03_loops.library import layernorm, softmax
from week03_loops.ops import REDUCE, ReduceArg
from week04_fusion.ops import STAGE, stage
from week05_06_memory.compiler import compiler_for
from week05_06_memory.inplace import hold_in_output
from week05_06_memory.machine import detect

MACHINE = detect()
ROWS, LONG = 3, 5000
I, J, K, S = loop(0, ROWS), loop(1, LONG), loop(2, LONG), loop(3, LONG)
OUT, X = param(0, float32, (ROWS, LONG)), param(1, float32, (ROWS, LONG))


def element(place: UOp, *indices: UOp) -> UOp:
    return make(LOAD, (make(INDEX, (place, *indices)),))


def held(row: UOp = I, dtype=float32) -> UOp:
    value = EXP2(element(X, row, S))
    return stage(value if dtype is float32 else CAST(value, arg=dtype), S)


def total(row: UOp) -> UOp:
    return make(REDUCE, (element(row, K), K), ReduceArg(ADD, 0))


def stored(value: UOp, *indices: UOp, out: UOp = OUT, loops=(I, J)) -> UOp:
    return make(END, (make(STORE, (make(INDEX, (out, *(indices or (I, J)))), value)), *loops))


def laid(body: UOp) -> tuple[UOp, int]:
    trace = Trace()
    return hold_in_output(body, MACHINE, trace), trace.fired["inplace"]


def test_a_row_becomes_part_of_the_output():
    row = held()
    after, fired = laid(stored(MUL(element(row, J), RECIP(total(row)))))
    assert fired == 1
    assert not [n for n in after.toposort() if n.op in (STAGE, ALLOC)]
    stores = [n for n in after.toposort() if n.op is STORE]
    assert {storage_of(n.src[0]) for n in stores} == {OUT}
    inner, *outer = after.src
    assert (inner.op, inner.src[1:], outer) == (END, (J,), [I])
    fill = next(n for n in after.toposort() if n.op is AFTER and n.src[1].op is END)
    assert fill.src[1].src[1:] == (S,)


def other_element() -> UOp:
    row = held()
    return stored(ADD(element(row, J), element(row, ADD(MUL(J, -1), LONG - 1))))


def summed_in_the_loop() -> UOp:
    row = held()
    product = MUL(element(row, K), element(X, I, J))
    return stored(ADD(element(row, J), make(REDUCE, (product, K), ReduceArg(ADD, 0))))


def one_row_for_all() -> UOp:
    row = stage(EXP2(element(X, make(MUL, (S, S)), S)), S)
    return stored(MUL(element(row, J), RECIP(total(row))))


def reads_the_output() -> UOp:
    row = held()
    return stored(MUL(element(row, J), ADD(total(row), element(OUT, I, J))))


def another_dtype() -> UOp:
    row = held(dtype=float16)
    return stored(CAST(MUL(element(row, J), RECIP(total(row))), arg=float32))


def short() -> UOp:
    i, j, k, s = loop(0, 9), loop(1, 20), loop(2, 20), loop(3, 20)
    x, out = param(1, float32, (9, 20)), param(0, float32, (9, 20))
    row = stage(EXP2(element(x, i, s)), s)
    sums = make(REDUCE, (element(row, k), k), ReduceArg(ADD, 0))
    return stored(MUL(element(row, j), sums), i, j, out=out, loops=(i, j))


def part_of_the_output() -> UOp:
    row = held()
    wide = param(0, float32, (ROWS, LONG + 1))
    return stored(MUL(element(row, J), RECIP(total(row))), out=wide)


@pytest.mark.parametrize(
    "body",
    [
        other_element,
        summed_in_the_loop,
        one_row_for_all,
        reads_the_output,
        another_dtype,
        short,
        part_of_the_output,
    ],
    ids=lambda make_body: make_body.__name__,
)
def test_what_stays_a_temporary(body):
    before = body()
    assert laid(before) == (before, 0)


@pytest.mark.parametrize("shape", [(1, 4999), (7, 4096), (2, 3, 2048)], ids=str)
@pytest.mark.parametrize(
    "function",
    [softmax, lambda x: softmax(x, 0), layernorm],
    ids=["softmax", "softmax of columns", "layernorm"],
)
def test_whole_programs(shape, function):
    """Checked after every pass, then run."""
    whole = program(function(param(0, float32, shape)))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    compiled = compiler_for(MACHINE).compile(whole, "c", [verifier, Checker(whole)])
    (got,) = load(compiled, whole).run([x])
    (bound,) = evaluate_with_error(whole, [x])
    assert within(bound, got, float32) is None
