"""What can come of one check, and the failure that a spec test reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """The outcome of a check; the value is what a report calls it."""

    OK = "ok"
    WRONG = "wrong answer"
    BOUND = "bound missed"
    ACCEPTED = "wrong program accepted"
    COMPILE_ERROR = "compile error of the emitted C"
    FORBIDDEN = "forbidden"
    CRASH = "crash"
    TIMEOUT = "timeout"
    MEMORY = "memory limit"
    OUTPUT = "output limit"
    PROTOCOL = "protocol error"
    REFUSED = "refused"
    UNSUPPORTED = "not offered"
    GRADER = "fault of the grader"


@dataclass(frozen=True)
class Difference:
    """Where an answer first departs from the expected one.

    Attributes:
        output: which output.
        index: the element's index in it.
        expected, got: the two values as text.
        count: how many elements of this output are wrong, of `total`.
        note: what else a reader should know, e.g. the allowed error.
    """

    output: int
    index: tuple[int, ...]
    expected: str
    got: str
    count: int
    total: int
    note: str = ""

    def __str__(self) -> str:
        place = f"output {self.output}" + (f" at {list(self.index)}" if self.index else "")
        many = f"; {self.count} of {self.total} elements differ" if self.total > 1 else ""
        note = f" ({self.note})" if self.note else ""
        return f"{place}: expected {self.expected}, got {self.got}{note}{many}"


@dataclass
class Evidence:
    """Everything a reader needs to see a failure again.

    Attributes:
        check: the method of `Judge` that failed, and `arguments` its keyword arguments.
        sent: what the check was given; `program` is the text that the failing verb got.
        verb: the verb and its options, e.g. "compile --target c".
        command: a shell command that runs it again, the program on standard input.
        result: what the compiler printed.
        stderr: what it, or the C compiler, wrote to standard error.
        inputs: arrays by slot; `expected` and `got` the outputs' arrays.
        shrunk: the smallest program found that fails in the same way, the check that it fails,
            its first difference, and what the compiler printed for it.
    """

    check: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    sent: str | bytes = ""
    program: str = ""
    verb: str = ""
    command: str = ""
    result: str = ""
    stderr: str = ""
    inputs: Mapping[int, Any] = field(default_factory=dict)
    expected: tuple[Any, ...] = ()
    got: tuple[Any, ...] = ()
    difference: Difference | None = None
    shrunk: str | None = None
    shrunk_check: str = ""
    shrunk_arguments: Mapping[str, Any] = field(default_factory=dict)
    shrunk_difference: Difference | None = None
    shrunk_result: str = ""


class SpecFailure(AssertionError):  # noqa: N818 - a verdict, not an error
    """A check that did not pass: its verdict, one sentence, and the evidence.

    What a sentence says in a stranger's words is clean, and not too long.
    """

    def __init__(self, verdict: Verdict, sentence: str, evidence: Evidence | None = None) -> None:
        self.verdict = verdict
        self.sentence = excerpt(sentence, 60, 500)
        super().__init__(self.sentence)
        self.evidence = evidence or Evidence()

    def __str__(self) -> str:
        return f"{self.verdict}: {self.sentence}"


_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\ufffe\uffff]"
)


def clean(text: str) -> str:
    """The text with U+FFFD for what is not fit to be shown, or not allowed in XML 1.0.

    That is control characters, also those that turn the direction of text, ends of lines that few
    programs know, and lone surrogates.
    """
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def excerpt(text: str, lines: int = 12, width: int = 200) -> str:
    """The first lines of a text, clean, each cut to a width, saying what was left out."""
    rows = text.rstrip().splitlines()
    shown = [row if len(row) <= width else row[: width - 1] + "…" for row in rows[:lines]]
    if len(rows) > lines:
        shown.append(f"… {len(rows) - lines} more lines")
    return clean("\n".join(shown))
