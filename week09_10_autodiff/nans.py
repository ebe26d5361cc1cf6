"""Which operation first gave a NaN, found by one program over all of them.

    with check_nan() as check:
        loss = step(x, y)
    check(loss)                     # raises NanError: "log first gave a NaN … (at train.py:7: …)"

While it watches, every operation is noted with the user's line, and every derivative with the
operation that it is of; nothing is computed. The check then asks of each result that the given
tensors depend on whether it holds a NaN, all at once, and names the first one, in the order in
which they were asked for: what a NaN is carried along by comes after where it came from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from week01_uops.node import UOp, toposort
from week01_uops.ops import PARAM
from week03_loops import library as lib
from week09_10_autodiff.context import watched_by
from week09_10_autodiff.core import Core
from week09_10_autodiff.errors import TensorError, user_line
from week09_10_autodiff.realize import realize
from week09_10_autodiff.storage import storage_of


class NanError(TensorError):
    """An operation gave a NaN; the message says which."""


@dataclass(frozen=True)
class Operation:
    """What made a node.

    Attributes:
        name: of the operation, or "the derivative of …".
        where: the user's line.
    """

    name: str
    where: str


class NanCheck:
    """A watcher that notes operations, and finds the first whose result holds a NaN.

    Args:
        inf: infinities are looked for as well.
    """

    def __init__(self, *, inf: bool = False) -> None:
        self.inf = inf
        self._results: dict[UOp, Operation] = {}
        self._made_by: dict[UOp, Operation] = {}

    def saw(self, name: str, node: UOp) -> None:
        """An operation made a node."""
        operation = Operation(name, user_line())
        known = self._made_by
        for made in toposort((node,), lambda n: () if n in known else n.src):
            known.setdefault(made, operation)
        self._results.setdefault(node, operation)

    def derived(self, user: UOp, part: UOp) -> None:
        """In a derivative, a node handed this cotangent to one of its sources."""
        made = self._made_by.get(user)
        name = user.op.name if made is None else made.name
        where = user_line() if made is None else made.where
        self._results.setdefault(part, Operation(f"the derivative of {name}", where))

    def first(self, *tensors: Core) -> str | None:
        """The sentence that names the operation, or None if the tensors hold no NaN."""
        if not any(self._is_bad(tensor._node) for tensor in tensors):
            return None
        below = set(toposort([tensor._node for tensor in tensors]))
        nodes = [n for n in self._results if n in below and n.dtype.is_float and n.size]
        flags = [storage.array.item() for storage in realize([self._flag(n) for n in nodes])]
        for node, bad in zip(nodes, flags, strict=True):
            if bad:
                return self._told(node)
        return f"no operation that was watched gave {self._what}; what they were given holds one"

    def __call__(self, *tensors: Core) -> None:
        """Raise a NanError if one of the tensors holds a NaN."""
        found = self.first(*tensors)
        if found is not None:
            raise NanError(found, "")

    @property
    def _what(self) -> str:
        return "a NaN or an infinity" if self.inf else "a NaN"

    def _flag(self, x: UOp) -> UOp:
        """Whether an element is bad: it is no number, or no finite one."""
        bad = lib.ne(x, x)
        if self.inf:
            bad = lib.maximum(bad, lib.eq(lib.absolute(x), math.inf))
        return lib.reduce_max(bad)

    def _is_bad(self, node: UOp) -> bool:
        if not node.dtype.is_float or not node.size:
            return False
        values = realize([node])[0].array
        return bool((~np.isfinite(values) if self.inf else np.isnan(values)).any())

    def _told(self, node: UOp) -> str:
        operation = self._results[node]
        values = realize([node])[0].array
        bad = ~np.isfinite(values) if self.inf else np.isnan(values)
        count = f"{int(bad.sum())} of {values.size} elements of {list(values.shape)}"
        given = "" if not self._was_given_one(node) else f"; it was given {self._what}"
        at = f" (at {operation.where})" if operation.where else ""
        return f"{operation.name} first gave {self._what}, {count}{given}{at}"

    def _was_given_one(self, node: UOp) -> bool:
        """Whether it read a bad value that no operation made."""
        results = self._results

        def sources(n: UOp) -> tuple[UOp, ...]:
            return () if n is not node and n in results else n.src

        leaves = [n for n in toposort((node,), sources) if n.op is PARAM and storage_of(n)]
        return any(map(self._is_bad, leaves))


@contextmanager
def check_nan(*, inf: bool = False) -> Iterator[NanCheck]:
    """Note the operations inside; call what it gives with tensors to find a NaN's origin."""
    check = NanCheck(inf=inf)
    with watched_by(check):
        yield check
