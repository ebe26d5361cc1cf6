"""The house: sizes, layers, and what ARCHITECTURE.md says of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from projects.uopc.weeks import WEEKS
from week01_uops.ops import OPS as WEEK01_OPS

ROOT = Path(__file__).parents[1]
LONGEST = 400


def tracked(*suffixes):
    """The project's own files; outside a checkout the test cannot know them."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("this is no git checkout")
    paths = [ROOT / line for line in listing.stdout.splitlines()]
    return [path for path in paths if path.is_file() and path.suffix in suffixes]


def test_no_file_is_longer_than_its_subject():
    long = {
        str(path.relative_to(ROOT)): count
        for path in tracked(".py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert not long


def test_layers_and_cycles():
    tool = Path(sys.executable).parent / "lint-imports"
    if not tool.exists():
        pytest.skip("import-linter is not installed")
    done = subprocess.run([tool], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def listed_passes():
    """What ARCHITECTURE.md gives as "week 4: a → b" or "weeks 5 to 8: a → b", by week."""
    text = " ".join((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split())
    rows = re.findall(r"- weeks? (\d+)(?: to (\d+))?: (\w+(?: → \w+)*)", text)
    return {n: names for a, b, names in rows for n in range(int(a), int(b or a) + 1)}


@pytest.mark.parametrize("number", WEEKS)
def test_the_passes_are_listed_as_they_are(number):
    names = " → ".join(item.name for item in WEEKS[number].pipeline.passes)
    assert listed_passes()[number] == names


def test_weeks_only_add_ops():
    for number in range(2, max(WEEKS) + 1):
        assert WEEKS[number - 1].ops <= WEEKS[number].ops
    assert all(op.week == 1 for op in WEEK01_OPS)


@pytest.mark.parametrize("number", WEEKS)
def test_a_weeks_programs_hold_its_ops_and_earlier_ones(number):
    assert all(op.week <= number for op in WEEKS[number].ops)


def test_files_name_no_machine():
    """No absolute path of a developer's machine, and no package registry, in a project file."""
    pattern = re.compile(r"/(?:work|root|home)/\w|pypi\.org|registry\.npm|deb\.debian")
    found = [
        str(path.relative_to(ROOT))
        for path in tracked(".py", ".md", ".toml", ".txt", ".uop", ".js", ".c", ".h", ".json", "")
        if path.name != Path(__file__).name
        and pattern.search(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert not found
