"""The grammar of a line, and what to say about a line that does not follow it."""

from __future__ import annotations

import re
from typing import NamedTuple

from week01_uops.args import brief

RESERVED = frozenset({"return", "uops"})
NAME = r"[A-Za-z_%][A-Za-z0-9_.%]*+"
_OP = r"[A-Z][A-Z0-9_]*+"

STATEMENT = re.compile(
    rf"[ \t]*+({NAME})[ \t]++=[ \t]++({_OP})((?:[ \t]++{NAME})*+)[ \t]*+"
    r"(?:\Z|#|(?<=[ \t])(:)(?=[ \t]|\Z))"
)
"""Groups: the name, the op, the names of the sources, the colon if there is an argument."""

RETURN = re.compile(rf"[ \t]*+return((?:[ \t]++{NAME})*+)[ \t]*+(?:\Z|#)")
"""Group: the names of the outputs."""

WORD = re.compile(r"[^ \t]+")
_NAME = re.compile(NAME)
_OP_NAME = re.compile(_OP)


class Fault(NamedTuple):
    """Why a line is no statement, and the name that it may have meant to define."""

    col: int
    message: str
    name: str | None = None


def explain(line: str) -> Fault:
    """What is wrong with a line that `STATEMENT` does not match."""
    head = line.partition("#")[0]
    words = list(WORD.finditer(head))
    first = words[0] if words else re.match("", head)
    assert first is not None
    if not _NAME.fullmatch(first[0]) or first[0] in RESERVED:
        return _no_name(first)
    name, end = first[0], len(head.rstrip(" \t")) + 1
    if len(words) == 1:
        return Fault(end, f"expected = and an op after {brief(name)}", name)
    if words[1][0] != "=":
        blanks = "; blanks stand around =" if "=" in words[1][0] else ""
        return Fault(words[1].start() + 1, f"expected =, got {brief(words[1][0])}{blanks}", name)
    if len(words) == 2:
        return Fault(end, "expected an op after =", name)
    if not _OP_NAME.fullmatch(words[2][0]):
        if _OP_NAME.fullmatch(words[2][0].partition(":")[0]):
            return _bad_source(words[2:], name)
        expected = "expected an op: upper-case letters, digits and _"
        return Fault(words[2].start() + 1, f"{expected}, got {brief(words[2][0])}", name)
    return _bad_source(words[3:], name)


def _no_name(first: re.Match[str]) -> Fault:
    """The first word of a line is no name; `a=NEG` still tells which was meant."""
    meant = first[0].partition("=")[0]
    if meant != first[0] and _NAME.fullmatch(meant):
        col = first.start() + len(meant) + 1
        return Fault(col, f"expected blanks around =, got {brief(first[0])}", meant)
    return Fault(first.start() + 1, f"expected a name, got {brief(first[0])}")


def _bad_source(words: list[re.Match[str]], name: str) -> Fault:
    for word in words:
        if not _NAME.fullmatch(word[0]):
            if ":" in word[0]:
                col = word.start() + word[0].index(":") + 1
                return Fault(col, "expected blanks around the colon", name)
            expected = "expected the name of a source or a colon"
            return Fault(word.start() + 1, f"{expected}, got {brief(word[0])}", name)
    raise AssertionError("the line is a statement")


def explain_return(line: str) -> Fault:
    """What is wrong with a line that begins with return and that `RETURN` does not match."""
    for word in list(WORD.finditer(line.partition("#")[0]))[1:]:
        if not _NAME.fullmatch(word[0]):
            return Fault(word.start() + 1, f"expected the name of an output, got {brief(word[0])}")
    raise AssertionError("the line is a return")
