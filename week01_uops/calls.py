"""Inlining: every CALL becomes its body, with the arguments in place of the PARAMs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from week01_uops.errors import ProgramError
from week01_uops.node import UOp, make, toposort
from week01_uops.ops import CALL, PARAM
from week01_uops.rewrite import Trace

LIMIT = 1 << 22
"""Nodes that inlining may make before it is taken for an explosion (each call may double it)."""


def substitute(root: UOp, replacements: Mapping[UOp, UOp]) -> UOp:
    """Root with nodes replaced, each occurrence but those inside the bodies of CALLs.

    A replacement is not searched again, so exchanging two nodes is one substitution.
    """
    done: dict[UOp, UOp] = dict(replacements)
    for node in toposort((root,), lambda n: () if n in done else _outside_bodies(n)):
        if node not in done:
            src = tuple([done.get(source, source) for source in node.src])
            done[node] = node.with_src(src)
    return done[root]


def _outside_bodies(node: UOp) -> tuple[UOp, ...]:
    return node.src[1:] if node.op is CALL else node.src


def inline(program: UOp, trace: Trace) -> UOp:
    """CALL(body, a₀, a₁, …) → body[PARAM k := aₖ], everywhere, bodies of bodies included.

    The arguments keep their own PARAMs, which are the caller's: a body is substituted into once,
    and what is put in is not searched again. What is local to a body gets a slot that is free.

    Raises:
        ProgramError: E501 if the calls unfold to more than `LIMIT` nodes.
    """
    done: dict[UOp, UOp] = {}
    made = 0
    slots = _Slots(toposort((program,), _outside_bodies))
    for node in program.toposort():
        src = tuple([done[source] for source in node.src])
        if node.op is CALL:
            made += len(src[0].toposort())
            if made > LIMIT:
                raise ProgramError("E501", f"expected calls of up to {LIMIT} nodes in all", (node,))
            trace.fired["inline"] += 1
            done[node] = _applied(src[0], src[1:], slots)
        else:
            done[node] = node.with_src(src)
    return done[program]


def _applied(body: UOp, arguments: tuple[UOp, ...], slots: _Slots) -> UOp:
    """A body without CALLs, applied."""
    replacements = {}
    for node in body.toposort():
        if node.op is PARAM:
            replacements[node] = arguments[node.arg.slot]
        elif node.op.local:
            replacements[node] = slots.own(node)
    return substitute(body, replacements)


class _Slots:
    """The slots of ops that are local to a scope, as far as one scope uses them."""

    def __init__(self, nodes: Iterable[UOp]) -> None:
        self._used = {(node.op, node.arg.slot) for node in nodes if node.op.local}
        self._free = max((slot for _, slot in self._used), default=-1) + 1

    def own(self, node: UOp) -> UOp:
        """The node of another scope, with a slot that is free in this one."""
        slot = node.arg.slot
        if (node.op, slot) in self._used:
            slot = self._free
        self._used.add((node.op, slot))
        self._free = max(self._free, slot + 1)
        return make(node.op, (), replace(node.arg, slot=slot))
