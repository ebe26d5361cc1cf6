"""Which submissions resemble each other: for an instructor to look at, never a verdict.

By source: fingerprints of token sequences, chosen by winnowing (Schleimer, Wilkerson and Aiken,
SIGMOD 2003), in which names, numbers and comments do not count; the share of the smaller one's
fingerprints that the other has too. By what they print for the same programs: the share of the
surprise, −log₂ of how many of the class answer so, that both have in common. Agreement on what
everyone prints says nothing.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TOKENS = 20
"""Of a fingerprinted sequence; shorter agreement is not seen."""

WINDOW = 12
"""Of so many sequences in a row one is kept: agreement over TOKENS + WINDOW − 1 is always seen."""

LARGEST = 1 << 20
"""Bytes of a file that is looked at."""

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|(?<!\S)\#[^\n]*|"{3}.*?"{3})
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<name>[^\W\d]\w*) | (?P<number>\d[\w.]*) | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_STANDS_FOR = {"string": "s", "name": "n", "number": "0"}

Programs = Mapping[str, str]


@dataclass(frozen=True)
class Pair:
    """Two of the class; `source` and `printed` from 0 to 1, None where there is nothing to say."""

    first: str
    second: str
    source: float | None
    printed: float | None

    @property
    def most(self) -> float:
        """The greater of the two."""
        return max(self.source or 0.0, self.printed or 0.0)


def tokens(text: str) -> str:
    """A text as a character a token: marks as they are, n, 0 and s for the rest."""
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "skip"
        if kind != "skip":
            found.append(_STANDS_FOR.get(kind, match[0]))
    return "".join(found)


def fingerprints(text: str) -> set[int]:
    """The least hash of each window of sequences of tokens."""
    row = tokens(text)
    hashes = [_hash(row[i : i + TOKENS]) for i in range(len(row) - TOKENS + 1)]
    windows = (hashes[i : i + WINDOW] for i in range(max(1, len(hashes) - WINDOW + 1)))
    return {min(window) for window in windows if window}


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def of_folder(folder: Path) -> set[int]:
    """The fingerprints of all files of text below a folder."""
    found: set[int] = set()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST:
            data = path.read_bytes()
            if b"\0" not in data:
                found |= fingerprints(data.decode("utf-8", "replace"))
    return found


def by_source(members: Sequence[set[int]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Between any two: what they share over the smaller one; NaN where one has nothing."""
    number = {mark: k for k, mark in enumerate(sorted(set().union(*members)))}
    table = np.zeros((len(members), len(number)), np.float32)
    for row, marks in zip(table, members, strict=True):
        row[[number[mark] for mark in marks]] = 1
    sizes = table.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((table @ table.T) / np.minimum.outer(sizes, sizes), np.float64)


def by_answers(
    members: Sequence[Programs],
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Between any two: the surprise they share over all that they have; NaN where there is none."""
    counts = Counter((p, a) for member in members for p, a in member.items())
    asked = Counter(program for member in members for program in member)
    weight = {item: -math.log2(count / asked[item[0]]) for item, count in counts.items()}
    number = {item: k for k, item in enumerate(sorted(weight))}
    table = np.zeros((len(members), len(number)))
    for row, member in zip(table, members, strict=True):
        for item in member.items():
            row[number[item]] = weight[item] ** 0.5
    shared = table @ table.T
    sums = (table**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(shared / (np.add.outer(sums, sums) - shared))


def pairs(
    sources: Mapping[str, set[int]], answers: Mapping[str, Programs], least: float
) -> list[Pair]:
    """The pairs that reach `least` in one way or the other, the most alike first."""
    names = list(sources)
    if len(names) < 2:
        return []
    one, other = by_source(list(sources.values())), by_answers([answers[n] for n in names])
    listed = np.triu(np.fmax(one, other) >= least, 1)
    found = [
        Pair(names[i], names[k], _known(one[i, k]), _known(other[i, k]))
        for i, k in zip(*np.nonzero(listed), strict=True)
    ]
    return sorted(found, key=lambda pair: (-pair.most, pair.first, pair.second))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def summary(found: Sequence[Pair], shown: int = 10) -> Iterator[str]:
    """The first pairs, a line each."""
    for pair in found[:shown]:
        source, printed = ("–" if v is None else f"{v:.2f}" for v in (pair.source, pair.printed))
        yield f"{pair.first} and {pair.second}: source {source}, printed {printed}"
    if len(found) > shown:
        yield f"… {len(found) - shown} more pairs"
