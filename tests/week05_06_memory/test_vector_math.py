"""EXP2 and LOG2 of float32: within 2 ulp of the truth for every exponent, alike in any lanes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.week05_06_memory.vectors import elementwise, program_of
from week01_uops.dtypes import float32
from week01_uops.ops import EXP2, LOG2, param
from week02_render.ops import END, STORE, index, load, loop
from week02_render.runtime import load as load_program
from week02_render.toolchain import find_toolchain
from week05_06_memory.c_vector import render_vector_c

SIZE = 1 << 21
TRUTH = {EXP2: np.exp2, LOG2: np.log2}
SPECIAL = [
    *(0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 1e30, -1e30),
    *(128.0, 127.99999, 127.5, 129.0, -126.0, -126.5, -127.0, -148.9, -149.0, -149.5, -150.0),
    *(-150.00002, -151.0, -152.0, 1e-45, -1e-45, 3e-39, 1.1754942e-38, 1.1754944e-38, 3.4028235e38),
]


def numbers():
    """Any bits, arguments with finite powers, and numbers about 1, whose logarithms are small."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, SIZE, np.uint32).view(np.float32)
    quarter = SIZE // 4
    x[:quarter] = rng.uniform(-152, 130, quarter)
    x[quarter : 2 * quarter] = rng.uniform(0.5, 2, quarter)
    x[2 * quarter : 2 * quarter + 8192] = 1 + np.arange(-4096, 4096) * 2.0**-24
    x[-len(SPECIAL) :] = SPECIAL
    return x


X = numbers()


def flags(machine):
    chain = find_toolchain()
    return replace(chain, flags=tuple(f.replace("native", machine) for f in chain.flags))


def run(op, width, machine="native"):
    if width > 1:
        body = elementwise(op, SIZE, (float32,), float32, width)
    else:
        i = loop(0, SIZE)
        value = op(load(index(param(1, float32, (SIZE,)), i)))
        body = END(STORE(index(param(0, float32, (SIZE,)), i), value), i)
    whole = program_of(body, X)
    return load_program(render_vector_c(whole), whole, toolchain=flags(machine)).run([X])[0]


@pytest.mark.parametrize("machine", ["native", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("op", TRUTH)
def test_within_two_ulp(op, machine):
    got = run(op, 16, machine).astype(np.float64)
    with np.errstate(all="ignore"):
        truth = TRUTH[op](X.astype(np.float64))
        nearest = truth.astype(np.float32)
        ulp = np.spacing(np.abs(np.where(np.isfinite(nearest), nearest, np.float32(1))))
        good = (np.abs(got - truth) <= 1.9 * ulp) | (got == nearest)
    good |= np.isnan(got) & np.isnan(truth)
    assert good.all(), (X[~good][:5], got[~good][:5], truth[~good][:5])


@pytest.mark.parametrize("op", TRUTH)
def test_a_scalar_is_what_a_lane_is(op):
    scalar = run(op, 1)
    for width in (2, 8, 16, 32):
        assert np.array_equal(run(op, width), scalar, equal_nan=True)
