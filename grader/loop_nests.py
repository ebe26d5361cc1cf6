"""Counting the loop nests of C text, coarsely: right where bodies of loops stand in braces."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

_NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?""", re.DOTALL
)
"""What is never closed is taken to the end, so that no text is looked through twice."""
_TOKEN = re.compile(r"\b(?:for|while)\b|\b[A-Za-z_]\w*(?=\s*\()|[(){}]")
_NO_NAMES = {"__attribute__", "__asm__", "asm", "if", "switch", "return", "sizeof"}
ENTRY = "program"


def code_only(source: str) -> str:
    """C text with comments taken out, strings and characters emptied."""
    return _NOT_CODE.sub(lambda m: " " if m[0].startswith("/") else m[0][0] * 2, source)


def kernels(plain: str) -> int:
    """Loop nests: `for` and `while` statements that stand in no other one's braces.

    Counted are those of `program` and of the functions that are called outside of loops from
    there on: what a helper does for each element is a part of the nest that calls it.
    """
    text = _Text()
    for match in _TOKEN.finditer(plain):
        text.take(match[0])
    return sum(text.nests[name] for name in text.reached())


@dataclass
class _Text:
    """The text as far as it was read.

    Attributes:
        nests: function → its outermost loops; "" stands for what is outside of all functions.
        calls: function → the functions that it calls outside of loops.
        inside: for each open brace, whether it is in a loop, or a loop's own.
    """

    nests: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    calls: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    inside: list[bool] = field(default_factory=list)
    function: str = ""
    _name: str = ""
    _parentheses: int = 0
    _pending: bool = False

    def take(self, token: str) -> None:
        """Read a token."""
        if token in ("for", "while"):
            self.nests[self.function] += not self._in_loop()
            self._pending = True
        elif token in ("(", ")"):
            self._parentheses += 1 if token == "(" else -1
        elif token == "{":
            if not self.inside:
                self.function = self._name
                self.calls[self.function] |= set()
            self.inside.append(self._in_loop())
            self._pending = False
        elif token == "}":
            self._close()
        elif token not in _NO_NAMES:
            self._call(token)

    def _in_loop(self) -> bool:
        return self._pending or (bool(self.inside) and self.inside[-1])

    def _close(self) -> None:
        if self.inside:
            self.inside.pop()
        if not self.inside:
            self.function = self._name = ""

    def _call(self, name: str) -> None:
        if self.inside and not self._in_loop():
            self.calls[self.function].add(name)
        elif not self.inside and not self._parentheses:
            self._name = name

    def reached(self) -> set[str]:
        """The functions that run outside of loops; all where there is no `program`."""
        if ENTRY not in self.calls:
            return set(self.nests)
        found, waiting = {""}, [ENTRY]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.calls.get(name, ())
        return found
