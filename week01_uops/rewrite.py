"""The one rewrite engine: rule tables compiled to Python, applied to a fixed point.

A table is compiled on first use, op by op (`matcher`), so that a node pays only for the rules that
could match it. The generated text is `Rules.source`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NoReturn

from week01_uops.errors import CompilerError
from week01_uops.matcher import Matchers
from week01_uops.node import UOp
from week01_uops.pattern import Rule

Order = Literal["bottom_up", "top_down"]


@dataclass
class Trace:
    """What a run of the engine did: which rule fired where, and which declined and why.

    `keep` bounds the number of single events kept; the counts are always complete.
    """

    keep: int = 10_000
    fired: Counter[str] = field(default_factory=Counter)
    events: list[tuple[Rule, UOp, UOp]] = field(default_factory=list)
    declined: dict[tuple[str, str], UOp] = field(default_factory=dict)

    def fire(self, rule: Rule, before: UOp, after: UOp) -> None:
        """Count one firing, and keep it while there is room."""
        self.fired[rule.name] += 1
        if len(self.events) < self.keep:
            self.events.append((rule, before, after))

    def decline(self, name: str, reason: str, node: UOp) -> None:
        """Note that a rule or decision declined at a node."""
        if len(self.declined) < self.keep:
            self.declined.setdefault((name, reason), node)


@dataclass(frozen=True, eq=False)
class Rules:
    """A table of rules, tried in order; tables are joined with `+`.

    What a rule does at a node may depend on the node alone: a node that a table is known to leave
    as it is, and everything below it, is not tried again.
    """

    subject: str
    rows: tuple[Rule, ...]

    def __post_init__(self) -> None:
        names = [rule.name for rule in self.rows]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise TypeError(f"rules named twice in {self.subject}: {', '.join(twice)}")

    def __add__(self, other: Rules) -> Rules:
        return Rules(f"{self.subject} + {other.subject}", self.rows + other.rows)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rows)

    @property
    def exact(self) -> Rules:
        """The rows that change no result."""
        return Rules(self.subject, tuple(rule for rule in self.rows if rule.exact))

    @property
    def source(self) -> str:
        """The Python text that the table is compiled to."""
        return self.matchers.source

    @cached_property
    def matchers(self) -> Matchers:
        """The function that tries this table's rules, for each root op that has any."""
        return Matchers(self.rows)

    def apply(self, node: UOp, trace: Trace | None = None) -> tuple[UOp, Rule] | None:
        """The first rule that changes this node, with its result; None if there is none."""
        matcher = self.matchers[node.op]
        return matcher(node, trace) if matcher is not None else None


def rewrite(
    root: UOp, rules: Rules, *, order: Order = "bottom_up", trace: Trace | None = None
) -> UOp:
    """The program after applying rules wherever they match, until none does.

    Bottom-up, a node is tried once its sources are in their final form; top-down, a node is tried
    before its sources are visited, and again when they have changed. Every result is rewritten
    itself; equal nodes are rewritten once.

    Raises:
        CompilerError: if rules undo one another or grow the program without end; it names them.
    """
    return _Engine(root, rules, order == "top_down", trace).run()


FIRINGS_PER_NODE = 100
"""Firings, as a multiple of the program's nodes (of 100 at least), taken for an endless growth."""

_Entry = tuple[UOp, UOp | None, bool]


class _Engine:
    """An explicit stack of (node, target, ready): visit it, rebuild it, or take target's result."""

    def __init__(self, root: UOp, rules: Rules, top_down: bool, trace: Trace | None) -> None:
        self.root = root
        self.rules = rules
        self.matchers = rules.matchers
        self.top_down = top_down
        self.trace = trace
        self.done: dict[UOp, UOp] = {}
        self.waiting: set[UOp] = set()
        self.stack: list[_Entry] = []
        self.recent: deque[Rule] = deque(maxlen=64)
        self.firings = 0
        self.limit = 100 * FIRINGS_PER_NODE

    def run(self) -> UOp:
        """Rewrite everything below the root, then the root."""
        root, done, stack = self.root, self.done, self.stack
        stack.append((root, None, False))
        while stack:
            node, target, ready = stack.pop()
            if target is not None:
                done[node] = done[target]
            elif ready:
                self._rebuild(node)
            elif node not in done:
                self._visit(node)
        return done[root]

    def _visit(self, node: UOp) -> None:
        if node._settled is self.rules:
            self.done[node] = node
            return
        if node in self.waiting:
            self._report("rules undo one another", node)
        self.waiting.add(node)
        if self.top_down and (new := self._step(node)) is not None:
            self._become(node, new)
            return
        self.stack.append((node, None, True))
        done = self.done
        self.stack.extend([(s, None, False) for s in reversed(node.src) if s not in done])

    def _rebuild(self, node: UOp) -> None:
        done = self.done
        rebuilt = node.with_src(tuple([done[s] for s in node.src]))
        if rebuilt is not node:
            if rebuilt in done or self.top_down:
                self._become(node, rebuilt)
                return
            if rebuilt in self.waiting:
                self._report("rules undo one another", rebuilt)
            self.waiting.add(rebuilt)
        new = None if self.top_down else self._step(rebuilt)
        if new is None:
            done[node] = done[rebuilt] = rebuilt
            rebuilt._settled = self.rules
            return
        if rebuilt is not node:
            self.stack.append((node, rebuilt, False))
        self._become(rebuilt, new)

    def _become(self, node: UOp, new: UOp) -> None:
        if new in self.done:
            self.done[node] = self.done[new]
        else:
            self.stack += [(node, new, False), (new, None, False)]

    def _step(self, node: UOp) -> UOp | None:
        matcher = self.matchers[node.op]
        found = matcher(node, self.trace) if matcher is not None else None
        if found is None:
            return None
        new, rule = found
        self.firings += 1
        self.recent.append(rule)
        if self.trace is not None:
            self.trace.fire(rule, node, new)
        if self.firings > self.limit:
            self._stop_growth(new)
        return new

    def _stop_growth(self, node: UOp) -> None:
        """Raise the limit to what the program's size allows, once; the next time, give up."""
        allowed = FIRINGS_PER_NODE * len(self.root.toposort())
        if self.firings > allowed:
            self._report("rules rewrite without end", node)
        self.limit = allowed

    def _report(self, what: str, node: UOp) -> NoReturn:
        names = dict.fromkeys(rule.name for rule in reversed(self.recent))
        listed = ", ".join(list(names)[:8])
        raise CompilerError(f"{what}: {listed} (the latest first), at {node!r}")
