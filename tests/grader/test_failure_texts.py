"""What a hostile submission prints breaks nothing that shows it: each view, each kind of words."""

import base64
import csv
import io
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from rich.console import Console

from grader import failures, html_report, report
from grader.classes import outputs
from grader.classes.screen import Screen as ClassScreen
from grader.classes.store import Grade
from grader.classes.task import Outcome
from grader.formats import classroom, grades, gradescope, junit
from grader.gates import GateResult
from grader.results import Result, RunResult, WeekResult
from grader.sandbox import Completed
from grader.subject import _answer
from grader.verdict import Evidence, SpecFailure, Verdict, clean, excerpt
from grader.weeks import WEEKS

WORDS = {
    "escapes": "\x1b[2J\x1b[1;1H\x1b]0;title\x07\x1b]8;;file:///etc\x1b\\x\x9b31m",
    "overwritten": "no\rok\x08\x08\x7f",
    "direction": "\u202edrow\u202c \u2067x\u2069 \u200f\u200e\u061c",
    "markup": "</pre><script>alert(1)</script><img src=x onerror=alert(1)>&lt;&#60;'\"",
    "XML": "]]>\ufffe\uffff\x00<![CDATA[<!DOCTYPE x [<!ENTITY a 'a'>]>&a;",
    "console markup": "[bold red]x[/] [link=file:///etc]y[/link] :smiley: {0} %s $x `x`",
    "template": "{{ 7 * 7 }}{% for x in y %}#}",
    "long": "x" * 100_000,
    "lines": "x\n" * 50_000,
    "odd lines": "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g",
    "combined": "e" + "\u0301" * 3000,
    "surrogates": "\ud83d \udcff",
    "formula": '=HYPERLINK("http://x";"y")',
    "plus": "+1+cmd|' /C calc'!A0",
    "minus": "-2+3",
    "at": "@SUM(1)",
    "wide": "＝1＋1",
    "spaces": "  =1+1",
    "tab": "\t=1+1",
    "carriage": "\r=1+1",
    "cells": 'a,b;"c"\n=1+1,2',
}
ALL = pytest.mark.parametrize("kind", WORDS)
PLAIN = re.compile(
    r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]*"
)


def hostile_run(words):
    evidence = Evidence(
        "accepts",
        {},
        words,
        program=words,
        verb=words[:300],
        command=words[:300],
        result=words,
        stderr=words,
        shrunk=words,
        shrunk_check="accepts",
        shrunk_result=words,
    )
    failure = SpecFailure(Verdict.WRONG, words, evidence)
    kept = failures.record(failure, week=1, seed=0, submission=None)
    sentence = words[:300]  # ours, but for names of files
    kept |= {"test": "a::b", "sentence": sentence}
    first = WEEKS[0]
    week = WeekResult(first.last, first.package, first.title, ["a::b", "a::c", "a::d", "a::e"])
    week.results += [
        Result("a::b", "failed", 0.1, sentence, failures.text(kept), kept),
        Result("a::c", "error", 0.1, sentence, words, None),
        Result("a::d", "skipped", 0.1, sentence, words, None),
    ]
    week.problem = words
    week.gates += [gate(words)]
    run = RunResult(words[:300], words[:300], 0, "none", "2026-01-01T00:00:00", weeks=[week])
    run.complete = True
    return run


def grade_of(words):
    return Grade(clean(words), Outcome.GRADED, clean(words), *[1.0] * 3, *[1] * 5, *[1.0] * 6)


def gate(words):
    return GateResult("gemm", 1, "best", 2.0, "failed", 0.0, 9.0, 8.0, 10.0, message=words)


def shown_on(terminal, act):
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=terminal, width=100, color_system=None, legacy_windows=False
    )
    act(console)
    return file.getvalue()


MOVES = re.compile(r"\x1b\[(?:\?25[lh]|[12]?[AK]|2K|1A)|\r")
"""What rich itself sends to a terminal without colours: the cursor up, hidden, lines emptied."""


def assert_plain(text):
    assert PLAIN.fullmatch(text), sorted(set(re.findall(r"[^ -~\n]", text)))


@ALL
@pytest.mark.parametrize("terminal", [True, False])
def test_terminal(kind, terminal):
    run = hostile_run(WORDS[kind])

    def act(console):
        screen = report.Screen(console)
        with screen.showing(run):
            screen.update(run, run.weeks[0])
            screen.gate(run, run.weeks[0].gates[0])
        report.show(console, run)

    text = MOVES.sub("", shown_on(terminal, act))
    assert_plain(text)
    assert len(text) < 60_000


@ALL
def test_the_screen_of_a_class(kind):
    words = WORDS[kind]

    def act(console):
        screen = ClassScreen(console)
        with screen.showing():
            screen.planned(0, 1)
            screen.event(words, {"event": "begin"})
            screen.event(words, {"event": "lost", "message": words})
            screen.event(words, {"event": "end", "outcome": "build failed", "message": words})

    assert_plain(MOVES.sub("", shown_on(True, act)))


@ALL
def test_pytest(kind):
    run = hostile_run(WORDS[kind])
    text = failures.text(run.weeks[0].results[0].failure)
    assert_plain(text)
    assert len(text) < 60_000


@ALL
def test_junit(kind):
    run = hostile_run(WORDS[kind])
    text = junit.text(run)
    root = ElementTree.fromstring(text)
    assert len(root.findall(".//testcase")) == 6
    assert {child.tag for child in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "properties", "property"),
        *("failure", "error", "skipped"),
    }
    assert "<!DOCTYPE" not in text
    assert_plain(text)


@ALL
def test_json(kind, tmp_path):
    words = WORDS[kind]
    run = hostile_run(words)
    run.write(tmp_path / "results.json")
    text = (tmp_path / "results.json").read_text(encoding="ascii")
    assert json.loads(text)["subject"] == words[:300]
    for table in (json.loads(gradescope.text(run)), *documents(classroom.text(run))):
        assert_plain(json.dumps(table, ensure_ascii=False))


def documents(text):
    for line in text.splitlines():
        yield json.loads(base64.b64decode(line.partition("=")[2]))


FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r")


def assert_cells(text):
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows}) == 1
    for cell in (cell for row in rows for cell in row):
        assert not cell.lstrip().startswith(FORMULA) or re.fullmatch(r"-?\d+(\.\d+)?", cell)
    assert_plain(text)


@ALL
def test_csv(kind, tmp_path):
    words = WORDS[kind]
    assert_cells(grades.text(hostile_run(words)))
    outputs.write_grades(tmp_path / "grades.csv", [grade_of(words)])
    assert_cells((tmp_path / "grades.csv").read_text())


class Page(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs


@ALL
def test_html(kind, tmp_path):
    words = WORDS[kind]
    harmless = Page(html_report.text(hostile_run("harmless")))
    text = html_report.text(hostile_run(words))
    page = Page(text)
    assert set(page.elements) <= set(harmless.elements)
    assert not {name for name, _ in page.attributes} - {n for n, _ in harmless.attributes}
    assert "49" not in text or "7 * 7" not in text
    assert_plain(text)
    assert len(text) < 400_000
    outputs.write_leaderboard(tmp_path / "board.html", [grade_of(words)], "week 1")
    board = (tmp_path / "board.html").read_text()
    assert set(Page(board).elements) <= {
        *("html", "meta", "title", "style", "h1", "p", "table", "thead", "tbody"),
        *("tr", "th", "td", "meter"),
    }


@pytest.mark.parametrize("data", [b"\xff\xfe\x00\x80", b"\xed\xa0\x80", b"\xc0\xaf", b"\x80" * 9])
def test_bytes_that_are_not_utf8(data):
    answer = _answer(Completed(Verdict.OK, 1, b"", data, 0.0))
    assert clean(answer.stderr).encode()
    answer = _answer(Completed(Verdict.OK, 0, data, data, 0.0))
    assert answer.verdict is Verdict.PROTOCOL
    assert excerpt(answer.stdout).encode()
