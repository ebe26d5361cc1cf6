"""Literals and helper functions, as text."""

import math
import re

import numpy as np
import pytest

from tests.week02_render.by_hand import Launch, joined, loaded
from week01_uops import dtypes
from week01_uops.dtypes import ALL, bool_
from week01_uops.node import const
from week01_uops.ops import MUL, param
from week02_render.c_prelude import PRELUDE, helpers
from week02_render.c_types import ATOM, PRODUCT, SUM, UNARY, Term, at, literal
from week02_render.ops import STORE


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.0, dtypes.float32, "1.0f"),
        (-0.5, dtypes.float64, "-0.5"),
        (-0.0, dtypes.float32, "-0.0f"),
        (dtypes.float32.round(0.1), dtypes.float32, "0x1.99999ap-4f"),
        (0.1, dtypes.float64, "0x1.999999999999ap-4"),
        (2.0**-149, dtypes.float32, "0x1p-149f"),
        (math.inf, dtypes.float16, "__builtin_inff()"),
        (-math.inf, dtypes.float64, "-__builtin_inf()"),
        (math.nan, dtypes.bfloat16, '__builtin_nanf("")'),
        (True, bool_, "1"),
        (-128, dtypes.int8, "-128"),
        (-(2**31), dtypes.int32, "-2147483647 - 1"),
        (-(2**63), dtypes.int64, "-9223372036854775807L - 1"),
        (2**64 - 1, dtypes.uint64, "18446744073709551615uL"),
    ],
)
def test_literals(value, dtype, text):
    assert literal(value, dtype).text == text


def test_parentheses():
    total = Term("a + b", SUM)
    assert at(SUM, total) == "a + b"
    assert at(PRODUCT, total) == "(a + b)"
    assert at(ATOM, Term("-1", UNARY)) == "(-1)"


def constants(dtype):
    if dtype is bool_:
        return [False, True]
    if dtype.is_int:
        return [dtype.min, dtype.min + 1, 0, 5, dtype.max - 1, dtype.max]
    least = 2.0 ** (2 - dtype.max_exponent - dtype.precision)
    largest = math.ldexp(2 - 2.0 ** (1 - dtype.precision), dtype.max_exponent)
    values = [0.0, -0.0, 1.0, -1 / 3, math.pi, least, 3 * least, largest, -largest]
    return [*map(dtype.round, values), math.inf, -math.inf, math.nan]


def test_constants_arrive_exactly():
    """Also where an operator stands beside them."""
    cases = [(dtype, value) for dtype in ALL for value in constants(dtype)]
    launches, inputs, arrays = [], {}, {}
    for number, dtype in enumerate(ALL):
        inputs[number] = param(number, dtype)
        arrays[number] = np.ones((), dtype.numpy)
    for dtype, value in cases:
        for term in (const(value, dtype), MUL(param(1, dtype), const(value, dtype))):
            slots = (ALL.index(dtype),)
            launches.append(Launch(STORE(param(0, dtype), term), slots))
    results = loaded(joined(inputs, launches)).run(arrays)
    for k, (dtype, value) in enumerate(cases):
        wanted = np.array(value).astype(dtype.numpy)
        for result in results[2 * k : 2 * k + 2]:
            assert result.tobytes() == wanted.tobytes() or (value != value and result != result)


def test_helpers_bring_what_they_need_and_no_more():
    text = helpers("x = round_bf16(y);")
    assert [name for name in PRELUDE if f" {name}(" in text] == [
        "bits_f32",
        "f32_bits",
        "round_bf16",
    ]
    assert helpers("p0[i0] = x0 * x1;") == ""


def test_every_helper_stands_behind_those_it_names():
    order = list(PRELUDE)
    for position, definition in enumerate(PRELUDE.values()):
        named = [name for name in order if re.search(rf"\b{name}\b", definition)]
        assert max(map(order.index, named)) == position
