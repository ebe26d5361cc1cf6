"""The command `grader`: reports, exit status, JSON, repro folders; and the plain pytest run."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from click.testing import CliRunner

from grader import cli, session
from grader.weeks import ROOT
from tests.grader.compilers import ECHO, submission

HELPERS = '''
ADD = """
x = PARAM : {"slot": 0, "dtype": "int16", "shape": []}
z = CONST : {"value": 3, "dtype": "int16"}
y = ADD x z
return y
"""
'''
PASSES = '''
def test_accepts(judge):
    """A sum is accepted."""
    judge.accepts(ADD)
'''
FAILS = '''
def test_bound(judge):
    """A sum becomes one node."""
    judge.simplifies(ADD, at_most=1)
'''
SKIPS = '''
import pytest
def test_skipped(judge):
    """Needs a thing."""
    pytest.skip("a thing is missing")
'''
CRASHES = """
def test_crash():
    import os
    os.abort()
"""
BREAKS = """
def test_error():
    raise ZeroDivisionError("oops")
"""
DROP_ADD = """
import sys
lines = sys.stdin.read().splitlines()
names = {l.split()[0]: l.split()[3] for l in lines if " ADD " in l}
kept = [l for l in lines if " ADD " not in l]
print("\\n".join(" ".join(names.get(w, w) for w in l.split()) for l in kept))
"""


@pytest.fixture
def grade(tmp_path, monkeypatch):
    """Run the command on a week whose spec tests are these."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)

    def run(tests, *arguments, code=ECHO):
        folder = submission(tmp_path / "student", code)
        (tmp_path / "test_spec_case.py").write_text(textwrap.dedent(HELPERS + tests))
        files = [tmp_path / "test_spec_case.py"] if tests else []
        monkeypatch.setattr(session, "spec_tests", lambda week: files)
        options = ["--week", "1", "--submission", str(folder), "--json", "out.json"]
        result = CliRunner().invoke(cli.main, [*options, *arguments])
        path = tmp_path / "out.json"
        return result, json.loads(path.read_text()) if path.exists() else None

    return run


def test_all_passed(grade):
    result, data = grade(PASSES)
    assert result.exit_code == 0, result.output
    assert (data["schema"], data["passed"], data["complete"]) == (1, True, True)
    (week,) = data["weeks"]
    assert (week["collected"], week["passed"], week["problem"]) == (1, 1, "")
    assert week["tests"][0]["sentence"] == "A sum is accepted."


def test_failure_is_reported(grade):
    result, data = grade(PASSES + FAILS)
    assert result.exit_code == 1
    (week,) = data["weeks"]
    assert (week["passed"], week["failed"]) == (1, 1)
    failed = week["tests"][1]
    assert failed["failure"]["verdict"] == "bound missed"
    for part in ("A sum becomes one node.", "expected at most 1 UOps, got 3", "y = ADD x z"):
        assert part in result.output
    assert f"grader repro {failed['failure']['id']}" in result.output
    assert "compiler.py simplify < " in result.output
    listed = CliRunner().invoke(cli.main, ["list"])
    assert (listed.exit_code, "bound missed" in listed.output) == (0, True)


def test_sanitizers_are_asked_for(grade):
    asks = "def test_asked(judge):\n    assert judge.sanitize\n"
    assert [grade(asks, *more)[0].exit_code for more in ((), ("--sanitize",))] == [1, 0]


def test_no_tests_is_no_pass(grade):
    result, data = grade("")
    assert result.exit_code == 1
    assert "no spec tests" in data["weeks"][0]["problem"]


def test_no_test_collected_is_no_pass(grade):
    result, data = grade("x = 1")
    assert result.exit_code == 1
    assert "no tests were found" in data["weeks"][0]["problem"]


def test_skip_is_no_pass(grade):
    result, data = grade(PASSES + SKIPS)
    assert result.exit_code == 1
    assert data["weeks"][0]["tests"][1]["message"] == "a thing is missing"
    assert "1 skipped: a thing is missing" in result.output


def test_skip_may_be_allowed(grade):
    assert grade(PASSES + SKIPS, "--allow-skips")[0].exit_code == 0


def test_crash_of_the_tests_is_no_pass(grade):
    result, data = grade(PASSES + CRASHES + FAILS)
    assert result.exit_code == 1
    (week,) = data["weeks"]
    assert (week["collected"], week["passed"], week["not_run"]) == (3, 1, 2)
    assert "SIGABRT" in week["problem"]
    assert "2 never ran" in result.output


def test_error_of_a_test_is_no_pass(grade):
    result, data = grade(PASSES + BREAKS)
    assert result.exit_code == 1
    assert "oops" in data["weeks"][0]["tests"][1]["message"]
    assert "oops" in result.output


def test_tests_that_cannot_be_imported_are_no_pass(grade):
    result, data = grade(PASSES + "\nimport no_such_module")
    assert result.exit_code == 1
    assert "no_such_module" in data["weeks"][0]["tests"][0]["message"]


def test_a_hanging_compiler_stops_nothing(grade):
    result, data = grade(PASSES + FAILS, "--timeout", "0.4", code="while True: pass")
    assert result.exit_code == 1
    verdicts = [test["failure"]["verdict"] for test in data["weeks"][0]["tests"]]
    assert verdicts == ["timeout", "timeout"]


def test_results_are_there_after_every_test(grade, monkeypatch):
    written = []
    real = cli.RunResult.write

    def write(run, path):
        real(run, path)
        written.append(json.loads(path.read_text()))

    monkeypatch.setattr(cli.RunResult, "write", write)
    grade(PASSES + FAILS)
    assert [len(data["weeks"][0]["tests"]) for data in written][:3] == [0, 1, 2]
    assert [data["complete"] for data in written][-1]
    assert not any(data["passed"] for data in written)


def test_repro(grade, tmp_path):
    _, data = grade(PASSES, code=DROP_ADD)
    kept = data["weeks"][0]["tests"][0]["failure"]
    assert (kept["verdict"], kept["difference"]["total"]) == ("wrong answer", 1 << 16)
    again = CliRunner().invoke(cli.main, ["repro", kept["id"]])
    assert again.exit_code == 1, again.output
    assert "program.uop: wrong answer" in again.output
    folder = tmp_path / f"repro-{kept['id']}"
    expected = np.load(folder / "expected" / "output0.npy")
    got = np.load(folder / "got" / "output0.npy")
    assert np.load(folder / "inputs" / "slot0.npy") == got
    assert expected != got
    for name in ("README.md", "program.uop", "shrunk.uop", "result.txt", "report.txt"):
        assert (folder / name).stat().st_size > 0
    command = subprocess.run(
        ["sh", "command.sh"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert command.stdout == (folder / "result.txt").read_text()
    assert grade(PASSES, code=DROP_ADD)[1]["weeks"][0]["tests"][0]["failure"]["id"] == kept["id"]
    submission(tmp_path / "student", ECHO)
    mended = CliRunner().invoke(cli.main, ["repro", kept["id"][:6]])
    assert mended.exit_code == 0, mended.output
    assert "program.uop: ok" in mended.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--week", "77"], "got week 77"),
        (["--upto", "0"], "got week 0"),
        (["--submission", "gone"], "no folder"),
        (["--submission", "."], "submission.toml"),
        (["--submission", "student", "--week", "2"], "names the weeks 1, not week 2"),
        (["--week", "1", "--json", "gone/out.json"], "no folder"),
        (["repro", "abcdef"], "no failure abcdef"),
        (["--week", "x"], "not a valid integer"),
    ],
)
def test_bad_questions_get_one_sentence(tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    submission(tmp_path / "student", ECHO)
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output


def test_build_that_fails_is_a_bad_question(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = submission(tmp_path / "student", ECHO)
    with (folder / "submission.toml").open("a") as file:
        file.write('build = ["false"]\n')
    result = CliRunner().invoke(cli.main, ["--week", "1", "--submission", "student"])
    assert result.exit_code == 2
    assert "the build failed: exit status 1" in result.output


def test_help_says_how_to_run_all_weeks_up_to_one():
    result = CliRunner().invoke(cli.main, ["--help"])
    assert "--upto 3" in result.output


def test_plain_pytest(tmp_path):
    folder = submission(tmp_path / "student", ECHO)
    tests = tmp_path / "test_spec_case.py"
    tests.write_text(HELPERS + PASSES + FAILS)
    command = [sys.executable, "-m", "pytest", str(tests), "--rootdir", str(ROOT), "-q"]
    command += ["-c", str(ROOT / "pyproject.toml"), "-p", "grader.plugin", "--week", "1"]
    command += ["-p", "no:cacheprovider", "--state", str(tmp_path / "state")]
    command += ["--submission", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "1 failed, 1 passed" in ended.stdout
    assert "bound missed: expected at most 1 UOps" in ended.stdout
    assert "judge.py" not in ended.stdout
    assert len(list((tmp_path / "state" / "failures").glob("*.json"))) == 1
