"""How fast index expressions are built and simplified, next to tinygrad: a table of ratios.

Both sides build and simplify the same expressions, fresh ones in every round, in turn. A ratio is
ours over tinygrad's, the median over the rounds: below 1, this compiler is faster, and leaves fewer
operations. Run it with `python -m grader.bench.rewrite`.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import click

from week01_uops import ops
from week01_uops.dtypes import int64
from week01_uops.node import const
from week01_uops.simplify import simplify

Expression = tuple[Any, ...]
"""("index", k, size), ("constant", c), or (operator, left, right)."""

ROUNDS = 15
SMALL = (2, 3, 4, 5, 6, 8, 12, 16, 32)


def flat(indices: Sequence[Expression], shape: Sequence[int]) -> Expression:
    """The row-major offset of an index."""
    offset: Expression = ("constant", 0)
    for index, size in zip(indices, shape, strict=True):
        offset = ("+", ("*", offset, ("constant", size)), index)
    return offset


def unflat(offset: Expression, shape: Sequence[int]) -> list[Expression]:
    """The index of a row-major offset."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [
        ("%", ("//", offset, ("constant", stride)), ("constant", size))
        for stride, size in zip(strides, shape, strict=True)
    ]


def reshapes(rng: random.Random) -> list[Expression]:
    """The index of an array that is reshaped and transposed several times."""
    factors = [rng.choice((2, 3, 4, 8)) for _ in range(5)]
    shape = list(factors)
    index: list[Expression] = [("index", k, size) for k, size in enumerate(shape)]
    for _ in range(3):
        axes = rng.sample(range(len(shape)), len(shape))
        index, shape = [index[a] for a in axes], [shape[a] for a in axes]
        rng.shuffle(factors)
        at = rng.randrange(1, len(factors))
        merged = [math.prod(factors[:at]), *factors[at:]]
        index, shape = unflat(flat(index, shape), merged), merged
    return [flat(index, shape)]


def windows(rng: random.Random) -> list[Expression]:
    """The index and the mask of a padded and strided convolution's input, flattened and back."""
    size, kernel = rng.choice((8, 14, 28, 56)), rng.choice((3, 5, 7))
    stride, pad = rng.choice((1, 2)), kernel // 2
    batch: Expression = ("index", 0, 4)
    at: list[Expression] = []
    masks: list[Expression] = []
    for axis in range(2):
        out: Expression = ("*", ("index", 1 + axis, size // stride), ("constant", stride))
        place = ("+", ("+", out, ("index", 3 + axis, kernel)), ("constant", -pad))
        at.append(place)
        masks += [("<", ("constant", -1), place), ("<", place, ("constant", size))]
    padded = size + kernel
    offset = flat([batch, *[("+", p, ("constant", pad)) for p in at]], (4, padded, padded))
    return [*unflat(offset, (4, padded, padded)), *masks]


def nested(rng: random.Random) -> list[Expression]:
    """Sums, quotients and remainders nested at random."""

    def term(depth: int) -> Expression:
        if depth == 0:
            k = rng.randrange(4)
            return ("index", k, (7, 16, 24, 32)[k])
        operator = rng.choice(("+", "+", "*", "//", "//", "%", "%"))
        if operator == "+":
            return ("+", term(depth - 1), term(depth - 1))
        return (operator, term(depth - 1), ("constant", rng.choice(SMALL)))

    return [term(6)]


WORKLOADS: dict[str, Callable[[random.Random], list[Expression]]] = {
    "reshapes and transposes": reshapes,
    "convolution windows": windows,
    "nested at random": nested,
}


class Run(NamedTuple):
    """What simplifying took, and what it left."""

    seconds: float
    operations: float


@dataclass(frozen=True)
class Contender:
    """A way to make an expression and to simplify it."""

    index: Callable[[int, int], Any]
    constant: Callable[[int], Any]
    operators: dict[str, Callable[[Any, Any], Any]]
    simplify: Callable[[Any], Any]

    def build(self, expression: Expression, done: dict[int, Any]) -> Any:  # noqa: ANN401
        """The contender's own node; equal parts that are one object are made once."""
        if id(expression) not in done:
            kind, *rest = expression
            if kind == "index":
                node = self.index(*rest)
            elif kind == "constant":
                node = self.constant(*rest)
            else:
                node = self.operators[kind](*[self.build(item, done) for item in rest])
            done[id(expression)] = node
        return done[id(expression)]

    def run(self, expressions: list[Expression]) -> Run:
        """Make and simplify expressions, which share their parts."""
        gc.collect()
        start = time.perf_counter()
        done: dict[int, Any] = {}
        results = [self.simplify(self.build(item, done)) for item in expressions]
        seconds = time.perf_counter() - start
        return Run(seconds, sum(map(operations, results)))


def operations(node: Any) -> int:  # noqa: ANN401 - of either contender
    """Arithmetic that is left in an expression; both name their ops alike."""
    return sum(below.op.name in ARITHMETIC for below in node.toposort())


ARITHMETIC = frozenset({"ADD", "MUL", "NEG", "MAX", "FLOORDIV", "FLOORMOD", "CMPLT", "CMPNE"})


OURS = Contender(
    lambda k, size: ops.param(k, int64, (), (0, size - 1)),
    lambda value: const(value, int64),
    {"+": ops.ADD, "*": ops.MUL, "//": ops.FLOORDIV, "%": ops.FLOORMOD, "<": ops.CMPLT},
    simplify,
)


def tinygrad() -> Contender | str:
    """How tinygrad does it, or why it cannot be compared with."""
    try:
        from tinygrad.uop.ops import UOp as TinyUOp  # noqa: PLC0415 - an optional package
    except ImportError as error:
        return f"tinygrad is not installed ({error})"
    return Contender(
        lambda k, size: TinyUOp.variable(f"i{k}", 0, size - 1),
        lambda value: TinyUOp.variable("i0", 0, 0).const_like(value),
        {
            "+": lambda x, y: x + y,
            "*": lambda x, y: x * y,
            "//": lambda x, y: x // y,
            "%": lambda x, y: x % y,
            "<": lambda x, y: x < y,
        },
        lambda node: node.simplify(),
    )


def measure(theirs: Contender, make: Callable[[random.Random], list[Expression]]) -> list[Run]:
    """Ours over theirs, round by round; the one who starts alternates."""
    ratios = []
    for number in range(-1, ROUNDS):
        expressions = [e for k in range(5) for e in make(random.Random(1000 * number + k))]
        first = OURS.run(expressions) if number % 2 else None
        other = theirs.run(expressions)
        own = first or OURS.run(expressions)
        ratios.append(Run(own.seconds / other.seconds, own.operations / other.operations))
    return ratios[1:]


@click.command()
def main() -> None:
    """Print our time over tinygrad's, to build and simplify index expressions."""
    theirs = tinygrad()
    if isinstance(theirs, str):
        click.echo(f"skipped: {theirs}")
        return
    click.echo(f"{'ours/tinygrad':28}{'time':>8}{'lowest':>8}{'highest':>8}{'operations':>12}")
    for name, make in WORKLOADS.items():
        ratios = measure(theirs, make)
        times = [ratio.seconds for ratio in ratios]
        left = statistics.median(ratio.operations for ratio in ratios)
        click.echo(
            f"{name:28}{statistics.median(times):8.2f}{min(times):8.2f}{max(times):8.2f}{left:12.2f}"
        )


if __name__ == "__main__":
    main()
