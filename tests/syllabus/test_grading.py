"""What the pages about grading say is what the grader does."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import fields

import pytest

from grader import gates
from grader.advice import ADVICE
from grader.formats import scale
from grader.judge import Judge
from grader.sandbox import LEVELS, MIB, Limits
from grader.subject import reference
from grader.submission import Submission
from grader.weeks import WEEKS
from tests.syllabus.blocks import ROOT, blocks

PAGE = ROOT / "syllabus" / "grading.md"
STAFF = ROOT / "syllabus" / "instructors"
TEXT = PAGE.read_text(encoding="utf-8")


def table(heading):
    """The rows of the first table behind a heading, as lists of cells."""
    rows = TEXT.split(f"\n## {heading}")[1].split("\n\n|", 1)[1].split("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows.split("\n")[2:]]


def test_the_scale():
    rows = {cells[0].strip("`"): (cells[2], cells[3]) for cells in table("The scale")}
    shares = scale.shares().items()
    assert rows == {name: (f"{s.points:g}", f"{s.points * s.gates:g}") for name, s in shares}


def test_the_verdicts_and_what_to_do():
    assert {cells[0]: cells[2] for cells in table("The verdicts")} == {
        str(verdict): advice for verdict, advice in ADVICE.items()
    }


def test_the_limits():
    limits, submission = Limits(), {f.name: f.default for f in fields(Submission)}
    emitted = Judge(reference(WEEKS[0]), 1).limits
    wall, build, *rest = table("The protocol and its limits")
    assert wall[1].startswith(f"{submission['seconds']:g} s ")
    assert wall[2] == f"{emitted.seconds:g} s"
    assert build[1].startswith(f"{submission['build_seconds']:g} s")
    names = ("memory", "output", "errors", "file_size")
    for cells, name in zip(rest, names, strict=False):
        wanted = [f"{getattr(of, name) // MIB} MiB" for of in (limits, emitted)]
        assert cells[1:] == wanted, name
    assert rest[-1][1:] == [str(limits.tasks), str(emitted.tasks)]


def test_the_levels_of_the_sandbox():
    rows = re.findall(r"^\| (\w+) \| ", TEXT.split("| sandbox |")[1], re.MULTILINE)
    assert tuple(rows[: len(LEVELS)]) == LEVELS[::-1]


def test_the_credit_of_gates():
    groups = [
        group for w in WEEKS if (found := gates.gates_of(w.package)) for group in _groups(found)
    ]
    timed, counted = ({gate.thresholds for group in groups[k::2] for gate in group} for k in (0, 1))
    prose = " ".join(TEXT.split())
    ((first, *others, last),) = ([(f"{t.credit:g}", f"{t.ratio:g}") for t in g] for g in timed)
    said = f"{first[0]} up to a ratio of {first[1]}, then {_listed(others)}, and {_listed([last])}."
    assert said in prose
    ((*others, last),) = ([(f"{t.credit:g}", f"{t.ratio:g}") for t in g] for g in counted)
    assert f"credit is {_listed(others)}, and {_listed([last])}." in prose
    outcomes = [cells[0] for cells in table("Speed")]
    assert outcomes == ["passed", "partial", "failed", gates.UNMEASURED, gates.HELD]


def _groups(found):
    return found.gates, found.counted


def _listed(steps):
    return ", ".join(f"{credit} up to {ratio}" for credit, ratio in steps)


@pytest.mark.skipif(shutil.which("node") is None, reason="the sample needs node")
def test_the_example_is_what_is_printed(tmp_path):
    """Line by line, up to where the files lie and the ID that follows from that."""
    command = TEXT.split("```sh\npytest ")[1].split("\n")[0].split()
    options = ["-q", "-p", "no:cacheprovider", "--state", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *command, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    (shown,) = [b.lines for b in blocks(PAGE) if b.lines[0].startswith("wrong answer")]
    printed = "\n".join(map(_anywhere, done.stdout.splitlines()))
    assert "\n".join(map(_anywhere, shown)) in printed, done.stdout


def _anywhere(line):
    return re.sub(r"\b[0-9a-f]{8}\b", "ID", re.sub(r"\S+/(?=samples|failures|grader/)", "", line))


def test_the_spec_test_for_instructors():
    """The example of a spec test passes on the reference."""
    (block,) = [b for b in blocks(STAFF / "changing.md") if b.words == ("python",)]
    names = {}
    exec(block.text, names)
    names["test_a_double_negation_goes"](Judge(reference(WEEKS[0]), 1))


def test_the_rows_of_json_for_instructors():
    gate, row = (json.loads(b.text) for b in blocks(STAFF / "changing.md") if b.words == ("json",))
    assert {f.name for f in fields(gates.Gate)} >= set(gate)
    ((package, share),) = row.items()
    assert scale.shares()[package] == scale.Share(**share)
