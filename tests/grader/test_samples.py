"""The sample submissions: right ones pass, wrong ones fail for the reason that they name."""

import shutil

import pytest

from grader.judge import Judge
from grader.sandbox import Limits
from grader.subject import SubprocessCompiler
from grader.submission import load
from grader.verdict import SpecFailure, Verdict
from grader.weeks import ROOT

SAMPLES = ROOT / "grader" / "samples"
ELSEWHERE = """
    x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
    y = NEG x
    return y
    """
CONSTANTS = """
    a = CONST : {"value": %d, "dtype": "%s"}
    b = CONST : {"value": %d, "dtype": "%s"}
    c = %s a b
    return c
    """
MAXIMUM = """
    x = PARAM : {"slot": 0, "dtype": "int32", "shape": []}
    y = PARAM : {"slot": 1, "dtype": "int32", "shape": []}
    z = MAX x y
    return z
    """
CHOICE = """
    c = PARAM : {"slot": 0, "dtype": "bool", "shape": []}
    x = PARAM : {"slot": 1, "dtype": "int32", "shape": []}
    y = NEG x
    z = WHERE c x y
    return z
    """
WRONG = {
    "wrong-constant-folding": (CONSTANTS % (100, "int8", 100, "int8", "ADD"), Verdict.WRONG),
    "wrong-crashes": (CHOICE, Verdict.CRASH),
    "wrong-floordiv-toward-zero": (
        CONSTANTS % (-7, "int32", 2, "int32", "FLOORDIV"),
        Verdict.WRONG,
    ),
    "wrong-hangs": (MAXIMUM, Verdict.TIMEOUT),
    "wrong-prints-garbage": (ELSEWHERE, Verdict.PROTOCOL),
}


def judged(name: str, seconds: float = 10.0) -> Judge:
    folder = SAMPLES / name
    if not folder.is_dir():
        pytest.skip(f"no sample {name}")
    submission = load(folder)
    needed = "gcc" if submission.language == "c" else "node"
    if shutil.which(needed) is None:
        pytest.skip(f"needs {needed}")
    submission.prepare()
    limits = Limits().within(seconds)
    return Judge(SubprocessCompiler(submission.compiler, submission.folder, 1, limits), 1)


@pytest.mark.parametrize("name", ["javascript-week1", "c-week1"])
def test_right(name):
    claims = judged(name)
    claims.accepts(ELSEWHERE)
    for text, _ in WRONG.values():
        claims.accepts(text)
    claims.rejects("x = NEG y\nreturn x", "E2", line=2)


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name):
    text, verdict = WRONG[name]
    claims = judged(name, 1.0 if verdict is Verdict.TIMEOUT else 10.0)
    with pytest.raises(SpecFailure) as caught:
        claims.accepts(text)
    assert caught.value.verdict is verdict
    if verdict is not Verdict.PROTOCOL:
        claims.accepts(ELSEWHERE)


def test_every_wrong_sample_is_tested():
    found = {path.name for path in SAMPLES.glob("wrong-*")}
    assert found <= set(WRONG) | {"wrong-drops-pad-zero"}
