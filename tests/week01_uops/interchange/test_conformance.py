"""The conformance programs are read as they declare: the types of outputs, or the errors."""

import json
import re
from pathlib import Path

import pytest

from week01_uops.args import later_keys
from week01_uops.calls import inline
from week01_uops.interchange import ReadErrors, from_json, read, to_json, write
from week01_uops.ops import parameters
from week01_uops.rewrite import Trace
from week04_fusion.ops import OPS

ROOT = Path(__file__).parents[3] / "grader" / "conformance"


def declared(path, key):
    text = path.read_bytes().decode("utf-8", "replace")
    return re.findall(rf"^# {key}: (.*?)\r?$", text, re.MULTILINE)


ALL = sorted(ROOT.glob("week*/*/*.uop"))
FILES = [path for path in ALL if not declared(path, "grad")]
DERIVED = [path for path in ALL if declared(path, "grad")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_declaration(path):
    (week,) = map(int, declared(path, "week"))
    expected = [
        f"{kind.removeprefix('error ')} {at}"
        for kind, at in zip(declared(path, "expect"), declared(path, "at"), strict=False)
    ]
    try:
        program = read(path.read_bytes(), ops=OPS, week=week)
    except ReadErrors as errors:
        program, found = None, [f"{d.code} {d.line}:{d.col}" for d in errors.diagnostics]
    assert path.parent.name == ("wrong" if program is None else "right")
    if program is None:
        assert found == expected
        return
    assert declared(path, "expect") == ["values"]
    assert path.parent.name == "right"
    types = [json.loads(value) for value in declared(path, r"type \d+")]
    assert types == [[out.dtype.name, list(out.shape)] for out in program.src]
    assert read(write(program), ops=OPS) is program
    assert from_json(to_json(program), ops=OPS) is program
    assert week == max(map(first_week, program.toposort()))


@pytest.mark.parametrize("path", DERIVED, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_to_derive_can_be_read(path):
    """What is declared is of the verb `grad`; what is wrong there is no fault of the text."""
    program = read(path.read_bytes(), ops=OPS, week=int(declared(path, "week")[0]))
    if path.parent.name == "wrong":
        assert declared(path, "expect") == ["error E416"]
        return
    known = parameters(inline(program, Trace()))
    params = [known[int(slot)] for slot in declared(path, "grad")[0].split(",")]
    types = [json.loads(value) for value in declared(path, r"type \d+")]
    assert types == [[p.dtype.name, list(p.shape)] for p in params]


def first_week(node):
    """The first week whose programs may contain a node: that of its op, or of a key."""
    return max([node.op.week, *[week for _, week in later_keys(node.arg)]])


def test_every_op_and_dtype_is_covered():
    right = [read(path.read_bytes(), ops=OPS) for path in FILES if path.parent.name == "right"]
    nodes = {node for program in right for node in program.toposort()}
    assert {op for op in OPS if not op.internal} <= {node.op for node in nodes}
    assert len({node.dtype for node in nodes}) == 14
