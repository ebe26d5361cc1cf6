"""The oracle says which elements the format leaves open, and no more."""

import numpy as np
import pytest

from grader.neighbours import has_neighbours
from grader.oracle import expected
from grader.weeks import read
from tests.grader.compilers import Printing, judge

CAST = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [4]}
i = CAST x : "int8"
one = CONST : {"value": 1, "dtype": "int8"}
y = ADD i one
return y x
"""
RECIP = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
z = CONST : {"value": 0, "dtype": "float32"}
m = MUL x z
r = RECIP m
q = RECIP x
return m r q
"""


def test_casts_out_of_range_are_open():
    inputs = {0: np.array([1.5, 127.9, 128.0, np.nan], np.float32)}
    found = expected(read(CAST, 1), inputs)
    assert list(np.isnan(found.allowed[0])) == [False, False, True, True]
    assert not np.isnan(found.allowed[1]).any()


def test_the_sign_of_a_computed_zero_is_open():
    inputs = {0: np.array([1.0, -2.0, np.inf], np.float32)}
    found = expected(read(RECIP, 1), inputs)
    assert not np.isnan(found.allowed[0]).any()
    assert list(np.isnan(found.allowed[1])) == [True, True, False]
    assert not np.isnan(found.allowed[2]).any()


def test_programs_of_integers_leave_nothing_open():
    program = read('uops 1\nx = PARAM : {"slot": 0, "dtype": "int8", "shape": []}\nreturn x\n', 1)
    assert not has_neighbours(program)


@pytest.mark.parametrize("value", [0, 5, -128])
def test_every_value_of_an_open_element_is_right(value):
    source = f"""
        void program(void *const *in, void *const *out) {{
            const float *x = in[0]; signed char *y = out[0];
            for (int i = 0; i < 4; i++) {{
                float t = __builtin_truncf(x[i]);
                y[i] = t >= -128 && t < 128 ? (signed char)t + 1 : {value};
                ((float *)out[1])[i] = x[i];
            }}
        }}
        """
    judge(Printing(source), 2).runs(CAST, {0: [1.5, -128.0, 1e9, float("nan")]})
    judge(Printing(source), 2).runs(CAST)
