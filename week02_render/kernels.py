"""From a program of values to a program of kernels: one CALL for each effect.

    return ADD(a, b)   →   return AFTER(OUTPUT 0, CALL(STORE(PARAM 0, ADD(PARAM 1, PARAM 2)), …))

A kernel's body sees its storage as PARAMs, what it writes first; what it has to wait for stands in
AFTER around the arguments of its CALL, so that the order of kernels is plain dependence.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from week01_uops.calls import substitute
from week01_uops.dtypes import void
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import CALL, PARAM, CallArg, ParamArg
from week01_uops.passes import top_nodes
from week01_uops.rewrite import Trace
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    LARGEST_LOCAL,
    OUTPUT,
    STORAGE,
    STORE,
    WORKSPACE,
    StorageArg,
    WorkspaceArg,
    open_ranges,
    storage_of,
)

ALIGNMENT = 64
"""Bytes; the format promises it of every array and of the workspace."""


def store_outputs(program: UOp, trace: Trace) -> UOp:
    """RETURN(v, …) → RETURN(AFTER(OUTPUT 0, STORE(OUTPUT 0, v)), …)."""
    results = []
    for slot, value in enumerate(program.src):
        place = make(OUTPUT, (), StorageArg(slot, value.dtype, value.shape))
        results.append(make(AFTER, (place, make(STORE, (place, value)))))
    return program.with_src(tuple(results))


def _inner_effects(program: UOp) -> set[UOp]:
    """The effects that an END closes loops around, directly or through AFTER."""
    inner: set[UOp] = set()
    stack = [node.src[0] for node in program.toposort() if node.op is END]
    while stack:
        effect = stack.pop()
        if effect not in inner:
            inner.add(effect)
            if effect.op is AFTER:
                stack += [s for s in effect.src if s.dtype is void]
    return inner


def _is_kernel(effect: UOp, inner: set[UOp]) -> bool:
    """A STORE or END to global memory with no loop around it."""
    if effect.op not in (STORE, END) or effect in inner or open_ranges(effect):
        return False
    if effect.op is END:
        return True
    place = effect.src[0].place
    return place is not None and place.space == "MEM"


def _effects(program: UOp) -> tuple[list[UOp], set[UOp], set[UOp]]:
    """The nodes in order, the effects inside loops, and those that are kernels."""
    order, inner = program.toposort(), _inner_effects(program)
    return order, inner, {node for node in order if _is_kernel(node, inner)}


def _share_storage(program: UOp) -> UOp:
    """An ALLOC that asks for registers or local memory gets global memory if it has to.

    It has to if it is too large to be local, or if several kernels use it.
    """
    order, _, kernels = _effects(program)
    users: Counter[UOp] = Counter()
    for kernel in kernels:
        below = lambda n, top=kernel: n.src if n is top or n not in kernels else ()
        users.update(n for n in toposort((kernel,), below) if n.op is ALLOC)
    moved = {
        node: make(ALLOC, (), replace(node.arg, addrspace=None))
        for node in order
        if node.op is ALLOC
        and node.arg.addrspace not in (None, "MEM")
        and (users[node] != 1 or node.size * node.dtype.bits > 8 * LARGEST_LOCAL)
    }
    return substitute(program, moved) if moved else program


def _joins_kernels(node: UOp, inner: set[UOp]) -> bool:
    """An AFTER of effects that are kernels."""
    return node.op is AFTER and node.dtype is void and node not in inner and not open_ranges(node)


def split_kernels(program: UOp, trace: Trace) -> UOp:
    """Each effect with no loop around it becomes the CALL of a body over PARAM places."""
    program = _share_storage(program)
    order, inner, kernels = _effects(program)
    joined = {node for node in order if _joins_kernels(node, inner)}
    done: dict[UOp, UOp] = {}
    for node in order:
        if node in kernels:
            done[node] = _Body(node, kernels | joined).call(done)
        else:
            done[node] = node.with_src(tuple([done[s] for s in node.src]))
    return done[program]


class _Body:
    """One kernel: its body over PARAMs, the storage behind each, and what it waits for."""

    def __init__(self, effect: UOp, effects: set[UOp]) -> None:
        self.effect = effect
        self.effects = effects
        cone = toposort((effect,), self._sources)
        written = [storage_of(n.src[0]) for n in cone if n.op is STORE and self._own(n)]
        read = [node for node in cone if _is_argument(node)]
        places = filter(_is_argument, dict.fromkeys(written + read))
        self.places = {place: i for i, place in enumerate(places)}
        self.waits: dict[UOp, dict[UOp, None]] = {place: {} for place in self.places}
        self.cone = cone

    def _own(self, node: UOp) -> bool:
        return node is self.effect or node not in self.effects

    def _sources(self, node: UOp) -> tuple[UOp, ...]:
        return node.src if self._own(node) else ()

    def call(self, done: dict[UOp, UOp]) -> UOp:
        """CALL(body, place…), each place AFTER the kernels that must have run."""
        new: dict[UOp, UOp] = {}
        for node in self.cone:
            if node in self.places:
                new[node] = self._parameter(node)
            elif not self._own(node):
                continue
            elif node.op is AFTER:
                new[node] = self._after(node, new)
            else:
                new[node] = node.with_src(tuple([new[s] for s in node.src]))
        arguments = [
            make(AFTER, (place, *[done[w] for w in waits])) if waits else place
            for place, waits in self.waits.items()
        ]
        body = new[self.effect]
        return make(CALL, (body, *arguments), CallArg(kernel_name(body)))

    def _parameter(self, storage: UOp) -> UOp:
        bounds = storage.arg.range if storage.op is PARAM else None
        slot = self.places[storage]
        return make(PARAM, (), ParamArg(slot, storage.dtype, storage.shape, bounds))

    def _after(self, node: UOp, new: dict[UOp, UOp]) -> UOp:
        awaited = [dep for dep in node.src[1:] if dep in self.effects]
        if awaited:
            base = storage_of(node) if node.place is not None else None
            keep = self.waits[base if base in self.waits else next(iter(self.waits))]
            keep.update(dict.fromkeys(awaited))
        kept = [new[dep] for dep in node.src[1:] if dep not in self.effects]
        first = new[node.src[0]]
        return make(AFTER, (first, *kept)) if kept else first


def _is_argument(node: UOp) -> bool:
    return node.op in STORAGE and (node.place is not None and node.place.space == "MEM")


def kernel_name(body: UOp) -> str:
    """A readable name: the ops that take runs of sources, else the last op; the shape written."""
    last = body
    while last.op is not STORE:
        last = last.src[0]
    place, value = last.src[:2]
    combined = [
        node.arg.op.name
        for node in toposort((value,))
        if node.op.closes and hasattr(node.arg, "op")
    ]
    what = "_".join(dict.fromkeys(combined)) or value.op.name
    return f"{what.lower()}_{'x'.join(map(str, place.shape)) or 'scalar'}"


def place_temporaries(program: UOp, trace: Trace) -> UOp:
    """Each ALLOC of the program → WORKSPACE at an offset of its own."""
    offset = 0
    done: dict[UOp, UOp] = {}
    for node in top_nodes(program):
        if node.op is ALLOC:
            done[node] = make(WORKSPACE, (), WorkspaceArg(offset, node.dtype, node.shape))
            offset += aligned(node.size * node.dtype.bits // 8)
        else:
            new = tuple([done.get(s, s) for s in node.src])
            done[node] = node.with_src(new)
    return done[program]


def aligned(size: int) -> int:
    """The least multiple of the alignment that holds so many bytes, and one at least."""
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT
