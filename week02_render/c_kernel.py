"""One kernel as a C function: statements, names and scopes.

The nodes of a LINEAR are written in order. A value that is used once, where it stands, becomes
part of the expression that uses it, as long as that stays short; other values and loads get a
name. What a statement looks like is a table from op to row, which a later week extends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from week01_uops.dtypes import void
from week01_uops.errors import CompilerError
from week01_uops.node import CONST, Op, UOp
from week01_uops.ops import PARAM
from week02_render.c_text import C_TEXT, TextRule, convert
from week02_render.c_types import (
    ATOM,
    CHOICE,
    EQUAL,
    HALVES,
    PRODUCT,
    SHORT,
    STORAGE_TYPE,
    SUM,
    VALUE_TYPE,
    Term,
    at,
    literal,
)
from week02_render.ops import (
    AFTER,
    ALLOC,
    END,
    INDEX,
    LOAD,
    RANGE,
    STORE,
    storage_of,
    zero,
)

LONGEST = 64
"""Characters of an expression past which a value gets a name: lines stay readable, and
expressions so shallow that every C compiler can parse them."""

LARGEST_ALLOC = 1 << 16
"""Bytes of a local array: threads have small stacks."""

TRANSPARENT = frozenset({AFTER, INDEX})
"""What needs no text of its own."""


def in_registers(storage: UOp) -> bool:
    """Whether storage is in the address space REG: local variables."""
    return storage.place is not None and storage.place.space == "REG"


@dataclass(frozen=True)
class Access:
    """An element of storage: the storage, its indices, and the extent of each index."""

    storage: UOp
    indices: tuple[UOp, ...]

    @property
    def in_register(self) -> bool:
        """The storage is a local scalar variable."""
        return not self.storage.shape and in_registers(self.storage)


def access(place: UOp) -> Access:
    """What a place inside a kernel names; it must name a single element."""
    indices: tuple[UOp, ...] = ()
    base = place
    while base.op in TRANSPARENT:
        if base.op is INDEX:
            indices = (*base.src[1:], *indices)
        base = base.src[0]
    if storage_of(place) is not base or base.src:
        raise CompilerError(f"expected a place without movement ops in a kernel, got {base!r}")
    if place.shape:
        raise CompilerError(f"expected a place of one element, got {place!r}")
    return Access(base, tuple(map(value_of, indices)))


def value_of(node: UOp) -> UOp:
    """The node that computes a value: AFTER only says when."""
    while node.op is AFTER and node.place is None:
        node = node.src[0]
    return node


def operands(node: UOp) -> tuple[UOp, ...]:
    """The values whose text stands in the text of a node."""
    if node.op in TRANSPARENT or node.op is END:
        return ()
    if node.op in (LOAD, STORE):
        return (*access(node.src[0]).indices, *map(value_of, node.src[1:]))
    return tuple(map(value_of, node.src))


Statement = Callable[["Kernel", UOp], None]


@dataclass(frozen=True)
class Tables:
    """The tables that a renderer is made of: text of values, and statements."""

    text: Mapping[Op, TextRule]
    statements: Mapping[Op, Statement]


@dataclass
class Kernel:
    """A function being written.

    Attributes:
        tables: text and statements by op.
        nodes: the nodes in order.
        checked: whether accesses are checked against the bounds of their storage.
        lines: the statements so far.
        terms: the term of each value that is in scope.
        names: the C names of storage and loop counters.
    """

    tables: Tables
    nodes: tuple[UOp, ...]
    name: str
    checked: bool = False
    lines: list[str] = field(default_factory=list)
    terms: dict[UOp, Term] = field(default_factory=dict)
    names: dict[UOp, str] = field(default_factory=dict)
    depth: int = 1
    values: int = 0
    inline: frozenset[int] = frozenset()
    position: int = 0

    def write(self) -> list[str]:
        """The statements of the body."""
        self.inline = frozenset(_single_uses(self.nodes))
        for position, node in enumerate(self.nodes):
            self.position = position
            if node.op in self.tables.statements:
                self.tables.statements[node.op](self, node)
            elif node.op in self.tables.text:
                self.value(node, self.tables.text[node.op](node, self.sources(node)))
            elif node.op not in TRANSPARENT:
                raise CompilerError(f"expected ops that the C renderer knows, got {node!r}")
        return self.lines

    def line(self, text: str) -> None:
        """Append a statement at the current depth."""
        self.lines.append("    " * self.depth + text)

    def sources(self, node: UOp) -> tuple[Term, ...]:
        """The terms of a node's operands."""
        return tuple(map(self.term, operands(node)))

    def term(self, node: UOp) -> Term:
        """The term of a value; storage read as a value is its one element."""
        if node.place is not None:
            return self.read(access(node))
        if node not in self.terms:
            raise CompilerError(f"expected {node!r} to be computed before it is used")
        return self.terms[node]

    def value(self, node: UOp, term: Term, *, inline: bool = True) -> None:
        """Bind a value to its term, or to a name where it is used more than once or long."""
        once = self.position in self.inline and inline and len(term.text) <= LONGEST
        if node.op is CONST or once:
            self.terms[node] = term
            return
        name = f"x{self.values}"
        self.values += 1
        self.line(f"{VALUE_TYPE[node.dtype]} {name} = {term.text};")
        self.terms[node] = Term(name, ATOM)

    def element(self, where: Access) -> str:
        """The lvalue of an element."""
        name = self.names[where.storage]
        if where.in_register:
            return name
        return f"{name}[{self.offset(where).text}]"

    def offset(self, where: Access) -> Term:
        """Row-major: Σ index · stride."""
        terms: list[Term] = []
        stride = 1
        for size, node in zip(reversed(where.storage.shape), reversed(where.indices), strict=True):
            if not (node.op is CONST and node.arg.value == 0):
                terms.append(self._scaled(node, stride))
            stride *= size
        if not terms:
            return Term("0", ATOM)
        text = " + ".join(at(SUM, t) for t in reversed(terms))
        return Term(text, SUM if len(terms) > 1 else terms[0].level)

    def _scaled(self, node: UOp, stride: int) -> Term:
        if node.op is CONST:
            return Term(str(node.arg.value * stride), ATOM)
        term = self.term(node)
        if node.dtype.bits < 64:
            term = convert("int64_t", term)
        return term if stride == 1 else Term(f"{at(PRODUCT, term)} * {stride}", PRODUCT)

    def read(self, where: Access) -> Term:
        """The value of an element."""
        element = Term(self.element(where), ATOM)
        if where.storage.dtype in HALVES and not in_registers(where.storage):
            return Term(f"load_{SHORT[where.storage.dtype]}({element.text})", ATOM)
        return element

    def to_storage(self, where: Access, value: Term) -> str:
        """The text of a value as an element of storage."""
        if where.storage.dtype in HALVES and not in_registers(where.storage):
            return f"store_{SHORT[where.storage.dtype]}({value.text})"
        return value.text


def element_type(storage: UOp) -> str:
    """The C type of an element; registers hold values."""
    return (VALUE_TYPE if in_registers(storage) else STORAGE_TYPE)[storage.dtype]


def _load(kernel: Kernel, node: UOp) -> None:
    where = access(node.src[0])
    if where.storage.size == 0:
        default = literal(zero(node.dtype), node.dtype)
        kernel.value(node, kernel.term(value_of(node.src[2])) if len(node.src) > 2 else default)
        return
    term = kernel.read(where)
    if len(node.src) > 1:
        gate = kernel.term(value_of(node.src[1]))
        other = (
            kernel.term(value_of(node.src[2]))
            if len(node.src) > 2
            else literal(zero(node.dtype), node.dtype)
        )
        term = Term(f"{at(EQUAL, gate)} ? {term.text} : {at(CHOICE, other)}", CHOICE)
    kernel.value(node, term, inline=where.in_register)


def _store(kernel: Kernel, node: UOp) -> None:
    where = access(node.src[0])
    if where.storage.size == 0:
        return
    value = kernel.to_storage(where, kernel.term(value_of(node.src[1])))
    statement = f"{kernel.element(where)} = {value};"
    if len(node.src) > 2:
        gate = kernel.term(value_of(node.src[2]))
        statement = f"if ({gate.text}) {statement}"
    kernel.line(statement)


def _open_loop(kernel: Kernel, node: UOp) -> None:
    name = kernel.names.setdefault(node, f"i{sum(n.op is RANGE for n in kernel.names)}")
    end = str(node.arg.size)
    if node.src:
        bound = value_of(node.src[0])
        end = at(SUM, convert("int64_t", kernel.term(bound)))
        if bound.interval[1] > node.arg.size:
            last = literal(node.arg.size, bound.dtype).text
            end = f"({at(SUM, kernel.term(bound))} < {last} ? {end} : {node.arg.size})"
    kernel.line(f"for (int64_t {name} = 0; {name} < {end}; {name}++) {{")
    kernel.terms[node] = Term(name, ATOM)
    kernel.depth += 1


def _close_loops(kernel: Kernel, node: UOp) -> None:
    for _ in node.src[1:]:
        kernel.depth -= 1
        kernel.line("}")


def _declare(kernel: Kernel, node: UOp) -> None:
    if node.size * node.dtype.bits // 8 > LARGEST_ALLOC:
        raise CompilerError(f"expected an array of at most {LARGEST_ALLOC} bytes, got {node!r}")
    in_register = in_registers(node)
    name = f"{'r' if in_register else 't'}{sum(n.op is ALLOC for n in kernel.names)}"
    kernel.names[node] = name
    extent = "" if in_register and not node.shape else f"[{max(node.size, 1)}]"
    aligned = "" if in_register else " __attribute__((aligned(64)))"
    kernel.line(f"{element_type(node)} {name}{extent}{aligned};")


def _nothing(kernel: Kernel, node: UOp) -> None:
    """A PARAM is the function's parameter, which is named before."""


STATEMENTS: Mapping[Op, Statement] = {
    PARAM: _nothing,
    ALLOC: _declare,
    LOAD: _load,
    STORE: _store,
    RANGE: _open_loop,
    END: _close_loops,
}

C = Tables(C_TEXT, STATEMENTS)
"""The tables of week 2."""


def _single_uses(nodes: tuple[UOp, ...]) -> Iterator[int]:
    """Positions of values that one node uses, once, in the block that they stand in.

    Of loads from registers, only those that are used up before the register changes.
    """
    latest: dict[UOp, int] = {}
    blocks: list[int] = []
    users: dict[int, list[int]] = {}
    stores: dict[UOp, list[int]] = {}
    open_blocks = [0]
    for position, node in enumerate(nodes):
        for source in operands(node):
            if source in latest:
                users.setdefault(latest[source], []).append(position)
        if node.op is RANGE:
            open_blocks.append(position + 1)
        elif node.op is END:
            del open_blocks[1 - len(node.src) :]
        elif node.op is STORE:
            stores.setdefault(storage_of(node.src[0]), []).append(position)
        latest[node] = position
        blocks.append(open_blocks[-1])
    for position, node in enumerate(nodes):
        used = users.get(position, ())
        if node.dtype is void or len(used) != 1 or blocks[used[0]] != blocks[position]:
            continue
        if node.op is not LOAD or _is_consumed(nodes, position, users, stores):
            yield position


def _is_consumed(
    nodes: tuple[UOp, ...],
    position: int,
    users: Mapping[int, list[int]],
    stores: Mapping[UOp, list[int]],
) -> bool:
    """LOAD r, at most one op on it, STORE, and nothing else changes r in between."""
    changes = stores.get(storage_of(nodes[position].src[0]), [])
    following = bisect_right(changes, position)
    (last,) = users[position]
    if nodes[last].op is not STORE and len(users.get(last, ())) == 1:
        (last,) = users[last]
    return nodes[last].op is STORE and (following == len(changes) or last <= changes[following])
