"""`grader doctor`: what it finds, what it says to do next, and never a traceback."""

import shutil
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from grader import doctor as module
from grader.doctor import State, doctor, examine
from grader.new import write
from grader.weeks import ROOT

SAMPLES = ROOT / "grader" / "samples"
TOML = """
name = "Ada"
language = "python"
weeks = [1]
compiler = ["{python}", "-c", '''{code}''']
"""


@pytest.fixture
def folder(tmp_path):
    def make(code, more=""):
        (tmp_path / "submission.toml").write_text(
            more + TOML.format(python=sys.executable, code=code)
        )
        return tmp_path

    return make


def ended(folder):
    """The exit status, and what was printed."""
    run = CliRunner().invoke(doctor, [str(folder)])
    assert run.exception is None or isinstance(run.exception, SystemExit)
    return run.exit_code, run.output


def last(folder):
    return list(examine(folder))[-1]


def test_a_right_submission(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    found = {f.step: f for f in examine(SAMPLES / "javascript-week1")}
    assert [f.step for f in found.values() if f.state is State.MISSING] == []
    assert found["simplify"].says == "answered"
    assert found["week 1"].says == "passes a smoke test"
    assert found["week 2"].state is State.LATER
    assert "ms for an answer" in found["time"].says


def test_a_handshake_is_ready_to_be_graded(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    write(tmp_path / "mine", "js", "Ada")
    status, said = ended(tmp_path / "mine")
    assert status == 0
    assert "is not implemented" in said
    assert "ready to be graded" in said
    assert "next: " in said


def test_no_folder(tmp_path):
    status, said = ended(tmp_path / "gone")
    assert status == 1
    assert "there is no folder" in said.replace("\n", " ")
    assert f"next: grader new {tmp_path / 'gone'} --lang LANGUAGE" in said


def test_a_folder_without_a_submission(tmp_path):
    found = last(tmp_path)
    assert (found.step, found.state) == ("submission.toml", State.MISSING)
    assert found.next.startswith("grader new")


@pytest.mark.parametrize(
    ("more", "step", "says"),
    [
        ("wekks = 1\n", "submission.toml", "got wekks"),
        ("= 1\n", "submission.toml", "is not TOML"),
        ('build = ["no-such-tool"]\n', "toolchain", "expected no-such-tool on the PATH"),
        ('build = ["sh", "-c", "echo oh no; exit 3"]\n', "build", "oh no"),
        ('serve = ["./gone"]\n', "executable", "expected a program ./gone, found none"),
    ],
)
def test_what_is_missing_ends_the_steps(folder, more, step, says):
    found = last(folder("pass", more))
    assert (found.step, found.state) == (step, State.MISSING)
    assert says in found.says
    assert found.next


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import os; os.kill(os.getpid(), 11)", "crash: SIGSEGV"),
        ("print(1)", "protocol error"),
        ("exit(1)", "exit status 1 without FILE:LINE:COL: CODE message"),
        ("exit(7)", "exit status 7, expected 0 or 1"),
        ("import sys; sys.stdout.buffer.write(bytes([255]))", "not UTF-8"),
    ],
)
def test_a_verb_that_is_not_answered(folder, code, says):
    found = last(folder(code))
    assert (found.step, found.state) == ("simplify", State.MISSING)
    assert says in found.says
    status, said = ended(folder(code))
    assert status == 1
    assert "not ready to be graded" in said


def test_a_fault_of_its_own_is_a_sentence(folder, monkeypatch, capsys):
    def broken(submission, where):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(module, "_toolchain", broken)
    assert not module.report(folder("pass"), Console())
    assert "fault of the grader: RuntimeError: out of luck" in capsys.readouterr().out
