"""Which values of a kernel may stand in the expression that uses them, without a name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from week01_uops.dtypes import void
from week01_uops.node import UOp
from week02_render.access import access, operands
from week02_render.ops import END, LOAD, RANGE, STORE, storage_of


@dataclass
class _Uses:
    """Of each position in a kernel: its block, and the positions that use its value."""

    nodes: tuple[UOp, ...]
    blocks: list[int] = field(default_factory=list)
    users: dict[int, list[int]] = field(default_factory=dict)
    stores: dict[UOp, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        latest: dict[UOp, int] = {}
        opened = [0]
        for position, node in enumerate(self.nodes):
            for source in operands(node):
                if source in latest:
                    self.users.setdefault(latest[source], []).append(position)
            if node.op is RANGE:
                opened.append(position + 1)
            elif node.op is END:
                del opened[1 - len(node.src) :]
            elif node.op is STORE:
                self.stores.setdefault(storage_of(node.src[0]), []).append(position)
            latest[node] = position
            self.blocks.append(opened[-1])

    def single(self, position: int) -> int | None:
        """The one position that uses a value, once and in the same block."""
        users = self.users.get(position, ())
        if len(users) != 1 or self.blocks[users[0]] != self.blocks[position]:
            return None
        return users[0]

    def is_inline(self, position: int) -> bool:
        """Whether a value may stand where it is used, and nowhere else."""
        node = self.nodes[position]
        user = self.single(position)
        if node.dtype is void or user is None:
            return False
        return node.op is not LOAD or self._is_consumed(position, user)

    def _is_consumed(self, position: int, user: int) -> bool:
        """LOAD a variable, at most one op on it, STORE; the variable does not change in between."""
        where = access(self.nodes[position].src[0])
        changes = self.stores.get(where.storage, [])
        if not where.is_variable or len(self.nodes[position].src) > 1:
            return False
        last = user if self.nodes[user].op is STORE else self.single(user)
        if last is None or self.nodes[last].op is not STORE:
            return False
        following = bisect_right(changes, position)
        return following == len(changes) or last <= changes[following]


def inline_positions(nodes: tuple[UOp, ...]) -> Mapping[int, bool]:
    """Position → whether its value is used once, in the block that it stands in.

    Loads are read where they stand, since memory may change before they are used; a load of an
    accumulator that is used up by the next store is not in danger.
    """
    uses = _Uses(nodes)
    return {position: uses.is_inline(position) for position in range(len(nodes))}
