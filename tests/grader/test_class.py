"""Grading a class: what is graded, what is graded again, and that one never stops the others."""

import csv
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from grader.classes import intake
from grader.classes.alone import alone, together
from grader.classes.classroom import ATTEMPTS, Classroom
from grader.classes.roster import Entry, RosterError, read_roster
from grader.classes.sample_class import KINDS, make
from grader.classes.store import Store, StoreError
from grader.classes.task import Manner, Outcome, Task
from grader.cli import main
from tests.grader.graders import commands

TEST = "week01_uops/test_spec_algebra.py::test_neg_neg"
RESULT = {"event": "result", "test": TEST, "seconds": 0.1, "sentence": "", "message": ""}


class Backend:
    """Answers at once: by a list of events for each task."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []
        self.heard = []

    def submit(self, task):
        self.asked.append(task.name)
        self.heard += [(task, event) for event in self.answer(task)]

    def next(self):
        return self.heard.pop(0)

    def close(self):
        assert not self.heard


class Watcher:
    def taken(self, done, total): ...

    def planned(self, kept, open_):
        self.plan = kept, open_

    def event(self, name, event): ...


def passes(task, outcome="passed"):
    yield {"event": "begin"}
    yield {"event": "collected", "tests": [TEST, f"{TEST}_2"]}
    yield {**RESULT, "outcome": outcome, "failure": None}
    yield {"event": "printed", "program": "p", "answer": "abc"}
    yield {"event": "end", "outcome": Outcome.GRADED, "message": "", "seconds": 1.0}


def echo(folder, text=""):
    folder.mkdir(parents=True)
    toml = 'name = "E"\nlanguage = "sh"\nweeks = [1]\ncompiler = ["sh", "-c", "cat"]\n'
    (folder / "submission.toml").write_text(toml + text)


@pytest.fixture
def grade(tmp_path):
    """Grade the class in `class` with a backend that answers so; who was asked, and the grades."""

    def run(answer=passes, **options):
        entries = read_roster(tmp_path / "class")
        store = Store(tmp_path / "out")
        backend, manner = Backend(answer), Manner(1, **options.pop("manner", {}))
        try:
            Classroom(entries, manner, store, tmp_path / "out", **options).grade(
                lambda: backend, Watcher()
            )
            return backend.asked, store.grades(1, [entry.name for entry in entries])
        finally:
            store.close()

    for name in ("ada", "bob"):
        echo(tmp_path / "class" / name)
    return run


def test_each_is_graded_once(grade):
    asked, grades = grade()
    assert asked == ["ada", "bob"]
    assert [(g.outcome, g.tests, g.passed, g.failed) for g in grades] == [("graded", 2, 1, 0)] * 2
    assert all(0 < g.earned < g.most and g.open > 0 for g in grades)
    again, same = grade()
    assert (again, same) == ([], grades)


def test_what_changed_is_graded_again(grade, tmp_path):
    grade()
    with (tmp_path / "class" / "bob" / "submission.toml").open("a") as file:
        file.write("\n")
    asked, grades = grade(lambda task: passes(task, "failed"))
    assert asked == ["bob"]
    assert [g.failed for g in grades] == [0, 1]
    assert grade(manner={"seed": 1})[0] == ["ada", "bob"]
    assert grade(manner={"seed": 1}, force=True)[0] == ["ada", "bob"]


def test_a_grade_that_was_interrupted_is_begun_anew(grade, tmp_path):
    def dies(task):
        yield from itertools.islice(passes(task, "failed"), 3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade(dies)
    asked, grades = grade()
    assert asked == ["ada", "bob"]
    assert [(g.passed, g.failed) for g in grades] == [(1, 0)] * 2


def test_one_that_is_lost_is_tried_again(grade):
    def once(task):
        if task.name == "ada" and task.attempt == 1:
            return [*itertools.islice(passes(task, "failed"), 3), {"event": "lost", "message": "x"}]
        return list(passes(task))

    asked, grades = grade(once)
    assert sorted(asked) == ["ada", "ada", "bob"]
    assert [(g.outcome, g.passed, g.failed) for g in grades] == [("graded", 1, 0)] * 2


def test_one_that_is_always_lost_is_our_fault_and_open_for_the_next_run(grade):
    lost = {"event": "lost", "message": "SIGKILL"}
    asked, grades = grade(lambda task: [lost] if task.name == "ada" else list(passes(task)))
    assert asked.count("ada") == ATTEMPTS
    assert grades[0].outcome is Outcome.GRADER
    assert grades[0].message == f"SIGKILL; tried {ATTEMPTS} times"
    assert grades[1].outcome is Outcome.GRADED
    assert grade()[0] == ["ada"]


def test_two_runs_do_not_write_the_same_results(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(StoreError, match="another run"):
        Store(tmp_path)
    store.close()
    Store(tmp_path).close()
    (tmp_path / "class.sqlite").write_text("hello" * 100)
    with pytest.raises(StoreError, match="no file of results"):
        Store(tmp_path)


def test_a_task_survives_its_line():
    task = Task("a\nb", "/tmp", Manner(3, only="x or y", timeout=1.5), 2)
    assert Task.of_line(task.line()) == task
    assert task.line().count(b"\n") == 1


def test_gates_wait_until_nobody_else_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code = "from grader.classes.alone import alone\nwith alone(): print('alone', flush=True)"
    with together(), together():
        waiting = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        assert waiting.poll() is None
    assert waiting.communicate(timeout=60)[0] == "alone\n"
    with alone():
        pass


def run(*arguments):
    return CliRunner().invoke(main, ["class", *map(str, arguments)])


def table(folder):
    with (folder / "grades.csv").open(newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


OPTIONS = ("--week", "1", "--only", "test_neg_neg or test_where_same", "--jobs", "2")


@pytest.mark.slow
def test_each_has_its_verdict(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    echo(folder / "good")
    echo(folder / "waits", 'build = ["sh", "-c", "sleep 77 & sleep 77"]\n[timeouts]\nbuild = 0.2\n')
    echo(folder / "reaches", 'requires = [".."]\n')
    echo(folder / "deep", "x = " + "[" * 20_000)
    echo(folder / "later")
    (folder / "later" / "submission.toml").write_text(
        'name = "=1+1"\nlanguage = "sh"\nweeks = [2]\ncompiler = ["cat"]\n'
    )
    (folder / "notes.txt").write_text("hello")
    os.mkfifo(folder / "good" / "pipe")
    result = run(folder, "--out", out, *OPTIONS)
    assert result.exit_code == 0, result.output
    rows = table(out)
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "deep": "no valid submission",
        "good": "refused",
        "later": "no valid submission",
        "notes.txt": "refused",
        "reaches": "no valid submission",
        "waits": "build failed",
    }
    assert rows["good"]["message"] == "holds pipe, which is no file, folder or link"
    assert rows["later"]["message"] == "'=1+1 names the weeks 2, not week 1"
    assert "more than 0.2 s" in rows["waits"]["message"]
    (folder / "good" / "pipe").unlink()
    again = run(folder, "--out", out, *OPTIONS, "--jobs", "1")
    assert "5 graded already, 1 to grade" in again.output
    good = table(out)["good"]
    assert [good[key] for key in ("outcome", "tests", "passed", "failed")] == [
        "graded",
        "2",
        "0",
        "2",
    ]
    assert "1 graded in" in again.output
    assert "submissions an hour" in again.output
    page = (out / "leaderboard.html").read_text()
    assert page.count("<tr>") == 7
    assert "http" not in page
    with sqlite3.connect(out / "class.sqlite") as base:
        failures = [row[0] for row in base.execute("SELECT failure FROM test")]
    assert all((out / "state" / "failures" / f"{name}.json").is_file() for name in failures)
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        assert (out / f"distribution.{kind}").read_bytes().startswith(start)


@pytest.mark.slow
def test_killed_and_resumed_is_like_undisturbed(tmp_path):
    folder = tmp_path / "class"
    echo(folder / "ada")
    echo(folder / "bob", 'build = ["sleep", "3"]\n')
    options = [str(folder), *OPTIONS, "--jobs", "1", "--out"]
    command = [sys.executable, "-m", "grader", "class", *options, str(tmp_path / "killed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        assert "ada: graded" in first
        time.sleep(0.5)
        process.send_signal(signal.SIGKILL)
    resumed = run(*options, tmp_path / "killed")
    assert "1 graded already, 1 to grade" in resumed.output
    assert run(*options, tmp_path / "calm").exit_code == 0
    grades = [(tmp_path / name / "grades.csv").read_bytes() for name in ("killed", "calm")]
    assert grades[0] == grades[1]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_the_process_of_a_submission_goes_with_who_asked(tmp_path, killed):
    nap = f"77.{os.getpid()}{int(killed)}"
    echo(tmp_path / "class" / "a", f'build = ["sh", "-c", "echo > sign; exec sleep {nap}"]\n')
    command = [sys.executable, "-m", "grader", "class", str(tmp_path / "class"), *OPTIONS]
    with subprocess.Popen([*command, "--out", str(tmp_path / "out")]) as process:
        while nap not in commands():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL if killed else signal.SIGINT)
    deadline = time.monotonic() + 60
    while nap in commands() or str(tmp_path) in commands():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gone", "--week", "1"], "expected a folder or a .csv file"),
        (["empty", "--week", "1"], "found none"),
        (["class", "--week", "77"], "got week 77"),
        (["class", "--week", "1", "--out", "class/out"], "expected --out outside"),
        (["odd.csv", "--week", "1"], "found no source"),
        (["twice.csv", "--week", "1"], "line 3: ada is in line 2 already"),
        (["half.csv", "--week", "1"], "line 2: expected a name and a source"),
    ],
)
def test_bad_questions_get_one_sentence(tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    echo(tmp_path / "class" / "ada")
    (tmp_path / "odd.csv").write_text("name,place\n")
    (tmp_path / "twice.csv").write_text("name,source\nada,x\nada,y\n")
    (tmp_path / "half.csv").write_text("name,source\nada,\n")
    result = run(*arguments)
    assert (result.exit_code, says in result.output) == (2, True), result.output
    assert not (tmp_path / "class-week1").exists()


def test_a_table_names_sources(tmp_path):
    (tmp_path / "c.csv").write_text(
        "name,source,mail\nAda,ada.zip,x\nBob,https://example.org/b,y\nC,git@h.org:c.git,\n"
    )
    entries = read_roster(tmp_path / "c.csv")
    assert [e.source for e in entries[1:]] == ["https://example.org/b", "git@h.org:c.git"]
    assert entries[0] == Entry("Ada", str(tmp_path / "ada.zip"))
    assert [e.is_git for e in entries] == [False, True, True]
    (tmp_path / "d.csv").write_bytes(b"name,source\n\xff,x\n")
    with pytest.raises(RosterError, match="UTF-8"):
        read_roster(tmp_path / "d.csv")


def test_names_of_a_folder_are_told_apart(tmp_path):
    for name in ("ada", "Bob", ".hidden"):
        (tmp_path / name).mkdir()
    for name in ("ada.zip", "eve.tar.gz"):
        (tmp_path / name).touch()
    assert [e.name for e in read_roster(tmp_path)] == ["Bob", "ada", "ada.zip", "eve"]
    assert len({intake.folder_name(n) for n in ("a/b", "a_b", "a\nb", "ä", "\udcff")}) == 5


def test_a_synthetic_class_is_the_same_for_a_seed(tmp_path):
    for name in ("one", "two"):
        make(tmp_path / name, 12, seed=3)
    assert len(read_roster(tmp_path / "one")) == 12
    folders = [
        sorted(p.name for p in (tmp_path / n).iterdir() if p.is_dir()) for n in ("one", "two")
    ]
    assert folders[0] == folders[1] != []
    digests = [[intake.digest(tmp_path / n / f) for f in folders[0]] for n in ("one", "two")]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == len(folders[0])
    assert sum(kind.share for kind in KINDS) > 0
