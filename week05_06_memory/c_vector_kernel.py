"""A kernel with vectors being written: which storage has lanes, offsets as linear forms.

An access is written by the linear form of its offset, Σ c·t + constant: in the lanes of a vector
range with the coefficient c, it moves by c elements. So no index has to be computed by itself,
and what a loop adds to an offset is a term of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from week01_uops.dtypes import float32
from week01_uops.errors import CompilerError
from week01_uops.linear import Linear, single, value_of
from week01_uops.node import UOp
from week01_uops.ops import ADD, MAX, MUL
from week02_render.access import Access, access, operands
from week02_render.access import value_of as computed
from week02_render.c_kernel import Kernel
from week02_render.c_text import Terms
from week02_render.c_types import ATOM, UNARY, VALUE_TYPE, Term, at
from week02_render.ops import ALLOC, END, LOAD, RANGE, STORE, open_ranges
from week05_06_memory.c_vector_squares import Square, quads, squares
from week05_06_memory.c_vector_text import VECTOR_TEXT, lanes_in
from week05_06_memory.c_vector_types import held, is_vector, lanes_of, vector_type
from week05_06_memory.flat import flat
from week05_06_memory.ops import LARGER, MARKS, STREAM

MAXIMA = frozenset({MAX, LARGER})
ACROSS = frozenset({ADD, MUL}) | MAXIMA
"""What the lanes of a vector can be combined by."""

Lane = int | str
"""The number of a lane, or the C variable that counts them."""


def element_access(node: UOp) -> Access:
    """The element that a LOAD or STORE is about."""
    return access(node.src[0])


@dataclass(frozen=True)
class Across:
    """A value combined with an element: op(op(element, x), y) has the parts x, y.

    Attributes:
        element: the LOAD that the chain begins with.
        steps: the ops from it on, each with its part.
    """

    element: UOp
    steps: tuple[tuple[UOp, UOp], ...]


def _chain(value: UOp, where: Access) -> Across | None:
    """`value` as a chain of one op, or of maxima, that begins with a LOAD of the element."""
    steps: list[tuple[UOp, UOp]] = []
    alike = MAXIMA if value.op in MAXIMA else ACROSS & {value.op}
    while value.op in alike:
        for first, part in (value.src, value.src[::-1]):
            element = computed(first)
            if element.op is LOAD and len(element.src) == 1 and access(element.src[0]) == where:
                return Across(element, ((value, computed(part)), *steps))
        steps.insert(0, (value, computed(value.src[1])))
        value = computed(value.src[0])
    return None


@dataclass
class VectorKernel(Kernel):
    """A function whose RANGEs of kind vector are lanes.

    Attributes:
        vector: the vector range that is open.
        streams: whether something was written past the caches since the last fence.
    """

    vector: UOp | None = None
    streams: bool = False

    @cached_property
    def private(self) -> Mapping[UOp, int]:
        """ALLOC → lanes, where every lane has its own.

        It stands in a vector range, and every access depends on that.
        """
        found: dict[UOp, int] = {}
        opened: list[UOp] = []
        users: dict[UOp, frozenset[UOp]] = {}
        for node in self.nodes:
            for source in node.src:
                if source.op is ALLOC:
                    ranges = open_ranges(node)
                    users[source] = users.get(source, ranges) & ranges
        for node in self.nodes:
            if node.op is RANGE:
                opened.append(node)
            elif node.op is END:
                del opened[1 - len(node.src) :]
            elif node.op is ALLOC:
                for item in filter(is_vector, opened):
                    if item in users.get(node, ()):
                        found[node] = lanes_of(item)
        return found

    def across(self, node: UOp) -> Across | None:
        """How a STORE combines the lanes of a vector with one element; None if it does not."""
        if node.op is not STORE or not any(map(is_vector, open_ranges(node))):
            return None
        where = element_access(node)
        if where.storage in self.private or any(
            is_vector(r) for index in where.indices for r in open_ranges(index)
        ):
            return None
        found = _chain(computed(node.src[1]), where)
        if found and any(map(is_vector, open_ranges(found.element))):
            return found
        return None

    @cached_property
    def quads(self) -> Mapping[int, Square]:
        """Position of a STORE of floats → the four of neighbours, with nothing else between."""
        found = quads(
            (position, (run, where.storage), self.address(where).flat)
            for run, position in self._stores_in_a_row()
            for where in (element_access(self.nodes[position]),)
            if where.storage.dtype is float32 and self.nodes[position].src[1].dtype is float32
        )
        return {} if self.checked else found

    def _stores_in_a_row(self) -> Iterator[tuple[int, int]]:
        """The plain STOREs to memory, each with the number of its run: they may change places."""
        run = 0
        for position, node in enumerate(self.nodes):
            if node.op in (RANGE, END):
                run += 1
            elif node.op is LOAD and not element_access(node).is_variable:
                run += bool(self.uses.stores.get(element_access(node).storage))
            elif node.op is STORE and self._is_plain(node):
                yield run, position
            elif node.op is STORE:
                run += 1

    def _is_plain(self, node: UOp) -> bool:
        """Whether a STORE writes one element of memory in each lane, and nothing else."""
        if len(node.src) > 2 or node.src[0].op is STREAM or element_access(node).is_variable:
            return False
        return self.across(node) is None

    @cached_property
    def squares(self) -> Mapping[int, Square]:
        """Position of a LOAD → the square that it belongs to, of storage that does not change."""
        return squares(
            (position, (self.uses.block[position], where.storage), self.address(where).flat)
            for position, node in enumerate(self.nodes)
            if node.op is LOAD and len(node.src) == 1 and self.uses.is_live(position)
            for where in (element_access(node),)
            if not self.checked and not self.uses.stores.get(where.storage)
        )

    def operands(self, node: UOp) -> tuple[UOp, ...]:
        """The values that stand in the text of a node."""
        if node.op not in (LOAD, STORE):
            return operands(node) if node.op not in MARKS else ()
        place = tuple(map(computed, self.address(element_access(node)).terms))
        across = self.across(node)
        if across:
            return (*place, *(part for _, part in across.steps), *map(computed, node.src[2:]))
        return (*place, *map(computed, node.src[1:]))

    def address(self, where: Access) -> Address:
        """The offset of an element. Checked, an index is looked at by itself."""
        form = single if self.checked else value_of
        axes = tuple(map(form, where.indices))
        return Address(where.storage, axes, self.checked)

    def value(self, node: UOp, terms: Terms) -> Term:
        """The term of an elementwise op, lane by lane if there is no other text."""
        if lanes_in(terms) == 1:
            return super().value(node, terms)
        row = VECTOR_TEXT.get(node.op)
        found = row(node, terms) if row else None
        return found or self._by_lanes(node, terms)

    def type_of(self, node: UOp, term: Term) -> str:
        """The C type of a value."""
        return VALUE_TYPE[node.dtype] if term.lanes == 1 else vector_type(held(node), term.lanes)

    def _by_lanes(self, node: UOp, terms: Terms) -> Term:
        sources = self.operands(node)
        pairs = list(zip(sources, map(self.named, sources, terms), strict=True))
        elements = [
            super(VectorKernel, self).value(node, tuple([lane_of(s, t, k) for s, t in pairs]))
            for k in range(lanes_in(terms))
        ]
        return self.vector_of(node, elements)

    def vector_of(self, node: UOp, elements: list[Term]) -> Term:
        """A name for the vector of these scalars."""
        name = self.fresh("x")
        minus = "-" if held(node) is not node.dtype and node.dtype.kind == "bool" else ""
        texts = [f"{minus}{at(UNARY, e)}" if minus else e.text for e in elements]
        self.line(f"{vector_type(held(node), len(elements))} {name} = {{")
        for line in _lines(texts):
            self.line(f"    {line}")
        self.line("};")
        self.terms[node] = Term(name, ATOM, len(elements))
        return self.terms[node]

    def named(self, node: UOp, term: Term) -> Term:
        """The term, by a name if it is a vector that is to be looked into."""
        if term.lanes == 1 or term.text.isidentifier():
            return term
        name = self.fresh("x")
        self.line(f"{self.type_of(node, term)} {name} = {term.text};")
        self.terms[node] = Term(name, ATOM, term.lanes)
        return self.terms[node]

    def bind(self, node: UOp, term: Term) -> None:
        """Remember the term of a value, or of a name given to it here."""
        if self.terms.get(node) is not term:
            super().bind(node, term)

    def element_type(self, storage: UOp) -> tuple[str, int]:
        """The C type of an element: a vector where every lane has one of its own."""
        if storage not in self.private:
            return super().element_type(storage)
        lanes, dtype = self.private[storage], held(storage)
        return vector_type(dtype, lanes), lanes * dtype.bits // 8

    def enter(self, item: UOp) -> None:
        """Open a vector range: its value is the numbers of the lanes."""
        if self.vector is not None:
            raise CompilerError(f"{self.name}: expected one vector range, got {item!r} in another")
        lanes = lanes_of(item)
        self.vector = item
        self.terms = self.terms.new_child()
        self.terms[item] = Term(f"lane_i32x{lanes}", ATOM, lanes)

    def leave(self, ranges: tuple[UOp, ...]) -> None:
        """Close ranges; behind the outermost one, what was streamed is waited for."""
        for item in reversed(ranges):
            if is_vector(item):
                self.vector = None
            else:
                self.close_block()
            self.terms = self.terms.parents
        if self.streams and self._depth == 1:
            self.line("stream_fence();")
            self.streams = False


def lane_of(node: UOp, x: Term, lane: Lane) -> Term:
    """One lane of a named vector as a scalar of the node's dtype."""
    if x.lanes == 1:
        return x
    text = f"{x.text}[{lane}]"
    if node.dtype.kind == "bool":
        return Term(f"-{text}", UNARY)
    if VALUE_TYPE[node.dtype] != VALUE_TYPE[held(node)]:
        return Term(f"({VALUE_TYPE[node.dtype]}){text}", UNARY)
    return Term(text, ATOM)


def _lines(texts: list[str], width: int = 88) -> Iterator[str]:
    line = ""
    for text in texts:
        if line and len(line) + len(text) + 2 > width:
            yield line
            line = ""
        line += (" " if line else "") + text + ","
    yield line


@dataclass(frozen=True)
class Address:
    """Where an element lies in its storage.

    Attributes:
        storage: what it lies in.
        axes: for each axis the linear form of the index.
        checked: whether each index is looked at by itself.
    """

    storage: UOp
    axes: tuple[Linear, ...]
    checked: bool

    @cached_property
    def flat(self) -> Linear:
        """The row-major offset, Σ stride·index."""
        return flat(self.storage.shape, self.axes)

    @cached_property
    def terms(self) -> Mapping[UOp, None]:
        """What stands in the text of the offset and of each index that is looked at."""
        forms = (self.flat, *(self.axes if self.checked else ()))
        return dict.fromkeys(t for form in forms for t in form.terms)


def no_place(name: str, node: UOp) -> CompilerError:
    """The error of a vector stored to a place that is the same for all lanes."""
    return CompilerError(
        f"{name}: expected what every lane stores to the same place to be the sum, product or "
        f"maximum of what is there and a value, got {node.src[1]!r}"
    )
