"""Every rule of every week has a proof: the tables are found in the code, the proofs in tests.

`python -m tests.test_rules_listed` prints the list.
"""

import importlib
import pkgutil

import pytest

from tests.week01_uops.test_proofs import RULES as WEEK01
from tests.week02_render.test_contract import PROGRAMS as KEEPING
from tests.week02_render.test_gates import PROGRAMS as GATES
from tests.week03_loops.test_counting import PROGRAMS as COUNTING
from tests.week03_loops.test_rules import PROGRAMS as MOVEMENT
from tests.week05_06_memory.test_masks import PROGRAMS as MASKS
from tests.week05_06_memory.test_onehot import PROGRAMS as ONE_HOT
from tests.week05_06_memory.test_roots import PROGRAMS as ROOTS
from tests.week05_06_memory.test_wide import PROGRAMS as WIDE
from week01_uops.pattern import Rule
from week01_uops.rewrite import Rules

WEEKS = ("week01_uops", "week02_render", "week03_loops", "week04_fusion", "week05_06_memory")
PROVED = {rule.name for rule in WEEK01}.union(
    KEEPING, GATES, COUNTING, MOVEMENT, MASKS, ONE_HOT, ROOTS, WIDE
)


def rules() -> list[tuple[str, Rule]]:
    """The rules of every table that a module of a week defines, with the table's subject."""
    found: dict[str, tuple[str, Rule]] = {}
    for week in WEEKS:
        package = importlib.import_module(week)
        for info in pkgutil.iter_modules(package.__path__, f"{week}."):
            if info.name.rsplit(".", 1)[1].startswith("test_"):
                continue
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Rules):
                    found.update({r.name: (value.subject, r) for r in value if r.name not in found})
    return list(found.values())


def test_no_rule_is_without_a_proof():
    missing = [rule.name for _, rule in rules() if rule.name not in PROVED]
    assert not missing


def test_no_proof_is_of_a_rule_that_is_gone():
    assert {rule.name for _, rule in rules()} >= PROVED


@pytest.mark.parametrize("rule", [rule for _, rule in rules()], ids=lambda rule: rule.name)
def test_a_rule_names_its_proof(rule):
    assert rule.proof in ("z3", "exhaustive", "evaluator")
    assert rule.name == rule.name.lower()


if __name__ == "__main__":
    for subject, rule in rules():
        exact = "exact" if rule.exact else "inexact, off by default"
        print(f"{subject[:24]:26}{rule.name:28}{rule.proof:12}{exact}")  # noqa: T201
