"""The levels of the sandbox: which one is used, and what is said where one cannot be."""

import time

import pytest
from click.testing import CliRunner

from grader.cli import main
from grader.sandbox import (
    LEVELS,
    VARIABLE,
    Limits,
    SandboxError,
    choose,
    level,
    levels,
    run,
    trouble,
)
from grader.verdict import Verdict


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No level is named, and none has been tried."""
    monkeypatch.setenv(VARIABLE, "auto")
    trouble.cache_clear()
    yield
    trouble.cache_clear()


def programs(folder, monkeypatch, **scripts):
    """A PATH on which these programs come first."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_the_best_level_that_works():
    works = [name for name in LEVELS if not trouble(name)]
    assert level() == works[-1]
    assert "none" in works


def test_a_level_that_does_not_work_is_not_used(tmp_path, monkeypatch):
    programs(tmp_path, monkeypatch, bwrap="echo no namespaces here >&2; exit 1")
    assert level() != "bwrap"
    with pytest.raises(SandboxError, match="bwrap, which does not work here: no namespaces here"):
        choose("bwrap")


def test_a_level_that_hangs_is_not_used(tmp_path, monkeypatch):
    programs(tmp_path, monkeypatch, bwrap="exec sleep 60")
    monkeypatch.setattr(levels, "PATIENCE", 0.2)
    start = time.monotonic()
    assert "does not end" in trouble("bwrap")
    assert time.monotonic() - start < 30


def test_without_its_programs_there_is_no_level(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert trouble("bwrap") == "there is no program prlimit"
    assert level() == "none"


def test_a_level_is_tried_once(tmp_path, monkeypatch):
    log = tmp_path / "log"
    programs(tmp_path, monkeypatch, bwrap=f"echo x >> {log}; exit 1")
    level(), level()
    assert log.read_text() == "x\n"


def test_unknown_level(monkeypatch):
    monkeypatch.setenv(VARIABLE, "strong")
    with pytest.raises(SandboxError, match=r"expected a sandbox of auto, bwrap, .*, got strong"):
        level()


def test_too_weak_a_level(monkeypatch):
    with pytest.raises(SandboxError, match="at least rlimit, got none"):
        choose("none", "rlimit")


def test_the_level_reaches_processes_that_are_started(monkeypatch):
    monkeypatch.setenv(VARIABLE, "auto")
    assert choose("none", "none") == "none"
    assert level() == "none"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sandbox", "bwrap"], "grader: expected the sandbox bwrap, which does not work here"),
        (["--require-sandbox", "bwrap"], "grader: expected a sandbox of at least bwrap, got"),
        (["--sandbox", "none", "--require-sandbox", "rlimit", "list"], "at least rlimit, got none"),
    ],
)
def test_the_command_refuses(tmp_path, monkeypatch, arguments, words):
    programs(tmp_path, monkeypatch, bwrap="exit 1")
    monkeypatch.setenv(VARIABLE, "auto")
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert result.output.count("\n") == 1


def test_processor_time(monkeypatch):
    if level() == "none":
        pytest.skip("no level works here that limits processor time")
    limits = Limits(seconds=60.0, processor=1)
    ended = run(["sh", "-c", "while :; do :; done"], limits=limits)
    assert (ended.verdict, ended.note) == (Verdict.TIMEOUT, "more processor time than allowed")
