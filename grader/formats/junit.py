"""JUnit XML of the family xunit1: a suite a week, a case a test or gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

from grader.formats.scale import NOT_RUN, explained, gate_state
from grader.gates import GateResult
from grader.results import Result, RunResult, WeekResult
from grader.verdict import clean

KINDS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def text(run: RunResult) -> str:
    """The whole file."""
    root = ElementTree.Element("testsuites", name=clean(run.subject))
    for week in run.weeks:
        root.append(_suite(run, week))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(run: RunResult, week: WeekResult) -> ElementTree.Element:
    cases = list(_cases(week))
    count = Counter(child.tag for case in cases for child in case)
    seconds = sum(float(case.get("time", 0)) for case in cases)
    suite = ElementTree.Element("testsuite", name=week.package, tests=str(len(cases)))
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(count[kind]))
    suite.set("time", f"{seconds:.3f}")
    suite.set("timestamp", run.started)
    suite.extend(cases)
    return suite


def _cases(week: WeekResult) -> Iterator[ElementTree.Element]:
    for result in week.results:
        yield _test(result)
    for test in week.not_run:
        yield _bad(_case(test), "error", NOT_RUN)
    if week.problem:
        yield _bad(_case(f"{week.package}::the run"), "error", week.problem)
    for gate in week.gates:
        yield _gate(week, gate)


def _case(test: str, seconds: float = 0.0) -> ElementTree.Element:
    file, _, name = test.partition("::")
    where = file.removesuffix(".py").replace("/", ".")
    attributes = {"classname": clean(where), "name": clean(name or file), "time": f"{seconds:.3f}"}
    return ElementTree.Element("testcase", attributes)


def _property(case: ElementTree.Element, **values: object) -> None:
    """Put properties into a case, as xunit1 has them."""
    properties = ElementTree.SubElement(case, "properties")
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=name, value=clean(str(value)))


def _bad(case: ElementTree.Element, kind: str, message: str, body: str = "") -> ElementTree.Element:
    child = ElementTree.SubElement(case, kind, message=clean(message.split("\n")[0]))
    child.text = clean(body or message)
    return case


def _test(result: Result) -> ElementTree.Element:
    case = _case(result.test, result.seconds)
    failure = result.failure or {}
    known = {
        "sentence": result.sentence,
        "verdict": failure.get("verdict"),
        "id": failure.get("id"),
    }
    _property(case, **{name: value for name, value in known.items() if value})
    if result.outcome in KINDS:
        said = f"{failure['verdict']}: {failure['message']}" if failure else result.message
        _bad(case, KINDS[result.outcome], said, explained(result, 100))
    return case


def _gate(week: WeekResult, gate: GateResult) -> ElementTree.Element:
    case = _case(f"{week.package}/gates.py::{gate.case}[{gate.threads}]")
    numbers = {"ratio": gate.ratio, "low": gate.low, "high": gate.high}
    _property(case, credit=gate.credit, **{k: v for k, v in numbers.items() if v is not None})
    state = gate_state(gate)
    if state in ("failed", "open"):
        why = f"ratio {gate.ratio}, wanted {gate.wanted}" if state == "failed" else gate.outcome
        said = ": ".join(filter(None, (why, gate.message)))
        _bad(case, "failure" if state == "failed" else "skipped", said)
    return case
