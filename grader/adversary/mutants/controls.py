"""Right compilers: each week's reference as it is, and changed to what is equal to it."""

from __future__ import annotations

from grader.adversary.changes import behind
from grader.adversary.mutant import Mutant, Patch
from grader.verdict import Verdict
from grader.weeks import WEEKS
from week01_uops.node import UOp
from week03_loops import reduction


def _same(node: UOp) -> UOp:
    return node


CONTROLS = tuple(
    control
    for week in WEEKS
    for control in (
        Mutant(
            f"reference-{week.first}",
            week.first,
            "Nothing: the reference.",
            expected=Verdict.OK,
            slow=week.first > 1,
        ),
        Mutant(
            f"equal-{week.first}",
            week.first,
            "Nothing: each node is changed to itself, and a function patched with itself.",
            behind("simplify", _same),
            (Patch(reduction, "accumulator_dtype", reduction.accumulator_dtype),),
            Verdict.OK,
        ),
    )
)
