"""Square roots that are written by logarithms."""

import numpy as np
import pytest

from week01_uops.dtypes import float32, float64
from week01_uops.ops import EXP2, LOG2, MUL, RECIP, param, program
from week01_uops.rewrite import rewrite
from week02_render.runtime import load
from week05_06_memory.compiler import REFERENCE
from week05_06_memory.evaluate import evaluate
from week05_06_memory.ops import SQRT
from week05_06_memory.roots import ROOTS

PROGRAMS = {"square_root"}
VALUES = np.array(
    [0.0, -0.0, 1.0, 2.0, 1e-40, 3e38, np.inf, -1.0, -np.inf, np.nan, 0.3], np.float32
)


@pytest.mark.parametrize("power", [0.5, -0.5])
@pytest.mark.parametrize("dtype", [float32, float64])
def test_a_power_of_one_half_is_a_root(power, dtype):
    x = param(0, dtype, (11,))
    written = EXP2(MUL(LOG2(x), power))
    found = rewrite(written, ROOTS)
    assert SQRT in {node.op for node in found.toposort()}
    assert (RECIP in {node.op for node in found.toposort()}) is (power < 0)
    values = VALUES.astype(dtype.name)
    with np.errstate(all="ignore"):
        (expected,) = evaluate(program(written), [values])
        (got,) = evaluate(program(found), [values])
    close = np.isclose(got, expected, rtol=1e-4, equal_nan=True)
    assert close.all(), values[~close]


def test_other_powers_stay():
    x = param(0, float32, (4,))
    written = EXP2(MUL(LOG2(x), 0.25))
    assert rewrite(written, ROOTS) is written


def test_the_compiler_uses_them():
    x = param(0, float32, (37,))
    whole = program(EXP2(MUL(LOG2(x), 0.5)))
    artifact = REFERENCE.compile(whole, "c")
    assert "log2" not in artifact.source
    values = np.linspace(0, 9, 37, dtype=np.float32)
    (got,) = load(artifact, whole).run([values])
    np.testing.assert_array_equal(got, np.sqrt(values))


@pytest.mark.parametrize("size", [1, 3, 37])
def test_compiled_roots_of_special_values(size):
    x = param(0, float32, (size,))
    whole = program(EXP2(MUL(LOG2(x), -0.5)))
    loaded = load(REFERENCE.compile(whole, "c"), whole)
    for value, root in ((-0.0, np.inf), (0.0, np.inf), (np.inf, 0), (-1.0, np.nan), (4.0, 0.5)):
        (got,) = loaded.run([np.full(size, value, np.float32)])
        np.testing.assert_array_equal(got, np.full(size, root, np.float32))
