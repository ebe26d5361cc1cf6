"""Shrinking: small, well typed, deterministic, bounded, and failing in the same way."""

import pytest

from grader.case import normal
from grader.shrink import Budget, shrink, weight
from grader.smaller import smaller
from grader.structure import count, size
from grader.verdict import SpecFailure, Verdict
from grader.weeks import read
from tests.grader.compilers import Rewriting, drop, judge
from week01_uops.interchange import write

LONG = normal("""
    a = PARAM : {"slot": 4, "dtype": "int32", "shape": [7, 12]}
    b = PARAM : {"slot": 9, "dtype": "int32", "shape": [7, 12]}
    c = CONST : {"value": 77, "dtype": "int32"}
    d = ADD a b
    e = MUL d c
    f = FLOORMOD e c
    g = MAX f a
    h = FLOORDIV g d
    k = CMPLT h e
    w = WHERE k h a
    return h w e
    """)
MATRIX = normal("""
    a = PARAM : {"slot": 0, "dtype": "float32", "shape": [6, 10]}
    t = PERMUTE a : [1, 0]
    m = MUL t t
    e = EXP2 m
    s = REDUCE e : {"op": "ADD", "axes": 1}
    n = NEG s
    return n s
    """)


def shrunk(compiler, text, check="simplifies", week=1, **arguments):
    judged = judge(compiler, week)
    with pytest.raises(SpecFailure) as caught:
        judged.check(check, text, **arguments)
    smaller(judged, caught.value)
    return caught.value


def test_one_op_is_left():
    found = shrunk(drop("FLOORMOD"), LONG, at_most=3)
    program = read(found.evidence.shrunk, 1)
    assert size(program) <= 3
    assert count(program)["FLOORMOD"] == 1
    assert max(node.size for node in program.toposort()) == 1


def test_the_shrunk_program_fails_in_the_same_way():
    found = shrunk(drop("FLOORMOD"), LONG)
    with pytest.raises(SpecFailure) as caught:
        judge(drop("FLOORMOD")).check(
            found.evidence.shrunk_check, found.evidence.shrunk, **found.evidence.shrunk_arguments
        )
    assert caught.value.verdict is Verdict.WRONG


def test_deterministic():
    first = shrunk(drop("MUL"), LONG).evidence.shrunk
    assert shrunk(drop("MUL"), LONG).evidence.shrunk == first


def test_another_fault_is_not_followed():
    def change(node):
        if node.op.name == "FLOORMOD":
            return node.src[0]
        if node.op.name == "RETURN" and len(node.toposort()) < 6:
            raise ZeroDivisionError
        return node

    found = shrunk(Rewriting(change), LONG)
    assert found.verdict is Verdict.WRONG
    assert size(read(found.evidence.shrunk, 1)) >= 5


def test_a_fault_of_the_reference_shrinks_too():
    def change(node):
        if node.op.name == "CMPLT":
            raise KeyError("no rule")
        return node

    found = shrunk(Rewriting(change), LONG)
    assert found.verdict is Verdict.GRADER
    assert size(read(found.evidence.shrunk, 1)) == 2


def test_shapes_of_movement_ops_shrink():
    found = shrunk(drop("NEG"), MATRIX, week=3)
    program = read(found.evidence.shrunk, 3)
    assert count(program)["NEG"] == 1
    assert size(program) == 2
    assert max(node.size for node in program.toposort()) == 1


def test_movement_op_stays_where_it_matters():
    text = MATRIX.replace("return n s", "return t").replace("[6, 10]", "[6, 6]")
    found = shrunk(drop("PERMUTE"), text, week=3)
    program = read(found.evidence.shrunk, 3)
    assert count(program) == {"PARAM": 1, "PERMUTE": 1, "RETURN": 1}
    assert program.src[0].shape == (2, 2)


def test_given_inputs_stay_where_they_are_needed():
    def change(node):
        if node.op.name == "CMPNE" and not node.src[0].shape:
            return node.op(node.src[0], node.src[0])
        return node

    text = """
        x = PARAM : {"slot": 0, "dtype": "int64", "shape": []}
        y = PARAM : {"slot": 1, "dtype": "int64", "shape": []}
        u = ADD x x
        n = CMPNE u u
        d = CMPNE x y
        return n d
        """
    found = shrunk(Rewriting(change), text, inputs={0: 5, 1: 6})
    assert size(read(found.evidence.shrunk, 1)) <= 3


def test_bounds_are_not_shrunk():
    assert shrunk(Rewriting(), LONG, at_most=1).evidence.shrunk is None


def test_tries_are_bounded():
    tried = []

    def fails(text):
        tried.append(text)
        return True

    program = read(LONG, 1)
    found = shrink(program, fails, Budget(seconds=60, tries=3))
    assert len(tried) == 3
    assert weight(found) < weight(program)


def test_time_is_bounded():
    program = read(LONG, 1)
    assert shrink(program, lambda text: True, Budget(seconds=0, tries=10**6)) is program


def test_every_candidate_is_a_program():
    program = read(MATRIX, 3)

    def fails(text):
        assert write(read(text, 3)) == text
        return "EXP2" in text

    found = shrink(program, fails, Budget(seconds=60, tries=10**4))
    assert count(found) == {"PARAM": 1, "EXP2": 1, "RETURN": 1}
