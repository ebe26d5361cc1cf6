import numpy as np
import pytest

from tests.week02_render.by_hand import Launch, elementwise, joined
from week01_uops.dtypes import float32, int32, int64
from week01_uops.node import const
from week01_uops.ops import ADD, CALL, NEG, param, program
from week02_render.ops import AFTER, END, OUTPUT, STORE, WORKSPACE, index, load, loop
from week02_render.render import render_c
from week02_render.runtime import CheckError
from week02_render.sanitize import SanitizerError, run_sanitized
from week02_render.toolchain import BuildError

N = 8
X = np.arange(N, dtype=np.float32)


def negation():
    body = elementwise(NEG, N, (float32,), float32)
    return joined({0: param(0, float32, (N,))}, [Launch(body, (0,), "negate")])


def test_a_good_program_runs():
    whole = negation()
    assert np.array_equal(run_sanitized(render_c(whole), whole, [X])[0], -X)


def test_gaps_workspace_and_empty_outputs():
    scratch = WORKSPACE(arg={"offset": 64, "dtype": float32, "shape": (N,)})
    places = [OUTPUT(arg={"slot": k, "dtype": float32, "shape": (n,)}) for k, n in ((0, N), (1, 0))]
    body = elementwise(NEG, N, (float32,), float32)
    first = CALL(body, scratch, param(2, float32, (N,)))
    whole = program(AFTER(places[0], CALL(body, places[0], AFTER(scratch, first))), places[1])
    results = run_sanitized(render_c(whole), whole, {2: X})
    assert np.array_equal(results[0], X)
    assert results[1].shape == (0,)


def test_a_read_past_the_end():
    whole = negation()
    source = render_c(whole).replace("i0 < 8", "i0 < 9")
    with pytest.raises(SanitizerError) as caught:
        run_sanitized(source, whole, [X])
    text = str(caught.value)
    assert "heap-buffer-overflow" in text or "exit code" in text
    assert ">     7 |         float x0 = p1[i0];" in text


def test_signed_overflow():
    body = elementwise(lambda a: ADD(a, a), N, (int32,), int32)
    whole = joined({0: param(0, int32, (N,))}, [Launch(body, (0,), "double")])
    given = [np.full(N, 2**31 - 1, np.int32)]
    assert np.array_equal(run_sanitized(render_c(whole), whole, given)[0], np.full(N, -2, np.int32))
    source = render_c(whole).replace("(int32_t)((uint32_t)x0 + (uint32_t)x0)", "x0 + x0")
    with pytest.raises(SanitizerError, match="signed integer overflow"):
        run_sanitized(source, whole, given)


def test_a_checked_build_speaks_first():
    i = loop(0, N)
    far = ADD(i, const(1, int64))
    body = END(
        STORE(index(param(0, float32, (N,)), i), load(index(param(1, float32, (N,)), far))), i
    )
    whole = joined({0: param(0, float32, (N,))}, [Launch(body, (0,), "far")])
    with pytest.raises(CheckError, match=r"k0_far: .* index 8 is outside \[0, 8\)"):
        run_sanitized(render_c(whole, checked=True), whole, [X])
    with pytest.raises(SanitizerError):
        run_sanitized(render_c(whole), whole, [X])


def test_a_crash_is_reported():
    whole = negation()
    source = "void program(void *const *inputs, void *const *outputs) { __builtin_trap(); }\n"
    with pytest.raises(SanitizerError, match="the program was stopped"):
        run_sanitized(source, whole, [X])


def test_a_rejected_source(tmp_path, monkeypatch):
    monkeypatch.setenv("UOPS_CACHE", str(tmp_path))
    with pytest.raises(BuildError, match="line 1"):
        run_sanitized("int x = ;\n", negation(), [X])
