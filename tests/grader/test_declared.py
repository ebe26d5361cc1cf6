"""Conformance files: declarations are read, held against the oracle, then against a compiler."""

import shutil

import pytest

from grader.declared import DeclarationError, read_declared
from grader.plugin import CONFORMANCE, conformance_files
from grader.verdict import SpecFailure, Verdict
from grader.weeks import WEEKS
from tests.grader.compilers import ECHO, Printing, Rewriting, drop, judge, judge_python

RIGHT = """uops 1
# A sum.
# expect: values
# week: 1
# input 0: [1, 2]
# type 0: ["int8", [2]]
# output 0: [4, %s]
x = PARAM : {"slot": 0, "dtype": "int8", "shape": [2]}
c = CONST : {"value": 3, "dtype": "int8"}
y = ADD x c
return y
"""
WRONG = """uops 1
# expect: error E301
# at: 6:5
# expect: error E201
# at: 7:8
x = NIG x
return z
"""
BUFFER = """uops 1
# expect: values
# week: 2
# input 0: 1
# type 0: ["int32", []]
# output 0: 1
# call: 2
# output 0: 2
# call: 3
# input 0: 5
# output 0: 7
x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
b = BUFFER : {"slot": 0, "dtype": "int32", "shape": []}
v = LOAD b
s = ADD v x
e = STORE b s
r = AFTER s e
return r
"""


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "case.uop").write_text(text)
        return tmp_path / "case.uop"

    return write


def failure(judged, path) -> SpecFailure:
    with pytest.raises(SpecFailure) as caught:
        judged.conforms(path)
    return caught.value


def test_right_values(file):
    judge(Rewriting()).conforms(file(RIGHT % 5))
    judge(Rewriting()).conforms(file(RIGHT % "null"))
    assert failure(judge(drop("ADD")), file(RIGHT % 5)).verdict is Verdict.WRONG


def test_a_wrong_declaration_is_our_fault(file):
    found = failure(judge(Rewriting()), file(RIGHT % 6))
    assert (found.verdict, "disagrees" in found.sentence) == (Verdict.GRADER, True)


def test_errors(file):
    assert read_declared(file(WRONG)).errors == (("E301", 6), ("E201", 7))
    assert failure(judge_python(ECHO), file(WRONG)).verdict is Verdict.ACCEPTED
    says = "; print('a:6:5: {} x', file=sys.stderr); print('a:7:8: E201 x', file=sys.stderr)"
    code = f"import sys{says}; sys.exit(1)"
    judge_python(code.format("E301")).conforms(file(WRONG))
    judge_python(code.format("E302")).conforms(file(WRONG))
    assert failure(judge_python(code.format("E303")), file(WRONG)).verdict is Verdict.WRONG
    more = code.replace("; sys.exit", "; print('a:9:9: E104 x', file=sys.stderr); sys.exit")
    assert failure(judge_python(more.format("E301")), file(WRONG)).verdict is Verdict.WRONG


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_calls_share_buffers(file):
    source = """
        static int b;
        void program(void *const *in, void *const *out) { *(int *)out[0] = b += *(int *)in[0]; }
        """
    both = Rewriting()
    both.compile = Printing(source).compile
    judge(both, 2).conforms(file(BUFFER))
    both.compile = Printing(source.replace("b +=", "b =")).compile
    assert failure(judge(both, 2), file(BUFFER)).verdict is Verdict.WRONG


@pytest.mark.parametrize(
    "text",
    [
        "uops 1\nreturn x\n",
        "uops 1\n# expect: errors\nreturn x\n",
        "uops 1\n# expect: error E301\nreturn x\n",
        RIGHT.replace("# week: 1", "# tolerance: 3") % 5,
    ],
)
def test_bad_declarations(file, text):
    with pytest.raises(DeclarationError):
        read_declared(file(text))


def test_every_file_declares_its_outcome():
    files = [path for week in WEEKS for path in conformance_files(week)]
    assert len(files) == len(list(CONFORMANCE.rglob("*.uop")))
    for path in files:
        declared = read_declared(path)
        assert bool(declared.errors) == ("wrong" in path.parts), path
