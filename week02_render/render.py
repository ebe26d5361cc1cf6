"""From a program of kernels to one C translation unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from week01_uops.errors import CompilerError
from week01_uops.node import UOp
from week01_uops.ops import CALL, PARAM, RETURN, parameters
from week01_uops.passes import top_nodes
from week01_uops.rewrite import Trace
from week02_render.c_kernel import Tables
from week02_render.c_prelude import helpers
from week02_render.c_statements import C
from week02_render.c_types import SHORT, STORAGE_TYPE
from week02_render.kernels import aligned
from week02_render.linearize import linearize
from week02_render.ops import AFTER, BUFFER, OUTPUT, STORE, WORKSPACE, storage_of

LINE = 100
"""Characters of a line."""

HEADERS = "#include <stddef.h>\n#include <stdint.h>\n"


def render_c(program: UOp, *, checked: bool = False, tables: Tables[Any] = C) -> str:
    """The translation unit of a program of kernels, RETURN(AFTER(OUTPUT 0, CALL(…)), …).

    It exports `void program(void *const *inputs, void *const *outputs)`, and for a program with
    WORKSPACE also `size_t program_workspace(void)`; `program` then takes `void *workspace` too.
    For a program with BUFFERs it exports how many there are, their slots, and where each lies,
    which is in the unit's own memory until someone writes another address there.

    Raises:
        CompilerError: the program holds something that has no C text.
    """
    return _Unit(program, checked, tables).text()


@dataclass
class Function:
    """A kernel's function: its name and body, and how its calls use it.

    Attributes:
        aliased: slots whose argument shares storage with another argument of some call.
        scratch: bytes that its large local arrays lie in.
        own: bytes of such arrays that each thread has for itself.
    """

    name: str
    body: UOp
    slots: dict[int, UOp]
    written: frozenset[int]
    aliased: set[int] = field(default_factory=set)
    scratch: int = 0
    own: int = 0


class _Unit:
    """A translation unit being written."""

    def __init__(self, program: UOp, checked: bool, tables: Tables[Any]) -> None:
        if program.op is not RETURN:
            raise CompilerError(f"expected a program (RETURN), got {program!r}")
        self.program = program
        self.checked = checked
        self.tables = tables
        self.functions: dict[UOp, Function] = {}
        self.calls: list[UOp] = []
        self.buffers: dict[UOp, str] = {}
        self.workspace = 0
        for node in top_nodes(program):
            self._collect(node)

    def _collect(self, node: UOp) -> None:
        if node.op is CALL:
            function = self._function(node)
            storages = [storage_of(a) for a in node.src[1:]]
            function.aliased |= _aliased(storages, function.written)
            self.calls.append(node)
        elif node.op is BUFFER:
            self.buffers[node] = f"program_buffers[{len(self.buffers)}]"
        elif node.op is WORKSPACE:
            end = node.arg.offset + node.size * node.dtype.bits // 8
            self.workspace = max(self.workspace, end, 1)
        elif node.op not in (PARAM, OUTPUT, AFTER, RETURN):
            raise CompilerError(f"expected a program of kernels (CALLs), got {node!r} outside them")

    def _function(self, node: UOp) -> Function:
        body = node.src[0]
        if body not in self.functions:
            name = _identifier(f"k{len(self.functions)}", node.arg and node.arg.name)
            linear = linearize(body, Trace())
            written = {
                base.arg.slot
                for n in linear.src
                if n.op is STORE and (base := storage_of(n.src[0])).op is PARAM
            }
            self.functions[body] = Function(name, linear, parameters(body), frozenset(written))
        return self.functions[body]

    def text(self) -> str:
        """The whole unit."""
        parts = [*self._buffers(), *map(self._kernel, self.functions.values()), self._program()]
        body = "\n".join(parts)
        return "\n".join(
            part for part in (HEADERS, helpers(body, self.tables.prelude), body) if part
        )

    def _buffers(self) -> Iterator[str]:
        names = [f"buffer{k}" for k in range(len(self.buffers))]
        for node, name in zip(self.buffers, names, strict=True):
            c_type = STORAGE_TYPE[node.dtype]
            yield f"static {c_type} {name}[{max(node.size, 1)}] __attribute__((aligned(64)));\n"
        if names:
            slots = ", ".join(str(node.arg.slot) for node in self.buffers)
            yield f"const int64_t program_buffer_count = {len(names)};"
            yield f"const int64_t program_buffer_slots[] = {{{slots}}};"
            yield f"void *program_buffers[] = {{{', '.join(names)}}};\n"

    def _kernel(self, function: Function) -> str:
        names = {node: f"p{slot}" for slot, node in function.slots.items()}
        kernel = self.tables.kernel(
            self.tables, function.body.src, function.name, names, self.checked
        )
        head = f"static __attribute__((noinline)) void {function.name}("
        parameters = [_parameter(function, slot) for slot in range(_count(function))]
        statements = kernel.write()
        function.scratch, function.own = kernel.scratch, kernel.own
        if function.scratch:
            parameters.append("char *scratch")
        if function.own:
            parameters.append("char *owned")
        lines = [
            f"/* {_about(function)} */",
            *_wrapped(head, parameters or ["void"]),
            *statements,
        ]
        return "\n".join([*lines, "}\n"])

    def _program(self) -> str:
        lines = []
        extra = ""
        scratch = max((f.scratch for f in self.functions.values()), default=0)
        own = max((f.own for f in self.functions.values()), default=0)
        start = aligned(self.workspace) if self.workspace else 0
        if self.workspace or scratch or own:
            fixed = start + scratch if scratch or own else self.workspace
            parts = [str(fixed)] * bool(fixed) + [f"{own} * (size_t)program_threads()"] * bool(own)
            size = " + ".join(parts)
            lines.append(f"size_t program_workspace(void) {{\n    return {size};\n}}\n")
            extra = ", void *workspace"
        lines.append(f"void program(void *const *inputs, void *const *outputs{extra}) {{")
        if self.checked:
            lines += ["    program_error[0] = 0;", "    program_error_set = 0;"]
        for call in self.calls:
            function = self.functions[call.src[0]]
            arguments = [self._argument(storage_of(a)) for a in call.src[1:]]
            if function.scratch:
                arguments.append(f"(char *)workspace + {start}")
            if function.own:
                arguments.append(f"(char *)workspace + {start + scratch}")
            lines.append(f"    {function.name}({', '.join(arguments)});")
        return "\n".join([*lines, "}\n"])

    def _argument(self, storage: UOp) -> str:
        if storage.op is PARAM:
            return f"inputs[{storage.arg.slot}]"
        if storage.op is OUTPUT:
            return f"outputs[{storage.arg.slot}]"
        if storage.op is WORKSPACE:
            return f"(void *)((char *)workspace + {storage.arg.offset})"
        return self.buffers[storage]


def _count(function: Function) -> int:
    return max(function.slots, default=-1) + 1


def _parameter(function: Function, slot: int) -> str:
    """One parameter; of a slot that the body does not use, a pointer to nothing."""
    if slot not in function.slots:
        return f"const void *p{slot}"
    const = "" if slot in function.written else "const "
    dtype = function.slots[slot].dtype
    if slot in function.aliased:
        return f"{const}alias_{SHORT[dtype]} *p{slot}"
    return f"{const}{STORAGE_TYPE[dtype]} *restrict p{slot}"


def _about(function: Function) -> str:
    def describe(slots: list[int]) -> str:
        nodes = [(slot, function.slots[slot]) for slot in slots]
        return ", ".join(f"p{slot} {n.dtype}{list(n.shape)}" for slot, n in nodes)

    read = describe([s for s in sorted(function.slots) if s not in function.written])
    return f"{function.name}: {read} -> {describe(sorted(function.written))}"


def _wrapped(head: str, parameters: list[str]) -> list[str]:
    """The head of a function, on one line if that is short."""
    line = f"{head}{', '.join(parameters)}) {{"
    if len(line) <= LINE:
        return [line]
    return [head, *(f"    {item}," for item in parameters[:-1]), f"    {parameters[-1]})", "{"]


def _identifier(prefix: str, name: str | None) -> str:
    cleaned = re.sub(r"\W+", "_", name or "", flags=re.ASCII).strip("_")[:40]
    return f"{prefix}_{cleaned}" if cleaned else prefix


def _aliased(storages: list[UOp], written: frozenset[int]) -> set[int]:
    """Slots that share storage with another slot, one of them written."""
    found: set[int] = set()
    for slot in written:
        for other, storage in enumerate(storages):
            if other != slot and _overlap(storages[slot], storage):
                found |= {slot, other}
    return found


def _overlap(a: UOp, b: UOp) -> bool:
    if a.op is not WORKSPACE or b.op is not WORKSPACE:
        return a is b
    first, second = sorted((a, b), key=lambda n: n.arg.offset)
    end = first.arg.offset + first.size * first.dtype.bits // 8
    return bool(second.arg.offset < end)
