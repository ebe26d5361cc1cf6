"""One check under way: the program, the compiler that answers, and the evidence so far."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn, Protocol, TypeVar

from grader import compare, cost, draws, oracle
from grader.cost import CostError
from grader.draws import Array, Inputs
from grader.known import once
from grader.oracle import Expected
from grader.sandbox import Limits
from grader.subject import Answer, Subject
from grader.verdict import Difference, Evidence, SpecFailure, Verdict, excerpt
from grader.weeks import read
from week01_uops.evaluate import State
from week01_uops.interchange import ReadErrors
from week01_uops.node import UOp
from week01_uops.ops import parameters

T = TypeVar("T")
HEADER = "uops 1"


def normal(text: str) -> str:
    """A program as tests write it: indented as they like, the header left out if they like."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    return text if text.lstrip().startswith("uops") else f"{HEADER}\n{text}"


FIRST_VERBS = frozenset({"simplify", "compile"})
"""Verbs that every compiler has from its first weeks on."""

NO_VERB = "unheard-of"
UNKNOWING = frozenset({Verdict.REFUSED, Verdict.CRASH})
DIAGNOSTIC = re.compile(r"^.*?:(\d{1,9}):(\d{1,9}): ([A-Z]\d{3}) \S", re.MULTILINE)


def _reason(answer: Answer) -> str:
    """Why there is no result: the compiler's own words, if it has any."""
    said = excerpt(answer.stderr, 3) or "no word on standard error"
    if answer.verdict is Verdict.REFUSED and not DIAGNOSTIC.search(answer.stderr):
        return f"exit status 1 without a diagnostic FILE:LINE:COL: CODE message; {said}"
    return answer.note or said


class Bench(Protocol):
    """What a case needs of a judge: the compiler, week and seed, and how C is built and run."""

    subject: Subject
    week: int
    seed: int
    limits: Limits
    sanitize: bool


class Case:
    """One check of one program."""

    def __init__(self, bench: Bench, evidence: Evidence) -> None:
        self.subject = bench.subject
        self.week = bench.week
        self.seed = bench.seed
        self.limits = bench.limits
        self.sanitize = bench.sanitize
        self.evidence = evidence
        self.room = cost.ROOM

    def fail(self, verdict: Verdict, sentence: str) -> NoReturn:
        """End the check with a verdict."""
        raise SpecFailure(verdict, sentence, self.evidence)

    def program(self, text: str) -> UOp:
        """The test's own program, which is right, or the fault is the test's."""
        self.evidence.program = text
        try:
            program = read(text, self.week)
        except ReadErrors as errors:
            self.fail(Verdict.GRADER, f"the test's own program is wrong:\n{errors}")
        self.room = cost.room(program)
        return program

    def bounded(self, what: str, compute: Callable[[], T]) -> T:
        """The result of `compute`; the check ends where it costs too much, with `what` it was."""
        try:
            return cost.within(self.limits.seconds, self.room, compute)
        except CostError as error:
            self.fail(error.verdict, f"{what} {error}")

    def ask(self, verb: Sequence[str], text: str | bytes) -> Answer:
        """The compiler's answer, whatever it is; what went wrong becomes evidence."""
        if isinstance(text, str):
            self.evidence.program = text
        self.evidence.verb = " ".join(verb)
        self.evidence.command = self.subject.command(verb)
        answer = self._offered(verb, text, self.subject.ask(verb, text))
        self.evidence.result, self.evidence.stderr = answer.stdout, answer.stderr
        return answer

    def _offered(self, verb: Sequence[str], text: str | bytes, answer: Answer) -> Answer:
        """The answer, or that a verb is not offered: it is answered as one that nobody knows."""
        known = verb[0] in FIRST_VERBS or answer.verdict not in UNKNOWING
        if known or DIAGNOSTIC.search(answer.stderr):
            return answer
        other = self.subject.ask([NO_VERB, *verb[1:]], text)
        says = other.stderr.replace(NO_VERB, verb[0])
        if (other.verdict, other.note, says) != (answer.verdict, answer.note, answer.stderr):
            return answer
        note = f"{self.subject.name} does not offer {verb[0]}"
        return replace(answer, verdict=Verdict.UNSUPPORTED, note=note)

    def text(self, verb: Sequence[str], text: str) -> str:
        """What the compiler prints for a program that it must take."""
        answer = self.ask(verb, text)
        if answer.verdict is not Verdict.OK:
            self.fail(answer.verdict, f"{verb[0]} of a right program: {_reason(answer)}")
        return answer.stdout

    def result(self, verb: Sequence[str], text: str) -> UOp:
        """The program that the compiler prints for a program that it must take."""
        return self.parse(verb[0], self.text(verb, text))

    def parse(self, verb: str, printed: str) -> UOp:
        """What a verb printed, as a program of the week."""
        try:
            what = f"to read what {verb} printed"
            return self.bounded(what, lambda: read(printed, self.week))
        except ReadErrors as errors:
            first = excerpt(str(errors.diagnostics[0]).replace("<stdin>", "<stdout>"), 3)
            self.fail(Verdict.PROTOCOL, f"{verb} printed no program of week {self.week}:\n{first}")

    # Values ---------------------------------------------------------------------------------

    def expected(self, program: UOp, inputs: Inputs, tolerance: float | None = None) -> Expected:
        """The right outputs of the test's program."""
        try:
            return oracle.expected(program, inputs, tolerance)
        except Exception as error:  # whatever an oracle raises is ours to answer for
            self.evidence.inputs = inputs
            name = type(error).__name__
            self.fail(Verdict.GRADER, f"the oracle cannot evaluate the program: {name}: {error}")

    def outputs(
        self,
        result: UOp,
        inputs: Inputs,
        want: Expected,
        what: str,
        state: State | None = None,
    ) -> tuple[Array, ...]:
        """The outputs of a program that the compiler under judgement made."""
        table = cost.table(self.room)
        run = lambda: oracle.run(result, inputs, table, state)
        if state is None:
            whole = run
            run = lambda: once("outputs", (result, inputs), whole)
        return self.of_printed(what, "run", inputs, run, want.values)

    def of_printed(
        self,
        what: str,
        done: str,
        inputs: Inputs,
        compute: Callable[[], T],
        want: tuple[Array, ...] = (),
    ) -> T:
        """What `compute` makes of a program that a verb printed: run it, derive it."""
        program = f"the program that {what} printed"
        try:
            return self.bounded(program, compute)
        except SpecFailure:
            raise
        except Exception as error:  # it reads out of range, say, and the test's program does not
            self.evidence.inputs, self.evidence.expected = inputs, want
            self.fail(Verdict.WRONG, f"{program} cannot be {done}: {error}")

    def same(
        self, program: UOp, inputs: Inputs, want: Expected, got: tuple[Array, ...], what: str
    ) -> None:
        """Fail at the first element that is off by more than it may be."""
        different = compare.first_difference(want.values, got, want.allowed)
        if different is None:
            return
        self._show(program, inputs, want.values, got, different)
        seen = self.evidence.difference
        where = draws.shown(self.evidence.inputs)
        self.fail(Verdict.WRONG, f"{what} changed the meaning: {seen}, for {where or 'no inputs'}")

    def _show(
        self,
        program: UOp,
        inputs: Inputs,
        want: tuple[Array, ...],
        got: tuple[Array, ...],
        different: Difference,
    ) -> None:
        """Keep the evidence; of many points of a scalar program, the one that is wrong."""
        lifted = any(
            inputs[slot].shape != param.shape for slot, param in parameters(program).items()
        )
        if lifted:
            (point,) = different.index or (0,)
            inputs = {slot: array[point] for slot, array in inputs.items()}
            want = tuple(a if a.ndim == 0 else a[point] for a in want)
            got = tuple(a if a.ndim == 0 else a[point] for a in got)
            what = (different.output, (), different.expected, different.got)
            different = Difference(*what, different.count, different.total, different.note)
        self.evidence.inputs, self.evidence.difference = inputs, different
        self.evidence.expected, self.evidence.got = want, got
