"""The oracle says which elements the format leaves open, and no more."""

import numpy as np
import pytest

from grader import draws
from grader.compare import first_difference
from grader.neighbours import has_neighbours
from grader.oracle import expected
from grader.weeks import ROOT, read
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


PROGRAMS = ROOT / "week03_loops" / "programs"


@pytest.mark.parametrize("name", ["softmax", "gemm", "layernorm", "sum_rows", "attention"])
@pytest.mark.parametrize("factor", [0.0, 0.999, 1.002])
def test_bounds_leave_no_room_for_wrong_values(name, factor):
    program = read((PROGRAMS / f"{name}.uop").read_text(), 3)
    inputs = draws.draw(program, draws.generator(0, name), special=False)
    found = expected(program, inputs)
    got = [(array * factor).astype(array.dtype) for array in found.values]
    different = first_difference(found.values, got, found.allowed)
    assert different is not None
    assert different.count > (0.25 if factor else 0.95) * different.total


@pytest.mark.parametrize("name", ["softmax", "gemm", "layernorm", "attention", "gelu"])
def test_lower_precision_does_not_pass(name):
    program = read((PROGRAMS / f"{name}.uop").read_text(), 3)
    inputs = draws.draw(program, draws.generator(0, name), special=False)
    found = expected(program, inputs)
    got = [array.astype(np.float16).astype(array.dtype) for array in found.values]
    assert first_difference(found.values, got, found.allowed) is not None


def test_exact_programs_have_no_room():
    text = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [3]}
two = CONST : {"value": 2, "dtype": "float32"}
y = MAX x two
n = NEG y
return n
"""
    found = expected(read(text, 1), {0: np.array([1.1, 2.3, -5.7], np.float32)})
    assert not found.allowed[0].any()


def test_long_sums_have_a_priori_bounds():
    """γₙ·Σ|x|, a bound that no sampling of evaluations gives."""
    text = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [1000]}
s = REDUCE x : {"op": "ADD", "axes": 1}
return s
"""
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    allowed = float(expected(read(text, 3), {0: x}).allowed[0])
    assert 1e-9 < allowed < 1.1 * 1000 * 2.0**-24 * float(np.abs(x).sum())


def test_a_product_that_overflows_may_be_fused():
    """inf in two roundings, finite in one: both are right where the product has no other use."""
    text = """uops 1
x = PARAM : {"slot": 0, "dtype": "float32", "shape": [1]}
y = PARAM : {"slot": 1, "dtype": "float32", "shape": [1]}
p = MUL x x
s = ADD p y
return s
"""
    inputs = {0: np.array([1.9e19], np.float32), 1: np.array([-3e38], np.float32)}
    assert np.isnan(expected(read(text, 1), inputs).allowed[0]).all()
    twice = text.replace("return s", "return s p")
    assert not np.isnan(expected(read(twice, 1), inputs).allowed[0]).any()


OVER_RANGES = """uops 1
x = PARAM : {{"slot": 0, "dtype": "float32", "shape": [{rows}, 4]}}
i = RANGE : {{"id": 0, "size": {rows}}}
r = RANGE : {{"id": 1, "size": 4}}
p = INDEX x i r
v = LOAD p
s = REDUCE v r : {{"op": "{op}", "axes": 0}}
t = STAGE s i
return t
"""


def over_ranges(op, *rows):
    x = np.array(rows, np.float32).reshape(-1, 4)
    return expected(read(OVER_RANGES.format(op=op, rows=len(x)), 4), {0: x})


def test_sums_over_ranges_may_be_grouped_in_any_way():
    """1 + 2²⁴ − 2²⁴ + 0.5 is anything from 0 to 2; 1 + 2 + 3 + 4 is 10."""
    found = over_ranges("ADD", [1, 2.0**24, -(2.0**24), 0.5], [1, 2, 3, 4])
    assert found.allowed[0][0] >= 1.5
    assert found.allowed[0][1] < 1e-4


def test_products_over_ranges_may_leave_the_range_on_the_way():
    found = over_ranges("MUL", [1e30, 1e30, 1e-30, 1e-30], [1, 2, 3, 4])
    assert np.isnan(found.allowed[0][0])
    assert found.allowed[0][1] < 1e-3


def test_sums_over_ranges_of_nothing():
    assert over_ranges("ADD").values[0].shape == (0,)
