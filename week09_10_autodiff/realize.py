"""From expressions to arrays: one compiled program for all values that are wanted together.

    realize([a, b])   RETURN(a, b) with leaves and known values as PARAM 0, 1, …   →   arrays

Slots are counted in the order in which the leaves are met, so two expressions that differ in
nothing but which arrays they read are one program, and since nodes are hash-consed that program
is the key of the cache by identity.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from week01_uops.node import CONST, UOp, make
from week01_uops.ops import PARAM, RETURN, ParamArg
from week02_render.buffers import Array, aligned_empty
from week02_render.runtime import LoadedProgram, load
from week03_loops.ops import EXPAND, RESHAPE
from week09_10_autodiff.compiled import compiled
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.later import in_order
from week09_10_autodiff.ops import LATER, NAMES, bare
from week09_10_autodiff.storage import LOCK, Storage, remember, storage_of

KERNEL = re.compile(r"^/\* k\d+_", re.MULTILINE)
"""How the comment above each kernel begins in C."""

CAPACITY = 512
"""So many compiled programs are kept loaded; the one not used for longest goes first."""


class Programs:
    """Compiled programs by their canonical form; the least recently used are forgotten.

    Attributes:
        compiled: how many were compiled since the process began.
        kernels: how many kernels they have.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.compiled = self.kernels = 0
        self._loaded: OrderedDict[UOp, LoadedProgram] = OrderedDict()

    def __len__(self) -> int:
        return len(self._loaded)

    def get(self, program: UOp) -> LoadedProgram:
        """The program, compiled and loaded."""
        found = self._loaded.get(program)
        if found is None:
            artifact = compiled(program)
            found = load(artifact, program)
            self.compiled += 1
            self.kernels += len(KERNEL.findall(artifact.source))
            self._loaded[program] = found
            while len(self._loaded) > self.capacity:
                self._loaded.popitem(last=False)
        else:
            self._loaded.move_to_end(program)
        return found


PROGRAMS = Programs(CAPACITY)


def canonical(roots: Sequence[UOp]) -> tuple[UOp, list[Storage]]:
    """The program that returns these values, and what its PARAMs 0, 1, … read.

    Raises:
        TensorError: a leaf has no storage; it does not belong to a tensor.
    """
    done: dict[UOp, UOp] = {}
    inputs: dict[Storage, UOp] = {}
    opened: set[UOp] = set()
    stack = list(roots)[::-1]
    while stack:
        node = stack.pop()
        if node in done:
            continue
        if node not in opened:
            storage = storage_of(node)
            if storage is not None:
                done[node] = _input(node, storage, inputs)
                continue
            needed = node.src[:1] if node.op in NAMES else node.src
            missing = [source for source in needed if source not in done]
            if missing:
                opened.add(node)
                stack.append(node)
                stack += missing[::-1]
                continue
        done[node] = _built(node, done)
    program = make(RETURN, tuple([done[root] for root in roots]))
    waits = any(node.op is LATER for node in done)
    return in_order(program) if waits else program, list(inputs)


def _built(node: UOp, done: Mapping[UOp, UOp]) -> UOp:
    """A node whose sources are done, over them."""
    if node.op in NAMES:
        return done[node.src[0]]
    if node.op is PARAM:
        raise TensorError(f"expected tensors whose elements are known, got the input {node!r}")
    return make(node.op, tuple([done[source] for source in node.src]), node.arg)


def _input(node: UOp, storage: Storage, inputs: dict[Storage, UOp]) -> UOp:
    """The PARAM that stands for a storage, one for all nodes that lie in it."""
    if storage not in inputs:
        inputs[storage] = make(PARAM, (), ParamArg(len(inputs), node.dtype, node.shape))
    return inputs[storage]


def realize(nodes: Sequence[UOp]) -> list[Storage]:
    """Where the elements of these values lie, all that are not known computed in one program."""
    if CONTEXT.tracer is not None:
        CONTEXT.tracer.realizing(nodes)
    with LOCK:
        unknown = dict.fromkeys([bare(node) for node in nodes if storage_of(node) is None])
        pending = [node for node in unknown if storage_of(node) is None and not _is_uniform(node)]
        program, inputs = canonical(pending) if pending else (None, [])
        loaded = None if program is None else PROGRAMS.get(program)
    if loaded is not None:  # other threads need not wait while it runs
        arrays = loaded.run([storage.array for storage in inputs])
        for node, array in zip(pending, arrays, strict=True):
            remember(node, Storage(array))
    return [_known(node) for node in nodes]


def _known(node: UOp) -> Storage:
    found = storage_of(node)
    if found is None:
        value = bare(node)
        if _is_uniform(value):
            return Storage(_filled(value))
        found = storage_of(value)
        assert found is not None
        remember(node, found)
    return found


def _uniform_source(node: UOp) -> UOp:
    while node.op in (RESHAPE, EXPAND):
        node = node.src[0]
    return node


def _is_uniform(node: UOp) -> bool:
    """Whether no program is needed: all elements are one constant, or there are none.

    Such a node gets a new array whenever it is asked for, and none is remembered: constants are
    in many expressions, which should go on to be made of them.
    """
    return not node.size or _uniform_source(node).op is CONST


def _filled(node: UOp) -> Array:
    array = aligned_empty(node.shape, node.dtype)
    if node.size:
        array[...] = _uniform_source(node).arg.value
    return array
