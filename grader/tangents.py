"""What `grad` is judged by: derivatives by forward mode, in float64, for one input after another.

Every value carries, next to itself, its derivative by each element that is asked for (Griewank and
Walther, "Evaluating Derivatives", 2008, chapter 3.1). The rows here share nothing with the rules
that the reference derives programs by.

Some products are 0·∞. Two evaluations bracket what is right: `value` takes them for 0, `strict` for
NaN, but for zeros that only say that there is no way from the input to the node. A third one,
`size`, adds up absolute values: how large the parts of a derivative are that may cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from grader.draws import Array, Inputs
from grader.weeks import evaluate
from week01_uops import ops
from week01_uops.calls import inline
from week01_uops.dtypes import DType, float64
from week01_uops.node import CONST, Op, UOp, const, make
from week01_uops.ops import ADD, MAX, RETURN, parameters
from week01_uops.rewrite import Trace
from week02_render.ops import INDEX, LOAD, open_ranges
from week03_loops import evaluate as week03
from week03_loops import ops as moves
from week03_loops.ops import REDUCE
from week04_fusion.ops import STAGE

Mode = Literal["value", "strict", "size"]
Values = Mapping[UOp, Array]


class NoDerivativeError(Exception):
    """The oracle knows no derivative of an op that is on the way."""


@dataclass(frozen=True)
class Slope:
    """The derivative of the output by the elements of one input; see the module."""

    value: Array
    strict: Array
    size: Array


def slopes(program: UOp, wrt: Sequence[int], inputs: Inputs) -> list[Slope]:
    """The derivatives of a program's one output, a scalar, by the named slots."""
    program = widened(inline(program, Trace()))
    inputs = wide_inputs(inputs)
    params = [parameters(program)[slot] for slot in wrt]
    active = _active(program, params)
    values = _values(program, active, inputs)
    found = [_derivatives(program, params, active, values, m) for m in ("value", "strict", "size")]
    return [Slope(*parts) for parts in zip(*found, strict=True)]


def widened(program: UOp) -> UOp:
    """The same program with float64 for every float, so that it rounds nothing."""
    done: dict[UOp, UOp] = {}
    for node in program.toposort():
        src = tuple(done[s] for s in node.src)
        if node.op is CONST and node.dtype.is_float:
            done[node] = const(node.arg.value, float64)
        elif isinstance(node.arg, DType) and node.arg.is_float:
            done[node] = make(node.op, src, float64)
        elif getattr(node.arg, "dtype", None) is not None and node.arg.dtype.is_float:
            done[node] = make(node.op, src, replace(node.arg, dtype=float64))
        else:
            done[node] = make(node.op, src, node.arg)
    return done[program]


def wide_inputs(inputs: Inputs) -> Inputs:
    """Floats as float64."""
    return {k: a.astype(np.float64) if _is_float(a) else a for k, a in inputs.items()}


def _is_float(array: Array) -> bool:
    return array.dtype.kind not in "biu"


def _active(program: UOp, params: Sequence[UOp]) -> set[UOp]:
    """The float nodes that the inputs reach by other ways than steps."""
    active = set(params)
    for node in program.toposort():
        if node.dtype.is_float and not active.isdisjoint(node.src):
            active.add(node)
    return active


def _values(program: UOp, active: set[UOp], inputs: Inputs) -> Values:
    """The values of everything active, and of what stands beside it."""
    wanted = dict.fromkeys(
        node
        for user in program.toposort()
        if user in active
        for node in (*user.src, user)
        if node.place is None or not node.place.indexed
    )
    for node in wanted:
        if node in active and node.src and (node.op not in ROWS or open_ranges(node)):
            raise NoDerivativeError(f"no derivative of {node.op} is known, or none in loops")
    with np.errstate(all="ignore"):
        found = evaluate(make(RETURN, tuple(wanted)), inputs) if wanted else []
    return dict(zip(wanted, map(np.asarray, found), strict=True))


@dataclass(frozen=True)
class _Forward:
    """One evaluation of all tangents: arrays with the directions in front.

    In the strict one there are twice as many: behind the tangents, numbers of ways from the input.
    """

    values: Values
    mode: Mode
    tangents: dict[UOp, Array]

    def times(self, factor: Array | float, tangent: Array) -> Array:
        """A tangent that goes through a factor."""
        if self.mode == "strict" and len(tangent) > 1:
            moved, ways = np.split(tangent, 2)
            ways = np.broadcast_to(ways, np.broadcast_shapes(ways.shape, np.shape(factor)))
            return np.concatenate((np.where(ways == 0, 0.0, factor * moved), ways))
        factor = np.abs(factor) if self.mode == "size" else factor
        return np.asarray(np.where(tangent == 0, 0.0, factor * tangent))

    def of(self, node: UOp, rank: int | None = None) -> Array:
        """The tangent of a node, its axes broadcast to a rank; zeros if it has none."""
        found = self.tangents.get(node)
        if found is None:
            return np.zeros((1,) * (1 + (len(node.shape) if rank is None else rank)))
        new = 0 if rank is None else rank - len(node.shape)
        return found.reshape((found.shape[0], *(1,) * new, *node.shape))


def _derivatives(
    program: UOp, params: Sequence[UOp], active: set[UOp], values: Values, mode: Mode
) -> list[Array]:
    forward = _Forward(values, mode, {})
    count, copies = sum(param.size for param in params), 1 + (mode == "strict")
    start = 0
    for param in params:
        rows = np.tile(np.eye(count), (copies, 1))[:, start : start + param.size]
        forward.tangents[param] = rows.reshape((copies * count, *param.shape))
        start += param.size
    with np.errstate(all="ignore"):
        for node in program.toposort():
            if node in active and node not in forward.tangents:
                row = ROWS[node.op](forward, node)
                forward.tangents[node] = np.broadcast_to(row, (copies * count, *node.shape))
    (output,) = program.src
    total = np.broadcast_to(forward.of(output), (copies * count,))[:count]
    ends = np.cumsum([param.size for param in params])
    parts = np.split(total, ends[:-1])
    return [part.reshape(param.shape) for part, param in zip(parts, params, strict=True)]


Row = Callable[[_Forward, UOp], Array]


def _operands(forward: _Forward, node: UOp) -> tuple[list[Array], list[Array]]:
    """Values and tangents of the sources, which broadcast."""
    rank = len(node.shape)
    return [forward.values[s] for s in node.src], [forward.of(s, rank) for s in node.src]


def _mul(forward: _Forward, node: UOp) -> Array:
    (a, b), (da, db) = _operands(forward, node)
    return forward.times(b, da) + forward.times(a, db)


def _max(forward: _Forward, node: UOp) -> Array:
    """Equal ones share."""
    (a, b), (da, db) = _operands(forward, node)
    shares = [np.where(a == b, 0.5, np.where(low, 0.0, 1.0)) for low in (a < b, b < a)]
    return forward.times(shares[0], da) + forward.times(shares[1], db)


def _neg(forward: _Forward, node: UOp) -> Array:
    return forward.times(-1.0, forward.of(node.src[0]))


def _slope(slope: Callable[[Array, Array], Array]) -> Row:
    """A function of one value x that gives y, from its slope at (x, y)."""

    def row(forward: _Forward, node: UOp) -> Array:
        x, y = forward.values[node.src[0]], forward.values[node]
        return forward.times(slope(x, y), forward.of(node.src[0]))

    return row


def _choice(forward: _Forward, condition: Array, a: Array, b: Array) -> Array:
    if forward.mode == "strict":
        weight = np.where(condition, 1.0, 0.0)
        return forward.times(weight, a) + forward.times(1 - weight, b)
    return np.where(condition, a, b)


def _where(forward: _Forward, node: UOp) -> Array:
    (condition, _, _), (_, a, b) = _operands(forward, node)
    return _choice(forward, condition, a, b)


def _load(forward: _Forward, node: UOp) -> Array:
    place, *gated = node.src
    found = forward.of(place)
    if not gated:
        return found
    rank = len(node.shape)
    other = forward.of(gated[1], rank) if len(gated) > 1 else np.zeros((1,) * (1 + rank))
    return _choice(forward, forward.values[gated[0]], found, other)


def _index(forward: _Forward, node: UOp) -> Array:
    found = forward.of(node.src[0])
    for axis in reversed(range(len(node.src) - 1)):
        found = np.take(found, forward.values[node.src[1 + axis]].astype(np.int64), axis=1 + axis)
    return found


def _first(forward: _Forward, node: UOp) -> Array:
    if len(node.src) > 1:
        raise NoDerivativeError(f"no derivative of {node.op} in loops is known")
    return forward.of(node.src[0])


def _movement(move: Callable[[Array, Any, int], Array]) -> Row:
    return lambda forward, node: move(forward.of(node.src[0]), node.arg, 1)


def _reduce(forward: _Forward, node: UOp) -> Array:
    tangent, axes = _first(forward, node), node.arg.axes
    x = forward.values[node.src[0]]
    terms = (math.prod(x.shape[:axes]), *x.shape[axes:])
    x, tangent = x.reshape(terms), tangent.reshape((len(tangent), *terms))
    if node.arg.op is ADD:
        return np.asarray(tangent.sum(1))
    if node.arg.op is MAX:
        equal = x == forward.values[node]
        return np.asarray(forward.times(equal / equal.sum(0), tangent).sum(1))
    others = [np.prod(np.delete(x, k, 0), 0) for k in range(len(x))]
    return np.asarray(forward.times(np.array(others).reshape(x.shape), tangent).sum(1))


ROWS: Mapping[Op, Row] = {
    ops.ADD: lambda forward, node: sum(_operands(forward, node)[1], np.zeros(())),
    ops.MUL: _mul,
    ops.MAX: _max,
    ops.NEG: _neg,
    ops.RECIP: _slope(lambda x, y: -y * y),
    ops.EXP2: _slope(lambda x, y: y * math.log(2)),
    ops.LOG2: _slope(lambda x, y: 1 / (x * math.log(2))),
    ops.WHERE: _where,
    ops.CAST: lambda forward, node: forward.of(node.src[0]),
    REDUCE: _reduce,
    LOAD: _load,
    INDEX: _index,
    STAGE: _first,
    moves.RESHAPE: _movement(week03.reshape),
    moves.EXPAND: _movement(week03.expand),
    moves.PERMUTE: _movement(week03.permute),
    moves.FLIP: _movement(week03.flip),
    moves.PAD: _movement(week03.pad),
    moves.SHRINK: _movement(week03.shrink),
}
