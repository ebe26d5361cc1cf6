"""What a kernel's nodes read and write: single elements of storage, and values.

In a kernel, a place is storage behind INDEX and AFTER, with an index for every axis; later weeks'
ops may say of a place how it is accessed.
"""

from __future__ import annotations

from dataclasses import dataclass

from week01_uops.errors import CompilerError
from week01_uops.node import UOp
from week02_render.ops import AFTER, END, INDEX, LOAD, STORAGE, STORE

TRANSPARENT = frozenset({AFTER, INDEX})
"""What has no text of its own in a kernel."""


def in_registers(storage: UOp) -> bool:
    """Whether storage is in the address space REG: local variables."""
    return storage.place is not None and storage.place.space == "REG"


@dataclass(frozen=True)
class Access:
    """One element: the storage, and an index for each of its axes."""

    storage: UOp
    indices: tuple[UOp, ...]

    @property
    def is_variable(self) -> bool:
        """The storage is one local variable."""
        return not self.storage.shape and in_registers(self.storage)


def access(place: UOp) -> Access:
    """The element that a place names; CompilerError if it is another kind of place."""
    indices: tuple[UOp, ...] = ()
    base = place
    while base.op in TRANSPARENT or (base.op.internal and base.src):
        if base.op is INDEX:
            indices = (*base.src[1:], *indices)
        base = base.src[0]
    if base.op not in STORAGE:
        raise CompilerError(f"expected storage behind INDEX and AFTER in a kernel, got {base!r}")
    if place.shape:
        raise CompilerError(f"expected a place of one element in a kernel, got {place!r}")
    return Access(base, tuple(map(value_of, indices)))


def value_of(node: UOp) -> UOp:
    """The node that computes a value: AFTER only says when."""
    while node.op is AFTER and node.place is None:
        node = node.src[0]
    return node


def operands(node: UOp) -> tuple[UOp, ...]:
    """The values that stand in the text of a node."""
    if node.op in TRANSPARENT or node.op is END:
        return ()
    if node.op in (LOAD, STORE):
        return (*access(node.src[0]).indices, *map(value_of, node.src[1:]))
    return tuple(map(value_of, node.src))
