"""`Judge`: what a spec test asks of a compiler, one method a claim.

Spec tests take it as the fixture `judge`, so that they import nothing of the grader. A claim
that does not hold raises SpecFailure. Texts may be indented as the test likes, and the header line
may be left out; line numbers count with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grader import declared, grad_checks, run_checks, simplify_checks
from grader.case import Case, normal
from grader.draws import Given
from grader.sandbox import MIB, Limits
from grader.subject import Subject
from grader.verdict import Evidence


class Judge:
    """Claims about one compiler in one week.

    Attributes:
        week: programs and results are read as programs of this week.
        seed: what random inputs follow from, together with the program.
        limits: of a compiled program; those of the compiler are the subject's.
        sanitize: the emitted C is built with sanitizers.
    """

    def __init__(
        self,
        subject: Subject,
        week: int,
        seed: int = 0,
        seconds: float | None = None,
        *,
        sanitize: bool = False,
    ) -> None:
        self.subject = subject
        self.week = week
        self.seed = seed
        self.limits = Limits(output=MIB).within(seconds)
        self.sanitize = sanitize

    def check(self, name: str, text: str | bytes, **arguments: object) -> None:
        """Call one of the claims below by its name."""
        claim: Callable[..., None] = getattr(self, name)
        claim(text, **arguments)

    def _case(self, check: str, sent: str | bytes, **arguments: Any) -> Case:  # noqa: ANN401
        return Case(self, Evidence(check, arguments, sent))

    def simplifies(
        self,
        text: str,
        *,
        to: str | Sequence[str] | None = None,
        at_most: int | None = None,
        at_most_of: Mapping[str, int] | None = None,
        without: Sequence[str] = (),
        inputs: Given = None,
    ) -> None:
        """`simplify` keeps the meaning and reaches the bounds.

        Args:
            text: the program.
            to: one of these graphs, up to the order of the sources of commutative ops.
            at_most: a number of UOps, `return` not counted.
            at_most_of: numbers of single ops, {"FLOORDIV": 1}.
            without: ops that must be gone.
            inputs: {slot: number or nested list}, or several such, tried besides the drawn ones.
        """
        bounds: dict[str, Any] = {"to": to, "at_most": at_most, "at_most_of": at_most_of or {}}
        bounds |= {"without": list(without), "inputs": inputs}
        simplify_checks.simplifies(self._case("simplifies", text, **bounds), normal(text), **bounds)

    def accepts(self, text: str) -> None:
        """`simplify` takes the program and keeps its meaning."""
        simplify_checks.meaning(self._case("accepts", text), normal(text))

    def keeps(self, text: str, ops: Sequence[str] | Mapping[str, int]) -> None:
        """`simplify` keeps the meaning and at least so many nodes of these ops (1 if not said)."""
        least = dict(ops) if isinstance(ops, Mapping) else dict.fromkeys(ops, 1)
        simplify_checks.keeps(self._case("keeps", text, ops=least), normal(text), least)

    def settles(self, text: str) -> None:
        """Simplifying twice is simplifying once."""
        simplify_checks.settles(self._case("settles", text), normal(text))

    def canonical(self, text: str, to: str | None = None) -> None:
        """`simplify` prints canonical text, byte for byte; `to` says which."""
        wanted = None if to is None else normal(to)
        simplify_checks.canonical(self._case("canonical", text, to=to), normal(text), wanted)

    def rejects(
        self,
        text: str | bytes,
        code: str,
        *,
        line: int | None = None,
        verb: str = "simplify",
        raw: bool = False,
    ) -> None:
        """The program is refused: exit status 1 and `FILE:LINE:COL: CODE message`.

        Args:
            text: a wrong program; with `raw`, sent as it is, without a header put in front.
            code: a code or how it starts: "E301", "E3", "E3xx".
            line: where, from 1.
            verb: what is asked, with its options.
            raw: see text.
        """
        sent = text if raw or isinstance(text, bytes) else normal(text)
        case = self._case("rejects", sent, code=code, line=line, verb=verb, raw=True)
        simplify_checks.rejects(case, sent, code, line, verb.split())

    def conforms(self, path: Path | str) -> None:
        """A conformance file's program does what the file's comments declare."""
        name = str(path)
        case = self._case("conforms", name)
        declared.conforms(case, Path(path))

    def runs(
        self,
        text: str,
        inputs: Given = None,
        *,
        draws: int = 3,
        tolerance: float | None = None,
        special: bool = True,
        threads: Sequence[int] = (),
        same_bits: bool = True,
    ) -> None:
        """`compile --target c` gives C that builds, runs, and returns the oracle's values.

        Args:
            text: the program.
            inputs: {slot: number or nested list}, or several such; drawn if not given.
            draws: how many draws of ordinary numbers.
            tolerance: relative, for floats, 0 for exact; else as far as the program allows.
            special: one more draw, with infinities, NaN and extremes strewn in.
            threads: numbers of threads (OMP_NUM_THREADS) that it is run on, one after the other.
            same_bits: on all of them, each result has the same bits.
        """
        kept: dict[str, Any] = {"inputs": inputs, "draws": draws, "tolerance": tolerance}
        kept |= {"special": special, "threads": list(threads), "same_bits": same_bits}
        case = self._case("runs", text, **kept)
        how = (inputs, draws, tolerance, special, threads, same_bits)
        run_checks.runs(case, normal(text), *how)

    def differentiates(
        self,
        text: str,
        wrt: Sequence[int] | None = None,
        inputs: Given = None,
        *,
        draws: int = 2,
        times: int = 1,
        compiled: bool = False,
    ) -> None:
        """`grad` prints a program that gives the derivatives of the one output.

        Args:
            text: the program.
            wrt: the slots, all float PARAMs in order if not said.
            inputs: {slot: number or nested list}, or several such; drawn if not given.
            draws: how many draws of ordinary numbers.
            times: 2 to derive once more: a sum of the derivatives, each element with a weight.
            compiled: the printed program is compiled and run as well.
        """
        kept: dict[str, Any] = {"wrt": None if wrt is None else list(wrt), "inputs": inputs}
        kept |= {"draws": draws, "times": times, "compiled": compiled}
        case = self._case("differentiates", text, **kept)
        how = (wrt, inputs, draws, times, compiled)
        grad_checks.differentiates(case, normal(text), *how)

    def emits(
        self,
        text: str,
        *,
        kernels_at_most: int | None = None,
        workspace_at_most: int | None = None,
        contains: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> None:
        """The C builds and meets what is counted on its text, comments and strings left out.

        Args:
            text: the program.
            kernels_at_most: loop nests: loops that stand in no other loop.
            workspace_at_most: bytes that `program_workspace` asks for.
            contains: regular expressions that must match.
            without: regular expressions that must not.
        """
        kept: dict[str, Any] = {"kernels_at_most": kernels_at_most}
        kept |= {"workspace_at_most": workspace_at_most, "contains": list(contains)}
        kept["without"] = list(without)
        run_checks.emits(self._case("emits", text, **kept), normal(text), **kept)
