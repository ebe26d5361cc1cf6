"""What was found out once and is not to be found out again, in a process that forks others.

Nothing is kept before `remember` and after `close`. A fork has what was kept when it was made. So a
process that runs the spec tests once gives the oracle's answers to all its forks, and no fork can
change them for another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

ROOM = 512 << 20
"""Bytes of arrays and texts."""
SMALL = 4096
"""Bytes that anything kept counts for, at least."""

NODES = 16
"""Bytes of nodes for a character of a program."""

_kept: dict[Hashable, Any] = {}
_room = 0


def remember(room: int = ROOM) -> None:
    """From now on keep what is found, up to so many bytes."""
    global _room
    _room = room


def close() -> None:
    """What is kept stays, and nothing is added."""
    global _room
    _room = 0


def once(kind: str, of: tuple[Any, ...], compute: Callable[[], T]) -> T:
    """The result of `compute`, which follows from `of`: interned nodes, texts, numbers, arrays."""
    global _room
    if not (_room or _kept):
        return compute()
    key = (kind, *map(_plain, of))
    if key in _kept:
        found: T = _kept[key]
        return found
    value = compute()
    size = SMALL + sum(_size(part) for part in key)
    if size <= _room:
        _room -= size
        _kept[key] = value
    return value


def fixed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, which nobody may write to any more."""
    array.setflags(write=False)
    return array


def _plain(part: object) -> Hashable:
    if isinstance(part, np.ndarray):
        return part.dtype.name, part.shape, part.tobytes()
    if isinstance(part, dict):
        return tuple((key, _plain(part[key])) for key in sorted(part))
    assert isinstance(part, Hashable)
    return part


def _size(part: object) -> int:
    """Bytes; twice those of arrays, whose results are as large, and what nodes take for a text."""
    if isinstance(part, tuple):
        return sum(_size(one) for one in part)
    if isinstance(part, str):
        return NODES * len(part)
    return 2 * len(part) if isinstance(part, bytes) else 0
