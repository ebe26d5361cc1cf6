"""The same submission, judged many times: what is counted, and what contradicts itself."""

import subprocess

import pytest
from click.testing import CliRunner

from grader.bench import stability
from grader.bench.stability import Pass, contradictions, neighbour, passes, scores
from grader.gates import BYTES, UNMEASURED, GateResult


def result(case, outcome, credit=0.0, ratio=1.0):
    return GateResult(case, 1, "best", 1.0, outcome, credit, ratio)


def test_some_passes_have_a_busy_neighbour_and_all_have_seeds_of_their_own(monkeypatch):
    started = []
    monkeypatch.setattr(stability, "BUSY", ("sleep", "60"))
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda argv: started.append(popen(argv)) or started[-1]
    )
    seeds = []

    def measure(seed):
        running = [process for process in started if process.poll() is None]
        seeds.append(seed)
        yield "gemm"
        yield result("gemm", "passed", 1.0, ratio=float(len(running)))

    done = list(passes(measure, 6, 2))
    assert sorted(seeds) == list(range(6))
    assert [one.busy for one in done] == [one.results[0].ratio == 1.0 for one in done]
    assert sum(one.busy for one in done) == len(started) == 2
    assert all(process.poll() is not None for process in started)


def test_a_neighbour_ends_when_measuring_fails(monkeypatch):
    monkeypatch.setattr(stability, "BUSY", ("sleep", "60"))
    found = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda argv: found.append(popen(argv)) or found[0])
    with pytest.raises(ValueError, match="broken"), neighbour(True):
        raise ValueError("broken")
    assert found[0].poll() is not None


@pytest.mark.parametrize(
    ("outcomes", "contradicts"),
    [
        (("passed", "passed"), False),
        (("passed", UNMEASURED), False),
        (("passed", "partial"), True),
        (("failed", "passed", UNMEASURED), True),
    ],
)
def test_what_contradicts_itself(outcomes, contradicts):
    done = [Pass(n, False, [result("x", outcome)]) for n, outcome in enumerate(outcomes)]
    assert contradictions(done) == (["x, 1 thread"] if contradicts else [])


def test_what_is_counted_and_what_is_timed_are_two_gates():
    counted = GateResult("x", 1, BYTES, 4.0, "passed", 1.0, 1.0)
    assert contradictions([Pass(0, False, [counted, result("x", "failed")])]) == []


def test_scores():
    done = [Pass(n, n > 2, [result("x", "passed", credit)]) for n, credit in enumerate((1, 0, 0.5))]
    assert scores(done, False) == "0.00 to 1.00, median 0.50 (3 times)"
    assert scores(done, True) == "none"


@pytest.fixture
def command(monkeypatch):
    """Run the command on results that are told."""

    def run(outcomes, *arguments):
        monkeypatch.setattr(stability, "BUSY", ("sleep", "60"))
        left = iter(outcomes)

        def measure(week, found, *, submission, seed, rounds):
            assert {gate.case for gate in found.gates} == {"exp.64K"}
            yield "exp.64K"
            yield result("exp.64K", next(left), 1.0, 0.5)

        monkeypatch.setattr("grader.gates.run", measure)
        return CliRunner().invoke(stability.main, ["--case", "exp.64K", *arguments])

    return run


def test_the_same_every_time(command):
    found = command(["passed"] * 4, "--times", "4", "--busy", "1")
    assert found.exit_code == 0, found.output
    assert "scores on a quiet machine: 1.00 to 1.00, median 1.00 (3 times)" in found.output
    assert "scores on a busy machine: 1.00 to 1.00, median 1.00 (1 times)" in found.output


def test_not_the_same(command):
    found = command(["passed", "failed"], "--times", "2", "--busy", "0")
    assert found.exit_code == 1
    assert "different outcomes: exp.64K, 1 thread" in found.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--week", "1"], "expected a week with gates, got 1"),
        (["--week", "99"], "99"),
        (["--case", "nothing"], "expected cases of week05_06_memory"),
        (["--submission", "/nowhere"], "no folder /nowhere"),
    ],
)
def test_questions_without_sense(arguments, says):
    found = CliRunner().invoke(stability.main, arguments)
    assert found.exit_code == 2
    assert says in found.output
