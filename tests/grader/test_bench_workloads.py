"""Workloads: programs, libraries and right answers agree, and wrong results are refused."""

import csv
import io
import math

import numpy as np
import pytest

from grader.bench.contenders import LIBRARIES, AbsentError
from grader.bench.contractions import attention, conv, gemm
from grader.bench.odd import odd
from grader.bench.rows import ELEMENTWISE, reduction, softmax
from grader.bench.suites import SUITES, llm84, scaling, week5
from grader.weeks import evaluate
from week01_uops.error_model import Bounded
from week03_loops.error_model import evaluate_with_error

ODD = {workload.name: workload for workload in odd()}
INTERPRETED = [
    name for name, w in ODD.items() if max(n.size for n in w.program.toposort()) < 1 << 20
]


def result_of(name, workload, inputs):
    contender = LIBRARIES[name](workload, inputs)
    contender.take()
    contender.run(1)
    return contender.result()


@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.parametrize("case", ODD)
def test_the_libraries_give_the_right_answer(case, name):
    workload = ODD[case]
    inputs = workload.draw(1)
    answer = workload.answer(inputs)
    try:
        got = result_of(name, workload, inputs)
    except AbsentError as absent:
        pytest.skip(str(absent))
    assert answer.fault(got) == ""


@pytest.mark.parametrize("case", INTERPRETED)
def test_the_program_means_the_right_answer(case):
    workload = ODD[case]
    inputs = workload.draw(2)
    (got,) = evaluate(workload.program, dict(enumerate(inputs)))
    assert workload.answer(inputs).fault(np.asarray(got)) == ""


@pytest.mark.parametrize("case", [name for name in INTERPRETED if ODD[name].bytes > 4000])
def test_what_is_allowed_is_of_the_size_of_the_a_priori_bound(case):
    workload = ODD[case]
    inputs = workload.draw(3)
    (bound,) = evaluate_with_error(workload.program, dict(enumerate(inputs)))
    assert isinstance(bound, Bounded)
    allowed = workload.answer(inputs).allowed
    assert np.median(allowed) <= 20 * np.median(bound.error)


@pytest.mark.parametrize(
    "workload",
    [
        gemm("gemm", 64, 64, 256),
        softmax("softmax", (16, 256)),
        reduction("sum", "sum", (64, 64), 1),
        ELEMENTWISE["gelu"]("gelu", (4096,)),
        conv("conv", (2, 8, 9, 9), 8, 3, padding=1),
        attention("attention", (1, 2, 32, 16), causal=True),
    ],
    ids=lambda workload: workload.name,
)
def test_cheap_results_are_wrong(workload):
    inputs = workload.draw(0)
    answer = workload.answer(inputs)
    right = answer.exact.astype(np.float32)
    assert answer.fault(right) == ""
    for wrong in (np.zeros_like(right), np.full_like(right, right.mean()), right * np.nan):
        assert "are wrong" in answer.fault(wrong)
    halves = [x.astype(np.float16).astype(np.float64) for x in inputs]
    lower = np.asarray(workload.exact(*halves), np.float32)
    assert answer.fault(lower), "the inputs were rounded to half precision"
    assert answer.fault(workload.answer(workload.draw(1)).exact.astype(np.float32))


def test_other_shapes_and_dtypes_are_wrong():
    workload = gemm("gemm", 2, 3, 4)
    answer = workload.answer(workload.draw(0))
    assert "expected float32[2, 3], got float32[3, 2]" in answer.fault(np.zeros((3, 2), np.float32))
    assert "got float64[2, 3]" in answer.fault(answer.exact)


def test_what_a_result_needs():
    product = gemm("gemm", 5, 7, 11)
    assert (product.flops, product.bytes) == (2 * 5 * 7 * 11, 4 * (55 + 77 + 35))
    full, causal = (attention("a", (1, 1, 8, 4), causal=c) for c in (False, True))
    pairs = 8 * 9 / 2
    assert causal.flops == pytest.approx(attention("a", (1, 1, 8, 4)).flops * pairs / 64, rel=0.1)
    assert causal.flops < full.flops


def test_draws_follow_from_seed_and_name():
    one, two = gemm("one", 2, 2, 2), gemm("two", 2, 2, 2)
    same = [np.array_equal(a, b) for a, b in zip(one.draw(0), one.draw(0), strict=True)]
    assert all(same)
    assert not np.array_equal(one.draw(0)[0], one.draw(1)[0])
    assert not np.array_equal(one.draw(0)[0], two.draw(0)[0])


def test_suites_have_distinct_names():
    for suite in (*SUITES.values(), odd):
        names = [workload.name for workload in suite()]
        assert len(names) == len(set(names))
    assert len(week5()) == 40
    assert {name.partition(".")[0] for name in (w.name for w in scaling())} == {
        "gemm",
        "softmax",
        "attention",
    }


LLM = """
case;shapes
matmul.tinyllama.kv_proj.s32;1,32,2048 2048,256
matmul.qwen.down_proj.s512;1,512,18944 18944,3584
rmsnorm.qwen.s128;1,128,3584 3584
softmax.qwen.s32;1,28,32,32
silu_mul.tinyllama.s512;1,512,5632 1,512,5632
sdpa.qwen.s512;1,28,512,128 1,4,512,128 1,4,512,128
naive_attn.tinyllama.s128;1,32,128,64 1,32,128,64 1,32,128,64
matmul_add.tinyllama.o_proj.s32;1,32,2048 2048,2048 1,32,2048
silu_mul_matmul.qwen.s32;1,32,18944 1,32,18944 18944,3584
"""


def test_llm84():
    found = {workload.name: workload for workload in llm84()}
    assert len(found) == 84
    for row in csv.DictReader(io.StringIO(LLM.strip()), delimiter=";"):
        shapes = [tuple(map(int, words.split(","))) for words in row["shapes"].split()]
        assert list(found[row["case"]].shapes) == shapes
    causal = found["sdpa.tinyllama.s32"].program
    assert any(node.dtype.name == "bool" for node in causal.toposort())
    assert math.prod(found["matmul.qwen.q_proj.s32"].shape) == 32 * 3584
