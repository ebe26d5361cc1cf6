"""The JSON twin has the text's errors, at the place of the node in its list."""

import json

import pytest

from week01_uops.interchange import Limits, ReadErrors, from_json, read, to_json
from week04_fusion.ops import OPS

A = ["PARAM", [], {"slot": 0, "dtype": "float32", "shape": [2, 3]}]


WRONG_PARAM = ["E311 2", "E310 2", "E308 2", "E307 2"]


def twin(*nodes, returned=(0,)):
    return {"uops": 1, "nodes": [A, *nodes], "return": list(returned)}


def faults(value, **options):
    with pytest.raises(ReadErrors) as caught:
        from_json(value, ops=OPS, **options)
    assert all(found.col == 1 for found in caught.value.diagnostics)
    return [f"{found.code} {found.line}" for found in caught.value.diagnostics]


def test_form():
    text = """uops 1
        a = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 3]}
        b = NEG a
        c = CALL b a
        d = CALL b a : {}
        return b c d a"""
    program = read(text, ops=OPS)
    assert to_json(program) == twin(
        ["NEG", [0], None], ["CALL", [1, 0], None], ["CALL", [1, 0], {}], returned=[1, 2, 3, 0]
    )
    assert from_json(to_json(program), ops=OPS) is program


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["E101 1"]),
        ([], ["E101 1"]),
        ({}, ["E101 1"]),
        ({**twin(), "uops": 2}, ["E102 1"]),
        ({**twin(), "uops": 1.0}, ["E102 1"]),
        ({**twin(), "uops": True}, ["E102 1"]),
        ({**twin(), "name": ""}, ["E104 1"]),
        ({"uops": 1, "return": [0]}, ["E104 1"]),
        ({"uops": 1, "nodes": [A]}, ["E203 1"]),
        (twin(returned=()), ["E106 2"]),
        ({**twin(), "return": 0}, ["E106 2"]),
        (twin(returned=[1]), ["E201 2"]),
        (twin(returned=[-1]), ["E104 2"]),
        (twin(["NEG", [0]]), ["E104 2"]),
        (twin("NEG"), ["E104 2"]),
        (twin(["NEG", [True], None]), ["E104 2"]),
        (twin(["NEG", [1], None], ["NEG", [7], None]), ["E201 2", "E201 3"]),
        (twin(["NOPE", [0], None]), ["E301 2"]),
        (twin(["RETURN", [0], None]), ["E301 2"]),
        (twin(["ADD", [0], 3]), ["E303 2", "E305 2"]),
        (twin(["CAST", [0], None]), ["E304 2"]),
        (twin(["CAST", [0], 1]), ["E306 2"]),
        (twin(["PARAM", [], {"slot": -1, "dtype": "f", "size": 1}]), WRONG_PARAM),
        (twin(["CONST", [], {"value": float("inf"), "dtype": "float32"}]), ["E312 2"]),
        (twin(["CONST", [], {"value": float("nan"), "dtype": "float32"}]), ["E312 2"]),
        (twin(["CAST", [0], "int8"], ["ADD", [0, 1], None], ["NEG", [2], None]), ["E401 3"]),
        (twin(["STORE", [0, 0], None], returned=[1]), ["E413 3"]),
        (twin(["STORE", [0, 0], None], ["AFTER", [0, 1], None], returned=[2]), ["E414 2"]),
        (twin(["RANGE", [], {"id": 0, "size": 2}], returned=[1]), ["E415 3"]),
    ],
)  # fmt: skip
def test_faults(value, expected):
    assert faults(value) == expected


def test_week_and_limits():
    assert faults(twin(["FLIP", [0], [1]]), week=2) == ["E302 2"]
    assert faults(twin(["NEG", [0], None]), limits=Limits(nodes=1)) == ["E501 2"]
    assert faults(twin(), limits=Limits(rank=1)) == ["E502 1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["E105 1"]),
        ("{", ["E105 1"]),
        ("{} {}", ["E105 1"]),
        ('{"uops": 1, "uops": 1}', ["E309 1"]),
        (b'{"uops": "\xff"}', ["E103 1"]),
        ("[" * 100_000, ["E105 1"]),
        (json.dumps(twin(["CONST", [], {"value": float("nan"), "dtype": "float32"}])), ["E105 1"]),
        (json.dumps(twin(["NEG", [0], None])).replace("[0], null", "[0], 1e999"), ["E305 2"]),
    ],
)
def test_text(text, expected):
    assert faults(text) == expected
