"""A RANGE closed inside a loop over the same RANGE hides the outer one, as a variable does."""

import numpy as np

from projects.uopc.checking import Checker
from week01_uops.dtypes import float16, float32
from week01_uops.interchange import read
from week01_uops.ops import ADD, param, program
from week01_uops.passes import verifier
from week02_render.runtime import load
from week03_loops.ops import reduce
from week04_fusion.compiler import COMPILER, REFERENCE
from week04_fusion.evaluate import evaluate
from week04_fusion.ops import OPS

BY_HAND = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4, 3]}
o = ALLOC : {"slot": 0, "dtype": "float32", "shape": [4]}
i = RANGE : {"id": 0, "size": 4}
j = RANGE : {"id": 1, "size": 3}
p = INDEX x i j
v = LOAD p
s = REDUCE v i : {"op": "ADD", "axes": 0}
t = ADD v s
u = REDUCE t j : {"op": "ADD", "axes": 0}
q = INDEX o i
w = STORE q u
e = END w i
r = AFTER o e
return r
"""


def check(whole, array):
    (expected,) = evaluate(whole, {0: array}, state={})
    COMPILER.run(whole, [verifier, Checker(whole)])
    (got,) = load(REFERENCE.compile(whole, "c"), whole).run({0: array})
    np.testing.assert_array_equal(got, expected)
    return expected


def test_a_range_hidden_by_hand():
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = check(read(BY_HAND, ops=OPS), array)
    np.testing.assert_array_equal(expected, array.sum(1) + array.sum())


def test_a_reduction_inside_another_has_ranges_of_its_own():
    """Σᵢⱼ (xᵢⱼ + Σᵢ xᵢⱼ): the inner sum runs over as many rows as the outer one."""
    for dtype in (float32, float16):
        x = param(0, dtype, (2, 2))
        whole = program(reduce(ADD, ADD(x, reduce(ADD, x, 1)), 2))
        check(whole, np.array([[1, 2], [3, 4]], dtype.numpy))
        ranges = {n for n in COMPILER.run(whole).toposort() if n.op.name == "RANGE"}
        assert len(ranges) == 3
