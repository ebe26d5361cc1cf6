"""The one node of every program: `UOp(op, src, arg)`, immutable and hash-consed.

Two UOps with equal op, sources and argument are the same object, so a program is a DAG whose
shared subexpressions are shared nodes, and equality of programs is `is`. dtype, shape, place
and interval are recursive properties: they follow from the op, the sources' properties and
the argument, are computed once, and are checked when the node is made.

No function here recurses, so a chain of a million nodes is an ordinary program.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from week01_uops.args import Argument, Json, brief
from week01_uops.constant import Constant, ConstantArgument, constant
from week01_uops.dtypes import DType, Value, bool_
from week01_uops.errors import ProgramError

Shape = tuple[int, ...]
Interval = tuple[int, int]
T = TypeVar("T")


class Place(NamedTuple):
    """Where the elements of a node live, if it names storage rather than a value.

    Attributes:
        space: the address space, "MEM" for global memory.
        indexed: it went through an INDEX, and is no longer read whole without a LOAD.
        writable: distinct elements are distinct storage (false behind EXPAND and PAD).
    """

    space: str = "MEM"
    indexed: bool = False
    writable: bool = True


class Type(NamedTuple):
    """What a signature computes: element type, shape, and the place if the node is one."""

    dtype: DType
    shape: Shape = ()
    place: Place | None = None


Signature = Callable[[tuple["UOp", ...], Any], Type]
IntervalRule = Callable[["UOp"], Interval]


@dataclass(frozen=True, eq=False)
class Op:
    """An operation; compared by identity, made by whichever week introduces it.

    Attributes:
        name: upper case, as in the interchange format.
        week: the first week whose programs may contain it.
        arity: the smallest and largest number of sources.
        argument: how its argument is read and written; None if it takes none.
        signature: the typing rule; raises ProgramError E4xx.
        interval: for integer results, bounds that hold for every element.
        internal: never stands in a file; passes use it between levels.
        commutes: its two sources may be exchanged.
        optional: the argument may be left out.
        closes: its sources past the first are RANGEs that it closes around the first.
        local: in the body of a CALL, each call has one of its own; the argument has a `slot`.
    """

    name: str
    week: int
    arity: tuple[int, int]
    signature: Signature
    argument: Argument | None = None
    interval: IntervalRule | None = None
    internal: bool = False
    commutes: bool = False
    optional: bool = False
    closes: bool = False
    local: bool = False

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *src: Any, arg: Any = None) -> Any:  # noqa: ANN401
        """Apply to UOps (a UOp) or to patterns (a pattern); Python numbers become CONSTs."""
        for item in src:
            if item.__class__ is not UOp:
                return self._apply_mixed(src, arg)
        return UOp.apply_to(self, src, arg)

    def _apply_mixed(self, src: tuple[Any, ...], arg: Any) -> Any:  # noqa: ANN401
        for item in reversed(src):
            if hasattr(item, "apply"):
                return item.apply(self, src, arg)
        raise TypeError(f"{self}: expected a UOp among the sources, got {src!r}")

    def load_argument(self, json: Json) -> Any:  # noqa: ANN401
        """Check and convert an argument; E304, E305 where it is missing or not taken."""
        if self.argument is None:
            if json is not None:
                raise ProgramError("E305", f"{self} takes no argument, got {brief(json)}")
            return None
        if json is None:
            if self.optional:
                return None
            raise ProgramError("E304", f"{self} needs an argument: {self.argument.expects}")
        return self.argument.load(json)

    def check_arity(self, count: int) -> None:
        """E303 unless `count` sources fit."""
        low, high = self.arity
        if not low <= count <= high:
            most = f"at least {low}" if high == MANY else f"{low} to {high}"
            wanted = str(low) if low == high else most
            raise ProgramError("E303", f"{self} takes {wanted} source(s), got {count}")


MANY = 1 << 30


class UOp:
    """A node. Make one with `OP(source, …, arg=…)` or, unchecked argument, `make`."""

    __slots__ = (
        "__weakref__",
        "_interval",
        "_memo",
        "_settled",
        "arg",
        "dtype",
        "op",
        "place",
        "shape",
        "src",
    )

    op: Op
    src: tuple[UOp, ...]
    arg: Any
    dtype: DType
    shape: Shape
    place: Place | None
    _interval: Interval | None
    _memo: dict[object, Any] | None
    _settled: object  # the rules that were last seen to leave it, and all below it, as it is

    _table: ClassVar[dict[tuple[Op, tuple[UOp, ...], Any], _Reference]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    @staticmethod
    def apply_to(op: Op, src: tuple[UOp, ...], arg: Any) -> UOp:  # noqa: ANN401
        """Build a checked node."""
        op.check_arity(len(src))
        return make(op, src, op.load_argument(arg))

    def apply(self, op: Op, src: tuple[Any, ...], arg: Any) -> UOp:  # noqa: ANN401
        """`op(*src, arg=arg)`; numbers are CONSTs of this node's dtype, True and False bools."""
        nodes = tuple([self._read(item) for item in src])
        for item in nodes:
            if not isinstance(item, UOp):
                raise TypeError(f"{op}: expected UOps as sources, got {item!r}")
        return self.apply_to(op, nodes, arg)

    def _read(self, item: Any) -> Any:  # noqa: ANN401
        if isinstance(item, (bool, int, float)):
            return const(item, bool_ if isinstance(item, bool) else self.dtype)
        return item

    @property
    def interval(self) -> Interval:
        """Bounds (lo, hi), both included, of every element of an integer or bool node."""
        found = self._interval
        return found if found is not None else _interval(self)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def with_src(self, src: tuple[UOp, ...]) -> UOp:
        """The same op and argument over other sources."""
        return self if src == self.src else make(self.op, src, self.arg)

    def toposort(self) -> list[UOp]:
        """All nodes that this one depends on and itself, sources first, each once."""
        return toposort((self,))

    def __repr__(self) -> str:
        about = "" if self.arg is None else f" : {self.arg}"
        return f"<{self.op.name}{about} {self.dtype}{list(self.shape)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a UOp is not pickled: write it in the interchange format")


class _Reference(weakref.ref[UOp]):
    """A weak reference that knows the table key to forget when its node dies."""

    __slots__ = ("key",)
    key: tuple[Op, tuple[UOp, ...], Any]


def _forget(reference: weakref.ref[UOp]) -> None:
    assert isinstance(reference, _Reference)
    if UOp._table.get(reference.key) is reference:
        del UOp._table[reference.key]


def make(op: Op, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:  # noqa: ANN401
    """The one node with this op, sources and (already checked) argument."""
    identity = (op, src, arg)
    reference = UOp._table.get(identity)
    if reference is not None:
        node = reference()
        if node is not None:
            return node
    dtype, shape, place = op.signature(src, arg)
    with UOp._lock:
        reference = UOp._table.get(identity)
        node = reference() if reference is not None else None
        if node is not None:
            return node
        node = object.__new__(UOp)
        node.op, node.src, node.arg = op, src, arg
        node.dtype, node.shape, node.place = dtype, shape, place
        node._interval = node._memo = node._settled = None
        entry = _Reference(node, _forget)
        entry.key = identity
        UOp._table[identity] = entry
    return node


def toposort(
    roots: Iterable[UOp], sources: Callable[[UOp], tuple[UOp, ...]] = lambda node: node.src
) -> list[UOp]:
    """Depth-first post-order from the roots, left to right, each node once."""
    order: list[UOp] = []
    opened: set[UOp] = set()
    done: set[UOp] = set()
    stack = list(roots)[::-1]
    while stack:
        node = stack.pop()
        if node in done:
            continue
        if node in opened:
            done.add(node)
            order.append(node)
            continue
        opened.add(node)
        stack.append(node)
        stack.extend(reversed(sources(node)))
    return order


def _sources(node: UOp) -> tuple[UOp, ...]:
    return node.src


def recursive(
    rule: Callable[[UOp], T], sources: Callable[[UOp], tuple[UOp, ...]] = _sources
) -> Callable[[UOp], T]:
    """Memoize `rule`, which may read the property of a node's `sources`, at any depth.

    The value is kept in the node and lives as long as it does.
    """
    missing: Any = object()

    def known(node: UOp) -> bool:
        return node._memo is not None and prop in node._memo

    def compute(node: UOp) -> T:
        value = rule(node)
        if node._memo is None:
            node._memo = {}
        node._memo[prop] = value
        return value

    def prop(node: UOp) -> T:
        if node._memo is not None:
            value: T = node._memo.get(prop, missing)
            if value is not missing:
                return value
        if not all(map(known, sources(node))):
            for below in toposort((node,), lambda n: () if known(n) else sources(n)):
                if below is not node and not known(below):
                    compute(below)
        return compute(node)

    return prop


def memoized(rule: Callable[[UOp], T]) -> Callable[[UOp], T]:
    """Keep the value of `rule` in the node; unlike `recursive`, of the node asked for alone."""

    def prop(node: UOp) -> T:
        if node._memo is None:
            node._memo = {}
        if prop not in node._memo:
            node._memo[prop] = rule(node)
        value: T = node._memo[prop]
        return value

    return prop


def _bounded(node: UOp) -> bool:
    return node._interval is not None


def _interval(node: UOp) -> Interval:
    if not all(map(_bounded, node.src)):
        for below in toposort((node,), lambda n: n.src if n._interval is None else ()):
            if below._interval is None:
                below._interval = _bounds(below)
    found = node._interval = _bounds(node)
    return found


def _bounds(node: UOp) -> Interval:
    """The rule's answer, from sources whose intervals are known; the whole dtype if that wraps."""
    dtype, rule = node.dtype, node.op.interval
    if rule is not None and not dtype.is_float and dtype.bits:
        low, high = rule(node)
        if dtype.min <= low <= high <= dtype.max:
            return low, high
    return dtype.min, dtype.max


def _const_signature(src: tuple[UOp, ...], arg: Constant) -> Type:
    return Type(arg.dtype)


def _const_interval(node: UOp) -> Interval:
    return int(node.arg.value), int(node.arg.value)


CONST = Op("CONST", 1, (0, 0), _const_signature, ConstantArgument(), _const_interval)


def const(value: Value | str, dtype: DType) -> UOp:
    """CONST of `dtype`, shape ()."""
    return make(CONST, (), constant(value, dtype))
