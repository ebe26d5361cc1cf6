"""Which values are stored before a write, and which kernels a write waits for instead."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from week01_uops.dtypes import float32
from week01_uops.node import make
from week01_uops.ops import ADD, CALL, MUL, param, program
from week01_uops.rewrite import Trace
from week02_render.kernels import split_kernels, store_outputs
from week02_render.ops import AFTER, ALLOC, BUFFER, LOAD, STORE, StorageArg, storage_of
from week02_render.reads import await_reads, settle_reads
from week03_loops import library as lib
from week03_loops.ops import FLIP, MOVEMENT, flip, permute, reshape, shrink
from week04_fusion.compiler import REFERENCE as WEEK4
from week04_fusion.evaluate import evaluate
from week09_10_autodiff.compiler import REFERENCE

X = param(0, float32, (4, 4))


def buffer(slot=0, shape=(4, 4)):
    return make(BUFFER, (), StorageArg(slot, float32, shape))


def done(*effects):
    """A value that waits for effects."""
    return AFTER(param(1, float32, ()), *effects)


def settled(whole):
    trace = Trace()
    for step in (await_reads(MOVEMENT), store_outputs, settle_reads(MOVEMENT), split_kernels):
        whole = step(whole, trace)
    return whole


def copies(whole):
    """The storages that hold a value that was stored first."""
    return [n for n in settled(whole).toposort() if n.op is ALLOC]


def written_last(whole, place):
    """The names of the kernels that come before the one that writes a place, in order."""
    order = [n for n in settled(whole).toposort() if n.op is CALL]
    writers = [k for k, n in enumerate(order) if storage_of(n.src[1]) is place]
    assert len(writers) == 1
    return len(order[: writers[0]])


def agrees(whole, calls=3):
    """Every step and every compiler gives what the program means, BUFFERs included."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((4, 4)).astype(np.float32), np.float32(1)]
    start = {
        n.arg.slot: rng.standard_normal(n.shape).astype(np.float32)
        for n in whole.toposort()
        if n.op is BUFFER
    }
    wanted = {slot: array.copy() for slot, array in start.items()}
    outputs = [evaluate(whole, inputs, state=wanted) for _ in range(calls)]
    forms = [settled(whole), WEEK4.pipeline.run(whole), REFERENCE.pipeline.run(whole)]
    for form in forms:
        state = {slot: array.copy() for slot, array in start.items()}
        for want in outputs:
            for a, b in zip(evaluate(form, inputs, state=state), want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5)
        for slot, array in wanted.items():
            np.testing.assert_allclose(state[slot], array, rtol=1e-5, err_msg=f"buffer {slot}")


def test_a_write_waits_for_the_other_readers_and_nothing_is_stored():
    b = buffer()
    old = LOAD(b)
    whole = program(MUL(old, X), done(STORE(b, ADD(old, X))))
    assert copies(whole) == []
    assert written_last(whole, b) == 1
    agrees(whole)


def test_the_order_of_the_outputs_does_not_matter():
    b = buffer()
    old = LOAD(b)
    whole = program(done(STORE(b, ADD(old, X))), MUL(old, X))
    assert copies(whole) == []
    assert written_last(whole, b) == 1
    agrees(whole)


def test_a_reader_that_needs_what_is_written_reads_a_copy():
    b = buffer()
    old = LOAD(b)
    new = AFTER(b, STORE(b, ADD(old, X)))
    whole = program(MUL(old, LOAD(new)))
    assert len(copies(whole)) == 1
    agrees(whole)


@pytest.mark.parametrize(
    "value",
    [
        lambda old: lib.matmul(old, old),
        lambda old: permute(old, (1, 0)),
        lambda old: flip(old, (0,)),
        lambda old: ADD(old, lib.reduce_sum(old, 0)),
    ],
    ids=["product", "transpose", "flip", "sum"],
)
def test_a_write_that_reads_other_elements_reads_a_copy(value):
    b = buffer()
    whole = program(done(STORE(b, value(LOAD(b)))))
    assert len(copies(whole)) == 1
    agrees(whole)


def test_elements_are_replaced_in_place_through_equal_moves_only():
    b = buffer(0, (16,))
    square = reshape(b, (4, 4))
    assert copies(program(done(STORE(square, ADD(LOAD(square), X))))) == []
    flipped = make(FLIP, (b,), (0,))
    whole = program(done(STORE(flipped, ADD(LOAD(b), reshape(X, (16,))))))
    assert len(copies(whole)) == 1
    agrees(whole)


def test_a_part_is_replaced_in_place():
    b = buffer()
    part = shrink(b, [(1, 3), (0, 4)])
    whole = program(done(STORE(part, MUL(LOAD(part), 2.0))))
    agrees(whole)
    assert copies(whole) == []


def test_two_storages_that_are_exchanged_need_one_copy():
    a, b = buffer(0), buffer(1)
    old_a, old_b = LOAD(a), LOAD(b)
    first = STORE(AFTER(a, old_a), old_b)
    second = STORE(AFTER(b, old_b), old_a)
    whole = program(done(first, second))
    assert len(copies(whole)) == 1
    agrees(whole)


def test_three_storages_in_a_circle():
    places = [buffer(k) for k in range(3)]
    old = [LOAD(p) for p in places]
    effects = [
        STORE(AFTER(p, v), old[k - 1]) for k, (p, v) in enumerate(zip(places, old, strict=True))
    ]
    whole = program(done(*effects))
    assert len(copies(whole)) == 1
    agrees(whole)


def test_moments_and_parameter_depend_on_each_other_and_none_is_stored():
    """p reads the old moments: its kernel comes before those that replace them."""
    p, m = buffer(0), buffer(1)
    old_p, old_m = LOAD(p), LOAD(m)
    moment = ADD(MUL(old_m, 0.5), X)
    effects = [STORE(AFTER(m, old_m), moment), STORE(AFTER(p, old_p), ADD(old_p, moment))]
    whole = program(done(*effects))
    assert copies(whole) == []
    assert written_last(whole, m) == 1
    agrees(whole)


def test_an_awaited_value_that_reads_nothing_that_changes_is_not_stored():
    whole = program(AFTER(X, MUL(X, 2.0)))
    assert copies(whole) == []
    assert len([n for n in settled(whole).toposort() if n.op is CALL]) == 1


def test_repeated_writes_keep_their_order():
    b = buffer()
    old = LOAD(b)
    once = AFTER(b, STORE(b, ADD(old, X)))
    twice = AFTER(once, STORE(AFTER(once, old), MUL(LOAD(once), 2.0)))
    whole = program(LOAD(twice), MUL(old, X))
    assert copies(whole) == []
    agrees(whole)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_orders_of_reads_and_writes(data):
    """Reads come before the writes that depend on them, whatever is fused with what."""
    places = [buffer(k) for k in range(3)]
    values, reads = [X], {k: [] for k in range(3)}
    effects = []
    for _ in range(data.draw(st.integers(3, 9))):
        slot, step = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 4))
        first, second = (values[data.draw(st.integers(0, len(values) - 1))] for _ in range(2))
        if step == 0:
            effects.append(STORE(AFTER(places[slot], *reads[slot]), ADD(first, 0.5)))
            places[slot] = AFTER(places[slot], effects[-1])
        elif step == 1:
            reads[slot].append(LOAD(places[slot]))
            values.append(reads[slot][-1])
        elif step == 2:
            values.append(flip(first, (0,)))
        else:
            values.append(ADD(first, MUL(second, 0.5)))
    agrees(program(values[-1], values[len(values) // 2], done(*effects, values[0])), calls=2)
