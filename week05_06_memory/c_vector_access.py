"""The C statements of loads, stores, vector ranges and local storage, with vectors."""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops.dtypes import bool_
from week01_uops.errors import CompilerError
from week01_uops.node import Op, UOp, const
from week01_uops.ops import ADD, MAX, MUL
from week02_render.access import in_registers
from week02_render.access import value_of as computed
from week02_render.c_kernel import Statement
from week02_render.c_statements import STATEMENTS
from week02_render.c_text import call
from week02_render.c_types import ATOM, CHOICE, UNARY, Term, at
from week02_render.ops import AFTER, END, LOAD, RANGE, STORE
from week03_loops.ops import identity
from week05_06_memory.c_vector_element import Element
from week05_06_memory.c_vector_kernel import MAXIMA, Across, VectorKernel, lane_of, no_place
from week05_06_memory.c_vector_squares import Square
from week05_06_memory.c_vector_text import lanes_in
from week05_06_memory.c_vector_types import held, is_vector, lanes_of, spread, vector_type
from week05_06_memory.ops import FETCH, LARGER, STREAM

IN_REGISTERS = (16, 32, 64)
"""Bytes of the vectors that some machine's registers hold."""


def _load(kernel: VectorKernel, node: UOp) -> None:
    """`T x = gate ? p[i] : alternative;`."""
    e = Element(kernel, node)
    if e.where.storage.size == 0:  # its pointer may be null, and no index is in range
        kernel.bind(node, e.other)
        return
    if kernel.position in kernel.squares:
        _transpose(kernel, kernel.squares[kernel.position])
        return
    if node.src[0].op is FETCH:
        _fetch(e)
    kernel.bind(node, _at_once(e) or _lane_by_lane(e))
    if e.is_wide and not in_registers(e.where.storage):
        _pin(kernel, node)


def _fetch(e: Element) -> None:
    """`fetch_ahead(&p[i], bytes);`, once for each line."""
    ahead, line = e.node.src[0].arg.ahead, e.node.src[0].arg.line
    if e.is_wide and not e.kernel.checked and e.flat.constant % line < e.lanes:
        e.kernel.line(f"fetch_ahead({e.address()}, {ahead * e.dtype.bits // 8});")


def _at_once(e: Element) -> Term | None:
    """A scalar, or consecutive elements; None if a lane may not be read."""
    if e.lanes > 1 and not e.is_wide:
        return None
    gate = e.gate
    masked = gate and gate.lanes > 1 and not e.is_inside
    if masked and e.lanes == 1:
        return None
    found = e.read_wide(gate if masked else None) if e.lanes > 1 else e.read(0)
    if masked and e.is_zero_otherwise:
        return found
    if gate and gate.lanes > 1:
        kind = vector_type(held(e.node), gate.lanes)
        return call(f"select_{kind}", gate, *_alike(e, found, gate.lanes))
    conditions = e.conditions(0)
    if not conditions:
        return found
    lanes = lanes_in((found, e.other))
    a, b = _alike(e, found, lanes)
    if lanes > 1:  # of the type that is aligned, as the alternative
        a = Term(f"({vector_type(held(e.node), lanes)}){at(UNARY, a)}", UNARY, lanes)
    return Term(f"{conditions} ? {at(CHOICE + 1, a)} : {at(CHOICE, b)}", CHOICE, lanes)


def _alike(e: Element, found: Term, lanes: int) -> tuple[Term, Term]:
    """What is read and the alternative, both of them vectors if one is."""
    if lanes == 1:
        return found, e.other
    other = computed(e.node.src[2]) if len(e.node.src) > 2 else e.node
    return spread(e.node, found, lanes), spread(other, e.other, lanes, held(e.node))


def _lane_by_lane(e: Element) -> Term:
    lanes = lanes_in((Term("", ATOM, e.lanes), e.other, e.gate or e.other))
    elements = []
    for k in range(lanes):
        x, conditions = e.read(k), e.conditions(k)
        if conditions:
            other = at(CHOICE, lane_of(e.node, e.other, k))
            x = Term(f"{conditions} ? {x.text} : {other}", CHOICE)
        elements.append(x)
    return e.kernel.vector_of(e.node, elements)


def _transpose(kernel: VectorKernel, square: Square) -> None:
    """`T x[n] = {rows}; transpose(x);` where the first LOAD of a square stands."""
    if kernel.position != min(square):
        return
    e = Element(kernel, kernel.nodes[square[0]])
    name, kind = kernel.fresh("x"), vector_type(held(e.node), e.lanes)
    kernel.line(f"{kind} {name}[{e.lanes}] = {{")
    for lane in range(e.lanes):
        kernel.line(f"    {e.read_wide(lane=lane).text},")
    kernel.line("};")
    kernel.line(f"transpose_{kind}({name});")
    for row, position in enumerate(square):
        kernel.terms[kernel.nodes[position]] = Term(f"{name}[{row}]", ATOM, e.lanes)


def _pin(kernel: VectorKernel, node: UOp) -> None:
    """Keep what several ops use in a register: else it may be read from memory by each."""
    size = kernel.terms[node].lanes * held(node).bits // 8
    if len(set(kernel.uses.users[kernel.position])) > 1 and size in IN_REGISTERS:
        kernel.line(f"pin{size}({kernel.terms[node].text});")


def _store(kernel: VectorKernel, node: UOp) -> None:
    """`if (gate) p[i] = value;`."""
    e = Element(kernel, node)
    if e.where.storage.size == 0:
        return
    across = kernel.across(node)
    if across:
        _combine(e, across)
        return
    if kernel.position in kernel.quads:
        _store_quad(kernel, kernel.quads[kernel.position])
        return
    value = kernel.term(computed(node.src[1]))
    if e.lanes < value.lanes:
        raise no_place(kernel.name, node)
    if lanes_in((Term("", ATOM, e.lanes), e.gate or value)) == 1:
        _assign(e, e.text(0), e.packed(value))
    elif not e.is_wide:
        _store_by_lanes(e, value)
    else:
        _store_at_once(e, value)


def _store_quad(kernel: VectorKernel, quad: Square) -> None:
    """`scatter4(&p[i], s, a, b, c, d);` where the last STORE of the four stands."""
    if kernel.position != max(quad):
        return
    first = Element(kernel, kernel.nodes[quad[0]])
    kind = vector_type(held(first.where.storage), first.lanes)
    values = [computed(kernel.nodes[position].src[1]) for position in quad]
    texts = [spread(v, kernel.term(v), first.lanes).text for v in values]
    place = f"&{first.text(0)}"
    kernel.line(f"scatter4_{kind}({place}, {first.step}, {', '.join(texts)});")


def _assign(e: Element, place: str, value: str) -> None:
    kernel, conditions = e.kernel, e.conditions(0)
    guard = f"if ({conditions}) " if conditions else kernel.declare.get(kernel.position, "")
    kernel.line(f"{guard}{place} = {value};")


def _store_at_once(e: Element, value: Term) -> None:
    kernel = e.kernel
    node = computed(e.node.src[1])
    x = e.packed_wide(node, spread(node, value, e.lanes))
    if e.gate and e.gate.lanes > 1 and e.is_private:
        kind = vector_type(held(e.where.storage), e.lanes)
        old = Term(e.wide(), ATOM)
        kernel.line(f"{e.wide()} = {call(f'select_{kind}', e.gate, x, old).text};")
    elif e.gate and e.gate.lanes > 1:
        store = f"store_if_{vector_type(e.memory, e.lanes)}"
        kernel.line(f"{store}({e.gate.text}, {e.address()}, {x.text});")
    elif e.node.src[0].op is STREAM and e.is_aligned and e.gate is None:
        kernel.line(f"stream_{vector_type(e.memory, e.lanes)}({e.address()}, {x.text});")
        kernel.streams = True
    else:
        _assign(e, e.wide(), x.text)


def _store_by_lanes(e: Element, value: Term) -> None:
    kernel, node = e.kernel, computed(e.node.src[1])
    value = kernel.named(node, value)
    lanes = lanes_in((Term("", ATOM, e.lanes), e.gate or value))
    k = kernel.fresh("k")
    conditions = e.conditions(k)
    guard = f"if ({conditions}) " if conditions else ""
    assignment = f"{e.text(k)} = {e.packed(lane_of(node, value, k))};"
    kernel.line(f"for (int {k} = 0; {k} < {lanes}; {k}++) {guard}{assignment}")


REDUCTIONS = {ADD: "sum", MUL: "product", MAX: "largest", LARGER: "top"}


def _combine(e: Element, across: Across) -> None:
    """`p = p + sum(x);`; a maximum of nothing else is `p = largest(x);`."""
    if e.gate and e.gate.lanes > 1:
        raise no_place(e.kernel.name, e.node)
    total = None if _is_first(across) else e.read(0)
    for op, part in across.steps:
        x = _reduced(e.kernel, op, part)
        if total is None:
            total = x
            continue
        terms = (x, total) if computed(op.src[0]) is part else (total, x)
        total = e.kernel.value(op, terms)
    assert total is not None
    _assign(e, e.text(0), e.packed(total))


def _is_first(across: Across) -> bool:
    """Whether the element is what a maximum begins with."""
    place, op = across.element.src[0], across.steps[0][0].op
    if op not in MAXIMA or place.op is not AFTER or not place.dtype.is_float:
        return False
    lowest = const(identity(MAX, place.dtype), place.dtype)
    return all(is_vector(n) or (n.op is STORE and n.src[1] is lowest) for n in place.src[1:])


def _reduced(kernel: VectorKernel, op: UOp, part: UOp) -> Term:
    """One scalar for all lanes of a value."""
    assert kernel.vector is not None
    dtype = held(part) if op.op in MAXIMA or op.dtype is bool_ else held(op)
    x = spread(part, kernel.term(part), lanes_of(kernel.vector), dtype)
    if op.dtype is bool_:
        x = Term(f"-{at(UNARY, x)}", UNARY, x.lanes)
    name = f"{REDUCTIONS[op.op]}_{vector_type(dtype, x.lanes)}"
    return call(name, x)._replace(lanes=1)


def _open(kernel: VectorKernel, node: UOp) -> None:
    """A loop, or nothing: lanes need none."""
    if is_vector(node):
        kernel.enter(node)
    elif any(kernel.term(computed(bound)).lanes > 1 for bound in node.src):
        raise CompilerError(
            f"{kernel.name}: expected a bound that is the same for all lanes, got {node.src[0]!r}"
        )
    else:
        STATEMENTS[RANGE](kernel, node)


def _close(kernel: VectorKernel, node: UOp) -> None:
    kernel.leave(node.src[1:])


def _nothing(kernel: VectorKernel, node: UOp) -> None:
    """How to write is said where it is written."""


VECTOR_STATEMENTS: Mapping[Op, Statement[VectorKernel]] = {
    **STATEMENTS,
    LOAD: _load,
    STORE: _store,
    RANGE: _open,
    END: _close,
    STREAM: _nothing,
    FETCH: _nothing,
}
