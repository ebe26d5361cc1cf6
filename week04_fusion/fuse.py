"""The fusion decision: which STAGEs are taken off.

Consumers are decided before what they consume, so each STAGE(x) is met with the list of its
demands: in which nest, and at which indices, an element of x is wanted. A demand is computed in
the outermost loop in which all the ranges of its indices are open; the number of iterations
down to that loop is how often x is evaluated for it. From the demands follow

    evaluations E = Σ over distinct demands,   elements N,   repeated work = (E − N) · work(x)

and the price of the STAGE: N elements written and read once by each nest that wants them. The
rules below compare the two. work(x) counts the operations for one element down to the next STAGE,
so the decisions are made again until they agree with the STAGEs that they assumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from week01_uops.node import UOp, recursive
from week01_uops.ops import CAST, EXP2, FLOORDIV, FLOORMOD, LOG2, RECIP
from week01_uops.rewrite import Trace
from week02_render.lower import Indices, broadcast_indices
from week02_render.ops import (
    AFTER,
    INDEX,
    KEEP,
    LOAD,
    OUTPUT,
    RANGE,
    STORAGE,
    STORE,
    loop,
    open_ranges,
)
from week03_loops.compiler import is_index_arithmetic
from week03_loops.movement import INDEX_MAPS, ZERO
from week03_loops.ops import REDUCE
from week04_fusion.ops import STAGE
from week04_fusion.stage import COMPUTED

ACCESS = 8.0
"""Operations that cost as much as writing or reading one element of a buffer."""

LIGHT = 4 * ACCESS
"""Operations that may be repeated for each element that is stored."""

INDEX_WORK = 4.0
"""Operations at most for one element of a value that is index arithmetic."""

WEIGHTS = {**dict.fromkeys((EXP2, LOG2, RECIP, FLOORDIV, FLOORMOD), 8.0), CAST: 0.0, KEEP: 0.0}
"""Operations that do not cost as much as an addition; a CAST is part of the access."""

ROUNDS = 4
MANY_DEMANDS = 16
"""Demands of one value past which it is staged without counting further."""


@dataclass(frozen=True)
class Demand:
    """Elements wanted in one nest at one set of indices.

    Attributes:
        nest: the STORE or STAGE that is filled.
        at: the indices, in terms of the nest's ranges.
        loops: the loops down to the one where the element is computed, outermost first.
    """

    nest: UOp
    at: Indices
    loops: tuple[UOp, ...]

    @property
    def evaluations(self) -> int:
        """Iterations of the loops."""
        return math.prod(r.arg.size for r in self.loops)


def demand(nest: UOp, at: Indices, loops: tuple[UOp, ...]) -> Demand:
    """A demand inside some loops: it is met in the innermost that its indices depend on."""
    needed = frozenset().union(*map(open_ranges, at))
    depth = max((k for k, r in enumerate(loops, 1) if r in needed), default=0)
    return Demand(nest, at, loops[:depth])


@dataclass(frozen=True)
class Case:
    """A STAGE about to be decided."""

    value: UOp
    demands: tuple[Demand, ...]
    evaluations: int
    work: float
    stored: bool
    constant: bool
    reduces: bool

    @property
    def repeated(self) -> float:
        """Operations spent on computing elements again."""
        return (self.evaluations - self.value.size) * self.work

    @property
    def traffic(self) -> float:
        """The price, in operations, of writing the elements and reading them in each nest."""
        readers = len({d.nest for d in self.demands})
        return ACCESS * self.value.size * (1 + readers)


    @property
    def stores(self) -> float:
        """What the nests that want the value spend on storing their own."""
        nests = {d.nest for d in self.demands}
        return LIGHT * sum(math.prod(_filled(nest)) for nest in nests)


def _filled(nest: UOp) -> tuple[int, ...]:
    return nest.shape if nest.op is STAGE else nest.src[0].shape


@dataclass(frozen=True)
class FusionRule:
    """One row of the decision: where it applies, and whether the STAGE stays."""

    name: str
    applies: Callable[[Case], bool]
    stays: bool
    because: Callable[[Case], str]


FUSION: tuple[FusionRule, ...] = (
    FusionRule("constant", lambda c: c.constant, False, lambda c: "made of constants"),
    FusionRule(
        "result",
        lambda c: c.stored and len(c.demands) > 1,
        True,
        lambda c: "an output holds it anyway",
    ),
    FusionRule(
        "wanted everywhere",
        lambda c: len(c.demands) >= MANY_DEMANDS,
        True,
        lambda c: f"wanted in {len(c.demands)} places",
    ),
    FusionRule(
        "once",
        lambda c: c.evaluations <= c.value.size,
        False,
        lambda c: "no element is computed twice",
    ),
    FusionRule(
        "cheap",
        lambda c: c.repeated <= c.traffic,
        False,
        lambda c: f"{c.repeated:.3g} operations repeated cost less than its traffic, {c.traffic:.3g}",
    ),
    FusionRule(
        "light",
        lambda c: not c.reduces and c.repeated <= c.stores,
        False,
        lambda c: f"{c.repeated:.3g} operations repeated cost less than storing what they go into",
    ),
    FusionRule(
        "price",
        lambda c: True,
        True,
        lambda c: (
            f"{c.evaluations} evaluations of {c.value.size} elements repeat {c.repeated:.3g} "
            f"operations, its traffic costs {c.traffic:.3g}"
        ),
    ),
)


def fuse(program: UOp, trace: Trace) -> UOp:
    """Take off every STAGE that the rules say is not worth its price."""
    order = program.toposort()
    constant = _constants(order)
    kept = {node for node in order if node.op is STAGE}
    best: tuple[float, frozenset[UOp], _Round] | None = None
    seen: set[frozenset[UOp]] = set()
    for _ in range(ROUNDS):
        attempt = _Round(order, _work(order, kept, constant), constant, _reducing(order, kept))
        cost = attempt.run()
        if best is None or cost < best[0]:
            best = (cost, attempt.kept, attempt)
        if attempt.kept in seen:
            break
        seen.add(attempt.kept)
        kept = set(attempt.kept)
    assert best is not None
    for stage, (rule, case) in best[2].decisions.items():
        if rule.stays:
            trace.decline(f"fuse ({rule.name})", rule.because(case), stage)
        else:
            trace.fired[f"fuse ({rule.name})"] += 1
    return without(program, lambda node: node not in best[1])


def without(program: UOp, drop: Callable[[UOp], bool]) -> UOp:
    """The program without those of its rangeless STAGEs that are dropped."""
    done: dict[UOp, UOp] = {}
    for node in program.toposort():
        src = tuple([done[s] for s in node.src])
        gone = node.op is STAGE and len(src) == 1 and drop(node)
        done[node] = src[0] if gone else node.with_src(src)
    return done[program]


def _constants(order: list[UOp]) -> frozenset[UOp]:
    """Nodes that depend on no storage and need no loop: index arithmetic at most."""
    varying: set[UOp] = set()
    for node in order:
        own = node.op in STORAGE or node.op is RANGE
        if own or any(s in varying for s in node.src):
            varying.add(node)
        elif node.op is REDUCE and not is_index_arithmetic(without(node, lambda _: True)):
            varying.add(node)
    return frozenset(node for node in order if node not in varying)


def _reducing(order: list[UOp], kept: Iterable[UOp]) -> frozenset[UOp]:
    """Nodes whose work, down to the STAGEs that are kept, holds a reduction."""
    staged = set(kept)
    found: set[UOp] = set()
    for node in order:
        below = any(s in found and s not in staged for s in node.src)
        if node.op is REDUCE or below:
            found.add(node)
    return frozenset(found)


def _work(
    order: list[UOp], kept: Iterable[UOp], constant: frozenset[UOp]
) -> Mapping[UOp, float]:
    """Operations for one element of each node, down to the STAGEs that are kept, without loads."""
    staged = set(kept)
    work: dict[UOp, float] = {}
    for node in order:
        below = sum(work[s] for s in node.src)
        if node in staged or node.op in STORAGE:
            work[node] = 0.0
        elif node in constant:
            work[node] = min(below + 1, INDEX_WORK)
        elif node.op is REDUCE:
            axes = math.prod(node.src[0].shape[: node.arg.axes])
            loops = math.prod(r.arg.size for r in node.src[1:])
            work[node] = axes * loops * (1 + work[node.src[0]])
        elif node.op in COMPUTED:
            work[node] = WEIGHTS.get(node.op, 1.0) + below
        else:
            work[node] = below
    for node in order:
        if node.op is STAGE:
            work[node] = work[node.src[0]]
    return work


@dataclass
class _Round:
    """One pass over the program, consumers first."""

    order: list[UOp]
    work: Mapping[UOp, float]
    constant: frozenset[UOp]
    reducing: frozenset[UOp]
    demands: dict[UOp, dict[Demand, None]] = field(default_factory=dict)
    decisions: dict[UOp, tuple[FusionRule, Case]] = field(default_factory=dict)
    cost: float = 0.0

    @property
    def kept(self) -> frozenset[UOp]:
        """The STAGEs that stay."""
        return frozenset(stage for stage, (rule, _) in self.decisions.items() if rule.stays)

    def run(self) -> float:
        """Decide every STAGE; the cost of the whole program in operations."""
        for node in reversed(self.order):
            wanted = tuple(self.demands.pop(node, ()))
            if node.op is STORE:
                self._fill(node, node.src[0].shape, node.src[1:])
                self._want(node.src[0], _nest(node, node.src[0].shape))
            elif node.op is STAGE and len(node.src) == 1:
                self._decide(node, wanted)
            else:
                self._pass_on(node, wanted)
        return self.cost

    def _fill(self, nest: UOp, shape: tuple[int, ...], values: tuple[UOp, ...]) -> None:
        self.cost += ACCESS * math.prod(shape)
        for value in values:
            whole = _nest(nest, shape)
            at = whole.at if value.shape else ()
            self._want(value, demand(nest, at, whole.loops))

    def _want(self, node: UOp, wish: Demand) -> None:
        self.demands.setdefault(node, {})[wish] = None

    def _decide(self, stage: UOp, wanted: tuple[Demand, ...]) -> None:
        value = stage.src[0]
        stored = any(d.nest.op is STORE and d.nest.src[0].op is OUTPUT and d.nest.src[1] is stage
                     for d in wanted)
        total = sum(d.evaluations for d in wanted)
        case = Case(
            value,
            wanted,
            total,
            self.work[value],
            stored,
            value in self.constant,
            value in self.reducing,
        )
        rule = next(rule for rule in FUSION if rule.applies(case))
        self.decisions[stage] = rule, case
        if rule.stays:
            self.cost += ACCESS * total
            self._fill(stage, value.shape, (value,))
        else:
            for wish in wanted:
                self._want(value, wish)

    def _pass_on(self, node: UOp, wanted: tuple[Demand, ...]) -> None:
        if node.op in COMPUTED:
            each = WEIGHTS.get(node.op, 1.0)
            self.cost += each * sum(d.evaluations for d in wanted)
        for wish in wanted:
            for source, wanted_there in _sources(node, wish):
                self._want(source, wanted_there)


def _nest(nest: UOp, shape: tuple[int, ...]) -> Demand:
    """The loops of a nest over a shape, inside whatever loops the program opened itself."""
    outer = sorted(open_ranges(nest), key=lambda r: r.arg.id)
    first = max((r.arg.id + 1 for r in outer), default=0)
    at = tuple(loop(first + k, size) for k, size in enumerate(shape))
    return demand(nest, at, (*outer, *at))


def _sources(node: UOp, d: Demand) -> list[tuple[UOp, Demand]]:
    """What a demand of one node's element demands of the node's sources."""
    if node.op in INDEX_MAPS:
        at, _ = INDEX_MAPS[node.op](node, d.at)
        return [(node.src[0], demand(d.nest, at, d.loops))]
    if node.op is REDUCE:
        return [(node.src[0], _reduced(node, d))]
    if node.op in COMPUTED:
        return [
            (s, demand(d.nest, broadcast_indices(d.at, s.shape, node.shape), d.loops))
            for s in node.src
        ]
    if node.op is INDEX:
        return _indexed(node, d)
    if node.op is STAGE:
        return _staged(node, d)
    if node.op in (LOAD, AFTER):
        gates = [s for s in node.src[1:] if not s.shape or s.shape == node.shape]
        inside = [(s, demand(d.nest, d.at if s.shape else (), d.loops)) for s in gates]
        return [(node.src[0], d), *inside]
    return []


LEVEL = 10_000
"""Range numbers of reductions start here; each level of reductions has its own."""


@recursive
def _level(node: UOp) -> int:
    """How many reductions, one inside or behind the other, a node needs."""
    return max(map(_level, node.src), default=0) + (node.op is REDUCE)


def _reduced(node: UOp, d: Demand) -> Demand:
    """Inside a reduction: its loops below those that it depends on.

    Reductions of one level and shape share their loops; those of different levels run one after
    the other.
    """
    outer = d.loops
    axes: int = node.arg.axes
    if not axes:
        return demand(d.nest, d.at, (*outer, *node.src[1:]))
    first = LEVEL * _level(node)
    ranges = tuple(loop(first + k, size) for k, size in enumerate(node.src[0].shape[:axes]))
    return demand(d.nest, (*ranges, *d.at), (*outer, *ranges))


def _indexed(node: UOp, d: Demand) -> list[tuple[UOp, Demand]]:
    """The indices' elements, and the place's at whatever loops those depend on."""
    rest = list(d.at)
    at: list[UOp] = []
    found: list[tuple[UOp, Demand]] = []
    for item in node.src[1:]:
        inner = (rest.pop(0),) if item.shape else ()
        found.append((item, demand(d.nest, inner, d.loops)))
        at.append(inner[0] if inner else next(iter(open_ranges(item)), ZERO))
    found.append((node.src[0], demand(d.nest, (*at, *rest), d.loops)))
    return found


def _staged(node: UOp, d: Demand) -> list[tuple[UOp, Demand]]:
    """A STAGE over loops of the program itself."""
    x, *ranges = node.src
    inner = demand(d.nest, d.at[len(ranges) :], (*d.loops, *ranges))
    return [(x, inner)]
