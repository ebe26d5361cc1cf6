"""Mutants of the reference are killed by spec tests of their weeks; right compilers are not."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from grader.adversary import mutants, table
from grader.adversary.case import Cheat, Outcome
from grader.adversary.changes import altered
from grader.adversary.command import adversary
from grader.adversary.mutant import Mutant, Patch, applied
from grader.adversary.mutants import CONTROLS, MUTANTS, mutant_of
from grader.adversary.trial import SKIPPED, Trial, judge_by, search
from grader.verdict import Verdict
from grader.weeks import ROOT, week_of
from week01_uops.simplify import SIMPLIFY
from week03_loops import reduction

KILLERS = table.killers()
FIRST = MUTANTS[0]


def judged(case, tests):
    trial = judge_by(case, tests)
    if trial.outcome.verdict == SKIPPED:
        pytest.skip(trial.outcome.told)
    return trial


def params(cases):
    """Those that take long are left to the nightly run."""
    marks = {True: [pytest.mark.nightly], False: []}
    return [pytest.param(case, id=case.name, marks=marks[case.slow]) for case in cases]


@pytest.mark.parametrize("mutant", params(MUTANTS))
def test_killed_by_its_killer(mutant):
    trial = judged(mutant, [KILLERS[mutant.name]])
    assert trial.test == KILLERS[mutant.name], trial.outcome.told
    assert trial.outcome.verdict == mutant.expected, trial.outcome.told


@pytest.mark.parametrize("control", params(CONTROLS))
def test_right_compilers_pass(control):
    """After all mutants: none of them has left anything behind."""
    slow = {m.name for m in MUTANTS if m.slow}
    tests = [KILLERS[m.name] for m in MUTANTS if m.week == control.week and m.name not in slow]
    trial = judged(control, list(dict.fromkeys(tests)))
    assert trial.outcome.verdict == Verdict.OK, trial.outcome.told
    assert trial.seen >= 1


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", params(MUTANTS))
def test_found_by_a_whole_week(mutant):
    trial = search(mutant)
    assert trial.test.startswith(f"{week_of(mutant.week).package}/test_spec_"), trial.outcome.told


def test_enough_of_them():
    assert len(MUTANTS) >= 40
    assert {m.week for m in MUTANTS} >= {1, 2, 3, 4, 5, 9}
    assert len({m.name for m in (*MUTANTS, *CONTROLS)}) == len(MUTANTS) + len(CONTROLS)
    assert KILLERS.keys() == {m.name for m in MUTANTS}


def test_a_killer_is_of_its_week():
    for mutant in MUTANTS:
        assert KILLERS[mutant.name].startswith(f"{week_of(mutant.week).package}/test_spec_")


def test_patches_are_taken_back():
    before = reduction.accumulator_dtype
    with applied([Patch(reduction, "accumulator_dtype", len)]):
        assert reduction.accumulator_dtype is len
    assert reduction.accumulator_dtype is before


def test_a_change_of_no_rule_is_refused():
    with pytest.raises(KeyError, match="no_such_rule"):
        altered(SIMPLIFY, "no_such_rule", lambda x: x)


def test_unknown_mutant():
    with pytest.raises(KeyError, match="expected one of the mutants fold-add-saturates"):
        mutant_of("nobody")


TEXT = 'uops 1\nx = PARAM : {"slot": 0, "dtype": "int8", "shape": []}\nreturn x\n'


class Raising:
    def simplify(self, program):
        raise RuntimeError("broken")


def test_a_fault_of_ours_is_no_kill():
    """A mutant that raises is not judged: that says nothing of the test."""
    raising = Mutant("raising", 1, "Raises.", lambda reference: Raising())

    def asked():
        return Trial(Outcome(raising.subject().ask(["simplify"], TEXT).verdict, "raised"))

    def broken():
        raise RuntimeError("broken")

    for judge in (asked, broken):
        assert table.Item("mutant", raising, judge).row().state == "not judged"


def test_states():
    """Cheats need their verdict, mutants a test, controls none."""

    def state(kind, verdict, test="", expected=Verdict.WRONG):
        case = Cheat("x", 1, "", expected, lambda: Outcome(verdict, ""))
        return table.Item(kind, case, lambda: Trial(Outcome(verdict, ""), test)).row().state

    assert state("cheat", Verdict.WRONG) == "caught"
    assert state("cheat", Verdict.OK) == "escaped"
    assert state("cheat", Verdict.CRASH) == "escaped"
    assert state("cheat", SKIPPED) == "not judged"
    assert state("mutant", Verdict.BOUND, "test_x") == "caught"
    assert state("mutant", Verdict.OK) == "escaped"
    assert state("control", Verdict.OK, expected=Verdict.OK) == "passed"
    assert state("control", Verdict.WRONG, "test_x", Verdict.OK) == "escaped"


def run(*arguments):
    return CliRunner().invoke(adversary, arguments)


def test_command(tmp_path):
    file = tmp_path / "table.json"
    result = run("--only", FIRST.name, "--only", "reference-1", "--json", str(file))
    assert result.exit_code == 0, result.output
    assert FIRST.name in result.output
    assert "1 caught, 1 passed, 0 escaped, 0 not judged" in result.output
    found = json.loads(file.read_text())
    assert found["passed"]
    assert [row["test"] for row in found["rows"]] == [KILLERS[FIRST.name], ""]


def test_command_fails_if_one_escapes(monkeypatch):
    harmless = Mutant(FIRST.name, 1, "Nothing.")
    monkeypatch.setattr(table, "MUTANTS", (harmless,))
    monkeypatch.setattr(table, "search", lambda case: Trial(Outcome(Verdict.OK, "it passed")))
    monkeypatch.setattr(mutants, "MUTANTS", (harmless,))
    result = run("--only", FIRST.name)
    assert result.exit_code == 1
    assert "1 escaped" in result.output


def test_command_refuses(tmp_path):
    result = run("--only", "nobody")
    assert result.exit_code == 2
    assert "expected the name of a cheat, mutant or control, got nobody" in result.output
    result = run("--json", str(tmp_path / "none" / "table.json"))
    assert result.exit_code == 2
    assert "no folder" in result.output


def test_command_without_cheats(monkeypatch):
    monkeypatch.setattr(table, "CHEATS", "grader.adversary.nobody")
    result = run("--list")
    assert result.exit_code == 0
    assert "no cheats" in result.output
    assert FIRST.about in result.output


def test_command_of_the_grader():
    command = [sys.executable, "-m", "grader", "adversary", "--list"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert FIRST.name in result.stdout
