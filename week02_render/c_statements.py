"""The C statements of loads, stores, loops and local arrays, and week 2's renderer tables."""

from __future__ import annotations

from collections.abc import Mapping

from week01_uops.node import CONST, Op, UOp
from week01_uops.ops import PARAM
from week02_render.access import Access, access, in_registers, value_of
from week02_render.c_kernel import Kernel, Statement, Tables
from week02_render.c_prelude import PRELUDE
from week02_render.c_text import C_TEXT
from week02_render.c_types import ATOM, CHOICE, ORDER, Term, at, literal
from week02_render.kernels import aligned
from week02_render.ops import ALLOC, END, LARGEST_LOCAL, LOAD, RANGE, STORE, zero


def _nothing(kernel: Kernel, node: UOp) -> None:
    """A PARAM is a parameter of the function, which has its name already."""


def _load(kernel: Kernel, node: UOp) -> None:
    """`T x = gate ? p[i] : alternative;`."""
    where = access(node.src[0])
    if len(node.src) > 2:
        other = kernel.term(value_of(node.src[2]))
    else:
        other = literal(zero(node.dtype), node.dtype)
    if where.storage.size == 0:  # its pointer may be null, and no index is in range
        kernel.bind(node, other)
        return
    term = kernel.read(where)
    conditions = _conditions(kernel, node, where, node.src[1:2])
    if conditions:
        term = Term(f"{conditions} ? {term.text} : {at(CHOICE, other)}", CHOICE)
    kernel.bind(node, term)


def _store(kernel: Kernel, node: UOp) -> None:
    """`if (gate) p[i] = value;`."""
    where = access(node.src[0])
    if where.storage.size == 0:
        return
    value = kernel.to_storage(where, kernel.term(value_of(node.src[1])))
    conditions = _conditions(kernel, node, where, node.src[2:])
    guard = f"if ({conditions}) " if conditions else kernel.declare.get(kernel.position, "")
    kernel.line(f"{guard}{kernel.element(where)} = {value};")


def _conditions(kernel: Kernel, node: UOp, where: Access, gate: tuple[UOp, ...]) -> str:
    """When an access happens: its gate, and in a checked build its bounds."""
    found = [at(ORDER, kernel.term(value_of(item))) for item in gate]
    if kernel.checked:
        found += _bounds(kernel, node, where)
    return " && ".join(found)


def shown_inside(index: UOp, size: int) -> bool:
    """Whether the text itself shows an index to be in range: a number, or the counter of a loop."""
    if index.op is CONST:
        return bool(0 <= index.arg.value < size)
    return bool(index.op is RANGE and index.arg.size <= size)


def _bounds(kernel: Kernel, node: UOp, where: Access) -> list[str]:
    name = kernel.names[where.storage]
    storage = f"{name}, {where.storage.dtype}{list(where.storage.shape)}"
    checks = []
    for axis, (index, size) in enumerate(zip(where.indices, where.storage.shape, strict=True)):
        if shown_inside(index, size):
            continue
        what = f"{kernel.name}: node %{kernel.position}: {node.op} of {storage}: axis {axis}"
        checks.append(f'in_bounds({kernel.index(index).text}, {size}, "{what}")')
    return checks


def _open_loop(kernel: Kernel, node: UOp) -> None:
    """`for (int64_t i = 0; i < min(size, bound); i++) {`."""
    if node not in kernel.names:
        kernel.names[node] = kernel.fresh("i")
    name = kernel.names[node]
    end = _loop_end(kernel, node)
    kernel.open_block(f"for (int64_t {name} = 0; {name} < {end}; {name}++)")
    kernel.terms = kernel.terms.new_child()
    kernel.terms[node] = Term(name, ATOM)


def _loop_end(kernel: Kernel, node: UOp) -> str:
    size = node.arg.size
    if not node.src:
        return str(size)
    bound = value_of(node.src[0])
    end = at(ORDER + 1, kernel.index(bound))
    if bound.interval[1] <= size:
        return end
    name = kernel.fresh("n")
    limit = at(ORDER + 1, literal(size, bound.dtype))
    compared = at(ORDER + 1, kernel.term(bound))
    kernel.line(f"int64_t {name} = {compared} < {limit} ? {end} : {size};")
    return name


def _close_loops(kernel: Kernel, node: UOp) -> None:
    for _ in node.src[1:]:
        kernel.close_block()
        kernel.terms = kernel.terms.parents


def _declare(kernel: Kernel, node: UOp) -> None:
    """`T t[n];`, or `T r;`, which may wait for the value that is stored first.

    A large array lies in the scratch memory that the kernel is given.
    """
    c_type, size = kernel.element_type(node)
    in_register = in_registers(node)
    name = kernel.names[node] = kernel.fresh("r" if in_register else "t")
    if node.size * size > LARGEST_LOCAL:
        kernel.line(f"{c_type} *restrict {name} = ({c_type} *)(scratch + {kernel.scratch});")
        kernel.scratch += aligned(node.size * size)
        return
    if in_register and not node.shape:
        first = kernel.uses.first_store(kernel.position)
        if first is not None:
            kernel.declare[first] = f"{c_type} "
        else:
            kernel.line(f"{c_type} {name};")
        return
    attribute = "" if in_register else " __attribute__((aligned(64)))"
    kernel.line(f"{c_type} {name}[{max(node.size, 1)}]{attribute};")


STATEMENTS: Mapping[Op, Statement[Kernel]] = {
    PARAM: _nothing,
    ALLOC: _declare,
    LOAD: _load,
    STORE: _store,
    RANGE: _open_loop,
    END: _close_loops,
}

C = Tables(C_TEXT, STATEMENTS, PRELUDE, Kernel)
"""Week 2's renderer."""
