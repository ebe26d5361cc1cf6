"""From a failed claim to the smallest program about which the same kind of claim fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from grader.case import normal
from grader.judge import Judge
from grader.shrink import Budget, shrink
from grader.verdict import Evidence, SpecFailure, Verdict
from grader.weeks import read
from week01_uops.interchange import ReadErrors, write
from week01_uops.ops import parameters

Claim = tuple[str, Mapping[str, Any]]

# The claims that make sense of any program, and the claim that is tried on smaller ones.
GENERAL: Mapping[str, Claim] = {
    "simplifies": ("accepts", {}),
    "keeps": ("accepts", {}),
    "accepts": ("accepts", {}),
    "canonical": ("canonical", {}),
    "settles": ("settles", {}),
    "conforms": ("accepts", {}),
    "runs": ("runs", {}),
    "emits": ("runs", {}),
    "differentiates": ("differentiates", {}),
}
SLOW = {Verdict.TIMEOUT, Verdict.MEMORY}
_DETAIL = re.compile(r"\b(?:E\d{3}|SIG[A-Z]+)\b")


def kind(failure: SpecFailure) -> tuple[str, ...]:
    """What must stay the same: the verdict, and the signal or the first code, if any."""
    return (str(failure.verdict), *_DETAIL.findall(failure.sentence)[:1])


def smaller(judge: Judge, failure: SpecFailure, budget: Budget | None = None) -> None:
    """Put the smallest program found into the failure's evidence, with the claim that fails."""
    evidence = failure.evidence
    general = GENERAL.get(evidence.check)
    if general is None or failure.verdict in SLOW or isinstance(evidence.sent, bytes):
        return
    try:
        program = read(normal(evidence.sent), judge.week)
    except ReadErrors:
        return
    for claim in _claims(general, evidence.arguments):
        fails = _Fails(judge, claim, kind(failure))
        if fails(write(program)):
            found = shrink(program, fails, budget)
            if found is not program:
                evidence.shrunk = write(found)
                evidence.shrunk_check, evidence.shrunk_arguments = fails.claim(evidence.shrunk)
                seen = fails.seen[evidence.shrunk]
                evidence.shrunk_difference, evidence.shrunk_result = seen.difference, seen.result
            return


def _claims(general: Claim, arguments: Mapping[str, Any]) -> list[Claim]:
    """With drawn inputs first: those fit any program; then with the test's own."""
    name, fixed = general
    own = arguments.get("inputs")
    return [general] if own is None else [general, (name, {**fixed, "inputs": own})]


class _Fails:
    """Whether a smaller program fails in the same way."""

    def __init__(self, judge: Judge, claim: Claim, wanted: tuple[str, ...]) -> None:
        self.judge = judge
        self.wanted = wanted
        self.name, self.arguments = claim
        self.seen: dict[str, Evidence] = {}

    def claim(self, text: str) -> Claim:
        """The claim about this program: of the test's inputs, those that it still has."""
        own = self.arguments.get("inputs")
        if own is None:
            return self.name, self.arguments
        slots = set(parameters(read(text, self.judge.week)))
        many = [own] if isinstance(own, Mapping) else own
        inputs = [{slot: one[slot] for slot in one if slot in slots} for one in many]
        name = "simplifies" if self.name == "accepts" else self.name
        return name, {**self.arguments, "inputs": inputs}

    def __call__(self, text: str) -> bool:
        try:
            name, arguments = self.claim(text)
            self.judge.check(name, text, **arguments)
        except SpecFailure as failure:
            self.seen[text] = failure.evidence
            return kind(failure) == self.wanted
        except Exception:  # inputs that do not fit the smaller program, say
            return False
        return False
