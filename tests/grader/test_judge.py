"""The claims about simplify: each holds where it should, and fails with the right verdict."""

import pytest

from grader.verdict import SpecFailure, Verdict
from tests.grader.compilers import ECHO, Rewriting, drop, judge, judge_argv, judge_python
from week01_uops.dtypes import bool_, int16
from week01_uops.node import const
from week01_uops.ops import MAX, NEG, param, program

ADD = """
    x = PARAM : {"slot": 2, "dtype": "int16", "shape": []}
    z = CONST : {"value": 3, "dtype": "int16"}
    y = ADD x z
    return y
    """
ARRAY = """
    x = PARAM : {"slot": 0, "dtype": "float32", "shape": [2, 3]}
    z = CONST : {"value": 0, "dtype": "float32"}
    y = MUL x z
    return y
    """


def failure(claim, *arguments, **options) -> SpecFailure:
    with pytest.raises(SpecFailure) as caught:
        claim(*arguments, **options)
    return caught.value


def zero_times(node):
    return node.src[1] if node.op.name == "MUL" else node


def test_right_compiler_passes():
    right = judge(Rewriting())
    right.simplifies(ADD, at_most=3, at_most_of={"ADD": 1}, without=["MUL"], to=ADD)
    right.accepts(ARRAY)
    right.keeps(ARRAY, ["MUL"])
    right.settles(ADD)
    right.canonical(ADD)
    right.rejects("x = NEG y\nreturn x", "E2xx", line=2)


def test_order_of_commutative_sources_is_free():
    judge(Rewriting()).simplifies(ADD, to=["return x", ADD.replace("x z", "z x")][1:])


def test_wrong_value():
    found = failure(judge(drop("ADD")).simplifies, ADD)
    assert found.verdict is Verdict.WRONG
    assert found.evidence.difference.count == 1 << 16
    assert "slot 2" in found.sentence
    assert found.evidence.inputs[2].shape == ()


def test_value_wrong_at_one_point_of_65536():
    def change(node):
        wrong = node.op.name == "FLOORDIV" and node.src[1] is const(-1, int16)
        return NEG(MAX(node.src[0], const(-32767, int16))) if wrong else node

    text = ADD.replace('"value": 3', '"value": -1').replace("ADD", "FLOORDIV")
    found = failure(judge(Rewriting(change)).accepts, text)
    assert found.verdict is Verdict.WRONG
    assert found.evidence.difference.count == 1


def test_float_zero_rule_is_caught_by_special_values():
    found = failure(judge(Rewriting(zero_times)).accepts, ARRAY.replace("[2, 3]", "[]"))
    assert found.verdict is Verdict.WRONG
    assert "nan" in found.sentence


def test_keeps_names_the_missing_op():
    text = ADD.replace("int16", "float32").replace('"value": 3', '"value": -0.0')
    found = failure(judge(drop("ADD")).keeps, text, ["ADD"])
    assert found.verdict is Verdict.WRONG
    assert "1 ADD" in found.sentence


def test_bounds():
    assert failure(judge(Rewriting()).simplifies, ADD, at_most=2).verdict is Verdict.BOUND
    assert failure(judge(Rewriting()).simplifies, ADD, without=["ADD"]).verdict is Verdict.BOUND
    found = failure(judge(Rewriting()).simplifies, ADD, to=ADD.replace("3", "4"))
    assert (found.verdict, "4" in found.sentence) == (Verdict.BOUND, True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: program(p.src[0], p.src[0]), "expected 1 output"),
        (lambda p: program(const(True, bool_)), "expected int16"),
        (lambda p: program(param(3, p.src[0].dtype)), "slot 3"),
        (lambda p: program(param(2, p.src[0].dtype, (), (0, 5))), "PARAM of slot 2"),
    ],
)
def test_interface_is_kept(change, says):
    wrong = Rewriting(lambda node: change(node) if node.op.name == "RETURN" else node)
    found = failure(judge(wrong).simplifies, ADD)
    assert (found.verdict, says in found.sentence) == (Verdict.WRONG, True)


def test_param_ranges_are_respected():
    text = """
    x = PARAM : {"slot": 0, "dtype": "int32", "shape": [], "range": [0, 9]}
    n = CONST : {"value": 10, "dtype": "int32"}
    y = FLOORMOD x n
    return y
    """
    judge(drop("FLOORMOD")).simplifies(text, without=["FLOORMOD"])
    wide = text.replace("9]", "10]")
    assert failure(judge(drop("FLOORMOD")).simplifies, wide).verdict is Verdict.WRONG


def test_given_inputs_are_tried():
    text = """
    x = PARAM : {"slot": 0, "dtype": "int64", "shape": []}
    n = CONST : {"value": 123456789, "dtype": "int64"}
    y = CMPNE x n
    return y
    """

    def always(node):
        return const(True, node.dtype) if node.op.name == "CMPNE" else node

    judge(Rewriting(always)).accepts(text)
    found = failure(judge(Rewriting(always)).simplifies, text, inputs={0: 123456789})
    assert found.verdict is Verdict.WRONG


def test_settles():
    def more(node):
        return node.src[0] if node.op.name == "NEG" else node

    one_at_a_time = Rewriting()
    one_at_a_time.simplify = lambda p: program(*[more(output) for output in p.src])
    text = (
        "x = PARAM : " + '{"slot": 0, "dtype": "int8", "shape": []}\ny = NEG x\nz = NEG y\nreturn z'
    )
    assert failure(judge(one_at_a_time).settles, text).verdict is Verdict.BOUND


def test_canonical():
    assert failure(judge_python(ECHO).canonical, ADD).verdict is Verdict.PROTOCOL
    judge(Rewriting()).canonical(ADD)


def test_rejects():
    echo = judge_python(ECHO)
    assert failure(echo.rejects, "return x", "E2").verdict is Verdict.ACCEPTED
    right = judge(Rewriting())
    assert failure(right.rejects, "return x", "E3").verdict is Verdict.WRONG
    assert failure(right.rejects, "return x", "E2", line=1).verdict is Verdict.WRONG
    silent = judge_python("import sys; sys.exit(1)")
    assert failure(silent.rejects, "return x", "E2").verdict is Verdict.PROTOCOL
    talks = judge_python(
        "import sys; print('x'); print('<stdin>:2:8: E201 x', file=sys.stderr); sys.exit(1)"
    )
    assert failure(talks.rejects, "return x", "E2").verdict is Verdict.PROTOCOL


def test_raw_bytes():
    judge(Rewriting()).rejects(b"uops 1\n\xff\n", "E1", raw=True)


@pytest.mark.parametrize(
    ("code", "verdict", "says"),
    [
        ("print('hello')", Verdict.PROTOCOL, "E101"),
        ("pass", Verdict.PROTOCOL, "E101"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe')", Verdict.PROTOCOL, "UTF-8"),
        ("import sys; sys.exit(1)", Verdict.REFUSED, "no word"),
        ("import sys; sys.exit('<stdin>:1:1: E101 no')", Verdict.REFUSED, "E101 no"),
        ("import sys; sys.exit(2)", Verdict.CRASH, "exit status 2"),
        ("raise SystemExit(127)", Verdict.CRASH, "exit status 127"),
        ("import os; os.abort()", Verdict.CRASH, "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", Verdict.CRASH, "SIGSEGV"),
        ("while True: pass", Verdict.TIMEOUT, "0.5 s"),
        ("while True: print('x' * 10**6)", Verdict.OUTPUT, "standard output"),
        ("print('uops 2'); print('return x')", Verdict.PROTOCOL, "E102"),
        ("print('uops 1\\nx = CONST : ' + '[' * 10**5)", Verdict.PROTOCOL, "E105"),
    ],
)
def test_misbehaviour_has_its_own_verdict(code, verdict, says):
    seconds = 0.5 if verdict is Verdict.TIMEOUT else 10.0
    found = failure(judge_python(code, seconds).simplifies, ADD)
    assert found.verdict is verdict
    assert says in found.sentence


def test_missing_executable():
    assert failure(judge_argv(["./gone"]).accepts, ADD).verdict is Verdict.CRASH


def test_what_is_printed_is_never_executed(tmp_path):
    marker = tmp_path / "executed"
    code = f'print(\'__import__("os").system("touch {marker}")\')'
    failure(judge_python(code).simplifies, ADD)
    assert not marker.exists()


def test_a_wrong_test_is_the_graders_fault():
    assert failure(judge(Rewriting()).accepts, "return x").verdict is Verdict.GRADER


def test_a_fault_of_the_reference_is_the_graders():
    def broken(node):
        raise ZeroDivisionError("oops")

    found = failure(judge(Rewriting(broken)).accepts, ADD)
    assert (found.verdict, "oops" in found.sentence) == (Verdict.GRADER, True)
    assert "Traceback" in found.evidence.stderr


def test_evidence_has_the_command():
    found = failure(judge_python("print('x')").accepts, ADD)
    assert found.evidence.command.endswith("simplify")
    assert found.evidence.program.startswith("uops 1\n")
