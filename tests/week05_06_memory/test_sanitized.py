"""Nothing undefined, and no index out of range, in the C of any program of the spec tests.

What is watched: accesses outside of arrays, to the byte; signed overflow, shifts, casts of floats,
alignment; what is read before it is written, as far as it shows in a result. The debug build looks
at each index by itself.
"""

import subprocess
import sys

import pytest

from grader.bench.odd import odd
from grader.judge import Judge
from grader.plugin import CONFORMANCE
from grader.subject import reference
from grader.weeks import ROOT, WEEKS, week_of
from week01_uops.interchange import write

WORKLOADS = {workload.name: workload.program for workload in odd()}
SAMPLE = ("gemm.37x101x67", "attention.causal.2x3x37x5", "conv3x3.2x3x7x11", "layernorm.37x101")
LATER = (5, 7)
"""The weeks whose compilers use vectors, and threads."""

modes = pytest.mark.parametrize("mode", ["checked", "sanitize"])
compilers = pytest.mark.parametrize("number", LATER, ids=lambda n: f"week {n}'s")


def watched(number, mode):
    """Claims about a week's compiler, in one of the two modes."""
    week = week_of(number)
    subject = reference(week, checked=mode == "checked")
    return Judge(subject, week.last, sanitize=mode == "sanitize")


@modes
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample(name, mode):
    watched(LATER[-1], mode).runs(write(WORKLOADS[name]), draws=1)


@pytest.mark.nightly
@pytest.mark.timeout(0)
@modes
@pytest.mark.parametrize(
    ("number", "week"),
    [(number, week) for number in LATER for week in WEEKS if week.first <= number],
    ids=lambda x: f"week {x}'s" if isinstance(x, int) else x.package,
)
def test_all_spec_tests(number, mode, week, tmp_path):
    """A week's spec tests pass, whichever later week's compiler is judged, and however built."""
    files = map(str, sorted(week.folder.glob("test_spec_*.py")))
    options = (f"--{mode}", "--reference", str(number), "--state", str(tmp_path), "--no-shrink")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
@modes
@compilers
@pytest.mark.parametrize("name", WORKLOADS)
def test_gates_at_odd_sizes(number, mode, name):
    watched(number, mode).runs(write(WORKLOADS[name]), draws=1)


@pytest.mark.nightly
@modes
@compilers
def test_programs_of_the_first_week(number, mode):
    """Its spec tests do not compile anything, but a later week's compiler can."""
    for path in sorted((CONFORMANCE / "week01" / "right").glob("*.uop")):
        watched(number, mode).conforms(path)
