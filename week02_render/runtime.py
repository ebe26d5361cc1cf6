"""Compile a translation unit, load it, and call it on arrays.

load(compiler.compile(program, "c"), program).run([a, b])   →   [result]
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from week01_uops.dtypes import DType, uint8
from week01_uops.interface import Artifact
from week01_uops.node import Shape, UOp
from week01_uops.ops import parameters
from week02_render.buffers import Array, address, aligned_empty, as_array, dense, is_dense
from week02_render.cache import ObjectCache, content_key
from week02_render.library import Library, ffi
from week02_render.toolchain import BuildError, Toolchain, find_toolchain

Inputs = Mapping[int, object] | Sequence[object]


class CheckError(Exception):
    """A checked build found an index out of range; says which."""


@dataclass(frozen=True)
class TensorType:
    """Element type and shape of an input or an output."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Signature:
    """What a program takes, by slot, and what it gives, in order."""

    inputs: Mapping[int, TensorType]
    outputs: tuple[TensorType, ...]

    @classmethod
    def of(cls, program: UOp) -> Signature:
        """The signature of a program, a RETURN at any level that still has all its PARAMs."""
        slots = sorted(parameters(program).items())
        return cls(
            {slot: TensorType(node.dtype, node.shape) for slot, node in slots},
            tuple([TensorType(node.dtype, node.shape) for node in program.src]),
        )

    def arrays(self, inputs: Inputs) -> list[Array | None]:
        """Inputs by slot as arrays that compiled code can read; None in a gap.

        Raises:
            ValueError: one is missing, or has another shape.
            TypeError: one has another element type.
        """
        given = inputs if isinstance(inputs, Mapping) else dict(enumerate(inputs))
        found: list[Array | None] = [None] * (max(self.inputs, default=-1) + 1)
        for slot, wanted in self.inputs.items():
            value = given.get(slot)
            if value is None:
                raise ValueError(f"input {slot}: expected {wanted}, got nothing")
            found[slot] = dense(_checked(value, wanted, f"input {slot}"), wanted.dtype)
        return found

    def results(self, out: Sequence[object] | None) -> list[Array]:
        """New arrays for the outputs, or those of `out`, which are used in place."""
        if out is None:
            return [aligned_empty(wanted.shape, wanted.dtype) for wanted in self.outputs]
        if len(out) != len(self.outputs):
            raise ValueError(f"expected {len(self.outputs)} output arrays, got {len(out)}")
        found = []
        for number, (value, wanted) in enumerate(zip(out, self.outputs, strict=True)):
            array = _checked(value, wanted, f"output {number}")
            if not array.flags.writeable or not is_dense(array):
                raise ValueError(
                    f"output {number}: expected a writable contiguous array at a multiple of "
                    "64 bytes; aligned_empty makes one"
                )
            found.append(array)
        return found


def _expect_apart(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
    """ValueError if an output lies where an input or another output does."""
    for number, output in enumerate(outputs):
        named = [(f"input {slot}", array) for slot, array in enumerate(inputs)]
        named += [(f"output {other}", array) for other, array in enumerate(outputs[:number])]
        for name, array in named:
            if array is not None and np.may_share_memory(output, array):
                raise ValueError(f"output {number}: expected an array apart from {name}")


def _checked(value: object, wanted: TensorType, what: str) -> Array:
    try:
        array = as_array(value, wanted.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{what}: {error}") from error
    if array.shape != wanted.shape:
        raise ValueError(f"{what}: expected {wanted}, got the shape {list(array.shape)}")
    return array


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
    """A compiled program in this process, with BUFFERs of its own.

    Several threads may call it at once if the program has no BUFFER.
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
        self._local = threading.local()

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

    def bind(self, inputs: Inputs, out: Sequence[object] | None = None) -> BoundCall:
        """The program with its arrays, to be called many times without any preparation.

        What `run` says of arrays holds here too: an input that had to be copied is copied once.
        """
        arrays, results = self.signature.arrays(inputs), self.signature.results(out)
        if out is not None:
            _expect_apart(arrays, results)
        return BoundCall(self, arrays, results)

    def _workspace(self) -> Any:  # noqa: ANN401 - a C pointer
        """This thread's workspace."""
        if not hasattr(self._local, "pointer"):
            self._local.array = aligned_empty((self._workspace_size,), uint8)
            self._local.pointer = ffi.cast("void *", address(self._local.array))
        return self._local.pointer

    def check(self) -> None:
        """Raise what a checked build reported in the last call."""
        if self._error is not None and self._error[0] != b"\0":
            raise CheckError(ffi.string(self._error).decode())


class BoundCall:
    """A call with its arrays: `call()` runs it, in the thread that made it.

    Attributes:
        inputs: by slot; None in a gap.
        outputs: written by each call.
    """

    def __init__(
        self, program: LoadedProgram, inputs: Sequence[Array | None], outputs: list[Array]
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self._program = program
        self._function = program._function
        workspace = [program._workspace()] if program._workspace_size else []
        self._arguments = (_pointers(inputs), _pointers(outputs), *workspace)

    def __call__(self) -> None:
        """Run the program."""
        self._function(*self._arguments)
        if self._program._error is not None:
            self._program.check()


def _pointers(arrays: Sequence[Array | None]) -> Any:  # noqa: ANN401 - a C array
    return ffi.new("intptr_t[]", [0 if array is None else address(array) for array in arrays])
