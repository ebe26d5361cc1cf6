"""Whatever the text, a reader answers with a program or with ReadErrors, and soon."""

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.week01_uops.interchange.test_round_trip import EVERY_OP, EXAMPLE
from week01_uops.errors import CODES
from week01_uops.interchange import Limits, ReadErrors, from_json, read, to_json, write
from week04_fusion.ops import OPS

FEW = 2_000
MANY = 100_000
SMALL = Limits(nodes=200, elements=1 << 20)
LINES = [line for text in (EXAMPLE, EVERY_OP) for line in text.splitlines()]
PIECES = (
    *("=", ":", "#", " ", "\t", "\n", "\r", "\0", "%", "a", "b", "return", "uops 1"),
    *("NEG", "CALL", "RETURN", "KERNEL", " END e r", " RANGE", " STORE", " AFTER", " STAGE"),
    *("null", "true", "-1", "0", "12.0", "1e999", "9" * 50, "NaN", '"', "{", "}", "[", "]", ","),
    *("[" * 70, '{"slot": 0}', '"dtype"', '"shape"', '"float16"', '"int64"', "\\u", "\\"),
    *("é", "\ud800", "\ufeff", "\N{LINE SEPARATOR}"),
)

edit = st.tuples(
    st.sampled_from(("insert", "delete", "replace", "copy line", "delete line", "swap lines")),
    st.integers(0, 1 << 16),
    st.integers(0, 40),
    st.one_of(st.sampled_from(PIECES), st.sampled_from(LINES), st.text(max_size=8)),
)


def mutated(text, edits):
    for kind, where, length, piece in edits:
        lines = text.split("\n")
        at, row, other = where % (len(text) + 1), where % len(lines), length % len(lines)
        if kind == "insert":
            text = text[:at] + piece + text[at:]
        elif kind == "delete":
            text = text[:at] + text[at + length :]
        elif kind == "replace":
            text = text[:at] + piece + text[at + len(piece) :]
        else:
            if kind == "copy line":
                lines.insert(other, lines[row])
            elif kind == "delete line":
                del lines[row]
            else:
                lines[row], lines[other] = lines[other], lines[row]
            text = "\n".join(lines)
    return text


def outcome(reader, text):
    """The program, or None after checking the errors."""
    start = time.perf_counter()
    try:
        result = reader(text, ops=OPS, limits=SMALL)
    except ReadErrors as errors:
        result = errors
    assert time.perf_counter() - start < 60
    if not isinstance(result, ReadErrors):
        return result
    assert result.diagnostics
    assert str(result)
    for found in result.diagnostics:
        assert found.code in CODES
        assert found.line >= 1
        assert 1 <= found.col <= len(found.source_line) + 1 or reader is from_json
    return None


def check(text):
    program = outcome(read, text)
    if program is not None:
        assert read(write(program), ops=OPS) is program
        assert from_json(json.dumps(to_json(program)), ops=OPS) is program


programs = st.builds(mutated, st.sampled_from((EXAMPLE, EVERY_OP)), st.lists(edit, max_size=6))
lines = st.builds("\n".join, st.lists(st.sampled_from(LINES), max_size=12)).map("uops 1\n{}".format)
texts = st.one_of(programs, programs, lines, st.builds(mutated, lines, st.lists(edit, max_size=3)))
anything = st.one_of(texts, texts.map(lambda t: t.encode("utf-8", "surrogatepass")), st.binary())

slow = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=FEW, deadline=None, suppress_health_check=slow)
@given(anything)
def test_any_text(text):
    check(text)


@pytest.mark.nightly
@settings(max_examples=MANY, deadline=None, suppress_health_check=slow)
@given(anything)
def test_any_text_at_length(text):
    check(text)


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from(("ADD", "NEG", "CONST", "slot", "dtype", "float32", "shape")),
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)
GOOD = to_json(read(EXAMPLE, ops=OPS))


@st.composite
def twins(draw):
    """The twin of a good program with values put in anywhere."""
    twin = json.loads(json.dumps(GOOD))
    for _ in range(draw(st.integers(0, 3))):
        spot = twin
        while True:
            keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
            key = draw(st.sampled_from(keys))
            if not isinstance(spot[key], (dict, list)) or not spot[key] or draw(st.booleans()):
                spot[key] = draw(values)
                break
            spot = spot[key]
    return twin


@settings(max_examples=FEW // 4, deadline=None, suppress_health_check=slow)
@given(st.one_of(twins(), values))
def test_any_twin(twin):
    outcome(from_json, twin)
    outcome(from_json, json.dumps(twin))


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(), st.binary()))
def test_any_text_of_a_twin(text):
    outcome(from_json, text)


HOSTILE = {
    "open brackets": "a = PARAM : " + "[" * 300_000,
    "nested objects": "a = PARAM : " + '{"a":' * 300_000,
    "brackets and quotes": "a = PARAM : " + "[{" * 50 + '\\"' * 300_000,
    "an integer": 'a = CONST : {"dtype": "float64", "value": ' + "9" * 300_000 + "}",
    "a fraction": 'a = CONST : {"dtype": "float64", "value": 0.' + "9" * 300_000 + "}",
    "an exponent": 'a = CONST : {"dtype": "float64", "value": 1e-' + "9" * 300_000 + "}",
    "a name": "a" * 300_000 + " = NEG " + "b " * 100_000,
    "blanks": " " * 300_000 + "= NEG" + " " * 300_000 + "!",
    "axes": 'a = PARAM : {"slot": 0, "dtype": "int8", "shape": [' + "1," * 300_000 + "1]}",
    "a large size": 'a = PARAM : {"slot": 0, "dtype": "int8", "shape": [0, 9223372036854775807]}',
    "keys": "a = PARAM : {" + ", ".join(f'"{i}": 0' for i in range(30_000)) + "}",
    "bad lines": "=\n" * 100_000,
    "slots": "\n".join(
        [f'p{i} = PARAM : {{"slot": 0, "dtype": "int8", "shape": [{i}]}}' for i in range(20_000)]
        + ["return " + " ".join(f"p{i}" for i in range(20_000))]
    ),
    "ranges": "\n".join(
        ['x0 = CONST : {"dtype": "int64", "value": 0}']
        + [f'r{i} = RANGE : {{"id": {i}, "size": 2}}' for i in range(1, 20_000)]
        + [f"x{i} = ADD x{i - 1} r{i}" for i in range(1, 20_000)]
        + ["return x19999"]
    ),
    "bodies": "\n".join(
        ['a0 = PARAM : {"slot": 0, "dtype": "int8", "shape": []}']
        + [f"a{i} = NEG a{i - 1}" for i in range(1, 20_000)]
        + [f"c{i} = CALL a{i} a0" for i in range(1, 20_000)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_seconds_at_most(name):
    start = time.perf_counter()
    with pytest.raises(ReadErrors) as caught:
        read("uops 1\n" + HOSTILE[name], ops=OPS, limits=Limits(nodes=100_000))
    assert str(caught.value)
    assert time.perf_counter() - start < 60
