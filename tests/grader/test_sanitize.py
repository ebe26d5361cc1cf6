"""Builds with sanitizers, debug builds, and a later week's compiler on earlier weeks' tests."""

import shutil
import subprocess
import sys

import pytest

from grader.judge import Judge
from grader.subject import InProcess, reference
from grader.verdict import SpecFailure, Verdict
from grader.weeks import ROOT, week_of
from tests.grader.compilers import Printing
from tests.grader.test_run_c import DOUBLE, RIGHT

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


def sanitized(source):
    return Judge(InProcess(Printing(source), 2, "test"), 2, sanitize=True)


def test_right():
    sanitized(RIGHT % "").runs(DOUBLE)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("((volatile float *)a)[5];", "AddressSanitizer: use-after-poison"),
        ("float t[3]; volatile int n = 3; o[2] += t[n] * 0;", "runtime error: index 3"),
        ("volatile int n = 2147483647; n = n + 1;", "runtime error: signed integer"),
        ("volatile int n = 40; o[2] += (1 << n) * 0;", "runtime error: shift exponent"),
        ("volatile float x = 1e30f; o[2] += (int)x * 0;", "runtime error: 1e+30 is outside"),
        ("volatile float t[3]; o[2] += t[1];", "wrong"),
    ],
)
def test_findings(more, says):
    with pytest.raises(SpecFailure) as caught:
        sanitized(RIGHT % more).runs(DOUBLE, special=False)
    if says == "wrong":
        assert caught.value.verdict is Verdict.WRONG
    else:
        assert caught.value.verdict is Verdict.CRASH
        assert says in caught.value.sentence


def test_a_debug_build_speaks():
    source = RIGHT.replace("void program", "char program_error[9];\nvoid program")
    with pytest.raises(SpecFailure, match="the checked build: k0: far"):
        Judge(InProcess(Printing(source % 'strcpy(program_error, "k0: far");'), 2), 2).runs(DOUBLE)


def test_the_reference_makes_debug_builds():
    judge = Judge(reference(week_of(2), checked=True), 2)
    judge.emits(DOUBLE, contains=[r"\bprogram_error\b"])
    judge.runs(DOUBLE)


def run(*arguments):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_options(tmp_path):
    """Week 7's compiler on tests of week 3, whose op of week 4 stays unknown."""
    chosen = "domain-reduce-op or op-of-week-4 or softmax"
    where = ("week03_loops/test_spec_conformance.py", "-k", chosen, "--state", str(tmp_path))
    done = run(*where, "--reference", "7", "--checked", "--sanitize")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@pytest.mark.parametrize("option", ["--checked", "--reference=3"])
def test_options_about_the_reference(option):
    done = run("week01_uops", "--submission", "grader/samples/c-week1", option)
    assert done.returncode != 0
    assert "is about the reference" in done.stderr
