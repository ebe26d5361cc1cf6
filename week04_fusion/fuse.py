"""The fusion decision: which STAGEs are taken off.

Consumers are decided before what they consume, so each STAGE(x) is met with the list of its
demands: in which nest, and at which indices, an element of x is wanted. A demand is computed in
the outermost loop in which all the ranges of its indices are open; the number of iterations
down to that loop is how often x is evaluated for it. From the demands follow

    evaluations E = Σ over distinct demands,   elements N,   repeated work = (E / N − 1) · work(x)

and the price of the STAGE: N elements written and read once by each nest that wants them. The
rules below compare the two. work(x) counts the operations for all of x down to the next STAGE,
so the decisions are made again until they agree with the STAGEs that they assumed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from week01_uops.node import UOp
from week01_uops.passes import PassFunction
from week01_uops.rewrite import Trace
from week02_render.ops import AFTER, INDEX, LOAD, OUTPUT, STORE
from week03_loops.ops import MOVEMENT, REDUCE
from week04_fusion.demand import Demand, Moves, demand, remembered_moves, sources, whole_nest
from week04_fusion.ops import STAGE
from week04_fusion.stage import COMPUTED
from week04_fusion.work import constants, own_work, reducing, without, work_of

ACCESS = 8.0
"""Operations that cost as much as writing or reading one element of a buffer, if nothing else is
known of the machine."""

LIGHT = 4.0
"""Accesses, in operations, that may be repeated for each element that is stored."""

CROWD = 4
"""Sums of all elements of something that one kernel computes for a single number."""

ROUNDS = 4
MANY_DEMANDS = 16
"""Demands of one value past which it is staged without counting further."""


@dataclass(frozen=True)
class Case:
    """A STAGE about to be decided.

    Attributes:
        value: what it holds.
        demands: where elements of it are wanted.
        evaluations: how often an element would be computed without the STAGE.
        work: operations for all elements once.
        stored: an output is this value.
        constant: it is index arithmetic.
        reduces: its work holds a reduction.
        indexed: the program reads it as a place.
        access: operations that cost as much as an access.
        crowd: the sums that its reader, a single number, is made of already.
    """

    value: UOp
    demands: tuple[Demand, ...]
    evaluations: int
    work: float
    stored: bool
    constant: bool
    reduces: bool
    indexed: bool
    access: float
    crowd: int = 0

    @property
    def repeated(self) -> float:
        """Operations spent on computing elements again."""
        return (self.evaluations / max(self.value.size, 1) - 1) * self.work

    @property
    def traffic(self) -> float:
        """The price, in operations, of writing the elements and reading them in each nest."""
        readers = len({d.nest for d in self.demands})
        return self.access * self.value.size * (1 + readers)

    @property
    def stores(self) -> float:
        """What the nests that want the value spend on storing their own."""
        nests = {d.nest for d in self.demands}
        return LIGHT * self.access * sum(math.prod(_filled(nest)) for nest in nests)


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
    FusionRule("place", lambda c: c.indexed, True, lambda c: "it is read as a place"),
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
        "crowd",
        lambda c: c.crowd >= CROWD,
        True,
        lambda c: f"{c.crowd} other sums are computed where it is wanted",
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
        lambda c: (
            f"{c.repeated:.3g} operations repeated cost less than its traffic, {c.traffic:.3g}"
        ),
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


def fuse_with(access: float) -> PassFunction:
    """The pass that takes off every STAGE that the rules say is not worth its price.

    Args:
        access: operations that cost as much as writing or reading one element of a buffer.
    """
    return lambda program, trace: _fused(program, trace, access)


fuse = fuse_with(ACCESS)
"""For a machine that nothing is known of."""


def _fused(program: UOp, trace: Trace, access: float) -> UOp:
    order = program.toposort()
    constant = constants(order)
    moves = remembered_moves()
    places = _places(order)
    kept = {node for node in order if node.op is STAGE}
    best: tuple[float, frozenset[UOp], _Round] | None = None
    seen: set[frozenset[UOp]] = set()
    for _ in range(ROUNDS):
        work = work_of(order, kept, constant)
        attempt = _Round(order, work, constant, reducing(order, kept), moves, places, access)
        cost = attempt.run()
        if best is None or cost <= best[0]:
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


def _places(order: list[UOp]) -> frozenset[UOp]:
    """The STAGEs that the program itself indexes or loads from."""
    found: set[UOp] = set()
    for node in order:
        if node.op in (INDEX, LOAD):
            place = node.src[0]
            while place.op in MOVEMENT or place.op is AFTER:
                place = place.src[0]
            found.add(place)
    return frozenset(node for node in found if node.op is STAGE)


@dataclass
class _Round:
    """One pass over the program, consumers first."""

    order: list[UOp]
    work: Mapping[UOp, float]
    constant: frozenset[UOp]
    reducing: frozenset[UOp]
    moves: Moves
    places: frozenset[UOp]
    access: float
    demands: dict[UOp, dict[Demand, None]] = field(default_factory=dict)
    decisions: dict[UOp, tuple[FusionRule, Case]] = field(default_factory=dict)
    sums: Counter[UOp] = field(default_factory=Counter)
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
                self._want(node.src[0], whole_nest(node, node.src[0].shape))
            elif node.op is STAGE and len(node.src) == 1:
                self._decide(node, wanted)
            else:
                self._pass_on(node, wanted)
        return self.cost

    def _fill(self, nest: UOp, shape: tuple[int, ...], values: tuple[UOp, ...]) -> None:
        self.cost += self.access * math.prod(shape)
        for value in values:
            whole = whole_nest(nest, shape)
            at = whole.at if value.shape else ()
            self._want(value, demand(nest, at, whole.loops))

    def _want(self, node: UOp, wish: Demand) -> None:
        self.demands.setdefault(node, {})[wish] = None

    def _decide(self, stage: UOp, wanted: tuple[Demand, ...]) -> None:
        value = stage.src[0]
        stored = any(
            d.nest.op is STORE and d.nest.src[0].op is OUTPUT and d.nest.src[1] is stage
            for d in wanted
        )
        total = sum(d.evaluations for d in wanted)
        case = Case(
            value,
            wanted,
            total,
            self.work[value],
            stored,
            value in self.constant,
            value in self.reducing,
            stage in self.places,
            self.access,
            self._crowd(value, wanted),
        )
        rule = next(rule for rule in FUSION if rule.applies(case))
        self.decisions[stage] = rule, case
        if rule.stays:
            self.cost += self.access * total
            self._fill(stage, value.shape, (value,))
        else:
            for wish in wanted:
                self._want(value, wish)
                self.sums[wish.nest] += value.op is REDUCE

    def _crowd(self, value: UOp, wanted: tuple[Demand, ...]) -> int:
        """The sums that the nests which want a sum compute already, if they fill one element."""
        if value.op is not REDUCE or value.shape:
            return 0
        return max((self.sums[d.nest] for d in wanted if not _filled(d.nest)), default=0)

    def _pass_on(self, node: UOp, wanted: tuple[Demand, ...]) -> None:
        if node.op in COMPUTED:
            each = own_work(node)
            self.cost += each * sum(d.evaluations for d in wanted)
        for wish in wanted:
            for source, wanted_there in sources(node, wish, self.moves):
                self._want(source, wanted_there)
