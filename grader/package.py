"""Packages for the platforms that run the grader: Gradescope's zip, GitHub Classroom's workflow.

The zip holds at its root `setup.sh` and `run_autograder` (see `autograder/`), what they read
(options.txt, seconds.txt, apt.txt, requirements.txt), and `course/`, the source of the course with
its pinned versions. Nothing is fetched once setup.sh has run.
"""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.formats import scale
from grader.gates import gates_of
from grader.results import WeekResult
from grader.weeks import ROOT, Week

SCRIPTS = Path(__file__).parent / "autograder"
APT = ("bubblewrap", "gcc", "libc6-dev", "make", "python3", "python3-venv", "util-linux")
ROOMS = ("week*", "grader", "projects")
FILES = ("pyproject.toml", "constraints.txt", "conftest.py", "README.md", "LICENSE")
LEFT_OUT = ("__pycache__", "samples", "results")
BUILT = (".pyc", ".so", ".o")
FIRST_DAY = (1980, 1, 1, 0, 0, 0)


class PackageError(Exception):
    """A package cannot be made; one sentence says why."""


@dataclass(frozen=True)
class Package:
    """What shall be graded, and how.

    Attributes:
        seconds: after which a run ends with the results that it has.
        apt: Debian packages of the languages in which students write.
        timed: whether gates are measured.
    """

    weeks: Sequence[Week]
    seed: int = 0
    seconds: int = 1800
    apt: Sequence[str] = ()
    timed: bool = True

    @property
    def measures(self) -> bool:
        """Whether a run needs what gates are measured against."""
        return self.timed and any(gates_of(week.package) for week in self.weeks)

    def options(self) -> list[str]:
        """Of the command `grader`."""
        weeks = [word for week in self.weeks for word in ("--week", str(week.last))]
        return [*weeks, "--seed", str(self.seed), *([] if self.timed else ["--no-gates"])]

    def requirements(self) -> list[str]:
        """Of Python: what the course needs, and PyTorch where it is measured against."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extra = project["optional-dependencies"]["test"]
        torch = [name for name in extra if name.startswith("torch")] if self.measures else []
        return [*project["dependencies"], *torch]


def write_gradescope(package: Package, path: Path) -> None:
    """The zip, the same bytes for the same course."""
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content, mode in sorted(_members(package)):
                info = zipfile.ZipInfo(name, FIRST_DAY)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = (0o100000 | mode) << 16
                archive.writestr(info, content)
    except OSError as error:
        raise PackageError(f"cannot write {path}: {error.strerror or error}") from None


def _members(package: Package) -> Iterator[tuple[str, bytes, int]]:
    """Name, content and mode of each file."""
    for name in ("setup.sh", "run_autograder"):
        yield name, (SCRIPTS / name).read_bytes(), 0o755
    lists: Mapping[str, Sequence[object]] = {
        "apt.txt": sorted({*APT, *package.apt}),
        "options.txt": package.options(),
        "requirements.txt": package.requirements(),
        "seconds.txt": [package.seconds],
    }
    for name, lines in lists.items():
        yield name, "".join(f"{line}\n" for line in lines).encode(), 0o644
    for path in course_files():
        yield f"course/{path.relative_to(ROOT)}", path.read_bytes(), 0o644


def course_files() -> Iterator[Path]:
    """What a run needs of the course, without what is built from it or only shown."""
    yield from (ROOT / name for name in FILES)
    for room in ROOMS:
        for folder in ROOT.glob(room):
            for path in folder.rglob("*"):
                parts = path.relative_to(ROOT).parts
                left_out = any(part in LEFT_OUT or part.startswith(".") for part in parts)
                if path.is_file() and path.suffix not in BUILT and not left_out:
                    yield path


WORKFLOW = """\
name: Grade
on: [push, workflow_dispatch]
permissions: {{checks: write, actions: read, contents: read}}
jobs:
  grade:
    runs-on: ubuntu-24.04
    timeout-minutes: {minutes}
    steps:
      - uses: actions/checkout@v4
        with: {{path: submission}}
      - uses: actions/checkout@v4
        with: {{repository: {repository}, path: course}}
      - run: sudo apt-get update && sudo apt-get install -y --no-install-recommends {apt}
      - run: python3 -m venv .grader
      - run: .grader/bin/pip install --quiet --constraint course/constraints.txt {requirements}
      - id: grade
        run: |
          cd course
          timeout {seconds} ../.grader/bin/python -m grader {options} \\
            --submission ../submission --classroom ../results.txt --html ../report.html || true
          cat ../results.txt >> "$GITHUB_OUTPUT"
      - uses: actions/upload-artifact@v4
        if: always()
        with: {{name: report, path: report.html}}
      - uses: classroom-resources/autograding-grading-reporter@v1
        env:
{variables}
        with:
          runners: {runners}
"""


def workflow(package: Package, repository: str) -> str:
    """The text of .github/workflows/classroom.yml for the template of an assignment."""
    keys = [item.key for week in package.weeks for item in scale.items(unjudged(week))]
    line = "          {}_RESULTS: ${{{{ steps.grade.outputs.{} }}}}"
    return WORKFLOW.format(
        minutes=package.seconds // 60 + 15,
        seconds=package.seconds,
        repository=repository,
        apt=" ".join(sorted({*APT, *package.apt})),
        requirements=" ".join(f"'{name}'" for name in package.requirements()),
        options=" ".join(package.options()),
        variables="\n".join(line.format(key.upper(), key) for key in keys),
        runners=",".join(keys),
    )


def unjudged(week: Week) -> WeekResult:
    """A week of which nothing is known yet."""
    return WeekResult(week.last, week.package, week.title)
