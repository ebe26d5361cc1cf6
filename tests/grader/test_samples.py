"""The sample submissions: right ones pass, wrong ones fail for the reason that they name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.judge import Judge
from grader.plugin import CONFORMANCE
from grader.sandbox import Limits
from grader.subject import SubprocessCompiler
from grader.submission import Submission, load
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


CAUGHT_BY = {
    "wrong-constant-folding": (
        "week01_uops/test_spec_folding.py::test_int8_wrap",
        Verdict.WRONG,
        "expected -56, got 127",
    ),
    "wrong-crashes": (
        "week01_uops/test_spec_algebra.py::test_where_same",
        Verdict.CRASH,
        "SIGSEGV",
    ),
    "wrong-drops-pad-zero": (
        "week03_loops/test_spec_movement.py::test_pad_is_zero_behind_exp",
        Verdict.WRONG,
        "output 0 at [0]: expected 1.0, got 2.0",
    ),
    "wrong-floordiv-toward-zero": (
        "week01_uops/test_spec_folding.py::test_floordiv",
        Verdict.WRONG,
        "expected -4, got -3",
    ),
    "wrong-hangs": (
        "week01_uops/test_spec_algebra.py::test_max_same",
        Verdict.TIMEOUT,
        "more than 2 s",
    ),
    "wrong-prints-garbage": (
        "week01_uops/test_spec_algebra.py::test_neg_neg",
        Verdict.PROTOCOL,
        'expected the header "uops 1"',
    ),
}
"""Sample → a test of the suite that it fails, how, and words of the sentence that says so."""
PASSED = (
    "week01_uops/test_spec_algebra.py::test_identities_meet",
    "week01_uops/test_spec_calls.py",
    "week01_uops/test_spec_canonical.py::test_names_in_post_order",
    "week01_uops/test_spec_canonical.py::test_spelling_of_floats",
    "week01_uops/test_spec_conformance.py::test_conformance[week01/right/const-float-spellings]",
    "week01_uops/test_spec_conformance.py::test_conformance[week01/wrong/several-errors]",
    "week01_uops/test_spec_folding.py::test_floordiv",
    "week01_uops/test_spec_folding.py::test_int8_wrap",
    "week01_uops/test_spec_ranges.py::test_flattened_index",
    "week01_uops/test_spec_reading.py::test_names",
)
PASSED_LATER = {
    "c-week2": (
        "week01_uops/test_spec_algebra.py::test_identities_meet",
        "week02_render/test_spec_arithmetic.py::test_deep_expression",
        "week02_render/test_spec_memory.py",
        "week02_render/test_spec_mutants.py::test_write_that_needs_no_value",
        "week02_render/test_spec_order.py::test_exchange",
        "week02_render/test_spec_reading.py::test_call_of_values",
        "week02_render/test_spec_reading.py::test_simplify_keeps_a_place",
        "week02_render/test_spec_storage.py::test_index_overwritten",
        "week02_render/test_spec_storage.py::test_store_of_every_dtype",
    ),
    "javascript-week3": (
        "week02_render/test_spec_arithmetic.py::test_deep_expression",
        "week02_render/test_spec_mutants.py::test_write_that_needs_no_value",
        "week02_render/test_spec_order.py::test_exchange",
        "week02_render/test_spec_reading.py::test_call_of_values",
        "week02_render/test_spec_reading.py::test_simplify_keeps_a_place",
        "week02_render/test_spec_storage.py::test_index_overwritten",
        "week02_render/test_spec_storage.py::test_store_of_every_dtype",
        "week03_loops/test_spec_loops.py::test_accumulator",
        "week03_loops/test_spec_loops.py::test_range_written_twice",
        "week03_loops/test_spec_movement.py::test_pad",
        "week03_loops/test_spec_ranges.py::test_triangular",
        "week03_loops/test_spec_ranges.py::test_open_range",
        "week03_loops/test_spec_reduction.py::test_empty",
        "week03_loops/test_spec_views.py::test_windows",
    ),
    "python-swap": (
        "week01_uops/test_spec_algebra.py::test_identities_meet",
        "week02_render/test_spec_order.py::test_exchange",
        "week03_loops/test_spec_movement.py",
        "week03_loops/test_spec_views.py::test_windows",
    ),
}
"""Sample of several weeks → tests of the suite that it passes; the nightly tests run all."""
ALIKE = {"c-week1": ("javascript-week1", 1), "c-week2": ("javascript-week3", 2)}
"""Sample in C → one in JavaScript that answers alike, and the last week in which it does."""


def programs_of(week: int) -> list[Path]:
    """The conformance programs of a week."""
    return sorted((CONFORMANCE / f"week{week:02}").rglob("*.uop"))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, so that what is built here is in nobody's way."""
    copy = tmp_path_factory.mktemp("samples") / "samples"
    shutil.copytree(SAMPLES, copy, ignore=shutil.ignore_patterns("compiler"))
    return copy


def submission_of(folder: Path) -> Submission:
    """A sample whose language is there."""
    found = load(folder)
    needed = {"c": "gcc", "javascript": "node", "python": "python3"}[found.language]
    if shutil.which(needed) is None:
        pytest.skip(f"needs {needed}")
    return found


def judged(folder: Path, seconds: float = 10.0) -> Judge:
    submission = submission_of(folder)
    submission.prepare()
    limits = Limits().within(seconds)
    command, folder, reads = submission.compiler, submission.folder, submission.reads
    return Judge(SubprocessCompiler(command, folder, 1, limits, reads=reads), 1)


@pytest.mark.parametrize("name", ["javascript-week1", "c-week1"])
def test_right(samples, name):
    claims = judged(samples / name)
    claims.accepts(ELSEWHERE)
    for text, _ in WRONG.values():
        claims.accepts(text)
    claims.rejects("x = NEG y\nreturn x", "E2", line=2)


@pytest.mark.parametrize("name", WRONG)
def test_wrong(samples, name):
    text, verdict = WRONG[name]
    claims = judged(samples / name, 1.0 if verdict is Verdict.TIMEOUT else 10.0)
    with pytest.raises(SpecFailure) as caught:
        claims.accepts(text)
    assert caught.value.verdict is verdict
    if verdict is not Verdict.PROTOCOL:
        claims.accepts(ELSEWHERE)


def run_suite(folder: Path, state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the suite on a sample, as a student does."""
    return run_module("pytest", "-q", "-p", "no:cacheprovider", *arguments, on=folder, state=state)


def run_module(
    module: str, *arguments: str, on: Path, state: Path
) -> subprocess.CompletedProcess[str]:
    """Judge a sample with pytest or the grader; `uopc` and the course's Python are on the PATH."""
    submission_of(on)
    command = [sys.executable, "-m", module, "--no-shrink"]
    command += ["--state", str(state), "--submission", str(on), *arguments]
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["javascript-week1", "c-week1"])
def test_right_by_the_suite(samples, name, tmp_path):
    run = run_suite(samples / name, tmp_path, *PASSED)
    assert run.returncode == 0, run.stdout
    assert "skipped" not in run.stdout


@pytest.mark.parametrize("name", PASSED_LATER)
def test_right_by_the_suite_of_later_weeks(samples, name, tmp_path):
    run = run_suite(samples / name, tmp_path, "--verb-timeout", "60", *PASSED_LATER[name])
    assert run.returncode == 0, run.stdout
    assert "skipped" not in run.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "week"), [(name, week) for name in PASSED_LATER for week in load(SAMPLES / name).weeks]
)
def test_right_in_whole_weeks(samples, name, week, tmp_path):
    options = ("--week", str(week), "--timeout", "60", "--no-gates")
    run = run_module("grader", *options, on=samples / name, state=tmp_path)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_wrong_by_the_suite(samples, name, tmp_path):
    test, verdict, words = CAUGHT_BY[name]
    seconds = "2" if verdict is Verdict.TIMEOUT else "20"
    run = run_suite(samples / name, tmp_path, "--verb-timeout", seconds, test)
    assert run.returncode == 1, run.stdout
    (stored,) = tmp_path.rglob("*.json")
    failure = json.loads(stored.read_text())
    assert failure["test"] == test
    assert failure["verdict"] == str(verdict)
    assert words in failure["message"]
    assert words in run.stdout


def answer(submission: Submission, program: bytes, week: int) -> tuple[int, bytes, list[str]]:
    """The exit status, the output, and FILE:LINE:COL: CODE of each error."""
    command = [*submission.compiler, "simplify", "--week", str(week)]
    run = subprocess.run(
        command, cwd=submission.folder, input=program, capture_output=True, check=False
    )
    lines = run.stderr.decode("utf-8", "replace").splitlines()
    places = [" ".join(line.split()[:2]) for line in lines if line.startswith("<stdin>:")]
    return run.returncode, run.stdout, places


@pytest.mark.parametrize("name", ALIKE)
def test_c_answers_as_javascript(samples, name):
    other, week = ALIKE[name]
    c, javascript = (submission_of(samples / each) for each in (name, other))
    c.prepare()
    for path in programs_of(week)[::9]:
        program = path.read_bytes()
        assert answer(c, program, week) == answer(javascript, program, week), path.name


@pytest.mark.nightly
def test_c_has_no_undefined_behaviour(samples):
    submission = submission_of(samples / "c-week2")
    checked = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    folder = submission.folder
    subprocess.run((*submission.build, *checked), cwd=folder, capture_output=True, check=True)
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    for path in (*programs_of(1), *programs_of(2)):
        for verb in (("simplify", "--week", "1"), ("simplify",), ("compile", "--target", "c")):
            command = (*submission.compiler, *verb)
            with path.open("rb") as program:
                run = subprocess.run(
                    command, cwd=folder, env=env, stdin=program, capture_output=True, check=False
                )
            assert run.returncode == (not run.stdout), path.name
            assert b"Sanitizer" not in run.stderr, path.name
            assert b"runtime error" not in run.stderr, path.name


def test_every_right_sample_is_tested():
    right = {path.parent.name for path in SAMPLES.glob("*/submission.toml")} - set(CAUGHT_BY)
    assert right == {"javascript-week1", "c-week1", *PASSED_LATER}


def test_every_wrong_sample_is_tested():
    assert set(CAUGHT_BY) == {path.name for path in SAMPLES.glob("wrong-*")}
