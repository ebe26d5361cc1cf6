"""One line of the results: a case with a number of threads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.bench.contenders import EAGER, ROOFLINE
from grader.bench.timing import Round, median, undisturbed


@dataclass
class Row:
    """What was measured of one case.

    Attributes:
        flops, bytes: what the result needs; see `Workload`.
        error: why there is no measurement of ours; empty if there is one.
        blameless: whether the error is not the compiler's: nothing could be measured here.
        ours_s: our seconds for a call, the median.
        ratio: our time over a contender's, the median over the rounds, by the contender's name.
        ratios: the same of every round that counts.
        skipped: why a contender did not take part, by its name.
        rounds, disturbed: how many counted, and whether other processes ran in them.
        roofline: the part of what the machine can do, its median; None if that is not known.
    """

    case: str
    threads: int
    flops: float = 0.0
    bytes: int = 0
    error: str = ""
    blameless: bool = False
    ours_s: float | None = None
    ratio: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, list[float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    disturbed: bool = False
    roofline: float | None = None

    @property
    def correct(self) -> bool:
        """Whether our results were right every time, and there were some."""
        return not self.error and self.ours_s is not None

    @property
    def gflops(self) -> float | None:
        """Billions of operations a second."""
        return self.flops / self.ours_s / 1e9 if self.ours_s else None

    @property
    def gbytes(self) -> float | None:
        """Billions of bytes a second that had to be moved."""
        return self.bytes / self.ours_s / 1e9 if self.ours_s else None

    @property
    def rival(self) -> str | None:
        """The faster one of NumPy and PyTorch eager."""
        eager = [name for name in EAGER if name in self.ratio]
        return max(eager, key=self.ratio.__getitem__) if eager else None

    @property
    def best(self) -> float | None:
        """Our time over the rival's."""
        return None if self.rival is None else self.ratio[self.rival]

    def take(self, rounds: Sequence[Round]) -> None:
        """Put in what the rounds say."""
        counted = [r for r in undisturbed(rounds) if "ours" in r.seconds]
        self.rounds = len(counted)
        self.disturbed = any(r.disturbed for r in counted)
        self.ours_s = median(r.seconds["ours"] for r in counted)
        for name in dict.fromkeys(name for r in counted for name in r.seconds if name != "ours"):
            pairs = [r.seconds for r in counted if name in r.seconds]
            self.ratios[name] = [pair["ours"] / pair[name] for pair in pairs]
            middle = median(self.ratios[name])
            assert middle is not None
            self.ratio[name] = middle
        self.ratio.pop(ROOFLINE, None)
        self.roofline = median(1 / ratio for ratio in self.ratios.pop(ROOFLINE, ()))

    def fail(self, why: str, *, blameless: bool = False) -> None:
        """No measurement of ours, and so no ratio."""
        self.error, self.blameless = why, blameless
        self.ours_s = self.roofline = None
        self.ratio, self.ratios = {}, {}

    def json(self) -> dict[str, Any]:
        """As in the file of results."""
        return {
            "case": self.case,
            "threads": self.threads,
            "correct": self.correct,
            "ours_s": self.ours_s,
            "ratio": self.ratio,
            "gflops": self.gflops,
            "gbytes": self.gbytes,
            "roofline": self.roofline,
            "rounds": self.rounds,
            "disturbed": self.disturbed,
            "skipped": self.skipped,
            "error": self.error,
        }


def geomeans(rows: Iterable[Row]) -> Mapping[str, float]:
    """Geometric means of the ratios to each contender and to the best, over correct rows."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.correct:
            for name, ratio in row.ratio.items():
                found.setdefault(name, []).append(ratio)
            if row.best is not None:
                found.setdefault("best", []).append(row.best)
    return {name: math.exp(sum(map(math.log, r)) / len(r)) for name, r in found.items()}
