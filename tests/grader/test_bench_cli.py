"""`python -m grader.bench`: questions, rows, JSON, drawings; and the processes behind it."""

import io
import json
import sys
import textwrap

import pytest
from click.testing import CliRunner
from rich.console import Console

from grader.bench import plots, runner, table
from grader.bench.__main__ import main
from grader.bench.contenders import environment
from grader.bench.plots import NoPlotError, draw
from grader.bench.row import Row
from grader.bench.timing import Plan, Round
from grader.bench.worker import Job
from week05_06_memory.machine import detect

QUICK = Plan(rounds=1, budget=0)


def made(case, threads=1, ours=1.0, **others):
    row = Row(case, threads, flops=1e9, bytes=10**7)
    row.take([Round({"ours": ours, "roofline": 0.5, **others})] * 3)
    return row


def events(job, threads):
    found = list(runner.run(job, threads))
    assert [e for e in found if isinstance(e, str)] == list(job.cases)
    return [e for e in found if isinstance(e, Row)]


@pytest.fixture
def worker(monkeypatch, tmp_path):
    """Let another program take the worker's place."""

    def use(code):
        script = tmp_path / "worker.py"
        script.write_text(
            "import json, os, signal, sys, time\n"
            "channel = os.fdopen(int(sys.argv[1]), 'w')\n"
            "def say(**event): channel.write(json.dumps(event) + '\\n'); channel.flush()\n"
            "cases = json.load(sys.stdin)['cases']\n" + textwrap.dedent(code)
        )
        monkeypatch.setattr(runner, "WORKER", (sys.executable, str(script)))

    return use


def test_a_case_is_measured_in_a_process_of_its_own():
    (row,) = events(Job("week5", ("add.64K",), ("numpy", "jax"), QUICK), 1)
    assert row.correct, row.error
    assert row.threads == 1
    assert row.ratio["numpy"] > 0
    assert row.roofline is not None
    assert row.skipped.get("jax") == "jax is not installed" or "jax" in row.ratio


def test_a_crash_costs_one_case(worker):
    worker("""
        for case in cases:
            say(event="start", case=case)
            if case == "b": os.kill(os.getpid(), signal.SIGSEGV)
            say(event="row", row={"case": case, "threads": 2, "ours_s": 1.0})
    """)
    rows = events(Job("week5", ("a", "b", "c"), (), QUICK), 2)
    assert [(row.case, row.correct) for row in rows] == [("a", True), ("b", False), ("c", True)]
    lost = rows[1]
    assert "SIGSEGV" in lost.error
    assert not lost.blameless


def test_silence_costs_one_case(worker, monkeypatch):
    monkeypatch.setattr(runner, "STALLED", 1.0)
    worker("""
        say(event="start", case=cases[0])
        time.sleep(60)
    """)
    (row,) = events(Job("week5", ("a",), (), QUICK), 1)
    assert "no result after 1 s" in row.error


def test_a_worker_that_cannot_begin_costs_all_cases(worker):
    worker("raise SystemExit('no such thing')")
    rows = list(runner.run(Job("week5", ("a", "b"), (), QUICK, week=5), 1))
    assert [row.case for row in rows] == ["a", "b"]
    assert all("no such thing" in row.error and row.blameless for row in rows)


def test_everybody_gets_the_same_threads(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    given = environment(2)
    assert "OPENBLAS_CORETYPE" not in given
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    assert {given[name] for name in names} == {"2"}


def test_the_command_writes_json_and_drawings(tmp_path):
    file, folder = tmp_path / "out.json", tmp_path / "plots"
    arguments = ["--only", "add.64K", "--against", "numpy", "--rounds", "1", "--budget", "0"]
    arguments += ["--json", str(file), "--plot", str(folder)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "geometric mean" in result.output
    data = json.loads(file.read_text())
    assert {"machine", "versions", "rows", "geomean"} <= data.keys()
    (row,) = data["rows"]
    wanted = {"case", "threads", "correct", "ours_s", "ratio", "gflops", "gbytes", "roofline"}
    assert wanted <= row.keys()
    assert row["correct"] is True
    assert data["geomean"]["1"].keys() == {"numpy", "best"}
    assert {path.name for path in folder.iterdir()} == {
        f"week5-{name}.{kind}" for name in ("ratios", "roofline") for kind in ("png", "svg")
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--threads", "0"], "expected numbers of threads"),
        (["--threads", "1,x"], "expected numbers of threads"),
        (["--against", "numpy,blas"], "got blas"),
        (["--only", "no such kernel"], "expected a pattern found in one of gemm.256"),
        (["--only", "("], "no pattern"),
        (["--suite", "week55"], "week55"),
    ],
)
def test_bad_questions_get_one_sentence(arguments, says):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())
    assert "Traceback" not in result.output


def printed(*parts):
    console = Console(width=150, file=io.StringIO())
    for part in parts:
        console.print(part)
    return console.file.getvalue()


def test_a_failure_is_shown_and_never_counts_as_fast():
    bad = made("bad", numpy=1000.0)
    bad.fail("element [0]: expected 1, got 2")
    rows = [made("good", numpy=0.5), bad]
    text = printed(table.table(rows, ["numpy"]), table.line(bad), *table.remarks(rows))
    assert text.count("expected 1, got 2") == 2
    assert "1 of 2 rows failed" in text
    assert "2.00" in text
    assert table.standing(rows) == "0 of 2 rows at or below 1.00 of the best; slowest: good 2.00"


def test_the_absent_are_named_with_the_reason():
    row = made("case", numpy=1.0)
    row.skipped["tinygrad"] = "clang is missing"
    assert table.remarks([row]) == ["tinygrad skipped: clang is missing (case)"]


def test_growth_is_told_by_family():
    rows = [made("gemm.64", ours=1.0), made("gemm.128", ours=0.5), made("softmax.64")]
    product, softmax = table.growth(rows)
    assert "gemm, 1 thread: 50 to 100 % of its own best" in product
    assert product.endswith("90 % or more from 128 to 128")
    assert "softmax, 1 thread: 100 to 100 %" in softmax


def test_the_longest_run_of_sizes_near_the_best_is_named():
    times = {"32": 1.0, "64": 2.0, "96": 1.05, "128": 1.0, "256": 1.1, "512": 1.3, "1024": 1.0}
    (line,) = table.growth([made(f"gemm.{size}", ours=time) for size, time in times.items()])
    assert line.endswith("90 % or more from 96 to 256")


def test_sizes_are_drawn_too(tmp_path):
    rows = [made(f"gemm.{size}", threads, numpy=0.5) for size in (64, 128) for threads in (1, 2)]
    files = draw(rows, "scaling", detect(), tmp_path)
    assert len(files) == 6
    assert all(file.stat().st_size > 1000 for file in files)


def test_what_cannot_be_drawn_is_said(tmp_path, monkeypatch):
    with pytest.raises(NoPlotError, match="got none"):
        draw([Row("case", 1, error="crashed")], "week5", detect(), tmp_path)

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(plots.importlib, "import_module", missing)
    with pytest.raises(NoPlotError, match="matplotlib"):
        draw([made("case")], "week5", detect(), tmp_path)
