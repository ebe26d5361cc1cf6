"""Patterns over UOps and rules made of them.

A pattern is written like the program it matches: `ADD(x, 0)` over the variable `x = var("x")`
matches a sum with zero and binds x. The same variable twice must bind the same node. A rule is
one named row: a pattern, and a right-hand side that takes the bound nodes by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from week01_uops.dtypes import DType, Value
from week01_uops.node import CONST, Op, UOp


@dataclass(frozen=True)
class Skip:
    """Returned by a right-hand side that declines, with the reason that `-vv` prints."""

    reason: str


RightHandSide = Callable[..., UOp | Skip | None]
DTypeTest = Callable[[DType], bool]


@dataclass(frozen=True, eq=False)
class Pattern:
    """One node of a pattern.

    Attributes:
        ops: the ops that match; None matches any.
        src: patterns of the sources; None matches any number of any nodes.
        name: the name to bind the node to.
        value: of a CONST, the value that it must have, in any dtype; but bools are no numbers.
        test: a further condition on the node's dtype.
        more: further sources may follow those of `src`.
    """

    ops: frozenset[Op] | None = None
    src: tuple[Pattern, ...] | None = None
    name: str | None = None
    value: Value | None = None
    test: DTypeTest | None = None
    more: bool = False

    def apply(self, op: Op, src: tuple[Any, ...], arg: Any) -> Pattern:  # noqa: ANN401
        """`op(*src)` over patterns; numbers match CONSTs of that value."""
        if arg is not None:
            raise TypeError(f"{op}: a pattern has no argument; test it in the right-hand side")
        return Pattern(frozenset({op}), tuple(map(_coerce, src)))

    def named(self, name: str) -> Pattern:
        """The same pattern, bound to a name."""
        return replace(self, name=name)

    def with_more(self) -> Pattern:
        """The same pattern for nodes that may have further sources."""
        return replace(self, more=True)

    def where(self, test: DTypeTest) -> Pattern:
        """The same pattern for nodes whose dtype passes a test."""
        return replace(self, test=test)


def _coerce(item: Pattern | Value) -> Pattern:
    if isinstance(item, Pattern):
        return item
    if isinstance(item, (bool, int, float)):
        return Pattern(frozenset({CONST}), (), value=item)
    raise TypeError(f"expected a pattern or a number, got {item!r}")


def var(name: str, test: DTypeTest | None = None) -> Pattern:
    """Any node; the same name twice in one pattern must bind the same node."""
    return Pattern(name=name, test=test)


def constant_var(name: str, test: DTypeTest | None = None) -> Pattern:
    """Any CONST."""
    return Pattern(frozenset({CONST}), (), name=name, test=test)


def any_of(ops: Iterable[Op], *src: Pattern | Value, name: str | None = None) -> Pattern:
    """A node with one of several ops; without sources, any sources match."""
    return Pattern(frozenset(ops), tuple(map(_coerce, src)) or None, name)


@dataclass(frozen=True)
class Rule:
    """A rewrite: pattern → right-hand side.

    Attributes:
        name: unique in its table; printed by `-vv` and asked for by proofs.
        pattern: what it matches.
        rhs: called with the bound nodes by parameter name (`node` is the whole match); returns
            the new node, None where it does not apply, or Skip with a reason.
        exact: it changes no bit of any result but a zero's sign. Inexact rules (on floats) run
            only where a pipeline asks for them.
        proof: how the rule is known to be right: "z3" over 64-bit words, "exhaustive" over
            all values of small dtypes, or "evaluator": random programs against the oracle.
        keeps_shape: results of another shape than the match are dropped: where a source goes
            away, its shape may have been the one that the others were broadcast to.
    """

    name: str
    pattern: Pattern
    rhs: RightHandSide
    exact: bool = True
    proof: Literal["z3", "exhaustive", "evaluator"] = "exhaustive"
    keeps_shape: bool = False
    parameters: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names = tuple(inspect.signature(self.rhs).parameters)
        bound = {p.name for p in walk(self.pattern)} | {"node"}
        if unknown := set(names) - bound:
            raise TypeError(f"rule {self.name}: {', '.join(sorted(unknown))} not in its pattern")
        object.__setattr__(self, "parameters", names)


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and all patterns inside it."""
    yield pattern
    for item in pattern.src or ():
        yield from walk(item)


def orders(pattern: Pattern) -> list[Pattern]:
    """All patterns that match without exchanging sources: one for each order of a commuting op."""
    if not pattern.src:
        return [pattern]
    choices: list[tuple[Pattern, ...]] = [()]
    for item in pattern.src:
        choices = [(*done, new) for done in choices for new in orders(item)]
    if pattern.ops is not None and all(op.commutes for op in pattern.ops) and len(pattern.src) == 2:
        mirrored = pattern.src[0] is not pattern.src[1]
        choices += [(b, a) for a, b in choices] if mirrored else []
    return [replace(pattern, src=src) for src in choices]
