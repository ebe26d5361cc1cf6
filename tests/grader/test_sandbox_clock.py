"""The wall clock of a run: what others take of the machine is not the run's time."""

import os
import subprocess
import sys
import time

import pytest

from grader.processes import Process, scheduled
from grader.sandbox import Clock, Limits, run
from grader.sandbox import clock as module
from grader.verdict import Verdict

BUSY = "import time\nwhile time.process_time() < {seconds}: pass\nprint('done')\n"
ME = Process(os.getpid(), 0, 0, 1, 0, 0)


@pytest.fixture
def crowd():
    """This process and all that it starts on one processor, with four others that never rest."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    # Each in a session of its own: Linux shares processors out among sessions.
    busy = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(busy, start_new_session=True) for _ in range(4)]
    yield
    os.sched_setaffinity(0, before)
    for other in others:
        other.kill()
        other.wait()


def started(seconds, ago, monkeypatch, waited=0.0, before=0.0):
    """A clock that was started some time ago, and a process that waited for so long since then."""
    told = [before]
    monkeypatch.setattr(module, "scheduled", lambda pid: (0.0, told[0]))
    clock = Clock(seconds, [ME] if before else [])
    clock.start -= ago
    told[0] = before + waited
    return clock


@pytest.mark.usefixtures("crowd")
def test_a_run_that_had_no_processor_has_more_time(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 60)
    ended = run([sys.executable, "-c", BUSY.format(seconds=0.4)], limits=Limits(seconds=1.2))
    assert (ended.verdict, ended.stdout) == (Verdict.OK, b"done\n")
    assert ended.seconds > 1.2, "nothing was in its way, so that this shows nothing"


@pytest.mark.usefixtures("crowd")
def test_what_a_process_waits_is_counted():
    (ran, waited), start = scheduled(os.getpid()), time.monotonic()
    while time.monotonic() < start + 1.0:
        pass
    ran_since, waited_since = (
        b - a for a, b in zip((ran, waited), scheduled(os.getpid()), strict=True)
    )
    assert min(ran_since, waited_since) > 0.05
    assert ran_since + waited_since <= time.monotonic() - start + 0.1


def test_a_process_that_is_gone_has_waited_for_nothing():
    assert scheduled(1 << 30) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("ago", "waited", "over"),
    [(0.9, 0.0, False), (1.1, 0.0, True), (2.0, 1.5, False), (3.0, 1.5, True), (4.1, 9.0, True)],
)
def test_the_end(ago, waited, over, monkeypatch):
    assert started(1.0, ago, monkeypatch, waited).over([ME]) is over


def test_what_was_waited_before_a_request_is_not_its_own(monkeypatch):
    assert started(1.0, 1.5, monkeypatch, waited=0.1, before=9.0).over([ME])


def test_a_wait_that_is_not_over_counts(monkeypatch):
    clock = started(1.0, 0.9, monkeypatch)
    ready, asleep = ME._replace(ready=True), ME._replace(ready=False)
    while clock.elapsed < 1.2:
        assert not clock.over([ready])
        time.sleep(0.02)
    while clock.elapsed < 1.6:
        clock.over([asleep])
        time.sleep(0.02)
    assert clock.over([asleep])
