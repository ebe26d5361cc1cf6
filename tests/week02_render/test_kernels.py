"""From values to kernels: outputs, awaited values, the split into CALLs, temporaries."""

import numpy as np
import pytest

from week01_uops.dtypes import float32, int32, int64
from week01_uops.node import const, make
from week01_uops.ops import ADD, CALL, MAX, MUL, PARAM, param, program
from week01_uops.rewrite import Trace
from week02_render import kernels
from week02_render.compiler import COMPILER
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    END,
    INDEX,
    LOAD,
    OUTPUT,
    STORE,
    WORKSPACE,
    AllocArg,
    StorageArg,
    loop,
)
from week02_render.reads import await_reads, settle_reads
from week04_fusion.evaluate import evaluate

X = param(0, float32, (4,))
Y = param(1, float32, (4,))


def trace():
    return Trace()


def alloc(slot, shape=(4,), dtype=float32, space=None):
    return make(ALLOC, (), AllocArg(slot, dtype, shape, space))


def buffer(slot=0, shape=(4,)):
    return make(BUFFER, (), StorageArg(slot, float32, shape))


def split(whole):
    for step in (kernels.store_outputs, settle_reads(frozenset()), kernels.split_kernels):
        whole = step(whole, trace())
    return whole


def calls(whole):
    return [node for node in whole.toposort() if node.op is CALL]


def same(before, after, **arrays):
    inputs = {0: np.arange(4, dtype=np.float32), 1: np.full(4, 2, np.float32)}
    a, b = evaluate(before, inputs, state={}), evaluate(after, inputs, state={})
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left, right)


def test_each_output_is_one_kernel():
    before = program(ADD(X, Y), MUL(X, Y))
    after = split(before)
    assert [output.src[0].op for output in after.src] == [OUTPUT, OUTPUT]
    assert len(calls(after)) == 2
    same(before, after)


def test_a_body_sees_its_storage_as_params_what_it_writes_first():
    (call,) = calls(split(program(ADD(Y, X))))
    body, *arguments = call.src
    assert body.op is STORE
    assert body.src[0] is param(0, float32, (4,))
    assert arguments[0].op is OUTPUT
    assert arguments[1:] == [Y, X]
    assert {n.arg.slot for n in body.toposort() if n.op is PARAM} == {0, 1, 2}


def test_equal_kernels_share_one_body():
    whole = split(program(ADD(X, 1.0), ADD(Y, 1.0)))
    first, second = calls(whole)
    assert first.src[0] is second.src[0]


def test_a_parameter_keeps_its_range():
    bounded = param(0, int64, (), (0, 3))
    (call,) = calls(split(program(LOAD(INDEX(param(1, float32, (4,)), bounded)))))
    assert any(n.op is PARAM and n.arg.range == (0, 3) for n in call.src[0].toposort())


def test_kernels_wait_for_what_they_read():
    place = buffer()
    first = STORE(place, ADD(X, Y))
    second = STORE(make(AFTER, (place, first)), MUL(make(AFTER, (place, first)), 2.0))
    before = program(make(AFTER, (place, second)))
    after = split(before)
    same(before, after)
    doubling = next(c for c in calls(after) if any(n.op is MUL for n in c.src[0].toposort()))
    assert doubling.src[1].op is AFTER
    assert doubling.src[1].src[1].op is CALL


def test_an_awaited_value_is_stored_before_it_is_overwritten():
    """Exchange two buffers: each old value is read before the place is written."""
    place = buffer()
    filled = make(AFTER, (place, STORE(place, X)))
    old = MUL(filled, 3.0)
    overwritten = make(AFTER, (place, STORE(make(AFTER, (filled, old)), Y)))
    before = program(old, overwritten)
    same(before, split(before))


def test_a_write_waits_for_what_was_read_though_rules_drop_the_dependence():
    """MAX(old, ∞) is ∞: whoever wants the old value still gets it."""
    place = buffer()
    filled = AFTER(place, STORE(place, X))
    old = LOAD(filled)
    changed = AFTER(filled, STORE(filled, MAX(old, np.inf)))
    whole = program(old, changed)
    compiled = COMPILER.run(whole)
    same(whole, compiled)
    waited = AFTER(*filled.src, old)
    for outputs, places in (((old, changed), {place, waited}), ((changed,), {filled})):
        waiting = await_reads(frozenset())(program(*outputs), trace())
        assert places <= {n.src[0] for n in waiting.toposort() if n.op is STORE}


def test_effects_inside_loops_stay_in_their_kernel():
    i = loop(0, 4)
    place, total = alloc(0), alloc(1, ())
    start = STORE(total, const(0.0, float32))
    inside = make(AFTER, (total, start, i))
    summed = STORE(inside, ADD(LOAD(inside), LOAD(INDEX(X, i))))
    both = make(AFTER, (STORE(INDEX(place, i), LOAD(INDEX(Y, i))), summed))
    end = END(both, i)
    before = program(make(AFTER, (place, end)), make(AFTER, (total, end)))
    after = split(before)
    same(before, after)
    assert len(calls(after)) == 4  # the start, the loop, and a copy to each output


def test_registers_do_not_leave_their_kernel():
    register = alloc(0, (), int32, "REG")
    effect = STORE(register, const(1, int32))
    assert not kernels._is_kernel(effect, set())


@pytest.mark.parametrize(("size", "rounded"), [(0, 64), (1, 64), (64, 64), (65, 128)])
def test_sizes_are_rounded_to_the_alignment(size, rounded):
    assert kernels.aligned(size) == rounded


def test_temporaries_get_places_of_their_own():
    a, b = alloc(0, (20,)), alloc(1, (3,))
    whole = program(
        make(AFTER, (a, STORE(a, make(PARAM, (), X.arg.__class__(0, float32, (20,)))))),
        make(AFTER, (b, STORE(b, make(PARAM, (), X.arg.__class__(1, float32, (3,)))))),
    )
    placed = kernels.place_temporaries(split(whole), trace())
    offsets = sorted(n.arg.offset for n in placed.toposort() if n.op is WORKSPACE)
    assert offsets == [0, 128]


def test_names_say_what_a_kernel_does():
    (call,) = calls(split(program(ADD(X, Y))))
    assert call.arg.name == "add_4"


def accumulation(space, size=4):
    """A sum over a loop in storage of some address space, and its copy to the output."""
    i = loop(0, size)
    total = alloc(0, (), float32, space)
    inside = make(AFTER, (total, STORE(total, const(0.0, float32)), i))
    x = param(0, float32, (size,))
    end = END(STORE(inside, ADD(LOAD(inside), LOAD(INDEX(x, i)))), i)
    return program(make(AFTER, (total, end)))


@pytest.mark.parametrize("space", [None, "REG", "LOCAL"])
def test_storage_that_several_kernels_use_is_global(space):
    before = accumulation(space)
    after = split(before)
    assert all(n.place.space == "MEM" for n in after.toposort() if n.op is ALLOC)
    inputs = {0: np.arange(4, dtype=np.float32)}
    assert evaluate(after, inputs, state={})[0] == evaluate(before, inputs, state={})[0] == 6


@pytest.mark.parametrize(("size", "space"), [(8, "LOCAL"), (20_000, "MEM")])
def test_storage_inside_one_kernel_stays_there_if_it_fits(size, space):
    i, j = loop(0, 3), loop(1, size)
    row, out = alloc(0, (size,), float32, "LOCAL"), alloc(1, (3,))
    x = param(0, float32, (3, size))
    inside = make(AFTER, (row, i))
    filled = END(STORE(INDEX(inside, j), ADD(LOAD(INDEX(x, i, j)), 1.0)), j)
    first = LOAD(INDEX(make(AFTER, (row, filled)), const(0, int64)))
    whole = program(make(AFTER, (out, END(STORE(INDEX(out, i), first), i))))
    spaces = {n.arg.slot: n.place.space for n in split(whole).toposort() if n.op is ALLOC}
    assert spaces[0] == space
    array = np.arange(3 * size, dtype=np.float32).reshape(3, size)
    np.testing.assert_array_equal(evaluate(split(whole), {0: array}, state={})[0], array[:, 0] + 1)
