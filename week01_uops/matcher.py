"""Rules compiled to Python: one function for each root op, straight-line tests in order.

The rule ADD(x, 0) → x becomes, in the function of ADD, whose sources and their ops are at hand,

    if o_1 is CONST:
        if n_1.arg.value == 0 and n_1.arg.value.__class__ is not bool:
            r = add_zero_rhs(n_0)
            if r is not None and r is not n:
                if r.__class__ is UOp:
                    return r, add_zero_row
                elif t is not None: t.decline("add_zero", r.reason, n)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from week01_uops.dtypes import Value
from week01_uops.node import Op, UOp
from week01_uops.pattern import Pattern, Rule, orders

Matcher = Callable[[UOp, Any], "tuple[UOp, Rule] | None"]
Step = tuple[str, bool]
"""A line of text, and whether what follows is nested in it."""


class Matchers(dict[Op, Matcher | None]):
    """The function of each root op, compiled when it is first asked for; None without rules.

    Attributes:
        rows: the rules of each op that has any, in order.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        by_op: dict[Op, list[Rule]] = {}
        for rule in rules:
            if rule.pattern.ops is None:
                raise TypeError(f"rule {rule.name}: the root of its pattern must name an op")
            for op in sorted(rule.pattern.ops, key=lambda op: op.name):
                by_op.setdefault(op, []).append(rule)
        self.rows = {op: tuple(rows) for op, rows in by_op.items()}

    def __missing__(self, op: Op) -> Matcher | None:
        """Compile the function of an op."""
        found = self[op] = compiled(op, self.rows[op])[1] if op in self.rows else None
        return found

    @property
    def source(self) -> str:
        """The text of all functions."""
        return "\n".join(compiled(op, rows)[0] for op, rows in self.rows.items())


@cache
def compiled(op: Op, rows: tuple[Rule, ...]) -> tuple[str, Matcher]:
    """The text and the function of one root op; tables with the same rows for it share them."""
    emitter = _Emitter()
    emitter.function(op, [(rule, pattern) for rule in rows for pattern in orders(rule.pattern)])
    text = "\n".join(emitter.lines)
    exec(compile(text, "<rules>", "exec"), emitter.names)
    return text, emitter.names[f"match_{op.name}"]


def fixed_arity(op: Op) -> int:
    """The number of sources of every node of this op; 0 if it has none or they differ."""
    return op.arity[0] if op.arity[0] == op.arity[1] else 0


class _Emitter:
    """The lines written so far, and what their global names hold."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"UOp": UOp}

    def refer(self, value: object, name: str) -> str:
        """A global name of the generated module that holds a value."""
        name = re.sub(r"\W", "_", name)
        while self.names.setdefault(name, value) is not value:
            name += "_"
        return name

    def function(self, op: Op, attempts: list[tuple[Rule, Pattern]]) -> None:
        """All attempts at one root op."""
        self.lines.append(f"def match_{op.name}(n, t):")
        count = fixed_arity(op)
        if any(pattern.src for _, pattern in attempts) and count:
            sources = [f"n_{i}" for i in range(count)]
            self.lines.append(f"    {', '.join(sources)}, = n.src")
            self.lines += [f"    o_{i} = n_{i}.op" for i in range(count)]
        for rule, pattern in attempts:
            self.lines.append(f"    # {rule.name}")
            self.attempt(rule, pattern, at_hand=count)
        self.lines.append("    return None\n")

    def attempt(self, rule: Rule, pattern: Pattern, at_hand: int) -> None:
        """One attempt of a rule at `n`; falls through where it does not match."""
        bound = {"node": "n"}
        indent = "    "
        for text, nests in self.inside(pattern, "n", bound, at_hand):
            self.lines.append(f"{indent}{text}")
            indent += "    " if nests else ""
        function, row = (
            self.refer(rule.rhs, f"{rule.name}_rhs"),
            self.refer(rule, f"{rule.name}_row"),
        )
        arguments = ", ".join(bound[name] for name in rule.parameters)
        fits = "if r.shape == n.shape: " if rule.keeps_shape else ""
        self.lines += [
            f"{indent}r = {function}({arguments})",
            f"{indent}if r is not None and r is not n:",
            f"{indent}    if r.__class__ is UOp:",
            f"{indent}        {fits}return r, {row}",
            f"{indent}    elif t is not None: t.decline({rule.name!r}, r.reason, n)",
        ]

    def inside(
        self, pattern: Pattern, at: str, bound: dict[str, str], at_hand: int
    ) -> Iterator[Step]:
        """Bind and test all of a pattern but the op at `at`."""
        if pattern.name is not None and pattern.name != bound.setdefault(pattern.name, at) != at:
            yield f"if {at} is {bound[pattern.name]}:", True
        if pattern.value is not None:
            yield f"if {self.equal(f'{at}.arg.value', pattern.value)}:", True
        if pattern.test is not None:
            test = self.refer(pattern.test, getattr(pattern.test, "__name__", "test"))
            yield f"if {test}({at}.dtype):", True
        if pattern.src:
            yield from self.sources(pattern, pattern.src, at, bound, at_hand)

    def sources(
        self,
        pattern: Pattern,
        src: tuple[Pattern, ...],
        at: str,
        bound: dict[str, str],
        at_hand: int,
    ) -> Iterator[Step]:
        """Test the sources of the node at `at`: first their ops, then what is inside them."""
        places = [f"{at}_{i}" for i in range(len(src))]
        if not at_hand:
            if not all(fixed_arity(op) == len(src) for op in pattern.ops or ()):
                yield f"if len({at}.src) {'>=' if pattern.more else '=='} {len(src)}:", True
            some = f"[:{len(src)}]" if pattern.more else ""
            yield f"{', '.join(places)}, = {at}.src{some}", False
        for i, (item, place) in enumerate(zip(src, places, strict=True)):
            if item.ops is not None:
                yield self.op_test(f"o_{i}" if at_hand else f"{place}.op", item.ops), True
        for item, place in zip(src, places, strict=True):
            yield from self.inside(item, place, bound, 0)

    def op_test(self, op: str, ops: frozenset[Op]) -> str:
        """The test that an op is one of several."""
        if len(ops) == 1:
            (only,) = ops
            return f"if {op} is {self.refer(only, only.name)}:"
        return f"if {op} in {self.refer(ops, 'ops')}:"

    def equal(self, constant: str, value: Value) -> str:
        """The condition that a constant has a value; 0 and 1 are not False and True."""
        if isinstance(value, bool):
            return f"{constant} is {value}"
        literal = repr(value) if math.isfinite(value) else self.refer(value, "value")
        no_bool = f" and {constant}.__class__ is not bool" if value in (0, 1) else ""
        return f"{constant} == {literal}{no_bool}"
