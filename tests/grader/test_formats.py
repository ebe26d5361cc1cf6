"""Files of results: the schema, and the forms of Gradescope, Classroom, JUnit and CSV."""

import base64
import csv
import io
import json
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner

from grader import cli, session
from grader.formats import classroom, grades, gradescope, junit, scale
from grader.formats.commands import SCHEMA
from grader.gates import HELD, UNMEASURED, GateResult
from grader.results import Result, RunResult, WeekResult
from grader.verdict import Verdict, clean
from grader.weeks import WEEKS
from tests.grader.compilers import ECHO, submission

PROGRAM = '''
ADD = """
x = PARAM : {"slot": 0, "dtype": "int16", "shape": []}
z = CONST : {"value": 3, "dtype": "int16"}
y = ADD x z
return y
"""

def test_accepts(judge):
    """A sum is accepted."""
    judge.accepts(ADD)
'''
FAILS = '''
def test_bound(judge):
    """A sum becomes one node."""
    judge.simplifies(ADD, at_most=1)
'''
FILES = ("json", "gradescope", "classroom", "junit", "csv", "html")
WIDE = "\x1b[31m\ud800\u202eloud"


@pytest.fixture
def grade(tmp_path, monkeypatch):
    """Run the command on one spec file with these tests; the files that it wrote, by format."""
    monkeypatch.chdir(tmp_path)

    def run(tests, *more, toml=""):
        folder = submission(tmp_path / "student", ECHO)
        with (folder / "submission.toml").open("a") as file:
            file.write(toml)
        (tmp_path / "test_spec_case.py").write_text(tests)
        monkeypatch.setattr(session, "spec_tests", lambda week: [tmp_path / "test_spec_case.py"])
        monkeypatch.setattr(scale, "spec_tests", lambda week: [])
        options = ["--week", "1", "--submission", str(folder), "--state", "state", *more]
        options += [word for name in FILES for word in (f"--{name}", f"out.{name}")]
        result = CliRunner().invoke(cli.main, options)
        assert "Traceback" not in result.output
        return result, {name: (tmp_path / f"out.{name}").read_text() for name in FILES}

    return run


def test_files_of_a_run(grade):
    """Passing and failing results fit the schema; the forms agree on what passed."""
    result, files = grade(PROGRAM + FAILS)
    assert result.exit_code == 1
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    results = json.loads(files["json"])
    jsonschema.validate(results, schema, jsonschema.Draft202012Validator)
    assert_described(results, schema, schema)
    points = scale.shares()["week01_uops"].points
    sent = json.loads(files["gradescope"])
    assert (sent["score"], sent["extra_data"]) == (
        points / 2,
        {"max_score": points, "complete": True},
    )
    (test,) = sent["tests"]
    assert (test["name"], test["score"], test["status"]) == ("week 1: tests", points / 2, "failed")
    assert "bound missed: expected at most 1 UOps" in test["output"]
    key, _, encoded = files["classroom"].strip().partition("=")
    document = json.loads(base64.b64decode(encoded))
    assert (key, document["status"], document["max_score"]) == ("week01_tests", "fail", points)
    assert [(t["status"], t["score"]) for t in document["tests"]] == [
        ("pass", points / 2),
        ("fail", 0),
    ]
    suite = ElementTree.fromstring(files["junit"])[0]
    assert [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] == list("2100")
    (row,) = csv.DictReader(io.StringIO(files["csv"]))
    assert (float(row["points"]), row["passed"], row["tests_failed"]) == (points / 2, "False", "1")
    assert "A sum becomes one node." in files["html"]


def assert_described(value, schema, whole):
    """Every key of the results stands in the schema."""
    schema = whole["$defs"][schema["$ref"].split("/")[-1]] if "$ref" in schema else schema
    schema = assert_described(value, schema["anyOf"][1], whole) if "anyOf" in schema else schema
    if isinstance(value, list):
        for item in value:
            assert_described(item, schema.get("items", {}), whole)
    elif isinstance(value, dict) and "properties" in schema:
        assert set(value) <= set(schema["properties"])
        for key, part in value.items():
            assert_described(part, schema["properties"][key], whole)
    return schema


def test_a_passing_run_fits_the_schema(grade):
    result, files = grade(PROGRAM)
    assert result.exit_code == 0, result.output
    results = json.loads(files["json"])
    assert results["passed"]
    jsonschema.validate(results, json.loads(SCHEMA.read_text()), jsonschema.Draft202012Validator)
    assert json.loads(files["gradescope"])["tests"][0]["status"] == "passed"


@pytest.mark.parametrize(
    "change",
    [
        {"passed": True, "complete": False},
        {"weeks": [{"week": 1}]},
        {"seed": "0"},
        {"schema": 2},
    ],
    ids=str,
)
def test_the_schema_refuses(change):
    good = RunResult("x", None, 0, "none", "2026-01-01T00:00:00+00:00").json()
    schema = json.loads(SCHEMA.read_text())
    jsonschema.validate(good, schema, jsonschema.Draft202012Validator)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(good | change, schema, jsonschema.Draft202012Validator)


def test_the_schema_knows_every_verdict():
    failure = json.loads(SCHEMA.read_text())["$defs"]["failure"]
    verdicts = {str(verdict) for verdict in Verdict if verdict is not Verdict.OK}
    assert set(failure["properties"]["verdict"]["enum"]) == verdicts


def test_schema_is_printed():
    printed = CliRunner().invoke(cli.main, ["schema"])
    assert (printed.exit_code, printed.output) == (0, SCHEMA.read_text())


def test_a_submission_that_cannot_be_built_has_results(grade):
    """The sentence that the command prints stands in every file, and nothing is earned."""
    result, files = grade(PROGRAM, toml='build = ["false"]\n')
    assert result.exit_code == 2
    said = "the build failed: exit status 1"
    assert said in result.output
    assert all(said in files[name] for name in FILES if name != "classroom")
    sent = json.loads(files["gradescope"])
    assert (sent["score"], len(sent["tests"]), sent["extra_data"]["complete"]) == (0, 1, True)
    results = json.loads(files["json"])
    assert (results["passed"], results["complete"]) == (False, True)


def week_with_gates(*gates):
    package = next(week for week in WEEKS if scale.shares()[week.package].gates)
    week = WeekResult(package.last, package.package, package.title, gates=list(gates))
    for file in session.spec_tests(package):
        test = f"{package.package}/{file.name}::test_it"
        week.collected.append(test)
        week.results.append(Result(test, "passed", 0.1, "It is right."))
    return week


def gate(outcome, credit=0.0, ratio=None):
    low, high = (None, None) if ratio is None else (ratio * 0.9, ratio * 1.1)
    return GateResult("gemm.256", 1, "best", 1.0, outcome, credit, ratio, low, high, "why not")


def run_of(*weeks):
    return RunResult("Ada", None, 0, "none", "2026-01-01T00:00:00+00:00", weeks=list(weeks))


def test_the_scale_is_whole():
    """100 points; whatever is not judged is open; keys are good names of outputs."""
    assert set(scale.shares()) == {week.package for week in WEEKS}
    assert sum(share.points for share in scale.shares().values()) == 100
    for package in WEEKS:
        week = WeekResult(package.last, package.package, package.title)
        items = scale.items(week)
        assert scale.most(items) == pytest.approx(scale.shares()[package.package].points)
        assert scale.left_open(items) == pytest.approx(scale.most(items))
        assert scale.earned(items) == 0
        assert all(item.key.isidentifier() for item in items)
        assert len({item.key for item in items}) == len(items)


def test_credit_of_gates():
    """A mean over all gates of the week; of what is held or not measurable the rest is open."""
    declared = len(scale.gate_parts(week_with_gates()))
    week = week_with_gates(
        gate("passed", 1.0, 0.9), gate("partial", 0.5, 2.0), gate("failed", 0, 30.0)
    )
    week.gates += [gate(HELD), gate(UNMEASURED), gate(UNMEASURED, 0.5, 1.0)]
    share = scale.shares()[week.package]
    *tests, speed = scale.items(week)
    number = len(scale.gate_parts(week))
    assert number >= declared
    assert scale.earned(tests) == pytest.approx(share.points * (1 - share.gates))
    assert speed.points == pytest.approx(share.points * share.gates)
    assert speed.earned == pytest.approx(speed.points * 2.0 / number)
    assert speed.open == pytest.approx(speed.points * (number - 3.5) / number)
    suite = ElementTree.fromstring(junit.text(run_of(week)))[0]
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "3")
    assert suite[-5].find("properties/property[@name='ratio']").get("value") == "2.0"


def test_faults_of_the_grader_and_skips_are_open():
    """They earn nothing, and no verdict on the submission is given: Gradescope gets no status."""
    package = WEEKS[0]
    week = WeekResult(package.last, package.package, package.title)
    for file in session.spec_tests(package):
        test = f"{package.package}/{file.name}::test_it"
        ours = {"verdict": "fault of the grader", "message": "ours", "id": "0"}
        ours |= {"program": "", "result": "", "shrunk": None, "stderr": "", "command": ""}
        kind = [
            Result(test, "skipped"),
            Result(test, "error"),
            Result(test, "failed", failure=ours),
        ]
        week.results.append(kind[len(week.results) % 3])
    items = scale.items(week)
    assert scale.left_open(items) == pytest.approx(scale.most(items))
    assert not any("status" in test for test in json.loads(gradescope.text(run_of(week)))["tests"])


@pytest.mark.parametrize(
    ("points", "shown"), [(0.849, "0.84"), (9.999, "9.99"), (10.0, "10.00"), (0.3 / 3 * 3, "0.30")]
)
def test_points_are_never_rounded_up(points, shown):
    assert scale.shown(points) == shown


def test_hostile_text():
    """Control characters and lone surrogates break no file; a formula stays text."""
    week = week_with_gates(gate("failed", 0, 9.0))
    week.results[0] = Result(week.collected[0], "failed", 0.0, WIDE, f"]]>{WIDE}&<a>")
    week.problem = "@SUM(1)"
    run = run_of(week)
    run.subject = '=HYPERLINK("x")' + WIDE
    suite = ElementTree.fromstring(junit.text(run))[0]
    assert suite[0].find("failure").text == f"]]>{clean(WIDE)}&<a>"
    (row,) = csv.DictReader(io.StringIO(grades.text(run)))
    assert row["subject"].startswith("'=HYPERLINK")
    assert row["problem"] == "'@SUM(1)"
    for file in (gradescope.text(run), classroom.text(run), grades.text(run)):
        assert not set(WIDE[:1] + WIDE[5:7]) & set(file)
    assert clean(WIDE) == "�[31m��loud"


def test_documents_of_classroom_stay_short():
    week = week_with_gates()
    name = week.collected[0].split("::")[0]
    week.results += [
        Result(f"{name}::test[{n}]", "failed", 0.0, "It is right.", "x" * 9000) for n in range(100)
    ]
    lines = classroom.text(run_of(week)).splitlines()
    assert all(len(line) < 2 * classroom.LONGEST for line in lines)
    first = json.loads(base64.b64decode(lines[0].partition("=")[2]))
    assert len(first["tests"]) == 101
    assert {len(test["message"]) for test in first["tests"]} == {0, 200}


@pytest.mark.parametrize("name", FILES)
def test_a_missing_folder_is_a_bad_question(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.main, ["--week", "1", f"--{name}", "gone/file"])
    assert result.exit_code == 2
    assert "no folder" in result.output
