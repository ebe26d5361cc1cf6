"""Sums of 16-bit floats: taken apart in float32, rounded once."""

import numpy as np
import pytest

from tests.rules import check_rule
from tests.week03_loops.test_counting import I, R, filled, total
from week01_uops.dtypes import bfloat16, float16, float32
from week01_uops.ops import ADD, MAX, MUL, param, program
from week01_uops.rewrite import rewrite
from week02_render.ops import index, load
from week02_render.runtime import load as load_program
from week03_loops.ops import reduce
from week05_06_memory.compiler import REFERENCE
from week05_06_memory.wide import WIDE_SUMS

PROGRAMS = {"wide_sum"}


def element(dtype):
    return load(index(param(0, dtype, (6, 5)), I, R))


@pytest.mark.parametrize("dtype", [float16, bfloat16])
@pytest.mark.parametrize("op", [ADD, MUL])
def test_the_rule_keeps_the_meaning(dtype, op):
    assert check_rule(WIDE_SUMS, "wide_sum", filled(total(element(dtype), R, op=op)))


def test_others_stay():
    assert rewrite(whole := total(element(float16), R, op=MAX), WIDE_SUMS) is whole
    assert rewrite(whole := total(element(float32), R), WIDE_SUMS) is whole


@pytest.mark.parametrize("size", [7, 16, 67, 300])
def test_a_sum_is_rounded_once(size):
    """So it is within half a unit of the exact sum, and a little: float32 adds its own."""
    x = np.random.default_rng(size).standard_normal((size, 64)).astype(np.float16)
    whole = program(reduce(ADD, param(0, float16, x.shape), 1))
    (found,) = load_program(REFERENCE.compile(whole), whole).run([x])
    exact = x.astype(np.float64).sum(0)
    unit = np.spacing(np.abs(exact).astype(np.float16)).astype(np.float64)
    assert (np.abs(found.astype(np.float64) - exact) <= 0.51 * unit).all()
