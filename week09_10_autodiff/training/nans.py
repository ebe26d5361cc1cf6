"""Which operation first gave a NaN: the step again, one operation at a time.

    with watched_by(Inspector()) as nothing:
        step(x, y)                  # raises NotFinite at the first operation that makes a NaN

Every operation is computed as soon as it is asked for, by a small program, and its result is looked
at: a whole training step is searched in little time. (`nans.check_nan` asks
after the fact, of everything at once.) A NaN that is carried along has been reported where it came
from. An infinite value is no fault by itself (a mask is −∞), but the last
one before the NaN is named as well.
"""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import FrameType
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from week01_uops.node import CONST, UOp, toposort
from week01_uops.ops import PARAM
from week02_render.buffers import Array
from week03_loops.ops import EXPAND, FLIP, PERMUTE, RESHAPE
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.ops import DETACH
from week09_10_autodiff.realize import realize
from week09_10_autodiff.storage import storage_of

MACHINERY = ("week01_uops", "week02_render", "week03_loops", "week09_10_autodiff")
READABLE = tuple(f"week09_10_autodiff.{name}" for name in ("models", "training"))
"""Parts of the machinery whose lines say something to whoever reads them."""

VIEWS = frozenset({RESHAPE, EXPAND, PERMUTE, FLIP, DETACH})
"""Ops whose result holds the elements of their source and no others."""

FRAMES = 3
"""So many lines are named at most, the innermost first."""


@dataclass(frozen=True)
class Origin:
    """An operation and the lines that asked for it.

    Attributes:
        name: of the tensor's method, or of what it is the derivative of.
        lines: "file.py:12: source", the innermost first.
    """

    name: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"`{self.name}`", *(f"    at {line}" for line in self.lines)])


class NotFiniteError(Exception):
    """The first NaN of a step was found; the message says where."""


class Inspector:
    """A watcher of operations that computes each and looks at it."""

    def __init__(self) -> None:
        self._origins: WeakKeyDictionary[UOp, Origin] = WeakKeyDictionary()
        self._seen: WeakSet[UOp] = WeakSet()
        self._infinite: dict[UOp, Origin] = {}

    def saw(self, name: str, node: UOp) -> None:
        """An operation made a node."""
        origin = Origin(name, tuple(islice(_lines(), FRAMES)))
        for made in self._new(node):
            self._origins[made] = origin
        self._look(node, origin)

    def derived(self, user: UOp, part: UOp) -> None:
        """A node handed a cotangent to one of its sources."""
        known = self._origins.get(user)
        of = str(user.op) if known is None else known.name
        self._look(part, Origin(f"the derivative of {of}", () if known is None else known.lines))

    def _new(self, node: UOp) -> Sequence[UOp]:
        """The nodes that no operation made before."""
        known = self._origins
        found = toposort((node,), lambda n: () if n in known else n.src)
        return [item for item in found if item not in known]

    def _look(self, node: UOp, origin: Origin) -> None:
        while node.op in VIEWS:
            node = node.src[0]
        if not node.src or not node.dtype.is_float or node in self._seen:
            return
        self._seen.add(node)
        values = _values(node)
        if np.isnan(values).any():
            raise NotFiniteError(self._told(node, origin, values))
        if np.isinf(values).any() and not any(map(_is_infinite, node.toposort())):
            self._infinite[node] = origin

    def _told(self, node: UOp, origin: Origin, values: Array) -> str:
        count = f"{int(np.isnan(values).sum())} of {values.size} elements of {list(values.shape)}"
        given = ", and it was given one" if any(map(_is_given_nan, node.toposort())) else ""
        text = f"the first NaN came from {origin}\n    ({count}{given})"
        before = [item for item in node.toposort() if item in self._infinite]
        if before:
            text += f"\nwhat it is computed from was infinite since {self._infinite[before[0]]}"
        return text


def _is_given_nan(node: UOp) -> bool:
    storage = storage_of(node) if node.op is PARAM and node.dtype.is_float else None
    return storage is not None and bool(np.isnan(storage.array).any())


def _is_infinite(node: UOp) -> bool:
    return node.op is CONST and node.dtype.is_float and math.isinf(node.arg.value)


def _values(node: UOp) -> Array:
    """The elements of a node; no watcher is told."""
    watchers, CONTEXT.watchers = CONTEXT.watchers, ()
    try:
        return realize([node])[0].array
    finally:
        CONTEXT.watchers = watchers


def _lines() -> Iterator[str]:
    """Lines of the stack that say something to a reader, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_readable(frame.f_globals.get("__name__", "")):
            name, number = frame.f_code.co_filename, frame.f_lineno
            line = linecache.getline(name, number, frame.f_globals).strip()
            yield f"{Path(name).name}:{number}: {line}"
        frame = frame.f_back


def _is_readable(module: str) -> bool:
    if module == __name__:
        return False
    return module.partition(".")[0] not in MACHINERY or module.startswith(READABLE)
