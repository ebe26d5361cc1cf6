"""BUFFERs in the loaded program's own memory, and in arrays of the caller's."""

import gc

import numpy as np
import pytest

from week01_uops.dtypes import bfloat16, float32, int32
from week01_uops.node import make
from week01_uops.ops import ADD, param, program
from week02_render.arguments import TensorType
from week02_render.buffers import aligned_empty
from week02_render.compiler import REFERENCE
from week02_render.ops import AFTER, BUFFER, LOAD, STORE, StorageArg
from week02_render.runtime import load

N = 32
X = param(0, float32, (N,))


def buffer(slot=0, shape=(N,), dtype=float32):
    return make(BUFFER, (), StorageArg(slot, dtype, shape))


def running_sum(*slots):
    """Each BUFFER becomes itself + x; the result is the last one."""
    effects = []
    for slot in slots:
        place = buffer(slot)
        effects.append(STORE(place, ADD(LOAD(place), X)))
    return program(AFTER(buffer(slots[-1]), *effects))


def compiled(whole):
    return load(REFERENCE.compile(whole, "c"), whole)


@pytest.fixture(scope="module")
def two():
    return running_sum(3, 8)


def filled(value, shape=(N,), dtype=float32):
    array = aligned_empty(shape, dtype)
    array[...] = value
    return array


def test_the_signature_knows_the_buffers(two):
    kind = TensorType(float32, (N,))
    assert compiled(two).signature.buffers == {3: kind, 8: kind}


def test_a_program_that_is_not_bound_keeps_its_own(two):
    run = compiled(two)
    one = filled(1)
    assert np.array_equal(run.run([one])[0], np.full(N, 1))
    assert np.array_equal(run.run([one])[0], np.full(N, 2))
    assert np.array_equal(run.buffer(3), np.full(N, 2))
    run.buffer(8)[...] = 10
    assert np.array_equal(run.run([one])[0], np.full(N, 11))
    assert np.array_equal(compiled(two).run([one])[0], np.full(N, 1))


def test_a_bound_array_is_read_and_written_in_place(two):
    run = compiled(two)
    state = filled(5)
    call = run.bind([filled(1)], buffers={8: state})
    call()
    call()
    assert np.array_equal(state, np.full(N, 7))
    assert np.array_equal(call.outputs[0], state)
    assert np.array_equal(run.buffer(3), np.full(N, 2))
    assert not run.buffer(8).any()


def test_calls_with_different_arrays_take_turns(two):
    run = compiled(two)
    states = [filled(0), filled(100)]
    calls = [run.bind([filled(1)], buffers={8: state, 3: filled(0)}) for state in states]
    for call in (*calls, *calls, calls[0]):
        call()
    run.run([filled(1)])
    assert [state[0] for state in states] == [3, 102]
    assert run.buffer(8)[0] == 1


def test_a_call_may_be_laid_elsewhere(two):
    call = compiled(two).bind([filled(1)], buffers={8: filled(1)})
    call()
    other = filled(50)
    call.set_buffer(8, other)
    call.set_input(0, filled(2))
    before = call.outputs[0]
    call.renew_outputs()
    call()
    assert other[0] == call.outputs[0][0] == 52
    assert before[0] == 2


def test_a_view_keeps_the_program_loaded(two):
    run = compiled(two)
    run.run([filled(4)])
    view = run.buffer(3)
    del run
    gc.collect()
    assert np.array_equal(view, np.full(N, 4))
    view[...] = 1


def test_buffers_of_other_dtypes_and_of_no_axes():
    count, half = buffer(0, (), int32), buffer(1, (3,), bfloat16)
    whole = program(
        AFTER(count, STORE(count, ADD(LOAD(count), 1))),
        AFTER(half, STORE(half, ADD(LOAD(half), 0.5))),
    )
    run = compiled(whole)
    run.run([])
    assert run.buffer(0) == 1
    assert run.buffer(1).tolist() == [0.5] * 3
    state = filled(7, (), int32)
    run.bind([], buffers={0: state})()
    assert state == 8
    assert run.buffer(0) == 1


@pytest.mark.parametrize(
    ("buffers", "error", "message"),
    [
        ({5: filled(0)}, ValueError, "expected BUFFERs of the slots 3, 8, got slot 5"),
        (
            {3: filled(0, (4,))},
            ValueError,
            r"buffer 3: expected float32\[32\], got the shape \[4\]",
        ),
        ({3: [0.0] * N}, TypeError, "buffer 3: expected an array to write to, got list"),
        ({3: filled(0, (N,), int32)}, TypeError, "buffer 3: expected float32, got int32"),
        ({3: np.zeros(2 * N, np.float32)[::2]}, ValueError, "buffer 3: expected a writable"),
        ({3: filled(0, (N + 1,))[1:]}, ValueError, "buffer 3: .* at a multiple of 64 bytes"),
    ],
)
def test_wrong_arrays_are_refused(two, buffers, error, message):
    with pytest.raises(error, match=message):
        compiled(two).bind([filled(1)], buffers=buffers)


def test_a_read_only_array_is_refused(two):
    state = filled(1)
    state.flags.writeable = False
    with pytest.raises(ValueError, match="buffer 3: expected a writable"):
        compiled(two).bind([filled(1)], buffers={3: state})


def test_arrays_lie_apart(two):
    run = compiled(two)
    x, whole = filled(1), filled(0, (2 * N,))
    with pytest.raises(ValueError, match="buffer 8: expected an array apart from input 0"):
        run.bind([x], buffers={8: x})
    with pytest.raises(ValueError, match="buffer 8: expected an array apart from buffer 3"):
        run.bind([x], buffers={3: whole[:N], 8: whole[16 : N + 16]})
    with pytest.raises(ValueError, match="output 0: expected an array apart from buffer 3"):
        run.bind([x], out=[whole[:N]], buffers={3: whole[:N]})
    run.bind([x], buffers={3: whole[:N], 8: whole[N:]})()
    assert np.array_equal(whole, np.ones(2 * N))
