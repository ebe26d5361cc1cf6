"""Dialects, passes and compilers as values.

A compiler is a list of named passes, and a week adds to the list: `earlier.insert(…)` and
`earlier.replace(…)` build a new compiler and leave the old one as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from week01_uops.errors import CompilerError
from week01_uops.node import Op, UOp, toposort
from week01_uops.ops import CALL, parameters
from week01_uops.rewrite import Order, Rules, Trace, rewrite


@dataclass(frozen=True)
class Dialect:
    """A set of ops, with further conditions that a program of the dialect meets.

    A check returns a sentence that says what is wrong with a node, or None.
    """

    name: str
    ops: frozenset[Op]
    checks: tuple[Callable[[UOp], str | None], ...] = ()

    def __or__(self, ops: AbstractSet[Op]) -> Dialect:
        return replace(self, ops=self.ops | ops)

    def verify(self, program: UOp, after: str = "the reader") -> None:
        """Raise a CompilerError naming the pass and the first node outside the dialect."""
        for node in program.toposort():
            if node.op not in self.ops:
                raise CompilerError(f"{after} left {node.op} in a program of dialect {self.name}")
            for check in self.checks:
                if (wrong := check(node)) is not None:
                    raise CompilerError(f"{after}: expected {self.name}, but {wrong} at {node!r}")


PassFunction = Callable[[UOp, Trace], UOp]


@dataclass(frozen=True)
class Pass:
    """A named function from program to program.

    Attributes:
        level: the level of its result: tensor, loop, tile or kernel.
        run: the function; it records what it did in the trace.
        leaves: the dialect of its result, verified between passes on request.
        about: one line that `-v` prints.
    """

    name: str
    level: str
    run: PassFunction
    leaves: Dialect
    about: str = ""


def rules_pass(
    name: str, level: str, rules: Rules, leaves: Dialect, about: str, order: Order = "bottom_up"
) -> Pass:
    """A pass that applies a rule table to a fixed point."""

    def run(program: UOp, trace: Trace) -> UOp:
        return rewrite(program, rules, order=order, trace=trace)

    return Pass(name, level, run, leaves, about)


def on_kernels(function: PassFunction) -> PassFunction:
    """Lift a pass on one kernel body to a program: apply it to each distinct CALL body.

    Arguments past the last PARAM that a new body still has are dropped.
    """

    def run(program: UOp, trace: Trace) -> UOp:
        done: dict[UOp, UOp] = {}
        bodies: dict[UOp, UOp] = {}
        for node in top_nodes(program):
            src = tuple([done[s] for s in node.src if s in done])
            if node.op is CALL:
                body = node.src[0]
                if body not in bodies:
                    bodies[body] = function(body, trace)
                count = max(parameters(bodies[body]), default=-1) + 1
                src = (bodies[body], *[done[s] for s in node.src[1 : 1 + count]])
            done[node] = node.with_src(src)
        return done[program]

    return run


def top_nodes(*roots: UOp) -> list[UOp]:
    """The nodes of a program in order, without those that stand only in CALL bodies.

    Of several roots, those below the first one come first.
    """
    return toposort(roots, lambda n: n.src[1:] if n.op is CALL else n.src)


@dataclass(frozen=True)
class Step:
    """What one pass did."""

    of: Pass
    before: UOp
    after: UOp
    seconds: float
    trace: Trace


Observer = Callable[[Step], None]


@dataclass(frozen=True)
class Pipeline:
    """A week's compiler up to the text: a dialect of input programs, and passes in order."""

    name: str
    accepts: Dialect
    passes: tuple[Pass, ...] = field(default=())

    def run(self, program: UOp, observe: Sequence[Observer] = (), until: str | None = None) -> UOp:
        """The program after all passes, or after the last one of level `until`.

        Each observer is told of every step, in order.
        """
        self.accepts.verify(program)
        for item in self.passes[: self._stop(until)]:
            trace = Trace()
            start = time.perf_counter()
            after = item.run(program, trace)
            step = Step(item, program, after, time.perf_counter() - start, trace)
            for tell in observe:
                tell(step)
            program = after
        return program

    def _stop(self, level: str | None) -> int | None:
        if level is None:
            return None
        last = [i for i, item in enumerate(self.passes) if item.level == level]
        if not last:
            known = ", ".join(dict.fromkeys(item.level for item in self.passes))
            raise ValueError(f"expected one of the levels {known} of {self.name}, got {level}")
        return last[-1] + 1

    def index(self, name: str) -> int:
        """Where a pass stands."""
        for i, item in enumerate(self.passes):
            if item.name == name:
                return i
        known = ", ".join(item.name for item in self.passes)
        raise KeyError(f"expected one of the passes {known} of {self.name}, got {name}")

    def insert(self, *new: Pass, after: str) -> Pipeline:
        """A pipeline with passes put in behind a named one."""
        at = self.index(after) + 1
        return replace(self, passes=(*self.passes[:at], *new, *self.passes[at:]))

    def replace_pass(self, name: str, *new: Pass) -> Pipeline:
        """A pipeline with one pass exchanged for others (or for none)."""
        at = self.index(name)
        return replace(self, passes=(*self.passes[:at], *new, *self.passes[at + 1 :]))

    def extend(self, name: str, accepts: Dialect, wider: Mapping[Dialect, Dialect]) -> Pipeline:
        """The same passes under a later week's name, over dialects that hold its ops too."""
        passes = tuple(
            replace(item, leaves=wider.get(item.leaves, item.leaves)) for item in self.passes
        )
        return Pipeline(name, accepts, passes)


def verifier(step: Step) -> None:
    """An observer that checks every pass against the dialect it promises to leave."""
    step.of.leaves.verify(step.after, f"pass {step.of.name}")
