"""The interpreter of week 2: storage, its reading and writing, and loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from week01_uops import evaluate as week01
from week01_uops import numerics
from week01_uops.errors import ProgramError
from week01_uops.evaluate import Inputs, Meaning, State, checked, run
from week01_uops.node import CONST, Op, UOp, toposort
from week01_uops.numerics import Array
from week01_uops.ops import PARAM
from week02_render import ops
from week02_render.carried import Loop, width
from week02_render.nests import accesses, base_of
from week02_render.places import (
    Place,
    ReadBeforeWriteError,
    Storage,
    Watch,
    index,
    poison,
    read,
    write,
)
from week02_render.scopes import LoopScope, Memory

Result = TypeVar("Result")


def _const(scope: LoopScope, node: UOp) -> Any:  # noqa: ANN401
    return scope.lift(numerics.constant(node.arg.value, node.dtype), 0)


def _param(scope: LoopScope, node: UOp) -> Any:  # noqa: ANN401
    return scope.lift(scope.arguments[node.arg.slot], scope.outer)


def _alloc(scope: LoopScope, node: UOp) -> Place:
    """Each iteration that is open gets a copy of its own."""
    size = node.size * scope.active.size
    watch = Watch(node, np.zeros(size, bool)) if node in scope.watched else None
    storage = Storage(poison(node.dtype, size), watch)
    return Place(storage, (*scope.active.shape, *node.shape))


def _index(scope: LoopScope, node: UOp) -> Place:
    indices = [scope.value(item) for item in node.src[1:]]
    return index(scope.place(node.src[0]), node, scope.lanes, indices)


def _load(scope: LoopScope, node: UOp) -> Array:
    place = scope.place(node.src[0])
    if len(node.src) == 1:
        return read(place, scope.wanted(place), node)
    rank = len(node.shape)
    found = read(place, scope.wanted(place, node.src[1]), node)
    otherwise = scope.value(node.src[2], rank) if len(node.src) > 2 else np.zeros_like(found)
    return np.where(scope.value(node.src[1], rank), found, otherwise)


def _store(scope: LoopScope, node: UOp) -> None:
    place = scope.raw(node.src[0])
    if not isinstance(place, Place):
        raise ProgramError("E414", "expected a writable place, got an input", (node,))
    gate = node.src[2] if len(node.src) > 2 else None
    write(place, scope.value(node.src[1]), scope.wanted(place, gate), node)


def _first(scope: LoopScope, node: UOp) -> Any:  # noqa: ANN401
    return scope.raw(node.src[0])


def iterations(scope: LoopScope, closer: UOp, level: int = 0) -> Iterator[LoopScope]:
    """Carry out the loops that a node closes; yields each scope of the innermost one."""
    nest = scope.body.nests[closer]
    counter = nest.ranges[level]
    stop = int(np.where(scope.active, scope.bound(counter), 0).max(initial=0))
    start = 0
    while start < stop:
        count = width(Loop(scope, closer, level), start, stop)
        inner = scope.open(counter, start, count)
        start += count
        if not inner.active.any():
            continue
        inner.watched = nest.private
        run(inner, nest.levels[level])
        if level + 1 == len(nest.ranges):
            yield inner
        else:
            yield from iterations(inner, closer, level + 1)


def repeated(
    scope: LoopScope, closer: UOp, collect: Callable[[Iterator[LoopScope]], Result]
) -> Result:
    """What `collect` makes of the iterations of the loops that a node closes.

    If an iteration was wrongly given a private copy of an ALLOC, everything is done again with
    one that all iterations share.
    """
    while True:
        saved = _snapshot(scope, closer)
        try:
            return collect(iterations(scope, closer))
        except ReadBeforeWriteError as error:
            if scope.parent is not None:
                raise
            _share(scope, closer, error.alloc)
            for memory, contents in saved:
                memory[:] = contents


def _share(scope: LoopScope, closer: UOp, alloc: UOp) -> None:
    """Move an ALLOC, and the places in it, from the loops that a node closes to before them."""
    scope.body.shared.add(alloc)
    scope.body.plan()
    moved = toposort(scope.needs(closer), lambda n: () if scope.knows(n) else scope.needs(n))
    for node in moved:
        if not scope.knows(node):
            scope.values[node] = scope.compute(node)


def _snapshot(scope: LoopScope, closer: UOp) -> list[tuple[Array, Array]]:
    """The contents of the storage that the loops write, if they may have to be done again."""
    body = scope.body
    inside = body.inside(closer)
    if scope.parent is not None or not any(
        body.nests[n].private for n in (closer, *inside) if n in body.nests
    ):
        return []
    written = [place for n in inside for place, writes in accesses(n) if writes]
    storages = {scope.storage(place) for place in written if base_of(place) not in inside}
    return [(s.memory, s.memory.copy()) for s in storages if s is not None]


def _end(scope: LoopScope, node: UOp) -> None:
    repeated(scope, node, lambda scopes: deque(scopes, maxlen=0))


def _linear(scope: LoopScope, node: UOp) -> None:
    run(scope.inner(scope.active), scope.body.lists[node])


def _stored(find: str) -> Meaning:
    def meaning(scope: LoopScope, node: UOp) -> Any:  # noqa: ANN401
        return scope.lift(getattr(scope.memory, find)(node), 0)

    return meaning


MEANING: Mapping[Op, Meaning] = {
    **week01.MEANING,
    CONST: _const,
    PARAM: _param,
    ops.BUFFER: _stored("buffer"),
    ops.OUTPUT: _stored("output"),
    ops.WORKSPACE: _stored("workspace"),
    ops.ALLOC: _alloc,
    ops.INDEX: _index,
    ops.LOAD: _load,
    ops.STORE: _store,
    ops.AFTER: _first,
    ops.END: _end,
    ops.LINEAR: _linear,
    ops.KEEP: lambda scope, node: scope.value(node.src[0]),
}


def evaluate(
    program: UOp,
    inputs: Inputs,
    table: Mapping[Op, Meaning] | None = None,
    state: State | None = None,
) -> list[Array]:
    """The outputs of a program for inputs by PARAM slot.

    Args:
        program: a RETURN node.
        inputs: an array for each PARAM, by slot or in order of slots.
        table: what each op means; this week's by default.
        state: the contents of BUFFERs by slot; the same dict, passed again, keeps them.

    Raises:
        ValueError: an input is missing, or has another dtype, shape or range than its PARAM.
        OutOfBoundsError: an index out of range was read or written.
    """
    memory = Memory(program, {} if state is None else state)
    arguments = checked(program, inputs)
    meaning = MEANING if table is None else table
    scope = LoopScope(meaning, arguments, memory, memory.body(program), np.asarray(True))
    with np.errstate(all="ignore"):
        run(scope, scope.order(program))
    outputs: list[Array] = scope.values[program]
    return outputs
