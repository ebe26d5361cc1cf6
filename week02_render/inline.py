"""Which values of a kernel stand in the expressions that use them, without a name of their own.

A kernel is looked at as the list of its nodes; a block is the part of the list in one loop and no
deeper, and is named by the position at which it begins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import ChainMap, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from week01_uops.dtypes import void
from week01_uops.node import UOp, toposort
from week02_render.access import access, operands
from week02_render.ops import ALLOC, END, LOAD, RANGE, STORE, storage_of


@dataclass
class Uses:
    """Of each position in a kernel: its block, and the positions that use its value.

    Attributes:
        operands: the values that stand in the text of a node.
        block: position → the block that it stands in.
        end: block → the position at which it ends.
        users: position → the positions that use its value, once for each use.
        stores: storage → the positions that write to it.
        loads: storage → the positions that read it.
    """

    nodes: tuple[UOp, ...]
    operands: Callable[[UOp], tuple[UOp, ...]] = operands
    block: list[int] = field(default_factory=list)
    end: dict[int, int] = field(default_factory=dict)
    users: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    stores: defaultdict[UOp, list[int]] = field(default_factory=lambda: defaultdict(list))
    loads: defaultdict[UOp, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._live = set(toposort(filter(_acts, self.nodes), self.operands))
        latest: ChainMap[UOp, int] = ChainMap()  # a loop hides what it computes, and what it hid
        opened = [0]
        for position, node in enumerate(self.nodes):
            for source in self.operands(node) if node in self._live else ():
                if source in latest:
                    self.users[latest[source]].append(position)
            if node.op is RANGE:
                opened.append(position + 1)
                latest = latest.new_child()
            elif node.op is END:
                for block in opened[1 - len(node.src) :]:
                    self.end[block] = position
                    latest = latest.parents
                del opened[1 - len(node.src) :]
            elif node.op in (LOAD, STORE):
                table = self.stores if node.op is STORE else self.loads
                table[storage_of(node.src[0])].append(position)
            latest[node] = position
            self.block.append(opened[-1])
        self.end[0] = len(self.nodes)

    def is_live(self, position: int) -> bool:
        """Whether a node has an effect, or some text needs its value."""
        return self.nodes[position] in self._live

    def is_inline(self, position: int) -> bool:
        """Whether a value may stand in the text of its one user, which is in the same block.

        Loads are read where they stand, since memory may change before they are used.
        """
        node = self.nodes[position]
        user = self._single(position)
        if node.dtype is void or user is None:
            return False
        return node.op is not LOAD or self._is_consumed(position, user)

    def _single(self, position: int) -> int | None:
        """The one position that uses a value, once and in the same block."""
        users = self.users[position]
        if len(users) != 1 or self.block[users[0]] != self.block[position]:
            return None
        return users[0]

    def _is_consumed(self, position: int, user: int) -> bool:
        """`r = r + x`: LOAD r, an op, STORE, and no other change of r in between."""
        if not self._reads_variable(position):
            return False
        last = user if self.nodes[user].op is STORE else self._single(user)
        return (
            last is not None
            and self.nodes[last].op is STORE
            and last <= self._next_change(position)
        )

    def is_settled(self, position: int) -> bool:
        """Whether a LOAD reads a variable that does not change as long as its value is in scope."""
        end = self.end[self.block[position]]
        return self._reads_variable(position) and self._next_change(position) >= end

    def _reads_variable(self, position: int) -> bool:
        node = self.nodes[position]
        return node.op is LOAD and len(node.src) == 1 and access(node.src[0]).is_variable

    def _next_change(self, position: int) -> int:
        storage = storage_of(self.nodes[position].src[0])
        return _next(self.stores[storage], position, len(self.nodes))

    def first_store(self, position: int) -> int | None:
        """The STORE that may declare the variable of the ALLOC at a position."""
        node = self.nodes[position]
        assert node.op is ALLOC
        last = len(self.nodes)
        first = _next(self.stores[node], position, last)
        if first >= _next(self.loads[node], position, last):
            return None
        plain = len(self.nodes[first].src) == 2 and self.block[first] == self.block[position]
        return first if plain else None


def _acts(node: UOp) -> bool:
    return node.dtype is void or node.place is not None or node.op is RANGE


def _next(positions: list[int], after: int, default: int) -> int:
    index = bisect_right(positions, after)
    return positions[index] if index < len(positions) else default
