"""Einstein summation in full: implicit outputs, ellipses, diagonals, any number of factors.

    einsum("…ij,…jk->…ik", [a, b])

Two factors at a time, from the left; a label is summed over as soon as nothing later needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from week01_uops.node import UOp
from week03_loops.library.check import expect
from week03_loops.library.linear_algebra import contract
from week03_loops.ops import permute
from week09_10_autodiff.movement import diagonal

Labels = list[str]


def einsum(equation: str, factors: Sequence[UOp]) -> UOp:
    """The sum of products that an equation names, in NumPy's notation.

    Without "->" the output has the labels that stand once, in alphabetical order, after the axes
    of the ellipsis.
    """
    inputs, output = _parsed(equation, factors)
    pairs = [_without_repeats(x, labels) for x, labels in zip(factors, inputs, strict=True)]
    x, labels = pairs[0]
    for number, (other, others) in enumerate(pairs[1:], 2):
        needed = {label for _, later in pairs[number:] for label in later} | set(output)
        kept = [label for label in dict.fromkeys(labels + others) if label in needed]
        x = contract("einsum", (x, other), (labels, others), kept)
        labels = kept
    if set(labels) == set(output):
        return permute(x, [labels.index(label) for label in output])
    return contract("einsum", (x,), (labels,), output)


def _parsed(equation: str, factors: Sequence[UOp]) -> tuple[list[Labels], Labels]:
    """The labels of each factor and of the output; those of an ellipsis are numbers from the right.

    Raises:
        ProgramError: E311 if the equation does not fit.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    good = len(terms) == len(factors)
    got = f"got {equation!r} and {len(factors)} tensors"
    expect(good, "E311", f"einsum: expected an equation with a term for each tensor, {got}")
    inputs = [_labels(term, len(x.shape), equation) for term, x in zip(terms, factors, strict=True)]
    dots = max((labels for labels in map(_dots, inputs)), key=len)
    if not arrow:
        single = [label for label in left if left.count(label) == 1 and label.isalpha()]
        return inputs, [*dots, *sorted(single)]
    output = _labels(right, len(right.replace("...", "")) + len(dots), equation)
    known = {label for labels in inputs for label in labels}
    good = len(set(output)) == len(output) and set(output) <= known
    expect(good, "E311", f"einsum: expected output labels of the inputs, each once, {got}")
    return inputs, output


def _labels(term: str, rank: int, equation: str) -> Labels:
    """One label for each of `rank` axes."""
    before, dots, after = term.partition("...")
    letters = before + after
    good = (letters.isalpha() or not letters) and letters.isascii()
    expect(good, "E311", f"einsum: expected letters, commas, ... and ->, got {equation!r}")
    spare = rank - len(letters)
    good = spare >= 0 if dots else spare == 0
    expect(good, "E406", f"einsum: expected {len(letters)} axes for {term!r}, got {rank}")
    return [*before, *[str(number) for number in range(spare)][::-1], *after]


def _dots(labels: Labels) -> Labels:
    return [label for label in labels if label.isdigit()]


def _without_repeats(x: UOp, labels: Labels) -> tuple[UOp, Labels]:
    """The diagonal of axes that share a label."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            same = x.shape[first] == x.shape[second]
            sizes = f"{x.shape[first]} and {x.shape[second]}"
            expect(same, "E403", f"einsum: expected axes {label} of one size, got {sizes}", x)
            x = diagonal(x, 0, first, second)
            labels = [*(l for a, l in enumerate(labels) if a not in (first, second)), label]
    return x, labels
