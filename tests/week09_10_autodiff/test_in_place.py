"""A step of training as one program: parameters and moments are replaced where they lie."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.week07_08_gpu.threaded import MACHINE
from week01_uops.dtypes import float32, int64
from week01_uops.node import const, make
from week01_uops.ops import CALL, param, program
from week01_uops.passes import top_nodes
from week02_render.buffers import aligned_empty
from week02_render.ops import AFTER, BUFFER, LOAD, STORE, WORKSPACE, StorageArg, storage_of
from week02_render.runtime import load
from week03_loops import library as lib
from week05_06_memory.evaluate import evaluate
from week07_08_gpu.compiler import compiler_for
from week09_10_autodiff.compiler import REFERENCE
from week09_10_autodiff.gradients import gradient

BATCH = 8
SIZES = (24, 40, 40, 16)
RATE = np.float32(1e-2)


def buffer(slot, shape):
    return make(BUFFER, (), StorageArg(slot, float32, shape))


def step(sizes=SIZES, clipped=False):
    """The loss of an MLP, and AdamW on its parameters: RETURN(loss, AFTER(0, STORE…))."""
    x, y = param(0, float32, (BATCH, sizes[0])), param(1, float32, (BATCH, sizes[-1]))
    shapes = [s for a, b in itertools.pairwise(sizes) for s in ((a, b), (b,))]
    places = [buffer(k, shape) for k, shape in enumerate(shapes)]
    old = [LOAD(place) for place in places]
    h = x
    for k in range(0, len(old), 2):
        h = lib.add(lib.matmul(h, old[k]), old[k + 1])
        h = h if k + 2 == len(old) else lib.gelu(h)
    loss = lib.mean_square_error(h, y)
    gradients = gradient(loss, old)
    if clipped:
        norm = lib.sqrt(sum_of([lib.reduce_sum(lib.square(g)) for g in gradients]))
        gradients = [
            lib.mul(g, lib.minimum(lib.div(const(0.1, float32), norm), 1.0)) for g in gradients
        ]
    effects = []
    for place, value, g in reversed(list(zip(places, old, gradients, strict=True))):
        effects += adamw(place, value, g, param(2, float32, ()), len(places))
    return program(loss, AFTER(const(0, int64), *effects))


def sum_of(values):
    total = values[0]
    for value in values[1:]:
        total = lib.add(total, value)
    return total


def adamw(place, value, g, rate, count):
    first, second = (buffer(place.arg.slot + k * count, place.shape) for k in (1, 2))
    m = lib.add(lib.mul(LOAD(first), 0.9), lib.mul(g, 0.1))
    v = lib.add(lib.mul(LOAD(second), 0.99), lib.mul(lib.square(g), 0.01))
    update = lib.div(m, lib.add(lib.sqrt(v), 1e-8))
    new = lib.sub(lib.mul(value, 0.999), lib.mul(update, rate))
    return [
        STORE(AFTER(target, LOAD(target)), stored)
        for target, stored in ((first, m), (second, v), (place, new))
    ]


def kernels(whole, compiler=REFERENCE):
    return [n for n in top_nodes(compiler.pipeline.run(whole)) if n.op is CALL]


def workspace(whole, compiler=REFERENCE):
    nodes = top_nodes(compiler.pipeline.run(whole))
    return max(n.arg.offset + n.size * n.dtype.bits // 8 for n in nodes if n.op is WORKSPACE)


def inputs(seed=0, sizes=SIZES):
    rng = np.random.default_rng(seed)
    shapes = ((BATCH, sizes[0]), (BATCH, sizes[-1]))
    return [*(rng.standard_normal(s).astype(np.float32) for s in shapes), RATE]


def starting(signature, count):
    rng = np.random.default_rng(1)
    found = {}
    for slot, kind in signature.buffers.items():
        found[slot] = aligned_empty(kind.shape, kind.dtype)
        found[slot][...] = 0.2 * rng.standard_normal(kind.shape) if slot < count else 0
    return found


@pytest.mark.parametrize("clipped", [False, True], ids=["plain", "clipped"])
def test_every_step_is_what_the_interpreter_does(clipped):
    whole = step(clipped=clipped)
    run = load(REFERENCE.compile(whole), whole)
    places = starting(run.signature, 6)
    state = {slot: array.copy() for slot, array in places.items()}
    call = run.bind(inputs(), buffers=places)
    losses = []
    for _ in range(3):
        call()
        loss, _ = evaluate(whole, inputs(), state=state)
        losses.append(float(loss))
        np.testing.assert_allclose(call.outputs[0], loss, rtol=1e-5)
        for slot, array in places.items():
            np.testing.assert_allclose(array, state[slot], rtol=1e-4, atol=1e-5)
    assert losses[2] < losses[0]


def test_threads_change_nothing():
    whole = step()
    compiler = compiler_for(replace(MACHINE, cores=2))
    run = load(compiler.compile(whole), whole)
    places = starting(run.signature, 6)
    state = {slot: array.copy() for slot, array in places.items()}
    call = run.bind(inputs(), buffers=places)
    call()
    evaluate(whole, inputs(), state=state)
    for slot, array in places.items():
        np.testing.assert_allclose(array, state[slot], rtol=1e-4, atol=1e-5)


def test_each_parameter_has_one_kernel_that_replaces_it_and_its_moments():
    found = [{storage_of(a) for a in call.src[1:]} for call in kernels(step())]
    written = [{n for n in places if n.op is BUFFER and n.arg.slot >= 6} for places in found]
    updates = [places for places in written if places]
    assert len(updates) == 6
    assert all(len(places) == 2 for places in updates)
    assert len(found) <= 14


def test_no_scratch_memory_as_large_as_the_parameters():
    """What remains are activations, although the weights are many times as large."""
    sizes = (64, 512, 512, 16)
    parameters = sum(a * b for a, b in itertools.pairwise(sizes))
    activations = BATCH * sum(sizes)
    assert workspace(step(sizes)) < 4 * 4 * activations < 4 * parameters / 4


def test_a_value_that_needs_all_of_the_old_one_goes_through_a_temporary():
    place = buffer(0, (16, 16))
    old = LOAD(place)
    whole = program(AFTER(const(0, int64), STORE(place, lib.matmul(old, old))))
    run = load(REFERENCE.compile(whole), whole)
    array = aligned_empty((16, 16), float32)
    array[...] = np.random.default_rng(0).standard_normal((16, 16)) / 4
    want = array @ array
    run.bind([], buffers={0: array})()
    np.testing.assert_allclose(array, want, rtol=1e-4, atol=1e-5)


def test_equal_parameters_of_several_layers_share_kernels_in_the_text():
    """Layers of one shape are one C function, called for each."""
    deep = kernels(step((24, 40, 40, 40, 40, 16)))
    bodies = {call.src[0] for call in deep}
    assert len(bodies) < len(deep)
