"""A whole class on this machine and on a cluster: what dies in the middle changes no grade.

GRADER_CLASS_SIZE says how many submissions (500), GRADER_CLASS_ONLY which tests, as for pytest's
-k (all). With 500 of them each run takes about half an hour on two idle cores.
"""

import csv
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from grader.classes.sample_class import make
from tests.grader.graders import workers

pytestmark = pytest.mark.nightly

SIZE = int(os.environ.get("GRADER_CLASS_SIZE", "500"))
ONLY = os.environ.get("GRADER_CLASS_ONLY", "")


def start(folder, out, *options):
    command = [sys.executable, "-m", "grader", "class", str(folder), "--week", "1", "--only", ONLY]
    return subprocess.Popen([*command, "--out", str(out), *options])


def known(out):
    """How many have their grade."""
    try:
        with sqlite3.connect(f"file:{out}/class.sqlite?mode=ro", uri=True) as base:
            query = "SELECT count(*) FROM submission WHERE outcome IS NOT NULL"
            return base.execute(query).fetchone()[0]
    except sqlite3.Error:
        return 0


def wait_for(out, count, process):
    while known(out) < count:
        assert process.poll() is None, "the class ended before it was to be killed"
        time.sleep(0.2)


def grades(out):
    with (out / "grades.csv").open(newline="") as file:
        return list(csv.reader(file))


def failures(out):
    """The failures by which each test of each submission failed."""
    with sqlite3.connect(out / "class.sqlite") as base:
        return base.execute("SELECT name, test, failure FROM test ORDER BY name, test").fetchall()


@pytest.fixture(scope="module")
def submissions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "class"
    make(folder, SIZE)
    return folder


@pytest.fixture(scope="module")
def calm(submissions):
    """The results of a run that nobody disturbed."""
    out = submissions.with_name("calm")
    assert start(submissions, out).wait() == 0
    assert len(grades(out)) == SIZE + 1
    return out


def test_killed_twice_and_resumed(submissions, calm):
    out = submissions.with_name("killed")
    for part in (1 / 3, 2 / 3):
        process = start(submissions, out)
        wait_for(out, part * SIZE, process)
        process.kill()
        process.wait()
    assert start(submissions, out).wait() == 0
    assert grades(out) == grades(calm)
    assert failures(out) == failures(calm)


def test_a_worker_of_a_cluster_is_killed(submissions, calm):
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    out = submissions.with_name("cluster")
    process = start(submissions, out, "--cluster", "local", "--workers", "2")
    wait_for(out, SIZE / 2, process)
    while not (found := list(workers(process.pid))):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(found[0], signal.SIGKILL)
    assert process.wait() == 0
    with sqlite3.connect(out / "class.sqlite") as base:
        assert base.execute("SELECT max(attempts) FROM submission").fetchone() == (2,)
    assert grades(out) == grades(calm)
    assert failures(out) == failures(calm)
