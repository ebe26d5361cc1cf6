"""The pytest side: options, the fixtures `judge` and `compiler`, and reports of failed claims.

`pytest week03_loops` judges the reference, `pytest week03_loops --submission DIR` a submission.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from grader import failures, sandbox
from grader.judge import Judge
from grader.sandbox import Limits, SandboxError
from grader.shrink import Budget
from grader.smaller import smaller
from grader.subject import Subject, judged, reference
from grader.submission import Submission, SubmissionError, load
from grader.verdict import SpecFailure
from grader.weeks import CONFORMANCE, WEEKS, Week, conformance_files, week_of
from week01_uops.interface import Compiler

SUBMISSION: pytest.StashKey[Submission | None] = pytest.StashKey()
SHRINKING: pytest.StashKey[float] = pytest.StashKey()
SHRINK_SECONDS = 60.0
"""For all failures of a run together."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the grader, for a plain pytest run too."""
    group = parser.getgroup("grader", "judging a compiler by the course's spec tests")
    group.addoption("--submission", metavar="DIR", type=Path, help="judge this, not the reference")
    group.addoption("--seed", type=int, default=0, help="of the random inputs (default: 0)")
    group.addoption("--state", metavar="DIR", type=Path, help="where failures are kept")
    group.addoption("--no-shrink", action="store_true", help="do not look for smaller programs")
    group.addoption("--week", type=int, help="of tests that lie outside the weeks' packages")
    group.addoption("--reference", metavar="WEEK", type=int, help="judge that week's, in all weeks")
    group.addoption("--checked", action="store_true", help="judge the reference's debug build")
    group.addoption("--sanitize", action="store_true", help="build the emitted C with sanitizers")
    group.addoption("--built", action="store_true", help="do not build the submission again")
    group.addoption("--verb-timeout", metavar="S", type=float, help="seconds for one answer")


def pytest_configure(config: pytest.Config) -> None:
    """Read the submission once; what is wrong with it ends the run with one sentence."""
    folder = config.getoption("--submission")
    for option in ("--reference", "--checked") if folder else ():
        if config.getoption(option):
            raise pytest.UsageError(f"{option} is about the reference, not about --submission")
    try:
        sandbox.level()
        found = None if folder is None else load(config.invocation_params.dir / folder)
        if found is not None and not (config.getoption("--built") or _is_worker(config)):
            found.prepare()
    except (SubmissionError, SandboxError) as fault:
        raise pytest.UsageError(str(fault)) from None
    config.stash[SUBMISSION] = found


def _is_worker(config: pytest.Config) -> bool:
    """Whether pytest-xdist started this process, after the first one has built."""
    return hasattr(config, "workerinput")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `conformance_file` once for every file of its week."""
    if "conformance_file" not in metafunc.fixturenames:
        return
    week = _week_at(metafunc.definition.path, metafunc.config)
    files = [] if week is None else conformance_files(week)
    names = [str(path.relative_to(CONFORMANCE).with_suffix("")) for path in files]
    metafunc.parametrize("conformance_file", files, ids=names)


def _week_at(path: Path, config: pytest.Config) -> Week | None:
    found = next((week for week in WEEKS if week.folder in path.parents), None)
    number = config.getoption("--week")
    return week_of(number) if found is None and number is not None else found


@pytest.fixture(scope="session")
def _subjects() -> dict[str, Subject]:
    return {}


@pytest.fixture
def judge(request: pytest.FixtureRequest, _subjects: dict[str, Subject]) -> Judge:
    """Claims about the compiler under judgement, for the week of the test's package."""
    week = _week_at(request.path, request.config)
    if week is None:
        pytest.fail("expected a test in a week's package, or the option --week", pytrace=False)
    if week.package not in _subjects:
        _subjects[week.package] = _subject(request.config, week)
    seed, seconds, sanitize = map(
        request.config.getoption, ("--seed", "--verb-timeout", "--sanitize")
    )
    return Judge(_subjects[week.package], week.last, seed, seconds, sanitize=sanitize)


@pytest.fixture
def compiler(judge: Judge) -> Compiler:
    """The compiler itself, behind the stable interface."""
    return judge.subject.compiler


def _reference(config: pytest.Config, week: Week) -> Subject:
    number, checked = map(config.getoption, ("--reference", "--checked"))
    try:
        return reference(week, None if number is None else week_of(number), checked=checked)
    except Exception as error:  # a week that is not there yet must not hide the others
        why = f"{type(error).__name__}: {error}"
        return pytest.fail(f"{week.package} has no reference: {why}", pytrace=False)


def _subject(config: pytest.Config, week: Week) -> Subject:
    submission = config.stash[SUBMISSION]
    if submission is None:
        return _reference(config, week)
    if not submission.names(week):
        done = ", ".join(map(str, submission.weeks))
        pytest.skip(f"{submission.name} is for week(s) {done}, not for {week.title}")
    seconds = config.getoption("--verb-timeout") or submission.seconds
    return judged(submission, week.last, Limits().within(seconds))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    """Show a failed claim as a report and not as a traceback, and store it."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if call.when == "setup":
        report.user_properties.append(("sentence", sentence(item)))
    if call.excinfo is None or not isinstance(call.excinfo.value, SpecFailure):
        return
    kept = _keep(item, call.excinfo.value)
    report.longrepr = failures.text(kept)
    report.user_properties.append(("failure", kept))


def _keep(item: pytest.Item, failure: SpecFailure) -> failures.Record:
    config = item.config
    week = _week_at(item.path, config)
    submission = config.stash[SUBMISSION]
    claims = getattr(item, "funcargs", {}).get("judge")
    if claims is not None and not config.getoption("--no-shrink"):
        _shrink(config, claims, failure)
    kept = failures.record(
        failure,
        week=0 if week is None else week.last,
        seed=config.getoption("--seed"),
        submission=None if submission is None else submission.folder,
    )
    kept |= {"test": item.nodeid, "sentence": sentence(item)}
    kept |= {name: config.getoption(f"--{name}") for name in ("reference", "checked", "sanitize")}
    return failures.store(kept, failures.state_folder(config.getoption("--state")))


def _shrink(config: pytest.Config, claims: Judge, failure: SpecFailure) -> None:
    """Look for a smaller program, as long as the run as a whole has time for that."""
    start, left = time.monotonic(), config.stash.get(SHRINKING, SHRINK_SECONDS)
    if left > 0:
        smaller(claims, failure, Budget(seconds=min(left, Budget.seconds)))
        config.stash[SHRINKING] = left - (time.monotonic() - start)


def sentence(item: pytest.Item) -> str:
    """What a test claims: the first line of its docstring, or its name in words."""
    doc = inspect.getdoc(getattr(item, "function", None)) or ""
    first = doc.strip().splitlines()[0] if doc.strip() else ""
    return first or item.name.removeprefix("test_").replace("_", " ")
