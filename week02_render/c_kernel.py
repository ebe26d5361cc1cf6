"""One kernel as a C function: its statements, names and scopes.

The nodes of a LINEAR are written in order. A value that is used once, in the block that it
stands in, becomes part of the expression that uses it, as long as that stays short; other values
get a name. How an op is written is a row of one of two tables: text of values, and statements.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from week01_uops.errors import CompilerError
from week01_uops.node import CONST, Op, UOp
from week02_render.access import TRANSPARENT, Access, access, in_registers, operands
from week02_render.c_text import TextRule, convert
from week02_render.c_types import (
    ATOM,
    HALVES,
    PRODUCT,
    SHORT,
    STORAGE_TYPE,
    SUM,
    VALUE_TYPE,
    Term,
    at,
)
from week02_render.inline import Uses
from week02_render.ops import STORE, storage_of

LONGEST = 64
"""Characters of an expression past which it gets a name: lines stay readable, and expressions
so shallow that every C compiler can parse them."""

K = TypeVar("K", bound="Kernel")
Statement = Callable[[K, UOp], None]


@dataclass(frozen=True)
class Tables(Generic[K]):
    """What a renderer is made of: the text of values, statements, and helper functions.

    A later week extends a table by building another value:
    `replace(C, text={**C.text, OP: row})`.

    Attributes:
        kernel: what writes a function with these tables.
    """

    text: Mapping[Op, TextRule]
    statements: Mapping[Op, Statement[K]]
    prelude: Mapping[str, str]
    kernel: type[K]


@dataclass
class Kernel:
    """A function being written.

    Attributes:
        tables: how ops are written.
        nodes: the nodes in order.
        name: the function's name.
        names: the C names of storage and loop counters.
        checked: whether indices are checked against the bounds of their storage.
        lines: the statements so far.
        terms: the term of each value in scope.
        position: of the node being written.
        declare: position of a STORE → the type of the variable that it declares.
        scratch: bytes of `scratch`, a parameter, that local arrays lie in.
        own: bytes of `owned`, a parameter, that each thread has for itself.
    """

    tables: Tables[Any]
    nodes: tuple[UOp, ...]
    name: str
    names: dict[UOp, str]
    checked: bool = False
    lines: list[str] = field(default_factory=list)
    terms: ChainMap[UOp, Term] = field(default_factory=ChainMap)
    position: int = 0
    declare: dict[int, str] = field(default_factory=dict)
    scratch: int = 0
    own: int = 0
    _depth: int = 1
    _numbers: Counter[str] = field(default_factory=Counter)

    def write(self) -> list[str]:
        """The statements of the body."""
        self.uses = Uses(self.nodes, self.operands)
        self._written = {storage_of(n.src[0]) for n in self.nodes if n.op is STORE}
        statements, text = self.tables.statements, self.tables.text
        for position, node in enumerate(self.nodes):
            self.position = position
            if not self.uses.is_live(position):
                continue
            if node.op in statements:
                statements[node.op](self, node)
            elif node.op in text:
                self.bind(node, self.value(node, tuple(map(self.term, self.operands(node)))))
            elif node.op not in TRANSPARENT:
                raise CompilerError(f"{self.name}: no C text for {node!r}")
        return self.lines

    def operands(self, node: UOp) -> tuple[UOp, ...]:
        """The values that stand in the text of a node."""
        return operands(node)

    def value(self, node: UOp, terms: tuple[Term, ...]) -> Term:
        """The term of an elementwise op."""
        term: Term = self.tables.text[node.op](node, terms)
        return term

    def type_of(self, node: UOp, term: Term) -> str:
        """The C type of a value."""
        return VALUE_TYPE[node.dtype]

    def element_type(self, storage: UOp) -> tuple[str, int]:
        """The C type of an element, and its bytes; registers hold values."""
        types = VALUE_TYPE if in_registers(storage) else STORAGE_TYPE
        return types[storage.dtype], storage.dtype.bits // 8

    def line(self, text: str) -> None:
        """Append a statement at the current depth."""
        self.lines.append("    " * self._depth + text)

    def open_block(self, head: str) -> None:
        """Append a head and an opening brace."""
        self.line(f"{head} {{")
        self._depth += 1

    def close_block(self) -> None:
        """Append the closing brace."""
        self._depth -= 1
        self.line("}")

    def fresh(self, prefix: str) -> str:
        """A new name: the prefix and a number."""
        self._numbers[prefix] += 1
        return f"{prefix}{self._numbers[prefix] - 1}"

    def bind(self, node: UOp, term: Term) -> None:
        """Remember the term of a value, or of a name given to it here."""
        inline = len(term.text) <= LONGEST and self.uses.is_inline(self.position)
        if not inline and node.op is not CONST and not self.uses.is_settled(self.position):
            name = self.fresh("x")
            self.line(f"{self.type_of(node, term)} {name} = {term.text};")
            term = Term(name, ATOM, term.lanes)
        self.terms[node] = term

    def term(self, node: UOp) -> Term:
        """The term of a value; storage that nothing changes may be read as one."""
        if node.place is not None:
            where = access(node)
            if where.storage in self._written:
                raise CompilerError(f"{self.name}: expected a LOAD of {node!r}, which changes")
            return self.read(where)
        if node not in self.terms:
            raise CompilerError(f"{self.name}: expected {node!r} to be computed before its use")
        return self.terms[node]

    def read(self, where: Access) -> Term:
        """The value of an element."""
        element = Term(self.element(where), ATOM)
        if _is_packed(where.storage):
            return Term(f"load_{SHORT[where.storage.dtype]}({element.text})", ATOM)
        return element

    def to_storage(self, where: Access, value: Term) -> str:
        """The text of a value as an element of storage."""
        if _is_packed(where.storage):
            return f"store_{SHORT[where.storage.dtype]}({value.text})"
        return value.text

    def element(self, where: Access) -> str:
        """An element as something to read or to assign to."""
        name = self.names[where.storage]
        return name if where.is_variable else f"{name}[{self._offset(where)}]"

    def _offset(self, where: Access) -> str:
        """Row-major: Σ index · stride."""
        terms: list[str] = []
        stride = 1
        for size, index in zip(reversed(where.storage.shape), reversed(where.indices), strict=True):
            if index.op is not CONST:
                terms.append(self._scaled(index, stride))
            elif index.arg.value:
                terms.append(str(index.arg.value * stride))
            stride *= size
        return " + ".join(reversed(terms)) or "0"

    def _scaled(self, index: UOp, stride: int) -> str:
        term = self.index(index)
        return at(SUM, term) if stride == 1 else f"{at(PRODUCT, term)} * {stride}"

    def index(self, node: UOp) -> Term:
        """The term of an index, 64 bits wide so that products with strides fit."""
        term = self.term(node)
        wide = VALUE_TYPE[node.dtype] == "int64_t"
        return term if wide else convert("int64_t", term)


def _is_packed(storage: UOp) -> bool:
    """Whether elements have another C type in memory than as values."""
    return storage.dtype in HALVES and not in_registers(storage)
