"""parse → format → parse is the identity, in text and in JSON; the canonical form is one."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from week01_uops import dtypes
from week01_uops.constant import Constant, constant
from week01_uops.interchange import from_json, listing, read, to_json, write
from week01_uops.node import CONST, const
from week01_uops.ops import ADD, CALL, ELEMENTWISE, MUL, NEG, RETURN, CallArg, param, program
from week02_render.ops import KEEP, OUTPUT, StorageArg
from week04_fusion.ops import OPS

EXAMPLE = """\
uops 1
# C = A @ B, 256 x 256
a  = PARAM                : {"slot": 0, "dtype": "float32", "shape": [256, 256]}
b  = PARAM                : {"slot": 1, "dtype": "float32", "shape": [256, 256]}
at = PERMUTE a            : [1, 0]
a3 = RESHAPE at           : [256, 256, 1]
b3 = RESHAPE b            : [256, 1, 256]
m  = MUL a3 b3
c  = REDUCE m             : {"axes": 1, "op": "ADD"}
n  = NEG c                # dead
return c a
"""
CANONICAL = """\
uops 1
%0 = PARAM : {"slot": 0, "dtype": "float32", "shape": [256, 256]}
%1 = PERMUTE %0 : [1, 0]
%2 = RESHAPE %1 : [256, 256, 1]
%3 = PARAM : {"slot": 1, "dtype": "float32", "shape": [256, 256]}
%4 = RESHAPE %3 : [256, 1, 256]
%5 = MUL %2 %4
%6 = REDUCE %5 : {"op": "ADD", "axes": 1}
return %6 %0
"""
EVERY_OP = """\
uops 1
p = PARAM : {"slot": 0, "dtype": "int8", "shape": [], "range": [-3, 4]}
x = PARAM : {"slot": 1, "dtype": "float32", "shape": [2, 3]}
b = BUFFER : {"slot": 0, "dtype": "float32", "shape": [2, 3]}
a = ALLOC : {"slot": 0, "dtype": "float32", "shape": [2, 3]}
g = ALLOC : {"slot": 1, "dtype": "float32", "shape": [2, 3], "addrspace": "LOCAL"}
h = CMPNE p p
s = STORE b x h
t = STORE g x
i = INDEX b p
l = LOAD b
m = LOAD i h
n = LOAD i h m
f = FLIP l : [1]
d = PAD f : [[1, 2], [0, 0]]
e = SHRINK d : [[0, 2], [1, 2]]
o = EXPAND e : [2, 3]
r = RANGE : {"id": 0, "size": 3}
q = RANGE p : {"id": 1, "size": 3}
u = STORE a o
v = END u r q
c = CAST r : "float32"
z = STAGE c r
y = STAGE o : {"addrspace": "REG"}
w = REDUCE n : {"op": "MAX", "axes": 0}
j = CALL w p : {"name": "é \\" \\\\ \\u0001 # \\ud800"}
k = CALL o
A = AFTER b s t v
B = CAST h : "bool"
C = CONST : {"value": -0, "dtype": "float64"}
D = CONST : {"value": -128, "dtype": "int8"}
return A z y l n j k B C D
"""


def twice(text):
    first = read(text, ops=OPS)
    assert read(write(first), ops=OPS) is first
    assert write(read(write(first), ops=OPS)) == write(first)
    twin = to_json(first)
    assert from_json(twin, ops=OPS) is first
    assert from_json(json.dumps(twin), ops=OPS) is first
    assert from_json(json.dumps(twin).encode(), ops=OPS) is first
    return first


def test_example():
    assert write(twice(EXAMPLE)) == CANONICAL
    assert write(twice(EXAMPLE.replace("\n", " \t\r\n"))) == CANONICAL
    assert write(twice(EXAMPLE.encode())) == CANONICAL


def test_every_op():
    found = {node.op.name for node in twice(EVERY_OP).toposort()}
    elementwise = {op.name for op in ELEMENTWISE}
    assert {op.name for op in OPS} - found <= elementwise | {"RESHAPE", "PERMUTE"}


def test_the_same_output_twice():
    text = 'uops 1\na = CONST : {"value": 1.0, "dtype": "float32"}\nreturn a a'
    assert write(twice(text)).splitlines()[1:] == [
        '%0 = CONST : {"value": 1, "dtype": "float32"}',
        "return %0 %0",
    ]


def test_argument_of_call():
    x = param(0, dtypes.int32)
    none, empty, named = (CALL(x, x, arg=arg) for arg in (None, {}, {"name": "f"}))
    assert listing(program(none, empty, named)) == [
        '%0 = PARAM : {"slot": 0, "dtype": "int32", "shape": []}',
        "%1 = CALL %0 %0",
        "%2 = CALL %0 %0 : {}",
        '%3 = CALL %0 %0 : {"name": "f"}',
        "return %1 %2 %3",
    ]
    assert none.arg is None
    assert named.arg == CallArg("f")
    twice(write(program(none, empty, named)))


def test_internal_ops_are_printed():
    kept = KEEP(MUL(param(0, dtypes.float32), param(1, dtypes.float32)))
    out = OUTPUT(arg=StorageArg(0, dtypes.float32, (2,)))
    assert listing(program(kept, out))[-3:] == [
        "%3 = KEEP %2",
        '%4 = OUTPUT : {"slot": 0, "dtype": "float32", "shape": [2]}',
        "return %3 %4",
    ]


def test_a_node_that_is_no_program():
    x = param(0, dtypes.int32)
    assert listing(NEG(x))[1:] == ["%1 = NEG %0", "return %1"]
    assert listing(NEG(x), {x: "x", NEG(x): "%0"})[1:] == ["%0 = NEG x", "return %0"]
    assert listing(ADD(NEG(x), x), {x: "%0"})[1:] == ["%1 = NEG %0", "%2 = ADD %1 %0", "return %2"]


def test_deep_chain():
    node = param(0, dtypes.float32)
    for _ in range(110_000):
        node = NEG(node)
    twice(write(RETURN(node)))


@pytest.mark.parametrize("dtype", dtypes.INTEGERS, ids=str)
def test_extreme_integers(dtype):
    twice(write(program(const(dtype.min, dtype), const(dtype.max, dtype))))


def one(value, dtype):
    return write(program(const(value, dtype))).splitlines()[1]


def test_floats_are_spelled_shortest():
    spelled = {
        0.1: "0.1", 1.0: "1", -2.5: "-2.5", 1e20: "100000000000000000000", 1e21: "1e+21",
        1.5e-6: "0.0000015", 1e-7: "1e-7", -1.25e-10: "-1.25e-10", 5e-324: "5e-324",
        1.7976931348623157e308: "1.7976931348623157e+308", -0.0: "-0",
        float("inf"): '"inf"', float("-inf"): '"-inf"', float("nan"): '"nan"',
    }  # fmt: skip
    for value, text in spelled.items():
        assert one(value, dtypes.float64) == f'%0 = CONST : {{"value": {text}, "dtype": "float64"}}'
    assert '"value": 0.1,' in one(0.1, dtypes.float16)
    assert '"value": 65500,' in one(65504.0, dtypes.float16)
    assert '"value": 0.01563,' in one(2.0**-6, dtypes.float16)  # not 0.015625
    assert '"value": 1.85e+19,' not in one(2.0**64, dtypes.bfloat16)
    assert '"value": 18500000000000000000,' in one(2.0**64, dtypes.bfloat16)  # not 1.845e19
    assert '"value": 1.2621775e-29,' in one(2.0**-96, dtypes.float32)  # not 1.26217745e-29


def digits(line):
    number = line.split('"value": ')[1].split(",")[0].partition("e")[0]
    return len(number.replace("-", "").replace(".", "").strip("0"))


def shorter(value, dtype, count):
    """Whether some decimal of `count` digits reads back as `value`."""
    exponent = np.floor(np.log10(abs(value)))
    unit = 10.0 ** (exponent - count + 1)
    lowest = int(abs(value) / unit) - 1
    return any(
        dtype.round(float(f"{lowest + k}e{int(exponent) - count + 1}")) == abs(value)
        for k in range(4)
    )


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_every_small_float_is_shortest(dtype):
    infinity = dtype.numpy.type(np.inf).view(np.uint16)
    values = np.arange(1, infinity, 7, dtype=np.uint16).view(dtype.numpy).astype(float)
    for value in values.tolist():
        line = one(value, dtype)
        assert CONST(arg=json.loads(line.partition(": ")[2])).arg == Constant(value, dtype)
        assert digits(line) == 1 or not shorter(value, dtype, digits(line) - 1)


@settings(max_examples=500, deadline=None)
@given(st.floats(width=32), st.floats())
def test_floats_round_trip(single, double):
    for value, dtype in ((single, dtypes.float32), (double, dtypes.float64)):
        wanted = constant(value, dtype)
        assert (
            CONST(arg=json.loads(one(value, dtype).partition(": ")[2])).arg == wanted or value == 0
        )
        assert read(f"uops 1\n{one(value, dtype)}\nreturn %0", ops=OPS).src[0].arg == wanted


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_spelled_as_python_finds_them(value):
    text = one(value, dtypes.float64).split('"value": ')[1].split(",")[0]
    assert float(text) == value
    assert digits(one(value, dtypes.float64)) == digits(f'"value": {value!r},')


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(categories=None)))
def test_strings_round_trip(name):
    x = param(0, dtypes.int32)
    call = program(CALL(x, x, arg=CallArg(name)))
    assert read(write(call).encode(), ops=OPS) is call
