"""The pytest side: a mutant in the place of its week's reference.

`pytest -p grader.plugin -p grader.adversary.plugin --mutant NAME week01_uops`
"""

from __future__ import annotations

import pytest

from grader.adversary.mutants import mutant_of
from grader.subject import Subject
from grader.weeks import week_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """The mutant."""
    parser.getgroup("grader").addoption("--mutant", metavar="NAME", help="judge this mutant")


@pytest.fixture(scope="session", autouse=True)
def _mutated(request: pytest.FixtureRequest, _subjects: dict[str, Subject]) -> None:
    mutant = mutant_of(request.config.getoption("--mutant"))
    _subjects[week_of(mutant.week).package] = mutant.subject()
