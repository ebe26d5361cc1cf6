"""Mutants of week 4: fusion, merging, the planning of scratch memory."""

from __future__ import annotations

from grader.adversary.changes import behind, instead, without
from grader.adversary.mutant import Mutant, Patch
from grader.adversary.mutants.week02 import at_offset_zero
from grader.verdict import Verdict
from week01_uops.node import UOp
from week02_render.kernels import place_temporaries
from week02_render.ops import AFTER, STORE
from week04_fusion import merge, plan
from week04_fusion.work import without as unstaged


def _ends_early(self: plan.Lifetime, other: plan.Lifetime) -> bool:
    return self.users[0] < other.users[-1] and other.users[0] < self.users[-1]


def _first_stores_alone(node: UOp) -> UOp:
    """Of the effects that an AFTER joins in a kernel, the first."""
    joins = node.op is AFTER and all(s.op is STORE for s in node.src)
    return node.src[0] if joins else node


MUTANTS = (
    Mutant(
        "fusion-missing",
        4,
        "Every value is held in a temporary.",
        without("fuse"),
        expected=Verdict.BOUND,
    ),
    Mutant(
        "fusion-of-everything",
        4,
        "No value is held, however often its elements are wanted.",
        instead("fuse", lambda program, trace: unstaged(program, lambda node: True)),
        expected=Verdict.TIMEOUT,
        slow=True,
    ),
    Mutant(
        "merge-of-any-chain",
        4,
        "A kernel is merged with one that it waits for, whatever elements it reads.",
        patches=(Patch(merge, "_is_chain", lambda earlier, later: True),),
    ),
    Mutant(
        "merge-forgets-a-store",
        4,
        "Of two merged kernels the first one's result is not stored.",
        behind("merge", _first_stores_alone),
    ),
    Mutant(
        "plan-reuses-nothing",
        4,
        "Every temporary has memory of its own.",
        instead("plan", place_temporaries),
        expected=Verdict.BOUND,
    ),
    Mutant(
        "plan-ends-lives-early",
        4,
        "A temporary may lie where another one is read by the kernel that fills it.",
        patches=(Patch(plan.Lifetime, "lives_with", _ends_early),),
    ),
    Mutant(
        "plan-overlaps-all",
        4,
        "All temporaries lie at offset 0.",
        behind("plan", at_offset_zero),
    ),
)
