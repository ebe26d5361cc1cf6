"""Programs that are not trusted, timed in a process of their own: right ones, and cheats."""

import numpy as np
import pytest

from grader.bench import apart
from grader.bench.apart import Apart
from grader.bench.contractions import gemm
from grader.bench.rows import reduction
from grader.bench.timing import Measurement, Plan
from grader.run_c import RunError
from week01_uops.dtypes import float32
from week02_render.buffers import aligned_empty

SIZE = 64
WORKLOAD = gemm("gemm", SIZE, SIZE, SIZE)
PRODUCT = """
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { N = 64 };
static void product(const float *a, const float *b, float *c) {
    memset(c, 0, N * N * sizeof *c);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) c[i * N + j] += a[i * N + k] * b[k * N + j];
}
"""
RIGHT = "void program(void *const *in, void *const *out) { product(in[0], in[1], out[0]); }"
CHEATS = {
    "nothing": ("void program(void *const *in, void *const *out) {}", "got nan"),
    "crash": (
        "void program(void *const *in, void *const *out) { *(volatile int *)0 = 1; }",
        "SIGSEGV",
    ),
    "exit": ("void program(void *const *in, void *const *out) { exit(0); }", "exit status 0"),
    "first call only": (
        "static int calls; static float kept[N * N];"
        "void program(void *const *in, void *const *out) {"
        "if (!calls++) product(in[0], in[1], kept); memcpy(out[0], kept, sizeof kept); }",
        "expected",
    ),
    "work left for later": (
        "static void *const *i_, *const *o_;"
        "static void *later(void *x) { usleep(200000); product(i_[0], i_[1], o_[0]); return x; }"
        "void program(void *const *in, void *const *out) { i_ = in; o_ = out; pthread_t t;"
        "pthread_create(&t, 0, later, 0); pthread_detach(t); }",
        "got nan",
    ),
    "forged answer": (
        'void program(void *const *in, void *const *out) { if (write(1, "1\\n", 2)) {}'
        "product(in[0], in[1], out[0]); }",
        "instead of being done",
    ),
    "endless": (
        "void program(void *const *in, void *const *out) { for (;;) usleep(1000); }",
        "end",
    ),
}


@pytest.fixture
def measured(monkeypatch):
    """Measure one source: the rounds and the faults."""
    monkeypatch.setattr(apart, "LIMITS", apart.LIMITS.within(2.0))

    def run(source, workload=WORKLOAD):
        inputs = [aligned_empty(shape, float32) for shape in workload.shapes]
        draws = [(d, workload.answer(d)) for d in (workload.draw(seed) for seed in (0, 1, 2))]
        found = Measurement({"ours": Apart(workload, inputs, source)}, inputs, draws)
        try:
            found.calibrate()
            rounds = found.rounds(Plan(rounds=3, budget=20))
        finally:
            found.close()
        return rounds, found.faults

    return run


def test_a_right_program_is_timed(measured):
    rounds, faults = measured(PRODUCT + RIGHT)
    assert not faults
    assert all(1e-6 < r.seconds["ours"] < 0.1 for r in rounds)


def test_a_workspace_is_there(measured):
    source = PRODUCT + (
        "size_t program_workspace(void) { return N * N * sizeof(float); }"
        "void program(void *const *in, void *const *out, void *scratch) {"
        "product(in[0], in[1], scratch); memcpy(out[0], scratch, N * N * sizeof(float)); }"
    )
    assert not measured(source)[1]


def test_one_number_is_a_result(measured):
    source = (
        "void program(void *const *in, void *const *out) { const float *x = in[0]; float s = 0;"
        "for (int i = 0; i < 35; i++) s += x[i]; *(float *)out[0] = s; }"
    )
    assert not measured(source, reduction("sum", "sum", (5, 7), None))[1]


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_seen(measured, name):
    source, says = CHEATS[name]
    _, faults = measured(PRODUCT + source)
    assert says in str(faults["ours"])


def test_no_two_calls_see_the_same_inputs():
    """Whoever remembers results by the inputs' content computes all the same."""
    source = PRODUCT + (
        "static float a[N * N], b[N * N], c[N * N]; static int hits;"
        "void program(void *const *in, void *const *out) {"
        "if (!memcmp(a, in[0], sizeof a) && !memcmp(b, in[1], sizeof b)) hits++;"
        "else product(in[0], in[1], c);"
        "memcpy(a, in[0], sizeof a); memcpy(b, in[1], sizeof b); memcpy(out[0], c, sizeof c);"
        "*(float *)out[0] = (float)hits; }"
    )
    inputs = [aligned_empty(shape, float32) for shape in WORKLOAD.shapes]
    for array, drawn in zip(inputs, WORKLOAD.draw(0), strict=True):
        array[...] = drawn
    one = Apart(WORKLOAD, inputs, source)
    try:
        one.take()
        one.run(50)
        assert one.result()[0, 0] == 0
        assert np.isfinite(one.result()).all()
    finally:
        one.close()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("int program(", "does not compile"),
        ("int other;", "expected an exported function"),
        ("void gone(void); void program(void) { gone(); }", "cannot load the library"),
    ],
)
def test_what_does_not_build_is_said(source, says):
    inputs = [aligned_empty(shape, float32) for shape in WORKLOAD.shapes]
    with pytest.raises(RunError, match=says):
        Apart(WORKLOAD, inputs, source)
