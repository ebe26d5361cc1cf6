"""Programs that are not trusted, timed in a process of their own.

What cheats get there is in `test_adversary_cheats.py`.
"""

import numpy as np
import pytest

from grader.bench.apart import LIMITS, Apart, random_numbers
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


@pytest.fixture
def measured():
    """Measure one source: the rounds and the faults."""

    def run(source, workload=WORKLOAD):
        inputs = [aligned_empty(shape, float32) for shape in workload.shapes]
        draws = [(d, workload.answer(d)) for d in (workload.draw(seed) for seed in (0, 1, 2))]
        found = Measurement(
            {"ours": Apart(workload, inputs, source, LIMITS.within(2.0))}, inputs, draws
        )
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
    assert all(r.seconds["ours"] > 1e-6 for r in rounds)


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


def test_the_right_result_is_that_for_the_inputs_as_they_are_by_now():
    inputs = [aligned_empty(shape, float32) for shape in WORKLOAD.shapes]
    drawn = WORKLOAD.draw(0)
    for array, values in zip(inputs, drawn, strict=True):
        array[...] = values
    one = Apart(WORKLOAD, inputs, PRODUCT + RIGHT)
    stale = WORKLOAD.answer(drawn)
    try:
        one.take()
        for _ in range(2):
            one.ready()
            one.run(7)
            assert not one.fault(stale)
            assert "expected" in stale.fault(one.result()), "the inputs had changed"
        assert all(np.array_equal(x, d) for x, d in zip(inputs, drawn, strict=True)), (
            "those of the other contenders have not"
        )
        one.take()
        one._command(1)
        one._changes.clear()
        with pytest.raises(RunError, match="write to input"):
            one.fault(stale)
    finally:
        one.close()


def test_the_harness_draws_the_numbers_that_are_expected():
    """SplitMix64 of state 0, as published with it."""
    found = [int(number) for number in random_numbers(0, 3)]
    assert found == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


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
