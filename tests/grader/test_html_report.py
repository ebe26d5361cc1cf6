"""The report as a page: what it says, what it escapes, that it can be read and needs no network."""

import itertools
import re
import shutil
import subprocess
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pytest

from grader import html_report
from grader.advice import ADVICE
from grader.gates import HELD, UNMEASURED, GateResult
from grader.results import Result, RunResult, WeekResult
from grader.verdict import Verdict

EVIL = "</code></pre><script>alert(1)</script>"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
BROWSER = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


def failure(**more):
    difference = {"output": 0, "index": [3, 1], "expected": "-56", "got": "127"}
    difference |= {"count": 12, "total": 96, "note": "rounded twice"}
    kept = {
        "id": "0123abcd",
        "verdict": "wrong answer",
        "message": f"the meaning changed {EVIL}",
        "program": f"uops 1\n# the test's own\n{EVIL}\n",
        "verb": "simplify",
        "result": "printed for the whole",
        "stderr": f"warning {EVIL}",
        "command": f"cd '{EVIL}' && ./compiler simplify",
        "file": "failures/0123abcd.uop",
        "difference": difference,
        "shrunk": "uops 1\n# the small one\n",
        "shrunk_difference": difference | {"index": [], "expected": "-128", "count": 1, "total": 1},
        "shrunk_result": "printed for the small one",
    }
    return kept | more


def gate(outcome, credit, ratio=None, low=None, high=None, message=""):
    return GateResult("gemm.256", 1, "best", 1.0, outcome, credit, ratio, low, high, message)


@pytest.fixture
def run():
    first = WeekResult(1, "week01_uops", "week 1", problem=f"one thing {EVIL}")
    for number, outcome in enumerate(["passed", "failed", "failed", "error", "skipped"]):
        test = f"week01_uops/test_spec_folding.py::test_{number}"
        first.collected.append(test)
        kept = failure() if number == 1 else failure(shrunk=None, shrunk_difference=None)
        first.results.append(
            Result(
                test,
                outcome,
                0.5,
                f"Sums wrap around {EVIL}",
                "" if outcome == "passed" else f"oops {EVIL}",
                kept if outcome == "failed" else None,
            )
        )
    second = WeekResult(6, "week05_06_memory", "week 5–6")
    second.gates += [
        gate("passed", 1.0, 0.91, 0.9, 0.92),
        gate("partial", 0.5, 2.0, 1.6, 2.4, EVIL),
        gate("failed", 0.0, 30.0, 20.0, 40.0),
        gate(HELD, 0.0, 0.01, 0.01, 0.01, "0.1 s a call"),
        gate(UNMEASURED, 0.0, message="this machine has 1 core(s)"),
    ]
    found = RunResult(EVIL, f"/{EVIL}", 0, "bwrap", "2026-01-01T00:00:00+00:00", complete=True)
    found.weeks += [first, second]
    return found


class Outline(HTMLParser):
    """Tags, headings and text of a page; void elements aside, every tag is closed in its turn."""

    VOID = ("meta", "line", "rect", "circle")

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.open, self.levels = [], StringIO(), [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.write(data)


def test_what_a_student_reads(run):
    """Verdict, difference, the small program before the test's, how to run it again."""
    text = Outline(html_report.text(run)).text.getvalue()
    parts = [
        "wrong answer",
        str(ADVICE[Verdict.WRONG]),
        "First difference",
        "-128",
        "1 of 1",
        "[3, 1]",
        "-56",
        "12 of 96 (rounded twice)",
        "the small one",
        "printed for the small one",
        "the test's own",
        "warning",
        "./compiler simplify < failures/0123abcd.uop",
        "grader repro 0123abcd",
    ]
    at = 0
    for part in parts:
        at = text.find(part, at)
        assert at >= 0, part
    for part in ("0.90–0.92", "not measurable", HELD, "this machine has 1 core(s)", "not passed"):
        assert part in text


def test_text_of_submissions_is_escaped(run):
    page = html_report.text(run)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 10
    tags = Outline(page).tags
    assert not [name for name, _ in tags if name in ("script", "img", "iframe", "link", "object")]
    assert not [key for _, attributes in tags for key in attributes if key.startswith("on")]


def test_nothing_is_loaded(run):
    """No address of anything, and a policy that forbids it."""
    page = html_report.text(run)
    tags = Outline(page).tags
    assert not re.search(r"url\(|@import|https?:|//", page.replace(f"/{EVIL}", ""))
    references = [at[key] for _, at in tags for key in ("src", "href") if key in at]
    assert references
    anchors = {f"#{attributes['id']}" for _, attributes in tags if "id" in attributes}
    assert set(references) <= anchors
    policies = [a["content"] for name, a in tags if a.get("http-equiv", "").startswith("Content-S")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_the_page_is_accessible(run):
    """One h1, no level left out, a language, names of tables, bars and scrolling regions."""
    outline = Outline(html_report.text(run))
    levels = outline.levels
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    by_name = {}
    for name, attributes in outline.tags:
        by_name.setdefault(name, []).append(attributes)
    assert by_name["html"] == [{"lang": "en"}]
    assert all("scope" in attributes for attributes in by_name["th"])
    assert all(a["role"] == "img" and "between" in a["aria-label"] for a in by_name["svg"])
    scrolling = [a for a in by_name["div"] if a.get("class") == "scroll"]
    assert all(
        a["tabindex"] == "0" and ("aria-label" in a or "aria-labelledby" in a) for a in scrolling
    )
    ids = [a["id"] for _, a in outline.tags if "id" in a]
    assert len(ids) == len(set(ids))


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("ground", ["page", "panel"])
@pytest.mark.parametrize("text", ["text", "muted", "link", "good", "bad", "warn"])
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme, text, ground):
    """WCAG 2.2, 1.4.3: 4.5 to 1 for text, in both schemes."""
    style = (html_report.FOLDER / "style.css").read_text()
    colors = dict(re.findall(r"--(\w+): (#\w{6});", style.split("@media")[scheme]))
    a, b = sorted((luminance(colors[text]), luminance(colors[ground])))
    assert (b + 0.05) / (a + 0.05) >= 4.5


def test_every_verdict_has_advice():
    assert set(ADVICE) == set(Verdict) - {Verdict.OK}


def test_a_ratio_has_its_place():
    low, high = html_report.AXIS
    assert html_report.place(low / 9) == html_report.place(low) == 0
    assert html_report.place(high * 9) == html_report.place(high) == html_report.WIDTH
    middle = html_report.place((low * high) ** 0.5)
    assert middle == pytest.approx(html_report.WIDTH / 2)


def test_a_run_that_goes_on(run):
    run.complete = False
    assert "not finished" in html_report.text(run)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(run, scheme, tmp_path):
    """It is drawn, on a ground of its scheme, and the console has nothing to say."""
    imread = pytest.importorskip("matplotlib.image").imread
    (tmp_path / "page.html").write_text(html_report.text(run), encoding="utf-8")
    picture = tmp_path / "page.png"
    command = [CHROMIUM, *BROWSER, f"--user-data-dir={tmp_path / 'profile'}"]
    command += [f"--screenshot={picture}", "--window-size=900,1200", "--virtual-time-budget=2000"]
    command += ["--enable-logging=stderr", *(["--force-dark-mode"] if scheme == "dark" else [])]
    done = subprocess.run(
        [*command, (tmp_path / "page.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    pixels = imread(picture)
    assert pixels.shape[:2] == (1200, 900)
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2])[::7], axis=0)) > 30
    assert (pixels[0, 0].mean() > 0.5) == (scheme == "light")
