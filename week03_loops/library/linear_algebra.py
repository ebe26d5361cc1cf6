"""Contractions: every sum of products is one MUL of aligned factors and one REDUCE."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from week01_uops.node import UOp
from week01_uops.ops import ADD
from week03_loops.library.arithmetic import add, mul
from week03_loops.library.check import expect, expect_rank, expect_shape
from week03_loops.ops import permute, reduce, reshape

Labels = Sequence[str]


def contract(name: str, factors: Sequence[UOp], labels: Sequence[Labels], output: Labels) -> UOp:
    """Einstein summation with a label for each axis; labels not in `output` are summed over.

    Axes of one label have one size, or size 1, which broadcasts (E403). Each label stands once
    in a factor and in the output (E311). The summed axes come first, as REDUCE wants them.
    """
    sizes: dict[str, int] = {}
    for x, named in zip(factors, labels, strict=True):
        good = len(named) == len(x.shape)
        expect(good, "E406", f"{name}: expected {len(named)} axes, got {list(x.shape)}", x)
        expect(len(set(named)) == len(named), "E311", f"{name}: expected each label once a factor")
        for label, size in zip(named, x.shape, strict=True):
            known = sizes.get(label, 1)
            wanted = f"sizes of axis {label} that agree"
            expect(
                1 in (known, size) or known == size,
                "E403",
                f"{name}: expected {wanted}, got {known} and {size}",
                *factors,
            )
            sizes[label] = size if known == 1 else known
    good = len(set(output)) == len(output) and set(output) <= set(sizes)
    expect(good, "E311", f"{name}: expected output labels of the factors, each once")
    summed = [label for label in sizes if label not in output]
    order = [*summed, *output]
    aligned = [_align(x, named, order) for x, named in zip(factors, labels, strict=True)]
    return reduce(ADD, functools.reduce(mul, aligned), len(summed))


def _align(x: UOp, labels: Labels, order: Labels) -> UOp:
    """Put the axes of x in this order, with axes of size 1 for the labels that it lacks."""
    present = [label for label in order if label in labels]
    x = permute(x, [list(labels).index(label) for label in present])
    sizes = dict(zip(present, x.shape, strict=True))
    return reshape(x, [sizes.get(label, 1) for label in order])


def einsum(equation: str, *factors: UOp) -> UOp:
    """Einstein summation, "ij,jk->ik": explicit output, one letter an axis, no diagonals."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    labels = inputs.split(",")
    good = bool(arrow) and len(labels) == len(factors)
    expect(good, "E311", f"einsum: expected {len(factors)} inputs and ->, got {equation!r}")
    return contract("einsum", factors, labels, output)


def matmul(a: UOp, b: UOp) -> UOp:
    """Product of a (…, m, k) and b (…, k, n) → (…, m, n), as numpy.matmul.

    The leading axes broadcast; a vector a (k) or b (k) loses its axis. E403 where the k differ.
    """
    expect_rank("matmul", "a", a, 1, "(…, m, k) or (k)")
    expect_rank("matmul", "b", b, 1, "(…, k, n) or (k)")
    k = b.shape[max(len(b.shape) - 2, 0)]
    wanted = f"a of shape [..., {k}], the last axis that of b {list(b.shape)} before the last"
    expect(a.shape[-1] == k, "E403", f"matmul: expected {wanted}, got {list(a.shape)}", a, b)
    rows = ["m"] if len(a.shape) > 1 else []
    columns = ["n"] if len(b.shape) > 1 else []
    ranks = [max(len(x.shape) - 2, 0) for x in (a, b)]
    batch = [f"batch{i}" for i in range(max(ranks))]
    left, right = (batch[len(batch) - rank :] for rank in ranks)
    labels = [[*left, *rows, "k"], [*right, "k", *columns]]
    return contract("matmul", (a, b), labels, [*batch, *rows, *columns])


def linear(x: UOp, weight: UOp, bias: UOp | None = None) -> UOp:
    """Affine map x·Wᵀ + bias: x (…, k), weight (n, k), bias (n) → (…, n); as torch.nn.Linear."""
    expect_rank("linear", "x", x, 1, "(…, k)")
    k = x.shape[-1]
    good = len(weight.shape) == 2 and weight.shape[1] == k
    wanted = f"a weight of shape [out, {k}]"
    expect(good, "E403", f"linear: expected {wanted}, got {list(weight.shape)}", weight)
    batch = [f"batch{i}" for i in range(len(x.shape) - 1)]
    y = contract("linear", (x, weight), ([*batch, "k"], ("n", "k")), [*batch, "n"])
    if bias is None:
        return y
    expect_shape("linear", "a bias", bias, weight.shape[:1])
    return add(y, bias)
