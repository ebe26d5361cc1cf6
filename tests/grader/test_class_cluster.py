"""A class on a cluster: workers that die, machines that see nothing, jobs as a queue gets them."""

import builtins
import csv
import importlib
import itertools
import os
import signal
import threading
import time

import pytest
from click.testing import CliRunner

from grader.classes import cluster
from grader.classes.task import Manner, Task
from grader.cli import main
from tests.grader.graders import workers

ECHO = 'name = "E"\nlanguage = "sh"\nweeks = [1]\ncompiler = ["sh", "-c", "cat"]\n'
SBATCH = """#!/bin/sh
cp "$1" "$(dirname "$0")/$$.job"
setsid sh "$1" > /dev/null 2>&1 < /dev/null &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job in "$@"; do kill -TERM "-$job"; done
"""


def submission(folder, build=""):
    folder.mkdir(parents=True)
    (folder / "submission.toml").write_text(f"{ECHO}{build}")


def rows(folder):
    with (folder / "grades.csv").open(newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def run(folder, out, *options):
    words = ["class", str(folder), "--week", "1", "--out", str(out), "--only", "test_neg_neg"]
    return CliRunner().invoke(main, [*words, *options])


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    def absent(name, *rest):
        raise ImportError(f"No module named {name}", name=name)

    submission(tmp_path / "class" / "ada")
    monkeypatch.setattr(importlib, "import_module", absent)
    result = run(tmp_path / "class", tmp_path / "out", "--cluster", "local")
    assert result.exit_code == 2
    assert "expected the package distributed for --cluster: pip install -e '.[cluster]'" in (
        result.output
    )


def test_dask_is_not_imported_unasked(monkeypatch):
    real = builtins.__import__

    def watched(name, *rest, **more):
        assert name.partition(".")[0] not in ("dask", "distributed", "dask_jobqueue")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", watched)
    importlib.reload(cluster)


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path):
    task = Task("ada", str(tmp_path / "gone"), Manner(1))
    (event,) = cluster.work(task.line())
    assert event["event"] == "lost"
    assert "all machines of the cluster share" in event["message"]


def test_an_unknown_kind_is_named(tmp_path):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    with pytest.raises(cluster.ClusterError, match=r"expected --cluster .*pbs.*slurm.*, got moon"):
        cluster.named("moon", 1)


@pytest.mark.nightly
def test_a_worker_that_dies_takes_no_grade_with_it(tmp_path):
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    for name in ("ada", "bob", "cyd"):
        submission(tmp_path / "class" / name)
    killed = []

    def kill():
        deadline = time.monotonic() + 300
        while not killed and time.monotonic() < deadline:
            time.sleep(0.05)
            killed.extend(itertools.islice(workers(os.getpid()), 1))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result = run(tmp_path / "class", tmp_path / "out", "--cluster", "local", "--workers", "2")
    killer.join()
    assert result.exit_code == 0, result.output
    assert result.output.count("tried again: ") == 1
    assert {row["outcome"] for row in rows(tmp_path / "out").values()} == {"graded"}


@pytest.mark.nightly
def test_jobs_of_a_queue(tmp_path, monkeypatch):
    """SLURM's commands are ours here: a job is a process."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in {"sbatch": SBATCH, "scancel": SCANCEL}.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    submission(tmp_path / "class" / "ada")
    result = run(tmp_path / "class", tmp_path / "out", "--cluster", "slurm", "--workers", "1")
    assert result.exit_code == 0, result.output
    assert rows(tmp_path / "out")["ada"]["outcome"] == "graded"
    assert list(commands.glob("*.job"))
