"""The element that a LOAD or STORE is about, as C text: in one lane, or in all at once.

INDEX(p, 64·i + v)     *(f32x16_u *)&p[i * 64]      consecutive elements
INDEX(p, i)            p[i]                         the same one: a scalar
INDEX(p, 64·v + i)     p[i], p[i + 64], …           any others, lane by lane
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from week01_uops.dtypes import DType, bool_
from week01_uops.linear import Linear
from week01_uops.node import CONST, UOp
from week02_render.access import Access, in_registers
from week02_render.access import value_of as computed
from week02_render.c_statements import shown_inside
from week02_render.c_text import call, convert
from week02_render.c_types import (
    ATOM,
    HALVES,
    ORDER,
    PRODUCT,
    SHORT,
    UNARY,
    VALUE_TYPE,
    Term,
    at,
    literal,
)
from week02_render.ops import LOAD, STORE, zero
from week05_06_memory.c_vector_kernel import Lane, VectorKernel, element_access, lane_of
from week05_06_memory.c_vector_text import lanes_in
from week05_06_memory.c_vector_types import converted, held, in_memory, is_vector, vector_type

GATE = {LOAD: 1, STORE: 2}
"""Which source is the gate."""


@dataclass(frozen=True)
class Element:
    """The element that a LOAD or STORE is about, in the lanes of a vector.

    Attributes:
        kernel: the function that is being written.
        node: the LOAD or STORE.
    """

    kernel: VectorKernel
    node: UOp

    @cached_property
    def where(self) -> Access:
        """Its storage and indices."""
        return element_access(self.node)

    @cached_property
    def flat(self) -> Linear:
        """The linear form of its offset."""
        return self.kernel.address(self.where).flat

    @cached_property
    def axes(self) -> tuple[Linear, ...]:
        """The linear form of each index."""
        return self.kernel.address(self.where).axes

    @property
    def dtype(self) -> DType:
        """The dtype of the storage."""
        return self.where.storage.dtype

    @property
    def is_private(self) -> bool:
        """Whether it is a variable of which every lane has its own."""
        return self.where.storage in self.kernel.private

    @cached_property
    def lanes(self) -> int:
        """In how many lanes it may be another one; 1 if it is the same in all."""
        own = Term("", ATOM, self.kernel.private.get(self.where.storage, 1))
        return lanes_in((own, *map(self._term, self.flat.terms)))

    @property
    def is_wide(self) -> bool:
        """Whether all lanes are read or written at once: they are consecutive."""
        if self.is_private:
            return True
        moving = {t: c for t, c in self.flat.terms.items() if self._term(t).lanes > 1}
        return not self.kernel.checked and list(moving.values()) == [1] and is_vector(*moving)

    @property
    def step(self) -> int:
        """Elements from lane to lane."""
        return sum(c for t, c in self.flat.terms.items() if is_vector(t))

    @cached_property
    def is_inside(self) -> bool:
        """Whether the indices are known to be in range in every lane."""
        sizes = self.where.storage.shape
        pairs = zip(self.where.indices, sizes, strict=True)
        return all(i.interval[0] >= 0 and i.interval[1] < size for i, size in pairs)

    def _term(self, node: UOp) -> Term:
        return self.kernel.term(computed(node))

    def offset(self, form: Linear, lane: Lane) -> str:
        """An offset in one lane: a number, or the C variable that counts lanes."""
        terms: list[tuple[Term, int]] = []
        constant = form.constant
        for t, c in form.terms.items():
            if is_vector(t) and isinstance(lane, int):
                constant += c * lane
            else:
                terms.append((self._in_lane(t, lane), c))
        return _sum(terms, constant)

    def _in_lane(self, node: UOp, lane: Lane) -> Term:
        """A term of an offset, 64 bits wide so that products with strides fit."""
        if is_vector(node):
            return Term(str(lane), ATOM)
        x = lane_of(node, self.kernel.named(computed(node), self._term(node)), lane)
        return x if VALUE_TYPE[node.dtype] == "int64_t" else convert("int64_t", x)

    def text(self, lane: Lane) -> str:
        """The element of one lane, to be read or assigned to."""
        name = self.kernel.names[self.where.storage]
        if self.is_private:
            return f"{name}[{lane}]"
        return name if self.where.is_variable else f"{name}[{self.offset(self.flat, lane)}]"

    def read(self, lane: Lane) -> Term:
        """The value of one lane."""
        text = self.text(lane)
        if self._is_packed:
            return Term(f"load_{SHORT[self.dtype]}({text})", ATOM)
        return Term(text, ATOM)

    def packed(self, value: Term) -> str:
        """A scalar as an element of memory."""
        return f"store_{SHORT[self.dtype]}({value.text})" if self._is_packed else value.text

    @property
    def _is_packed(self) -> bool:
        return self.dtype in HALVES and not in_registers(self.where.storage)

    @property
    def memory(self) -> DType:
        """The element type of the vectors that are read and written."""
        return in_memory(self.dtype, in_registers(self.where.storage))

    def address(self, lane: int = 0) -> str:
        """The address of a lane, the first one by default."""
        return f"&{self.text(lane)}"

    def wide(self, const: str = "", lane: int = 0) -> str:
        """As many elements as there are lanes from one on, to be read or assigned to."""
        if self.is_private:
            return self.kernel.names[self.where.storage]
        return f"*({const}{vector_type(self.memory, self.lanes)}_u *){self.address(lane)}"

    def read_wide(self, mask: Term | None = None, lane: int = 0) -> Term:
        """The values of as many elements as there are lanes from one on; 0 where a mask is."""
        lanes = self.lanes
        x = Term(self.wide("const ", lane), ATOM if self.is_private else UNARY, lanes)
        if mask:
            x = call(f"load_if_{vector_type(self.memory, lanes)}", mask, Term(self.address(), ATOM))
        if self.is_private:
            return x
        if self.dtype is bool_:
            return Term(f"-{converted(x, self.memory, held(self.node)).text}", UNARY, lanes)
        if self._is_packed:
            return call(f"load_{SHORT[self.dtype]}x{lanes}", x)
        return converted(x, self.memory, held(self.node))

    def packed_wide(self, value: UOp, x: Term) -> Term:
        """A vector of a value's elements as one in memory, or in the variable."""
        if self.is_private:
            return converted(x, held(value), held(self.where.storage))
        if self.dtype is bool_:
            return converted(Term(f"-{at(UNARY, x)}", UNARY, x.lanes), held(value), self.memory)
        if self._is_packed:
            return call(f"store_{SHORT[self.dtype]}x{x.lanes}", x)
        return converted(x, held(value), self.memory)

    @property
    def is_aligned(self) -> bool:
        """Whether the offset is a multiple of the lanes; all storage is aligned."""
        rest = [c for t, c in self.flat.terms.items() if not is_vector(t)]
        return all(c % self.lanes == 0 for c in (*rest, self.flat.constant))

    def conditions(self, lane: Lane) -> str:
        """When one lane is accessed: its gate, and in a checked build its bounds."""
        found = []
        if self.gate:
            found.append(at(ORDER, lane_of(self.node.src[GATE[self.node.op]], self.gate, lane)))
        if self.kernel.checked:
            found += self._bounds(lane)
        return " && ".join(found)

    def _bounds(self, lane: Lane) -> list[str]:
        kernel, storage = self.kernel, self.where.storage
        about = f"{kernel.names[storage]}, {storage.dtype}{list(storage.shape)}"
        checks = []
        for axis, (form, size) in enumerate(zip(self.axes, storage.shape, strict=True)):
            index = self.offset(form, lane)
            if not (index.isdigit() and int(index) < size) and not _is_counter(form, size):
                what = f"{kernel.name}: node %{kernel.position}: {self.node.op} of {about}"
                checks.append(f'in_bounds({index}, {size}, "{what}: axis {axis}")')
        return checks

    @cached_property
    def gate(self) -> Term | None:
        """The term of the gate, by a name if it is a vector."""
        return self._source(GATE[self.node.op])

    @cached_property
    def other(self) -> Term:
        """The term of what a LOAD gives where its gate is false."""
        return self._source(2) or literal(zero(self.dtype), self.dtype)

    @property
    def is_zero_otherwise(self) -> bool:
        """Whether a LOAD gives 0, without a sign, where its gate is false."""
        if len(self.node.src) <= 2:
            return True
        other = computed(self.node.src[2])
        return other.op is CONST and str(other.arg.value) in ("0", "0.0", "False")

    def _source(self, number: int) -> Term | None:
        if len(self.node.src) <= number:
            return None
        node = computed(self.node.src[number])
        return self.kernel.named(node, self.kernel.term(node))


def _is_counter(form: Linear, size: int) -> bool:
    """Whether an index is the counter of a loop, or of lanes, within an axis."""
    first = next(iter(form.terms), None)
    return first is not None and form == Linear({first: 1}, 0) and shown_inside(first, size)


def _sum(terms: list[tuple[Term, int]], constant: int) -> str:
    """Σ c·x + constant; large steps come first, what is subtracted last."""
    text = ""
    for x, c in sorted(terms, key=lambda pair: (pair[1] < 0, -abs(pair[1]))):
        factor = at(PRODUCT, x) if abs(c) == 1 else f"{at(PRODUCT, x)} * {abs(c)}"
        sign = (" + " if c > 0 else " - ") if text else ("" if c > 0 else "-")
        text += sign + factor
    if not text:
        return str(constant)
    return text + (f" {'+' if constant > 0 else '-'} {abs(constant)}" if constant else "")
