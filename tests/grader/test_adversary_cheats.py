"""Every cheat gets the verdict that it should get, in words; the honest ones pass."""

import re
import shutil
from pathlib import Path

import pytest

from grader import sandbox
from grader.adversary.case import Outcome
from grader.adversary.cheats import CHEATS
from grader.adversary.cheats.ways import SKIPPED, closed_off
from grader.verdict import Verdict

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


LONG = {
    *("timed-honest", "timed-slow", "content-cache", "slow-start", "locks-streams"),
    *("huge-allocation", "compiler-eats-memory"),
}
ALL = [
    pytest.param(cheat, id=cheat.name, marks=[pytest.mark.nightly] * (cheat.name in LONG))
    for cheat in CHEATS
]


@pytest.mark.parametrize("cheat", ALL)
def test_it_is_seen(cheat):
    outcome = cheat.run()
    if outcome.verdict == SKIPPED:
        pytest.skip(outcome.told)
    assert outcome.verdict == cheat.expected, outcome.told
    assert re.search(r"\w \w", outcome.told), "expected a sentence"
    assert "Traceback" not in outcome.told


def test_names_are_words_and_there_is_one_of_each():
    names = [cheat.name for cheat in CHEATS]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)
    assert set(names) >= LONG


def test_a_control_of_each_kind_passes():
    assert sum(cheat.expected == Verdict.OK for cheat in CHEATS) >= 4


def test_what_needs_a_closed_sandbox_is_skipped_elsewhere(monkeypatch):
    run = closed_off(lambda: Outcome("ok", "ran"), "bwrap")
    monkeypatch.setattr(sandbox, "level", lambda: "bwrap")
    assert run().verdict == "ok"
    monkeypatch.setattr(sandbox, "level", lambda: "none")
    assert run() == Outcome(SKIPPED, "needs a sandbox of level bwrap, this is none")


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("untouched-output", "timed-nothing"):
        next(cheat for cheat in CHEATS if cheat.name == name).run()
    assert list(Path(tmp_path).iterdir()) == []
