"""Which nodes stand in which loop when a program is interpreted.

Placement follows from dependence: what depends on none of the loops that a node closes is
computed once before them, everything else in the innermost loop that it depends on. What an END
closes its loops around is repeated in the innermost one whether it depends on it or not. In a
LINEAR nothing is derived: the list is carried out as it stands.

This is written apart from the linearizer, which it serves to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from week01_uops.dtypes import void
from week01_uops.errors import CompilerError
from week01_uops.node import UOp, toposort
from week01_uops.ops import CALL, PARAM
from week02_render.ops import AFTER, ALLOC, END, LINEAR, RANGE, STORAGE, STORE, open_ranges

Needs = Callable[[UOp], tuple[UOp, ...]]


@dataclass(frozen=True)
class Nest:
    """The loops that a node closes, and what stands in them.

    Attributes:
        ranges: outermost first.
        levels: for each loop, the nodes computed in it and no deeper, in order.
        inputs: the nodes outside that these need.
        private: the ALLOCs in the levels that the list did not put there: that each iteration
            writes them before it reads them is tentative.
    """

    ranges: tuple[UOp, ...]
    levels: tuple[tuple[UOp, ...], ...]
    inputs: tuple[UOp, ...]
    private: frozenset[UOp] = frozenset()


def closes_loops(node: UOp) -> bool:
    """Whether the node opens and closes loops around its first source."""
    return node.op.closes and len(node.src) > 1


def direct_effects(effect: UOp) -> frozenset[UOp]:
    """An effect and those that AFTER joins to it; empty for a value."""
    if effect.dtype is not void:
        return frozenset()

    def joined(node: UOp) -> tuple[UOp, ...]:
        return tuple(s for s in node.src if s.dtype is void) if node.op is AFTER else ()

    return frozenset(toposort((effect,), joined))


def by_dependence(closer: UOp, needs: Needs, private: Mapping[UOp, int]) -> Nest:
    """The nest of an END, REDUCE or STAGE; ALLOCs in `private` stand in the loop of that number."""
    inside, *ranges = closer.src
    depth = {item: level for level, item in enumerate(ranges)}
    direct = direct_effects(inside)

    def own(node: UOp) -> int:
        """The loop that the node itself depends on; −1 if none."""
        if node in direct:
            return len(ranges) - 1
        if private and node.place is not None and (base := base_of(node)) in private:
            return max(private[base], _deepest(node, depth))
        return _deepest(node, depth)

    certain = all(ranges[-1] in open_ranges(node) for node in direct)
    levels: dict[UOp, int] = {}
    inputs: list[UOp] = []
    wanted = toposort((*ranges, inside), lambda n: needs(n) if not certain or own(n) >= 0 else ())
    for node in wanted:
        inherited = max((levels.get(s, -1) for s in needs(node)), default=-1)
        level = max(own(node), inherited)
        if level >= 0:
            levels[node] = level
        else:
            inputs.append(node)
    placed = [tuple(n for n in levels if levels[n] == k and n not in depth) for k in depth.values()]
    return Nest(tuple(ranges), tuple(placed), tuple(inputs), frozenset(private))


def _deepest(node: UOp, depth: Mapping[UOp, int]) -> int:
    return max((depth[item] for item in open_ranges(node) if item in depth), default=-1)


def by_list(linear: UOp) -> tuple[tuple[UOp, ...], dict[UOp, Nest]]:
    """The nodes of a LINEAR outside all loops, and the nest of each END in it.

    Raises:
        CompilerError: an END does not close the loops that were opened last.
    """
    blocks: list[tuple[UOp | None, list[UOp]]] = [(None, [])]
    nests: dict[UOp, Nest] = {}
    for node in linear.src:
        if node.op is RANGE:
            blocks.append((node, []))
            continue
        if node.op is END:
            ranges = node.src[1:]
            closed = blocks[-len(ranges) :]
            if tuple(item for item, _ in closed) != ranges:
                opened = [item for item, _ in blocks[1:]]
                raise CompilerError(f"expected {node!r} to close the last of {opened}")
            del blocks[-len(ranges) :]
            levels = tuple(tuple(nodes) for _, nodes in closed)
            nests[node] = Nest(ranges, levels, _inputs(ranges, levels, nests))
        blocks[-1][1].append(node)
    if len(blocks) > 1:
        raise CompilerError(f"expected an END for {blocks[-1][0]!r}")
    return tuple(blocks[0][1]), nests


def _inputs(
    ranges: tuple[UOp, ...], levels: Sequence[Sequence[UOp]], nests: Mapping[UOp, Nest]
) -> tuple[UOp, ...]:
    nodes = [node for level in levels for node in level]
    needed = [s for n in (*ranges, *nodes) for s in (nests[n].inputs if n in nests else n.src)]
    return tuple(dict.fromkeys(s for s in needed if s not in {*nodes, *ranges}))


def unlisted(linear: UOp) -> tuple[UOp, ...]:
    """What a LINEAR uses and leaves out: constants and storage, which are no work.

    Raises:
        CompilerError: it leaves out anything else.
    """
    listed = frozenset(linear.src)
    missing = dict.fromkeys(s for n in linear.src for s in n.src if s not in listed)
    for node in missing:
        if node.src or node.op is RANGE:
            raise CompilerError(f"expected {node!r} to stand in the list that uses it")
    return tuple(missing)


def base_of(place: UOp) -> UOp:
    """The storage, or the value that is indexed like storage, that a place lies in."""
    while place.op not in STORAGE and not place.op.closes and place.src:
        place = place.src[0]
    return place


def accesses(node: UOp) -> Iterator[tuple[UOp, bool]]:
    """The places that a node reads (false) or writes (true), not those that it only names."""
    if node.op is AFTER:
        return
    for position, source in enumerate(node.src):
        names = position == 0 and (node.op is CALL or (node.place and not node.op.closes))
        if source.place is not None and not names:
            yield source, node.op is STORE and position == 0


def is_opaque(node: UOp) -> bool:
    """A CALL whose body touches storage that is not among its arguments, or writes any."""
    hidden = (STORAGE - {PARAM, ALLOC}) | {STORE}
    return node.op is CALL and any(n.op in hidden for n in node.src[0].toposort())


class Body:
    """What is known of the loops of a program, or of one CALL's body.

    Attributes:
        nests: of each node that closes loops.
        lists: of each LINEAR, its nodes outside all loops.
        shared: ALLOCs that are known to carry a value from one iteration to the next.
        sequential: the loops, by closing node and level, whose iterations depend on one another.
    """

    def __init__(self, root: UOp) -> None:
        self.root = root
        self.shared: set[UOp] = set()
        self.sequential: set[tuple[UOp, int]] = set()
        self.lists: dict[UOp, tuple[UOp, ...]] = {}
        self.plan()

    def plan(self) -> None:
        """Place every node, with a private copy of each ALLOC for the iterations that allow it."""
        self.nests: dict[UOp, Nest] = {}
        self._inside: dict[tuple[UOp, int], frozenset[UOp]] = {}
        order = toposort((self.root,), _below)
        users: dict[UOp, list[UOp]] = {}
        for node in order:
            for place, _ in accesses(node):
                users.setdefault(base_of(place), []).append(node)
        allocs = {n: u for n, u in users.items() if n.op is ALLOC and n not in self.shared}
        for node in order:
            if node.op is LINEAR:
                top, nests = by_list(node)
                self.lists[node] = (*unlisted(node), *top)
                self.nests |= nests
            elif closes_loops(node):
                self.nests[node] = by_dependence(node, self.needs, {})
                if private := self._private(node, allocs):
                    self.nests[node] = by_dependence(node, self.needs, private)

    def needs(self, node: UOp) -> tuple[UOp, ...]:
        """The nodes that are computed before this one, in the same loop or around it."""
        if node in self.nests:
            return self.nests[node].inputs
        return _below(node)

    def inside(self, closer: UOp, level: int = 0) -> frozenset[UOp]:
        """All nodes computed in the loops of a node from a level on, inner nests included."""
        if (closer, level) not in self._inside:
            self._inside[closer, level] = self._find_inside(self.nests[closer], level)
        return self._inside[closer, level]

    def _find_inside(self, nest: Nest, level: int) -> frozenset[UOp]:
        found = set(nest.ranges[level:])
        waiting = list(nest.levels[level:])
        while waiting:
            nodes = waiting.pop()
            found.update(nodes)
            for node in nodes:
                if node in self.nests:
                    inner = self.nests[node]
                    waiting += inner.levels
                    found.update(inner.ranges)
        return frozenset(found)

    def _private(self, closer: UOp, allocs: Mapping[UOp, list[UOp]]) -> dict[UOp, int]:
        """The ALLOCs accessed only in this nest, each time in one of its loops: that loop.

        Each iteration gets a copy of its own, on trial: reading what it did not write raises.
        """
        nest = self.nests[closer]
        inside = self._find_inside(nest, 0)
        found: dict[UOp, int] = {}
        if any(map(is_opaque, inside)):
            return found
        for alloc, users in allocs.items():
            common = frozenset(nest.ranges).intersection(*map(open_ranges, users))
            if (
                common
                and inside.issuperset(users)
                and not any(u.op in (CALL, RANGE) for u in users)
            ):
                found[alloc] = max(map(nest.ranges.index, common))
        return found


def _below(node: UOp) -> tuple[UOp, ...]:
    if node.op is LINEAR:
        return ()
    return node.src[1:] if node.op is CALL else node.src
