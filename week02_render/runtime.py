"""Compile a translation unit, load it, and call it on arrays.

load(compiler.compile(program, "c"), program).run([a, b])   →   [result]

BUFFERs lie in the loaded program's own memory, or in arrays that a call is bound to:

call = loaded.bind([a, b], buffers={0: state}); call()   →   state is changed in place
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from week01_uops.dtypes import uint8
from week01_uops.interface import Artifact
from week01_uops.node import UOp
from week02_render.arguments import NO_BUFFERS, Inputs, Signature, TensorType, expect_apart
from week02_render.buffers import Array, address, aligned_empty
from week02_render.cache import ObjectCache, content_key
from week02_render.library import Library, ffi
from week02_render.toolchain import BuildError, Toolchain, find_toolchain


class CheckError(Exception):
    """A checked build found an index out of range; says which."""


def load(
    source: Artifact | str,
    program: UOp,
    *,
    cache: ObjectCache | None = None,
    toolchain: Toolchain | None = None,
) -> LoadedProgram:
    """Compile C, or take the compiled object from the cache, and load it.

    Args:
        source: the translation unit.
        program: the program that it was compiled from, for the types of inputs and outputs.
        cache: where compiled objects are kept; by default, the user's cache directory.
        toolchain: what to compile with; by default, the compiler found.

    Raises:
        BuildError: there is no compiler, or it rejected the source.
    """
    text = source.source if isinstance(source, Artifact) else source
    content = build(text, cache or ObjectCache(), toolchain or find_toolchain())
    return LoadedProgram(content, Signature.of(program))


def build(text: str, cache: ObjectCache, toolchain: Toolchain) -> bytes:
    """The compiled object of a translation unit."""

    def compile_to(target: Path) -> None:
        toolchain.compile(text, target, cache.failed)

    return cache.get(content_key(text, toolchain.identity), compile_to)


class LoadedProgram:
    """A compiled program in this process.

    A BUFFER lies in memory of the program's own, zero at first, where a call is not bound to an
    array for it. Several threads may call the program at once if it has no BUFFER.
    """

    def __init__(self, content: bytes, signature: Signature) -> None:
        self.signature = signature
        try:
            self._library = library = Library(content)
        except OSError as error:
            raise BuildError(f"the compiled program cannot be loaded: {error}") from error
        self._error = library.symbol("program_error", "char *")
        size = library.symbol("program_workspace", "size_t (*)(void)")
        self._workspace_size = 0 if size is None else max(1, int(size()))
        # Arrays of pointers are passed as arrays of integers, which cffi fills faster.
        workspace = ", void *" if self._workspace_size else ""
        self._function = library.symbol("program", f"void (*)(intptr_t *, intptr_t *{workspace})")
        if self._function is None:
            raise BuildError("expected the source to export `program`, but it does not")
        self._buffers = _Buffers(library)

    def buffer(self, slot: int) -> Array:
        """A view of a BUFFER in the program's own memory, which calls read and write.

        Raises:
            ValueError: the program has no such BUFFER.
        """
        return self._buffers.view(slot, self.signature.buffer(slot))

    def run(self, inputs: Inputs, out: Sequence[object] | None = None) -> list[Array]:
        """The outputs for these inputs: arrays by slot, of NumPy, torch or any other library.

        Arrays that are contiguous and 64-byte aligned are used in place (`aligned_empty` makes
        such), others are copied. Outputs are new arrays, or those of `out`.

        Raises:
            ValueError, TypeError: an array is missing or of another type.
            CheckError: a checked build met an index out of range.
        """
        call = self.bind(inputs, out)
        call()
        return call.outputs

    def bind(
        self,
        inputs: Inputs,
        out: Sequence[object] | None = None,
        buffers: Mapping[int, object] = NO_BUFFERS,
    ) -> BoundCall:
        """The program with its arrays, to be called many times without any preparation.

        What `run` says of arrays holds here too: an input that had to be copied is copied once.

        Args:
            inputs: arrays by slot.
            out: arrays for the outputs; new ones if they are not given.
            buffers: arrays by slot that BUFFERs lie in, read and written in place: contiguous, at
                multiples of 64 bytes, apart from all others. The rest lie where `buffer` shows.

        Raises:
            ValueError, TypeError: an array is missing, of another type, or lies in another.
        """
        arrays, results = self.signature.arrays(inputs), self.signature.results(out)
        kept = self.signature.kept(buffers)
        if out is not None or kept:
            expect_apart(arrays, results, kept)
        return BoundCall(self, arrays, results, kept)

    def exported(self, name: str, c_type: str) -> Any:  # noqa: ANN401 - a C pointer
        """What else the translation unit exports, as a pointer of a C type; None if it does not."""
        return self._library.symbol(name, c_type)

    def check(self) -> None:
        """Raise what a checked build reported in the last call."""
        if self._error is not None and self._error[0] != b"\0":
            raise CheckError(ffi.string(self._error).decode())


class _Scratch(threading.local):
    """The workspace of all programs that run in a thread, one after the other."""

    def __init__(self) -> None:
        self._array = aligned_empty((0,), uint8)
        self._pointer: Any = None

    def of(self, size: int) -> Any:  # noqa: ANN401 - a C pointer
        """Memory of so many bytes, of which nobody expects anything."""
        if size > self._array.size:
            self._array = aligned_empty((0,), uint8)  # given back before more is asked for
            self._array = aligned_empty((size,), uint8)
            self._pointer = ffi.cast("void *", address(self._array))
        return self._pointer


_scratch = _Scratch()


class _Buffers:
    """The table of a loaded program that says where each BUFFER lies.

    Attributes:
        own: the program's own memory for each, as addresses, in the order of the table.
        places: slot → position in the table; a BUFFER that nothing uses is not there.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        count = library.symbol("program_buffer_count", "int64_t *")
        size = int(count[0]) if count else 0
        slots = library.symbol("program_buffer_slots", "int64_t *")
        self._table = library.symbol("program_buffers", "intptr_t *")
        self.own = [int(self._table[k]) for k in range(size)]
        self.places = {int(slots[k]): k for k in range(size)}
        self._current: object = None

    def view(self, slot: int, wanted: TensorType) -> Array:
        """An array over the program's own memory, which keeps the program loaded."""
        if slot not in self.places:
            return np.zeros(wanted.shape, wanted.dtype.numpy)
        count = math.prod(wanted.shape)
        start = ffi.cast("char *", self.own[self.places[slot]])
        kept = ffi.gc(start, lambda _, library=self._library: None)
        memory = ffi.buffer(kept, count * wanted.dtype.numpy.itemsize)
        return np.frombuffer(memory, wanted.dtype.numpy, count).reshape(wanted.shape)

    def use(self, addresses: Any) -> None:  # noqa: ANN401 - a C array
        """From now on BUFFERs lie at these addresses."""
        if self._current is not addresses:
            ffi.memmove(self._table, addresses, ffi.sizeof(addresses))
            self._current = addresses

    def forget(self, addresses: Any) -> None:  # noqa: ANN401 - a C array
        """The addresses have changed."""
        if self._current is addresses:
            self._current = None


class BoundCall:
    """A call with its arrays: `call()` runs it.

    Attributes:
        inputs: by slot; None in a gap.
        outputs: written by each call.
        buffers: by slot, those that do not lie in the program's own memory.
    """

    def __init__(
        self,
        program: LoadedProgram,
        inputs: list[Array | None],
        outputs: list[Array],
        buffers: dict[int, Array],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.buffers = buffers
        self._program = program
        self._function = program._function
        self._table = program._buffers
        self._workspace = program._workspace_size
        self._arguments = (_pointers(inputs), _pointers(outputs))
        self._addresses = ffi.new("intptr_t[]", self._table.own)
        for slot, array in buffers.items():
            self._lay(slot, array)

    def __call__(self) -> None:
        """Run the program."""
        if self._table.places:
            self._table.use(self._addresses)
        if self._workspace:
            self._function(*self._arguments, _scratch.of(self._workspace))
        else:
            self._function(*self._arguments)
        if self._program._error is not None:
            self._program.check()

    def set_input(self, slot: int, array: Array) -> None:
        """Read an input from another array, which is not checked: see `is_dense`."""
        self.inputs[slot] = array
        self._arguments[0][slot] = address(array)

    def set_buffer(self, slot: int, array: Array) -> None:
        """Lay a BUFFER into another array, which is not checked: see `is_dense`."""
        self.buffers[slot] = array
        self._lay(slot, array)
        self._table.forget(self._addresses)

    def renew_outputs(self, count: int | None = None) -> list[Array]:
        """New arrays for the outputs, or the first few, which the next calls write."""
        types = self._program.signature.outputs[:count]
        self.outputs = [aligned_empty(t.shape, t.dtype) for t in types] + self.outputs[len(types) :]
        for number in range(len(types)):
            self._arguments[1][number] = address(self.outputs[number])
        return self.outputs

    def _lay(self, slot: int, array: Array) -> None:
        place = self._table.places.get(slot)
        if place is not None:
            self._addresses[place] = address(array)


def _pointers(arrays: Sequence[Array | None]) -> Any:  # noqa: ANN401 - a C array
    return ffi.new("intptr_t[]", [0 if array is None else address(array) for array in arrays])
