"""Kernels as loop nests: the form in which loops, tiles and their schedules are read.

    def add_128x160(p0: float32[128, 160], p1: float32[96, 160], p2: float32[128, 96]):
      for i0 in 0..128:
        for i1 in 0..160:
          p0[i0, i1] = Σ[i2 in 0..96] p1[i2, i1] * p2[i0, i2]

Each statement stands in the loop in which it is carried out. A value gets a name (v0) where it is
used in a loop further inside, or more than once, or where a line would be too long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from projects.uopc.expressions import Term, express, loop_text
from week01_uops.dtypes import bool_, int64, void
from week01_uops.node import UOp, toposort
from week01_uops.ops import CALL, ELEMENTWISE, MAX, MUL, NEG, PARAM, RETURN, parameters
from week01_uops.passes import top_nodes
from week02_render.nests import Body, closes_loops
from week02_render.ops import (
    AFTER,
    ALLOC,
    BUFFER,
    END,
    KEEP,
    STORAGE,
    STORE,
    WORKSPACE,
)
from week03_loops.ops import REDUCE
from week04_fusion.ops import STAGE
from week05_06_memory.ops import LARGER, SQRT, STREAM
from week05_06_memory.scheduling import kernel_names

LONGEST = 72
"""Characters of a value on one line; a longer one is given a name."""

WIDEST = 96
"""Characters of a kernel's head on one line."""

VALUES = (ELEMENTWISE - {NEG}) | {KEEP, LARGER, SQRT, REDUCE}


def is_nest(program: UOp) -> bool:
    """Whether a program is kernels of loops over scalars, and nothing else."""
    top = top_nodes(program)
    bodies = {node.src[0] for node in top if node.op is CALL}
    flat = all(node.op in {CALL, AFTER, RETURN, *STORAGE} for node in top)
    return bool(bodies) and flat and all(map(_is_loops, bodies))


def _is_loops(body: UOp) -> bool:
    return body.dtype is void and all(map(_is_scalar, body.toposort()))


def _is_scalar(node: UOp) -> bool:
    """Whether a node of a kernel is a place, an effect on one element, or a scalar of scalars."""
    if node.op in (CALL, STORE):
        return node.op is STORE and not node.src[1].shape
    whole = node.op is REDUCE and node.arg.axes
    return not whole and (not node.shape or node.place is not None)


def program_lines(program: UOp) -> list[str]:
    """The kernels of a program, then the calls of them; `is_nest` must hold."""
    names = kernel_names(program)
    lines = [line for body, name in names.items() for line in (*kernel_lines(body, name), "")]
    terms: dict[UOp, Term] = {}
    for node in top_nodes(program):
        arguments = ", ".join(terms[s].text for s in node.src if s in terms)
        if node.op is CALL:
            lines.append(f"{names[node.src[0]]}({arguments})")
        elif node.op is RETURN:
            lines.append(f"return {arguments}")
        else:
            terms[node] = Term(f"in{node.arg.slot}") if node.op is PARAM else express(node, terms)
            if node.op in (ALLOC, BUFFER, WORKSPACE):
                lines.append(declared(node, terms[node]))
    return lines


def kernel_lines(body: UOp, name: str) -> list[str]:
    """A kernel: its arguments, then its loops."""
    wanted = sorted(parameters(body).items())
    arguments = [f"p{slot}: {typed(node)}" for slot, node in wanted]
    head = f"def {name}({', '.join(arguments)}):"
    lines = (
        [head] if len(head) <= WIDEST else [f"def {name}(", *(f"    {a}," for a in arguments), "):"]
    )
    return [*lines, *[f"  {line}" for line in body_lines(body)]]


def declared(node: UOp, term: Term) -> str:
    """The line that a temporary begins with."""
    space = "work" if node.op is WORKSPACE else getattr(node.arg, "addrspace", None) or "memory"
    return f"{term.text} = {space.lower()} {typed(node)}"


def assigned(target: str, text: str) -> list[str]:
    """An assignment, on two lines if one would be too long."""
    if len(target) + len(text) > LONGEST:
        return [f"{target} =", f"  {text}"]
    return [f"{target} = {text}"]


def typed(node: UOp) -> str:
    """The dtype and shape of storage."""
    return f"{node.dtype}{list(node.shape)}" if node.shape else str(node.dtype)


def body_lines(body: UOp) -> list[str]:
    """The statements of a kernel's body, indented by loop."""
    return Nests(body).lines()


class Block(NamedTuple):
    """What stands in one loop.

    Attributes:
        nodes: in order.
        uses: how many of them use a value.
        deeper: the values that are used in loops inside of it.
        stored: the values that are stored as they are.
    """

    nodes: Sequence[UOp]
    uses: Counter[UOp]
    deeper: frozenset[UOp]
    stored: frozenset[UOp]


class Nests:
    """The statements of one body.

    Attributes:
        terms: the text of each node that has been reached.
    """

    def __init__(self, body: UOp) -> None:
        self.body = Body(body)
        self.terms: dict[UOp, Term] = {}
        self.values = 0
        self.stages = 0

    def lines(self) -> list[str]:
        """All of it."""
        root = self.body.root
        listed = self.body.lists.get(root) or toposort((root,), self.body.needs)
        return self._block(self._of(listed, ()))

    def _of(self, nodes: Sequence[UOp], inner: Iterable[UOp]) -> Block:
        """A block, where `inner` are the nodes of the loops of the same nest inside of it."""
        own = [n for n in nodes if not closes_loops(n)]
        uses = Counter(s for n in own for s in dict.fromkeys(self.body.needs(n)))
        below = [*inner, *[n for n in nodes if closes_loops(n)]]
        deeper = {s for n in below for s in self.body.needs(n)}
        for node in reversed(own):
            if node.op is NEG:  # it has no name: what it is of has
                uses[node.src[0]] += uses[node] - 1
                deeper |= {node.src[0]} if node in deeper else set()
        stored = frozenset(n.src[1] for n in own if n.op is STORE and uses[n.src[1]] == 1)
        return Block(nodes, uses, frozenset(deeper), stored)

    def _block(self, block: Block) -> list[str]:
        lines: list[str] = []
        for node in block.nodes:
            lines += self._statement(node, block)
        return lines

    def _statement(self, node: UOp, block: Block) -> list[str]:
        """The lines of a node: none if it is only a part of others."""
        if node.op is END:
            return self._loops(node, [])
        if node.op is STAGE and closes_loops(node):
            return self._stage(node)
        if node.op is STORE:
            return self._store(node)
        if node.dtype is void:
            return []
        if node.op is REDUCE:
            lines = self._reduce(node)
            if lines:
                return lines
        self.terms[node] = express(node, self.terms)
        if node.op is ALLOC and node.shape:
            return [declared(node, self.terms[node])]
        return self._named(node) if self._needs_name(node, block) else []

    def _needs_name(self, node: UOp, block: Block) -> bool:
        if node.op not in VALUES:
            return False
        if node.op is REDUCE:
            return node not in block.stored or node in block.deeper
        if len(self.terms[node].text) > LONGEST and node in {*block.uses, *block.deeper}:
            return True
        index = node.dtype in (int64, bool_)
        return not index and (block.uses[node] > 1 or node in block.deeper)

    def _named(self, node: UOp) -> list[str]:
        text, name = self.terms[node].text, self._fresh()
        self.terms[node] = Term(name)
        return assigned(name, text)

    def _fresh(self) -> str:
        self.values += 1
        return f"v{self.values - 1}"

    def _store(self, node: UOp) -> list[str]:
        place, value = node.src[:2]
        gate = f"if {self.terms[node.src[2]].text}: " if len(node.src) > 2 else ""
        past = "  # past the caches" if place.op is STREAM else ""
        return assigned(gate + self.terms[place].text, self.terms[value].text + past)

    def _levels(self, closer: UOp) -> list[list[str]]:
        """The lines of each loop that a node closes, without what stands in those inside."""
        nest = self.body.nests[closer]
        found = []
        for depth, (item, nodes) in enumerate(zip(nest.ranges, nest.levels, strict=True)):
            self.terms[item] = express(item, self.terms)
            inner = [n for level in nest.levels[depth + 1 :] for n in level]
            found.append(self._block(self._of(nodes, inner)))
        return found

    def _loops(self, closer: UOp, last: list[str]) -> list[str]:
        """The loops that a node closes, `last` at the end of the innermost one."""
        return self._nested(closer, self._levels(closer), last)

    def _nested(self, closer: UOp, levels: list[list[str]], last: list[str]) -> list[str]:
        lines: list[str] = []
        for depth, (item, inside) in enumerate(zip(closer.src[1:], levels, strict=True)):
            text = loop_text(item, self.terms)
            start = "" if text.split(" ", 1)[0] in ("vector", "unroll", "parallel") else "for "
            lines.append("  " * depth + f"{start}{text}:")
            lines += ["  " * (depth + 1) + line for line in inside]
        return [*lines, *["  " * len(levels) + line for line in last]]

    def _reduce(self, node: UOp) -> list[str]:
        """The loops of a REDUCE that is more than one expression; none if it is one."""
        levels = self._levels(node)
        if not any(levels):
            return []
        name = self._fresh()
        term = self.terms[node.src[0]]
        op = node.arg.op
        if op is MAX:
            update = f"{name} = max({name}, {term.text})"
        else:
            update = f"{name} {'*' if op is MUL else '+'}= {term.text}"
        self.terms[node] = Term(name)
        return [f"{name} = {_start(node)}", *self._nested(node, levels, [update])]

    def _stage(self, node: UOp) -> list[str]:
        name = f"s{self.stages}"
        self.stages += 1
        levels = self._levels(node)
        counters = ", ".join(self.terms[r].text for r in node.src[1:])
        fill = f"{name}[{counters}] = {self.terms[node.src[0]].text}"
        self.terms[node] = Term(name)
        return [f"{name} = stage {typed(node)}", *self._nested(node, levels, [fill])]


def _start(node: UOp) -> str:
    """What a reduction begins with."""
    return {"ADD": "0", "MUL": "1"}.get(node.arg.op.name, "lowest")
