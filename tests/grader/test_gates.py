"""Gates: what earns credit, what is skipped, what is measured twice; and how it is reported."""

import json

import pytest
from click.testing import CliRunner

from grader import cli, gates, session
from grader.bench.row import Row
from grader.bench.suites import SUITES
from grader.bench.timing import Round
from grader.counting import Counts, UncountableError
from grader.floor import least_seconds
from grader.gates import (
    BYTES,
    FILE,
    HELD,
    UNMEASURED,
    Gate,
    GateResult,
    Gates,
    Threshold,
    gates_of,
    interval,
    judge,
)
from grader.results import Result, WeekResult
from grader.run_c import RunError
from grader.verdict import Verdict
from grader.weeks import WEEKS, week_of
from tests.grader.compilers import ECHO, submission
from week05_06_memory.machine import Machine

STEPS = (Threshold(1.0, 1.0), Threshold(2.0, 0.5))
GATE = Gate("gemm", 1, "best", STEPS)


def made(numpy=None, torch=None, *, ours=1.0, case="gemm", rounds=7):
    """A row with these ratios."""
    row = Row(case, 1, flops=1.0, bytes=1)
    theirs = {name: ours / r for name, r in (("numpy", numpy), ("torch", torch)) if r}
    row.take([Round({"ours": ours, **theirs})] * rounds)
    return row


@pytest.mark.parametrize(
    ("ratios", "outcome", "credit"),
    [
        ((0.5, 0.9), "passed", 1.0),
        ((0.5, 0.96), "passed", 1.0),
        ((0.5, 1.05), "partial", 0.5),
        ((1.92, 0.1), "partial", 0.5),
        ((2.09, 0.1), "failed", 0.0),
    ],
)
def test_credit_is_that_of_the_strictest_threshold(ratios, outcome, credit):
    result = judge(GATE, made(*ratios))
    assert (result.outcome, result.credit) == (outcome, credit)
    assert result.ratio == pytest.approx(max(ratios))
    assert result.low <= result.ratio <= result.high


def test_wrong_results_fail_however_fast():
    row = made(0.01, 0.01)
    row.fail("element [0]: expected 1, got 2")
    result = judge(GATE, row)
    assert (result.outcome, result.credit, result.ratio) == ("failed", 0.0, None)
    assert "expected 1, got 2" in result.message


@pytest.mark.parametrize(
    ("skipped", "says"),
    [
        ({"torch": "torch is not installed"}, "torch is not installed"),
        ({"numpy": "ValueError: broken", "torch": "no"}, "ValueError: broken"),
    ],
)
def test_without_its_reference_a_gate_is_not_measurable(skipped, says):
    row = made(0.5)
    row.skipped = skipped
    result = judge(GATE, row)
    assert (result.outcome, result.credit) == (UNMEASURED, 0.0)
    assert says in result.message


def test_what_a_library_does_not_offer_does_not_matter():
    row = made(None, 0.5)
    row.skipped["numpy"] = "NumPy has no function for it"
    assert judge(GATE, row).outcome == "passed"


def test_what_cannot_be_measured_earns_nothing():
    row = Row("gemm", 1)
    row.fail("expected a C compiler, but neither gcc nor clang is on PATH", blameless=True)
    result = judge(GATE, row)
    assert (result.outcome, result.credit) == (UNMEASURED, 0.0)


@pytest.mark.parametrize("more", ["flops", "bytes"])
def test_faster_than_the_machine_is_held_for_review(more):
    row = made(0.001, 0.001)
    setattr(row, more, 10**18)
    result = judge(GATE, row)
    assert (result.outcome, result.credit) == (HELD, 0.0)
    assert "1 s a call, of which this machine needs" in result.message


@pytest.mark.parametrize(("ratio", "credit"), [(0.9, 0.5), (1.1, 0.5), (1.7, 0.0)])
def test_on_a_busy_machine_the_lower_credit_is_earned_near_a_threshold(ratio, credit):
    row = noisy(ratio, ratio, ratio)("gemm")
    row.disturbed = True
    result = judge(GATE, row)
    assert (result.outcome, result.credit) == (UNMEASURED, credit)
    assert "other processes ran" in result.message


@pytest.mark.parametrize(("ratio", "credit"), [(0.3, 1.0), (1.3, 0.5), (9.0, 0.0)])
def test_far_from_all_thresholds_a_busy_machine_decides_nothing(ratio, credit):
    row = noisy(ratio, ratio, ratio)("gemm")
    row.disturbed = True
    result = judge(GATE, row)
    assert (result.outcome != UNMEASURED, result.credit) == (True, credit)


@pytest.mark.parametrize(
    ("ratios", "outcome", "credit"),
    [
        ((0.9, 0.92, 0.95), "passed", 1.0),
        ((0.94, 0.96, 0.98), UNMEASURED, 0.5),
        ((0.96, 0.98, 1.02), UNMEASURED, 0.5),
        ((1.0, 1.02, 1.03), UNMEASURED, 0.5),
        ((0.5, 0.9, 1.9), UNMEASURED, 0.5),
        ((1.2, 1.5, 1.9), "partial", 0.5),
        ((1.9, 1.95, 2.05), UNMEASURED, 0.0),
        ((0.5, 0.5), UNMEASURED, 0.0),
        ((9.0,), "failed", 0.0),
    ],
)
def test_what_counts_is_beyond_the_ends_of_the_interval(ratios, outcome, credit):
    result = judge(GATE, noisy(*ratios)("gemm"))
    assert (result.low, result.high) == pytest.approx((min(ratios), max(ratios)))
    assert (result.outcome, result.credit) == (outcome, credit)


@pytest.mark.parametrize(
    ("flops", "moved", "threads", "seconds"),
    [
        (6e9, 0, 1, 2.0),
        (6e9, 0, 2, 1.0),
        (0, 10**9, 1, 0.0),
        (0, 3 * 10**9, 1, 1.0),
        (0, 6 * 10**9, 2, 1.0),
    ],
)
def test_no_machine_is_faster_than_its_rates(flops, moved, threads, seconds):
    """Of the bytes those count that no cache holds."""
    rates = {"peak_flops": 1e9, "bandwidth": 1e9, "copy_bandwidth": 1e9}
    caches = {"l1": 1 << 15, "l2": 1 << 20, "l3": 10**9 - (1 << 15) - (1 << 20)}
    machine = Machine.from_json(json.dumps(rates | caches))
    assert least_seconds(flops, moved, threads, machine) == pytest.approx(seconds)


def test_the_interval_holds_the_median_and_narrows():
    few, many = [0.9, 1.0, 1.1], [0.9, 1.0, 1.1] * 20
    assert interval(few) == interval(few)
    low, high = interval(few)
    assert low <= 1.0 <= high
    assert interval(many)[1] - interval(many)[0] < high - low


def raising(error):
    """A function of a job that does not return."""

    def count(job):
        raise error

    return count


def measuring(rows):
    """Measure by a table of rows for each run, and note the jobs."""
    jobs = []

    def measure(job, threads):
        jobs.append((job.cases, threads, job.seed))
        for case in job.cases:
            yield case
            yield rows[len(jobs) - 1](case)

    return measure, jobs


def results(found, measure, **options):
    return [
        e
        for e in gates.run(week_of(1), found, measure=measure, **options)
        if not isinstance(e, str)
    ]


def noisy(*ratios):
    def make(case):
        row = Row(case, 1)
        row.take([Round({"ours": r, "numpy": 1.0, "torch": 1.0}) for r in ratios])
        return row

    return make


def test_near_the_edge_it_is_measured_again_and_both_count():
    found = Gates("week5", 3, (GATE, Gate("clear", 1, "best", STEPS)))
    edge = {"gemm": noisy(0.9, 1.05, 1.1), "clear": noisy(0.5, 0.5, 0.5)}
    again = noisy(*[0.9] * 9)
    measure, jobs = measuring([lambda case: edge[case](case), again])
    clear, gemm = results(found, measure)
    assert [cases for cases, _, _ in jobs] == [("gemm", "clear"), ("gemm",)]
    assert jobs[0][2] != jobs[1][2], "the second time has other inputs"
    assert (clear.case, clear.outcome) == ("clear", "passed")
    assert (gemm.ratio, gemm.outcome) == (pytest.approx(0.9), "passed")


def test_what_was_measured_on_a_busy_machine_is_measured_again_and_does_not_count():
    def busy(case):
        row = noisy(0.9, 0.9, 0.9)(case)
        row.disturbed = True
        return row

    measure, jobs = measuring([busy, noisy(1.5, 1.5, 1.5)])
    (result,) = results(Gates("week5", 3, (GATE,)), measure)
    assert (result.ratio, result.outcome, len(jobs)) == (1.5, "partial", 2)
    measure, jobs = measuring([busy, busy])
    (result,) = results(Gates("week5", 3, (GATE,)), measure)
    assert (result.outcome, len(jobs)) == (UNMEASURED, 2)


@pytest.mark.parametrize(
    ("counted", "outcome", "credit", "says"),
    [
        (lambda job: (0.7, Counts(3, 2, 20, 1)), "passed", 1.0, ""),
        (lambda job: (1.5, Counts(3, 2, 20, 1)), "partial", 0.5, "3 loads and 2 stores in 1 loop"),
        (lambda job: (2.5, Counts(3, 2, 20, 4)), "failed", 0.0, "in 4 loop nest(s)"),
        (raising(UncountableError("not countable here: clang")), UNMEASURED, 0.0, "clang"),
        (raising(RunError(Verdict.CRASH, "SIGSEGV")), "failed", 0.0, "SIGSEGV"),
        (raising(RunError(Verdict.GRADER, "no compiler")), UNMEASURED, 0.0, "no compiler"),
    ],
)
def test_what_is_counted_comes_first_and_is_exact(counted, outcome, credit, says):
    gate = Gate("exp", 1, BYTES, STEPS)
    measure, _ = measuring([noisy(0.5, 0.5, 0.5)])
    found = Gates("week5", 3, (GATE,), (gate,))
    first, timed = results(found, measure, count=counted)
    assert (first.case, first.outcome, first.credit) == ("exp", outcome, credit)
    assert says in first.message
    assert first.low == first.ratio == first.high
    assert timed.outcome == "passed"


def test_threads_are_measured_apart():
    found = Gates("week5", 3, (GATE, Gate("gemm", 2, "best", STEPS)))
    measure, jobs = measuring([noisy(0.5, 0.5, 0.5)] * 2)
    assert [r.threads for r in results(found, measure)] == [1, 2]
    assert [(cases, threads) for cases, threads, _ in jobs] == [(("gemm",), 1), (("gemm",), 2)]


def test_more_threads_than_cores_are_not_measurable(monkeypatch):
    monkeypatch.setattr(gates.os, "sched_getaffinity", lambda pid: {0})
    measure, jobs = measuring([])
    (result,) = results(Gates("week5", 3, (Gate("gemm", 2, "best", STEPS),)), measure)
    assert (result.outcome, result.message) == (UNMEASURED, "this machine has 1 core(s)")
    assert jobs == []


def test_the_data_file_names_cases_that_exist():
    for package in json.loads(FILE.read_text()):
        found = gates_of(package)
        assert package in {week.package for week in WEEKS}
        names = {workload.name for workload in SUITES[found.suite]()}
        for gate in (*found.gates, *found.counted):
            assert gate.case in names
            steps = [t.credit for t in gate.thresholds]
            assert steps == sorted(steps, reverse=True)
            assert steps[0] == 1.0
    assert gates_of("week01_uops") is None


def test_a_gate_may_have_thresholds_of_its_own(tmp_path):
    file = tmp_path / "gates.json"
    gate = {"case": "x", "threads": 2, "thresholds": [{"ratio": 9, "credit": 1}]}
    given = {"suite": "week5", "rounds": 3, "reference": "numpy", "thresholds": [], "gates": [gate]}
    file.write_text(json.dumps({"week": given}))
    (found,) = gates_of("week", file).gates
    assert found == Gate("x", 2, "numpy", (Threshold(9, 1),))


@pytest.mark.parametrize(
    ("outcome", "credit", "allow_skips", "passes"),
    [
        ("passed", 1.0, False, True),
        ("partial", 0.5, False, True),
        ("failed", 0.0, True, False),
        (HELD, 0.0, True, False),
        (UNMEASURED, 0.0, False, False),
        (UNMEASURED, 0.0, True, True),
        (UNMEASURED, 0.5, False, True),
    ],
)
def test_a_week_passes_if_every_gate_earns_something(outcome, credit, allow_skips, passes):
    week = WeekResult(5, "week", "week 5", ["t"], [Result("t", "passed")])
    week.gates.append(GateResult("gemm", 1, "best", 1.0, outcome, credit))
    assert week.passed(allow_skips=allow_skips) is passes


@pytest.fixture
def grade(tmp_path, monkeypatch):
    """Run the command on a week with one test and these gates."""
    monkeypatch.chdir(tmp_path)
    folder = submission(tmp_path / "student", ECHO)
    test = tmp_path / "test_spec_case.py"
    test.write_text("def test_nothing():\n    pass\n")
    monkeypatch.setattr(session, "spec_tests", lambda week: [test])
    found = Gates("week5", 3, (GATE, Gate("slow", 1, "best", STEPS)))
    monkeypatch.setattr("grader.gates.gates_of", lambda package: found)

    def run(*outcomes, options=()):
        def measure(week, found, **given):
            assert given["submission"] == folder.resolve()
            for outcome in outcomes:
                yield "gemm"
                yield outcome

        monkeypatch.setattr("grader.gates.run", measure)
        arguments = ["--week", "1", "--submission", str(folder), "--json", "out.json", *options]
        result = CliRunner().invoke(cli.main, arguments)
        return result, json.loads((tmp_path / "out.json").read_text())

    return run


PASSED = GateResult("gemm", 1, "best", 1.0, "passed", 1.0, 0.8, 0.7, 0.9)
FAILED = GateResult("slow", 1, "best", 1.0, "failed", 0.0, 9.0, 8.0, 10.0, "others ran")


def test_gates_are_reported(grade):
    result, data = grade(PASSED, FAILED)
    assert result.exit_code == 1
    (week,) = data["weeks"]
    assert [gate["credit"] for gate in week["gates"]] == [1.0, 0.0]
    assert week["gates"][0]["ratio"] == 0.8
    for part in (
        "points: 1.00 of 2\n",
        "the upper end of its 95 % interval",
        "0.80 [0.70, 0.90]",
        "to the time of the faster of NumPy and PyTorch: 1 up to 1, 0.5",
    ):
        assert part in result.output
    assert "slow (1 thread): others ran" in result.output
    assert grade(PASSED)[0].exit_code == 0


def test_what_is_open_is_named_beside_the_points(grade):
    open_gate = GateResult("slow", 1, "best", 1.0, UNMEASURED, message="torch is not installed")
    result, data = grade(PASSED, open_gate)
    assert result.exit_code == 1
    assert "points: 1.00 of 2, 1 not measurable" in result.output
    assert data["weeks"][0]["gates"][1]["outcome"] == "not measurable"
    assert grade(PASSED, open_gate, options=["--allow-skips"])[0].exit_code == 0


def test_gates_may_be_left_out(grade):
    result, data = grade(FAILED, options=["--no-gates"])
    assert result.exit_code == 0, result.output
    assert data["weeks"][0]["gates"] == []
