"""How far off an answer may be: evaluations next to the plain one.

Each neighbour moves every inexact float result by as much as the format lets an op be off, up or
down at random, keeps products that a sum may fuse, and takes the other choice where the format
leaves one: the sign of a computed zero, a float outside an integer's range, a subnormal result of
EXP2, LOG2 or RECIP, an overflow within a sum. What the neighbours differ by, times a margin, is
allowed; an element that is finite in one, and infinite or NaN in another, or an integer that
differs, is open.

This is discrete stochastic arithmetic (Vignes, "A stochastic arithmetic for reliable scientific
computation", 1993) with bounds in place of roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from grader.draws import Array
from grader.weeks import MEANING
from week01_uops import numerics, ops
from week01_uops.dtypes import DType
from week01_uops.evaluate import Meaning
from week01_uops.node import Op, UOp
from week01_uops.numerics import is_float, round_to, wide
from week02_render.evaluate import repeated
from week03_loops.evaluate import combine, narrow
from week03_loops.ops import MOVEMENT, REDUCE, identity

COUNT = 6
MARGIN = 8.0
_CHOICES = frozenset({ops.RECIP, ops.EXP2, ops.LOG2})
_INEXACT = _CHOICES | {ops.ADD, ops.MUL, REDUCE, ops.CAST}
_TRANSPARENT = MOVEMENT | {ops.NEG}
_FUNCTION_ULPS = {"float32": 2.0, "float64": 4.0}

Scope = Any
"""A scope of the evaluator."""


def has_neighbours(program: UOp) -> bool:
    """Whether a program has an op that may be off, or leaves a choice."""
    return any(node.op in _INEXACT and _floats(node) for node in program.toposort())


def _floats(node: UOp) -> bool:
    return node.dtype.is_float or any(source.dtype.is_float for source in node.src)


def neighbour(program: UOp, number: int) -> Mapping[Op, Meaning]:
    """The meanings of one evaluation next to the plain one; odd ones take the other choices."""
    moves = _Moves(program, number)
    rows: dict[Op, Callable[[Scope, UOp, Array], Array]] = {
        ops.ADD: moves.add,
        ops.MUL: moves.multiply,
        ops.NEG: moves.exact,
        ops.MAX: moves.exact,
        ops.CAST: moves.cast,
        **dict.fromkeys(_CHOICES, moves.function),
    }
    moved = {op: _moved(MEANING[op], row) for op, row in rows.items()}
    return {**MEANING, **moved, REDUCE: moves.reduce}


def _moved(meaning: Meaning, row: Callable[[Scope, UOp, Array], Array]) -> Meaning:
    def moved(scope: Scope, node: UOp) -> Array:
        found = meaning(scope, node)
        return row(scope, node, np.asarray(found)) if _floats(node) else found

    return moved


class _Moves:
    """From the plain value of a node to one next to it, a method for each kind of op."""

    def __init__(self, program: UOp, number: int) -> None:
        self.rng = np.random.default_rng(number)
        self.other = number % 2 == 1
        self.overflows = number % 4 == 1
        fusable = fused_products(program)
        self.fused = frozenset(node for node in fusable if self.rng.random() < 0.5)

    def noise(self, shape: tuple[int, ...]) -> Array:
        """±[½, 1], so that one move alone never vanishes."""
        return np.asarray(self.rng.choice([-1.0, 1.0], shape) * self.rng.uniform(0.5, 1.0, shape))

    def by(self, dtype: DType, found: Array, size: Array | float) -> Array:
        """Found moved by up to an absolute size, and one least subnormal."""
        tiny = math.ldexp(1.0, 2 - dtype.max_exponent - dtype.precision)
        moved = np.asarray(wide(found) + self.noise(found.shape) * (size + tiny))
        # float32 stays unrounded: moves of a whole unit each would cancel too often.
        return self.exact_zero(moved if dtype.precision >= 24 else round_to(moved, dtype))

    def ulps(self, dtype: DType, found: Array, count: float) -> Array:
        """The size of so many units in the last place, at most."""
        size = np.abs(np.where(np.isfinite(wide(found)), wide(found), 0.0))
        return np.asarray(count * 2.0 ** (1 - dtype.precision) * size)

    def exact(self, scope: Scope, node: UOp, found: Array) -> Array:
        """Only the sign of a zero is left open."""
        return self.exact_zero(found)

    def exact_zero(self, found: Array) -> Array:
        if not self.other or not is_float(found):
            return found
        return np.asarray(np.where(found == 0, -found, found).astype(found.dtype))

    def add(self, scope: Scope, node: UOp, found: Array) -> Array:
        a, b = map(wide, scope.operands(node))
        return self._rounded(node, found, a + b)

    def multiply(self, scope: Scope, node: UOp, found: Array) -> Array:
        a, b = map(wide, scope.operands(node))
        if node in self.fused:
            return self.exact_zero(np.asarray(a * b))
        return self._rounded(node, found, a * b)

    def _rounded(self, node: UOp, found: Array, exact: Array) -> Array:
        """One rounding, where there is one: float64 holds what narrower floats lose."""
        dtype = node.dtype
        same = found == 0
        if dtype.precision < 53:
            same = wide(round_to(exact, dtype)) == exact
        moved = self.by(dtype, found, self.ulps(dtype, found, 1.0))
        return np.asarray(np.where(same, self.exact_zero(found), moved))

    def cast(self, scope: Scope, node: UOp, found: Array) -> Array:
        (x,) = scope.operands(node)
        if node.dtype.is_float:
            return self._rounded(node, found, wide(x).astype(np.float64))
        if not self.other or not node.dtype.is_int:
            return found
        whole = np.trunc(wide(x))
        inside = (whole >= float(node.dtype.min)) & (whole < float(node.dtype.max + 1))
        return np.where(inside, found, found.dtype.type(1))

    def function(self, scope: Scope, node: UOp, found: Array) -> Array:
        count = _FUNCTION_ULPS.get(node.dtype.name, 1.0)
        moved = self.by(node.dtype, found, self.ulps(node.dtype, found, count))
        if self.other:
            normal = math.ldexp(1.0, 1 - node.dtype.max_exponent)
            moved = np.where(np.abs(wide(moved)) < normal, np.zeros_like(moved), moved)
        return self.exact_zero(moved)

    def reduce(self, scope: Scope, node: UOp) -> Array:
        op, dtype = node.arg.op, node.dtype
        if op is ops.MAX or not dtype.is_float:
            return self.exact_zero(MEANING[REDUCE](scope, node))
        x, axes = _terms(scope, node)
        found = narrow(dtype, combine(op, dtype, x, axes))
        terms = math.prod(x.shape[axis] for axis in axes)
        x = wide(x)
        if op is ops.MUL:
            return self._product(dtype, found, x, axes, terms)
        return self._sum(dtype, found, np.where(np.isfinite(x), x, 0.0), axes, terms)

    def _sum(
        self, dtype: DType, found: Array, x: Array, axes: tuple[int, ...], terms: int
    ) -> Array:
        """At most one rounding for each term, of partial sums no larger than Σ|x|."""
        total = np.abs(x).sum(axis=axes)
        narrow = dtype.precision < 24
        unit = 2.0**-24 if narrow else 2.0**-dtype.precision
        whole = (x == np.rint(x)).all() and bool((total * unit < 1).all())
        if terms < 2 or (whole and not narrow):
            return self.exact_zero(found)
        size = terms * unit * total + self.ulps(dtype, found, 1.0 if narrow else 0.0)
        moved = self.by(dtype, found, size)
        largest = 2.0**128 if narrow else math.ldexp(1.0, dtype.max_exponent)
        return self._opened(moved, total >= largest)

    def _product(
        self, dtype: DType, found: Array, x: Array, axes: tuple[int, ...], terms: int
    ) -> Array:
        """One rounding for each term; in some order partial products may leave the range."""
        size = np.abs(np.where(np.isfinite(x), x, 1.0))
        above = np.prod(np.maximum(size, 1.0), axis=axes)
        below = np.prod(np.where(size == 0, 1.0, np.minimum(size, 1.0)), axis=axes)
        far = above >= math.ldexp(1.0, dtype.max_exponent)
        near = below < math.ldexp(1.0, 1 - dtype.max_exponent)
        moved = self.by(dtype, found, self.ulps(dtype, found, terms))
        return self._opened(moved, np.asarray(far | near))

    def _opened(self, moved: Array, where: Array) -> Array:
        """Another kind of value where partial results may overflow in some order."""
        if not self.overflows:
            return moved
        kind = moved.dtype.type
        flipped = np.where(np.isnan(moved), kind(np.inf), kind(np.nan))
        return np.asarray(np.where(where, flipped, moved))


def _terms(scope: Scope, node: UOp) -> tuple[Array, tuple[int, ...]]:
    """All that a REDUCE combines, and the axes over which it does."""
    first: int = scope.lanes
    if len(node.src) == 1:
        return scope.value(node.src[0]), tuple(range(first, first + node.arg.axes))
    start = numerics.constant(identity(node.arg.op, node.dtype), node.dtype)
    lanes, shape = scope.active.shape, node.shape

    def collect(scopes: Iterator[Scope]) -> list[Array]:
        parts = [np.full((*lanes, 0, *shape), start)]
        for inner in scopes:
            active = inner.active.reshape((*inner.active.shape, *(1,) * len(shape)))
            x = np.where(active, inner.value(node.src[0]), start)
            count = math.prod(inner.active.shape[first:])
            parts.append(x.reshape((*lanes, count, *shape)))
        return parts

    return np.concatenate(repeated(scope, node, collect), axis=first), (first,)


def fused_products(program: UOp) -> frozenset[UOp]:
    """Products whose one use is a sum, perhaps behind movement or NEG."""
    users: dict[UOp, list[UOp]] = {}
    for node in program.toposort():
        for source in node.src:
            users.setdefault(source, []).append(node)
    return frozenset(
        node for node in program.toposort() if node.op is ops.MUL and _feeds_a_sum(node, users)
    )


def _feeds_a_sum(node: UOp, users: Mapping[UOp, list[UOp]]) -> bool:
    while len(users.get(node, ())) == 1:
        (node,) = users[node]
        if node.op is ops.ADD or (node.op is REDUCE and node.arg.op is ops.ADD):
            return True
        if node.op not in _TRANSPARENT:
            return False
    return False
