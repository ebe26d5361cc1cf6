import gc
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from tests.week02_render.by_hand import Launch, elementwise, joined, loaded, out
from week01_uops.dtypes import bfloat16, bool_, float32, int32
from week01_uops.interface import Artifact
from week01_uops.ops import ADD, CALL, CMPLT, MUL, NEG, param, program
from week02_render.arguments import Signature, TensorType
from week02_render.buffers import aligned_empty, is_dense
from week02_render.ops import AFTER, LOAD, STORE, WORKSPACE
from week02_render.render import render_c
from week02_render.runtime import load

N = 16
X = np.arange(N, dtype=np.float32)


def negation(dtype=float32, size=N):
    body = elementwise(NEG, size, (dtype,), dtype)
    return joined({0: param(0, dtype, (size,))}, [Launch(body, (0,))])


@pytest.fixture(scope="module")
def negate():
    return loaded(negation())


def test_signature_of_any_level():
    tensor = program(
        ADD(param(2, float32, (N,)), param(0, float32, ())), CMPLT(param(0, float32), 1.0)
    )
    assert Signature.of(tensor) == Signature(
        {0: TensorType(float32, ()), 2: TensorType(float32, (N,))},
        (TensorType(float32, (N,)), TensorType(bool_, ())),
    )
    loop_level = Signature.of(negation())
    assert loop_level.inputs == {0: TensorType(float32, (N,))}


def test_run_takes_sequences_mappings_and_artifacts(negate):
    assert np.array_equal(negate.run([X])[0], -X)
    assert np.array_equal(negate.run({0: X, 7: "not used"})[0], -X)
    again = load(Artifact(render_c(negation())), negation())
    assert np.array_equal(again.run([X])[0], -X)


def test_aligned_arrays_are_used_in_place(negate):
    x = aligned_empty((N,), float32)
    x[...] = X
    call = negate.bind([x])
    assert call.inputs[0] is x
    x[...] = 3
    call()
    assert np.array_equal(call.outputs[0], np.full(N, -3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.repeat(X, 2)[::2],
        lambda: np.frombuffer(bytes(1) + X.tobytes(), np.uint8)[1:].view(np.float32),
        lambda: X.tolist(),
        lambda: np.broadcast_to(np.float32(2), (N,)),
    ],
    ids=["strided", "unaligned", "list", "broadcast"],
)
def test_other_arrays_are_copied(negate, make):
    value = make()
    assert np.array_equal(negate.run([value])[0], -np.asarray(value, np.float32))


def test_read_only_inputs_are_fine(negate):
    x = X.copy()
    x.flags.writeable = False
    assert np.array_equal(negate.run([x])[0], -X)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ([], ValueError, r"input 0: expected float32\[16\], got nothing"),
        ([None], ValueError, r"input 0: expected float32\[16\], got nothing"),
        ([X[:3]], ValueError, r"input 0: expected float32\[16\], got the shape \[3\]"),
        ([X.astype(np.float64)], TypeError, "input 0: expected float32, got float64"),
        ([X.astype(">f4")], TypeError, "input 0: expected float32, got >f4"),
        ([["a"] * N], TypeError, "input 0: "),
        ([object()], TypeError, "input 0: "),
    ],
)
def test_wrong_inputs_are_named(negate, inputs, error, message):
    with pytest.raises(error, match=message):
        negate.run(inputs)


@pytest.mark.parametrize("value", [[1.5] * N, [2**40] * N, [None] * N])
def test_numbers_that_do_not_fit_are_refused(value):
    with pytest.raises(TypeError, match="input 0: "):
        loaded(negation(int32)).run([value])


def test_outputs_may_be_given(negate):
    result = aligned_empty((N,), float32)
    (given,) = negate.run([X], out=[result])
    assert given is result
    assert np.array_equal(result, -X)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "expected 1 output arrays, got 0"),
        ([np.zeros(2 * N, np.float32)[::2]], "output 0: expected a writable contiguous"),
        (
            [np.zeros((2, 8), np.float32)],
            r"output 0: expected float32\[16\], got the shape \[2, 8\]",
        ),
    ],
)
def test_wrong_outputs_are_named(negate, results, message):
    with pytest.raises(ValueError, match=message):
        negate.run([X], out=results)


def test_outputs_lie_apart(negate):
    both = aligned_empty((N,), float32)
    both[...] = X
    with pytest.raises(ValueError, match="output 0: expected an array apart from input 0"):
        negate.run([both], out=[both])
    body = elementwise(NEG, N, (float32,), float32)
    twice = loaded(joined({0: param(0, float32, (N,))}, [Launch(body, (0,)), Launch(body, (0,))]))
    with pytest.raises(ValueError, match="output 1: expected an array apart from output 0"):
        twice.run([X], out=[both, both])


def test_results_are_aligned(negate):
    assert all(is_dense(negate.run([X])[0]) for _ in range(20))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (5, 7)])
def test_aligned_empty(shape):
    for dtype in (float32, bfloat16, bool_):
        array = aligned_empty(shape, dtype)
        assert array.shape == shape
        assert array.dtype == dtype.numpy
        assert is_dense(array)


def test_torch_tensors_in_and_out():
    torch = pytest.importorskip("torch")
    for dtype, name in ((float32, torch.float32), (bfloat16, torch.bfloat16)):
        negate = loaded(negation(dtype))
        x = torch.arange(N, dtype=name, requires_grad=True)
        call = negate.bind([x])
        call()
        assert np.array_equal(call.outputs[0].astype(np.float32), -X)
        result = torch.empty(1024, dtype=name)
        start = -result.data_ptr() % 64 // result.element_size()
        result = result[start : start + N]
        negate.run([x[::1]], out=[result])
        assert torch.equal(result, -x)
    assert np.array_equal(
        loaded(negation()).run([torch.arange(2 * N, dtype=torch.float32)[::2]])[0], -2 * X
    )
    with pytest.raises(TypeError, match="input 0: expected float32, got float64"):
        loaded(negation()).run([torch.zeros(N, dtype=torch.float64)])
    with pytest.raises(TypeError, match="expected a tensor on the CPU"):
        loaded(negation()).run([torch.zeros(N, device="meta")])


def test_torch_is_not_imported():
    code = "import sys, week02_render.runtime; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_bfloat16_arrays():
    x = X.astype(ml_dtypes.bfloat16)
    assert np.array_equal(loaded(negation(bfloat16)).run([x])[0], -x)


class Exchanged:
    """An array of a library that only speaks DLPack."""

    def __dlpack__(self, **options):
        return X.__dlpack__(**options)

    def __dlpack_device__(self):
        return X.__dlpack_device__()


def test_dlpack(negate):
    assert np.array_equal(negate.run([Exchanged()])[0], -X)


def squares_through_workspace(size):
    """(−x)·(−x), with −x in the workspace."""
    scratch = WORKSPACE(arg={"offset": 0, "dtype": float32, "shape": (size,)})
    place, x = out(0, float32, (size,)), param(0, float32, (size,))
    first = CALL(elementwise(NEG, size, (float32,), float32), scratch, x)
    square = elementwise(lambda a: MUL(a, a), size, (float32,), float32)
    return program(AFTER(place, CALL(square, place, AFTER(scratch, first))))


def test_each_thread_has_its_workspace():
    size = 1 << 16
    both = loaded(squares_through_workspace(size))
    failures = []

    def work(k):
        x = np.full(size, k, np.float32)
        call = both.bind([x])
        for _ in range(50):
            call()
            if not (call.outputs[0] == k * k).all():
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


PARALLEL = """\
void program(void *const *inputs, void *const *outputs) {
    const float *x = inputs[0];
    float *y = outputs[0];
#pragma omp parallel for
    for (int i = 0; i < 16; i++) y[i] = FACTOR * x[i];
}
"""


def test_objects_are_closed_and_their_threads_do_not_mind():
    def mapped():
        with open("/proc/self/maps") as file:
            return sum("/uops-" in line for line in file)

    gc.collect()
    before = mapped()
    for k in range(20):
        parallel = load(PARALLEL.replace("FACTOR", f"{k}.0f"), negation())
        assert np.array_equal(parallel.run([X])[0], k * X)
        del parallel
    gc.collect()
    assert mapped() == before


def test_a_bound_call_keeps_its_program():
    call = loaded(negation()).bind([X])
    gc.collect()
    call()
    assert np.array_equal(call.outputs[0], -X)


def test_int32_scalars():
    total = STORE(param(0, int32), ADD(LOAD(param(1, int32)), LOAD(param(2, int32))))
    whole = joined({0: param(0, int32), 1: param(1, int32)}, [Launch(total, (0, 1))])
    assert loaded(whole).run([3, 4])[0] == 7
