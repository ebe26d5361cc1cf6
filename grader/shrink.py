"""Making a failing program small: delta debugging on the graph.

Every step builds a smaller program and keeps it if it fails in the same way. Steps are tried from
the coarsest to the finest, in a fixed order, until none helps or the budget is spent.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from week01_uops.interchange import write
from week01_uops.node import CONST, UOp, const, make
from week01_uops.ops import PARAM, RETURN, param, parameters

Fails = Callable[[str], bool]
Steps = Callable[[UOp], Iterator[UOp]]


@dataclass(frozen=True)
class Budget:
    """How long to look, in seconds and programs tried."""

    seconds: float = 5.0
    tries: int = 200


def shrink(program: UOp, fails: Fails, budget: Budget | None = None) -> UOp:
    """The smallest program found for which `fails` holds, at worst the given one."""
    budget = budget or Budget()
    deadline = time.monotonic() + budget.seconds
    seen: set[UOp] = {program}
    tries = 0
    found = True
    while found:
        found = False
        for candidate in candidates(program):
            if candidate in seen or weight(candidate) >= weight(program):
                continue
            if tries >= budget.tries or time.monotonic() > deadline:
                return program
            seen.add(candidate)
            tries += 1
            if fails(write(candidate)):
                program, found = candidate, True
                break
    return program


def weight(program: UOp) -> tuple[int, int, int, int]:
    """What shrinks: nodes and outputs, then elements, then the size of constants, then slots."""
    nodes = program.toposort()
    constants = [node.arg.value for node in nodes if node.op is CONST]
    slots = [node.arg.slot for node in nodes if node.op is PARAM]
    elements = sum(min(node.size, 1 << 40) for node in nodes)
    return len(nodes) + len(program.src), elements, sum(map(_weight_of, constants)), sum(slots)


def _weight_of(value: float) -> int:
    finite = isinstance(value, int) or math.isfinite(value)
    whole = finite and value == int(value)
    return min(abs(int(value)), 1 << 70) + (value < 0) if whole else (1 << 70) + 1


def candidates(program: UOp) -> Iterator[UOp]:
    """Smaller programs next to this one, the coarsest cuts first."""
    for step in STEPS:
        yield from step(program)


def single_outputs(program: UOp) -> Iterator[UOp]:
    """RETURN a, b → RETURN a; RETURN b."""
    if len(program.src) > 1:
        yield from (RETURN(output) for output in program.src)


def inner_values(program: UOp) -> Iterator[UOp]:
    """RETURN f(g(x)) → RETURN g(x), the smallest first."""
    if len(program.src) == 1:
        below = program.toposort()[:-2]
        for node in below:
            if node.src or node.op is CONST:
                yield from _built(functools.partial(RETURN, node))


def to_sources(program: UOp) -> Iterator[UOp]:
    """f(x, …) → x, of the same dtype and shape, wherever it stands."""
    for node in reversed(program.toposort()):
        for source in node.src:
            if (source.dtype, source.shape) == (node.dtype, node.shape):
                yield from replaced(program, {node: source})


def to_inputs(program: UOp) -> Iterator[UOp]:
    """f(x, …) → an input of the same dtype and shape: one that is there, or a new one."""
    params = parameters(program)
    free = max(params, default=-1) + 1
    for node in reversed(program.toposort()):
        if not node.src or node.dtype.bits == 0:
            continue
        for old in params.values():
            if (old.dtype, old.shape) == (node.dtype, node.shape):
                yield from replaced(program, {node: old})
        yield from replaced(program, {node: param(free, node.dtype, node.shape)})


def to_constants(program: UOp) -> Iterator[UOp]:
    """A scalar → 0 or 1; a constant → 0, 1, 2 or its half."""
    for node in program.toposort():
        if node.shape or node.dtype.bits == 0:
            continue
        values: tuple[Any, ...] = (False, True)
        if node.dtype.is_int:
            values = (0, 1, 2, *((node.arg.value // 2,) if node.op is CONST else ()))
        elif node.dtype.is_float:
            values = (0.0, 1.0, 2.0)
        for value in values:
            if node.dtype.min <= value <= node.dtype.max or node.dtype.is_float:
                yield from replaced(program, {node: const(value, node.dtype)})


def smaller_sizes(program: UOp) -> Iterator[UOp]:
    """A size n → 1, 2 or n / 2 in every argument in which it stands."""
    sizes = sorted({n for node in program.toposort() for n in node.shape if n > 1}, reverse=True)
    for size in sizes:
        for new in sorted({1, 2, size // 2}):
            if new < size:
                yield from _with_size(program, size, new)


def lower_slots(program: UOp) -> Iterator[UOp]:
    """Slots 3, 7 → 0, 1."""
    params = parameters(program)
    numbers = {slot: number for number, slot in enumerate(sorted(params))}
    change = {
        node: make(PARAM, (), dataclasses.replace(node.arg, slot=numbers[slot]))
        for slot, node in params.items()
    }
    yield from replaced(program, change)


STEPS: tuple[Steps, ...] = (
    single_outputs,
    inner_values,
    to_inputs,
    to_sources,
    smaller_sizes,
    to_constants,
    lower_slots,
)


def replaced(program: UOp, change: Mapping[UOp, UOp]) -> Iterator[UOp]:
    """The program with nodes exchanged for others; nothing where that is not well typed."""

    def build() -> UOp:
        done: dict[UOp, UOp] = {}
        for node in program.toposort():
            done[node] = change.get(node) or node.with_src(tuple(done[s] for s in node.src))
        return done[program]

    yield from _built(build)


def _built(build: Callable[[], UOp]) -> Iterator[UOp]:
    try:
        candidate = build()
    except Exception:  # whatever the constructors refuse is no candidate
        return
    yield candidate


def _with_size(program: UOp, old: int, new: int) -> Iterator[UOp]:
    def size(n: int) -> int:
        return new if n == old else n

    def build() -> UOp:
        done: dict[UOp, UOp] = {}
        for node in program.toposort():
            src = tuple(done[s] for s in node.src)
            done[node] = make(node.op, src, _resized(node.op.name, node.arg, size))
        return done[program]

    yield from _built(build)


def _resized(op: str, arg: Any, size: Callable[[int], int]) -> Any:  # noqa: ANN401
    """An op's argument with the sizes of its shape exchanged; axes and slots stay."""
    if op in ("RESHAPE", "EXPAND"):
        return tuple(map(size, arg))
    if op == "SHRINK":
        return tuple((min(start, size(end)), size(end)) for start, end in arg)
    if op == "RANGE":
        return dataclasses.replace(arg, size=size(arg.size))
    if hasattr(arg, "shape"):
        return dataclasses.replace(arg, shape=tuple(map(size, arg.shape)))
    return arg
