"""Packages for platforms: Gradescope's zip, unpacked and run as Gradescope does, and a workflow."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from grader import cli, package
from grader.formats import scale
from grader.package import Package
from grader.processes import Family
from grader.weeks import ROOT, WEEKS, week_of
from tests.grader.compilers import ECHO, submission

KEPT = "test_spec_calls.py"
"""The one spec file that the trial runs keep."""
ALONE = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--net", "--map-root-user")


def zipped(to, *options):
    result = CliRunner().invoke(cli.main, ["package", "gradescope", "-o", str(to), *options])
    assert result.exit_code == 0, result.output
    return zipfile.ZipFile(to)


@pytest.fixture(scope="module")
def autograder(tmp_path_factory):
    """The zip of week 1, unpacked where Gradescope would, with one spec file left."""
    base = tmp_path_factory.mktemp("autograder")
    source = base / "source"
    with zipped(base / "autograder.zip", "--week", "1", "--seed", "7") as archive:
        archive.extractall(source)
        for info in archive.infolist():
            (source / info.filename).chmod(info.external_attr >> 16 & 0o777)
    shutil.copy(source / "run_autograder", base)
    with (source / "options.txt").open("a") as options:
        options.write("--no-shrink\n")
    subprocess.run(["chmod", "-R", "go-rwx", source], check=True)  # as setup.sh does
    for path in (source / "course/week01_uops").glob("test_spec_*.py"):
        if path.name != KEPT:
            path.unlink()
    return base


@contextmanager
def running(base, folder, code, alone=()):
    """The autograder, judging a submission that was uploaded as a folder in a folder."""
    shutil.rmtree(base / "submission", ignore_errors=True)
    (base / "submission").mkdir()
    submission(base / "submission" / folder, code)
    env = {"PATH": os.environ["PATH"], "AUTOGRADER": str(base), "GRADER_PYTHON": sys.executable}
    command = [*alone, "bash", str(base / "run_autograder")]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(
        command, cwd="/", env=env, start_new_session=True, text=True, **pipes
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            Family(process.pid, "no such home").kill()
        process.communicate()


def results(base):
    return json.loads((base / "results/results.json").read_text())


def offline():
    works = subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
    return ALONE if works else ()


def test_a_run_without_a_network(autograder):
    """From the package alone; results.json has a test a spec file, and the output says why."""
    with running(autograder, "mine", ECHO, offline()) as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    found = results(autograder)
    (test,) = found["tests"]
    assert set(found) >= {"score", "execution_time", "output", "tests", "visibility"}
    assert found["extra_data"]["complete"], output
    assert test["name"] == "week 1: calls"
    assert 0 <= found["score"] == test["score"] < test["max_score"], output
    assert test["status"] == "failed"
    assert "seed 7" in found["output"]
    assert "grader repro" in test["output"]
    assert str(ROOT) not in output.replace(sys.executable, "")


def test_a_run_that_is_killed_keeps_its_results(autograder):
    """SIGKILL in the middle: what was judged until then is there, the rest is open."""
    with running(autograder, ".", f"import time\ntime.sleep(0.3)\n{ECHO}") as process:
        until, done = time.monotonic() + 120, 0
        while done < 2 and time.monotonic() < until and process.poll() is None:
            time.sleep(0.1)
            if (autograder / "results/results.json").exists():
                parts = re.search(r"(\d+) of \d+ tests are here", results(autograder)["output"])
                done = int(parts[1]) if parts else 0
    found = results(autograder)
    (test,) = found["tests"]
    assert not found["extra_data"]["complete"]
    assert 2 <= done < test["extra_data"]["parts"]
    assert 0 < test["extra_data"]["open"] < test["max_score"]
    assert "The run did not finish" in found["output"]


@pytest.mark.nightly
def test_a_run_that_takes_too_long_keeps_its_results(autograder):
    (autograder / "source/seconds.txt").write_text("15\n")
    with running(autograder, ".", f"import time\ntime.sleep(4)\n{ECHO}") as process:
        output, _ = process.communicate(timeout=120)
    (autograder / "source/seconds.txt").write_text("1800\n")
    assert process.returncode == 0, output
    assert not results(autograder)["extra_data"]["complete"]


def nothing_handed_in(base, python):
    """What run_autograder left behind where nothing was handed in."""
    shutil.rmtree(base / "submission", ignore_errors=True)
    (base / "submission").mkdir()
    env = {"PATH": os.environ["PATH"], "AUTOGRADER": str(base), "GRADER_PYTHON": python}
    command = ["bash", str(base / "run_autograder")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return results(base)


def test_what_is_no_submission_has_results(autograder):
    found = nothing_handed_in(autograder, sys.executable)
    assert found["score"] == 0
    assert "expected a file submission.toml" in found["output"]


def test_a_grader_that_cannot_start_is_our_fault(autograder):
    """Without Python there is still a file, with a score of 0 and whom to tell."""
    found = nothing_handed_in(autograder, "gone")
    assert found["score"] == 0
    assert found["output"].startswith("Fault of the grader")


def test_the_zip(tmp_path):
    """Scripts at its root, sound bash, the pinned versions, nothing built; the same bytes twice."""
    with zipped(tmp_path / "a.zip", "--week", "3", "--apt", "nodejs", "--seconds", "60") as archive:
        names = archive.namelist()
        assert {"setup.sh", "run_autograder", "course/constraints.txt"} <= set(names)
        assert archive.getinfo("run_autograder").external_attr >> 16 & 0o111
        assert "nodejs" in archive.read("apt.txt").decode().split()
        assert archive.read("options.txt").split() == b"--week 3 --seed 0".split()
        assert archive.read("seconds.txt") == b"60\n"
        required = archive.read("requirements.txt").decode().splitlines()
        assert not [name for name in names if "__pycache__" in name or "/.venv/" in name]
        for script in ("setup.sh", "run_autograder"):
            text = archive.read(script).decode()
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    pinned = (ROOT / "constraints.txt").read_text().lower().replace("_", "-")
    for name in required:
        assert f"\n{re.split('[>=]', name)[0]}==".replace("_", "-") in pinned, name
    zipped(tmp_path / "b.zip", "--week", "3", "--apt", "nodejs", "--seconds", "60")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_pytorch_is_there_where_speed_is_measured():
    timed = next(week for week in WEEKS if scale.shares()[week.package].gates)
    needs = [Package([timed], timed=on).requirements() for on in (True, False)]
    assert [any(name.startswith("torch") for name in names) for names in needs] == [True, False]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert needs[1] == project["dependencies"]


def test_the_workflow_of_classroom(tmp_path):
    """It is YAML, and its reporter gets a variable for each item of the week."""
    to = tmp_path / "classroom.yml"
    command = ["package", "classroom", "--week", "2", "--repository", "school/course"]
    result = CliRunner().invoke(cli.main, [*command, "-o", str(to)])
    assert result.exit_code == 0, result.output
    steps = yaml.safe_load(to.read_text())["jobs"]["grade"]["steps"]
    keys = [item.key for item in scale.items(package.unjudged(week_of(2)))]
    assert steps[-1]["with"]["runners"].split(",") == keys
    wanted = {f"{key.upper()}_RESULTS": f"${{{{ steps.grade.outputs.{key} }}}}" for key in keys}
    assert steps[-1]["env"] == wanted
    assert "--week 2" in next(step["run"] for step in steps if step.get("id") == "grade")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gradescope", "--week", "77"], "got week 77"),
        (["gradescope", "-o", "gone/a.zip"], "cannot write gone/a.zip"),
        (["gradescope", "--seconds", "1"], "1 is not in the range"),
        (["classroom"], "--repository"),
        (["classroom", "--repository", "a/b", "-o", "gone/a.yml"], "cannot write gone/a.yml"),
    ],
)
def test_bad_questions_get_one_sentence(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.main, ["package", *arguments])
    assert result.exit_code == 2
    assert says in result.output
    assert not list(Path().iterdir())


def test_the_scale_is_shown():
    result = CliRunner().invoke(cli.main, ["scale", "--week", "1"])
    assert result.exit_code == 0
    assert "week01_folding" in result.output
    assert f"{scale.shares()['week01_uops'].points:g}" in result.output
