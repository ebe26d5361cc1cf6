"""Compile a translation unit, load it, and call it on arrays.

load(compiler.compile(program, "c"), program).run([a, b])   →   [result]
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cffi

from week01_uops.dtypes import DType, uint8
from week01_uops.interface import Artifact
from week01_uops.node import Shape, UOp
from week01_uops.ops import parameters
from week02_render.buffers import Array, address, aligned_empty, as_array, dense, is_dense
from week02_render.cache import ObjectCache, content_key
from week02_render.toolchain import FLAGS, failed_source, find_toolchain

Inputs = Mapping[int, object] | Sequence[object]

_ffi = cffi.FFI()
_ffi.cdef("size_t program_workspace(void); void program(void);")


@dataclass(frozen=True)
class TensorType:
    """Element type and shape of an input or an output."""

    dtype: DType
    shape: Shape


def load(
    source: Artifact | str, program: UOp, *, cache: ObjectCache | None = None
) -> LoadedProgram:
    """Compile C (or take the compiled object from the cache) and load it.

    Args:
        source: the translation unit.
        program: RETURN of the program that it was compiled from, for the types of its inputs
            and outputs.
        cache: where compiled objects are kept.

    Raises:
        BuildError: there is no compiler, or it rejected the source.
    """
    text = source.source if isinstance(source, Artifact) else source
    return LoadedProgram(build(text, cache or ObjectCache()), program)


def build(text: str, cache: ObjectCache) -> bytes:
    """The compiled object of a translation unit."""
    toolchain = find_toolchain()
    key = content_key(text, *FLAGS, toolchain.identity)

    def compile_to(target: Path) -> None:
        source = target.with_name("program.c")
        source.write_text(text, encoding="utf-8")
        toolchain.compile(source, target)

    return cache.get(key, compile_to)


class LoadedProgram:
    """A compiled program in this process, with BUFFERs of its own.

    Attributes:
        inputs: type of each input by slot.
        outputs: types of the outputs in order.
    """

    def __init__(self, content: bytes, program: UOp) -> None:
        self.inputs = {
            slot: TensorType(node.dtype, node.shape)
            for slot, node in sorted(parameters(program).items())
        }
        self.outputs = tuple(TensorType(node.dtype, node.shape) for node in program.src)
        self._library = _open(content)
        self._workspace_size = self._find_workspace()
        signature = (
            "void(*)(void **, void **, void *)"
            if self._workspace_size
            else "void(*)(void **, void **)"
        )
        self._function = _ffi.cast(signature, _ffi.addressof(self._library, "program"))
        self._local = threading.local()

    def _find_workspace(self) -> int:
        try:
            return max(1, int(self._library.program_workspace()))
        except AttributeError:
            return 0

    def run(self, inputs: Inputs, out: Sequence[object] | None = None) -> list[Array]:
        """The outputs for these inputs, by slot.

        Inputs are used in place where they are contiguous and 64-byte aligned (`aligned_empty`
        makes such arrays), else copied. Outputs are new arrays, or those of `out`.
        """
        arrays = self._input_arrays(inputs)
        results = self._results(out)
        self._call(arrays, results)
        return results

    def bind(self, inputs: Inputs, out: Sequence[object]) -> Callable[[], None]:
        """A function that runs the program on these very arrays, for many quick calls."""
        arrays = self._input_arrays(inputs)
        results = self._results(out)
        arguments = self._arguments(arrays, results)
        function = self._function

        def call() -> None:
            function(*arguments)

        call.arrays = (arrays, results)  # type: ignore[attr-defined]
        return call

    def _call(self, arrays: Mapping[int, Array], results: Sequence[Array]) -> None:
        self._function(*self._arguments(arrays, results))

    def _arguments(self, arrays: Mapping[int, Array], results: Sequence[Array]) -> tuple[Any, ...]:
        slots = [
            address(arrays[s]) if s in arrays else 0 for s in range(max(arrays, default=-1) + 1)
        ]
        pointers = (_pointers(slots), _pointers([address(array) for array in results]))
        return (*pointers, self._workspace()) if self._workspace_size else pointers

    def _workspace(self) -> Any:  # noqa: ANN401 - a C pointer
        """This thread's workspace."""
        if not hasattr(self._local, "workspace"):
            self._local.array = aligned_empty((self._workspace_size,), uint8)
            self._local.workspace = _ffi.cast("void *", address(self._local.array))
        return self._local.workspace

    def _input_arrays(self, inputs: Inputs) -> dict[int, Array]:
        found = dict(inputs) if isinstance(inputs, Mapping) else dict(enumerate(inputs))
        arrays: dict[int, Array] = {}
        for slot, wanted in self.inputs.items():
            if found.get(slot) is None:
                raise ValueError(f"expected an array for slot {slot} ({_say(wanted)}), got none")
            arrays[slot] = dense(_checked(found[slot], wanted, f"input {slot}"), wanted.dtype)
        return arrays

    def _results(self, out: Sequence[object] | None) -> list[Array]:
        if out is None:
            return [aligned_empty(wanted.shape, wanted.dtype) for wanted in self.outputs]
        if len(out) != len(self.outputs):
            raise ValueError(f"expected {len(self.outputs)} output arrays, got {len(out)}")
        results = []
        for number, (value, wanted) in enumerate(zip(out, self.outputs, strict=True)):
            array = _checked(value, wanted, f"output {number}")
            if not array.flags.writeable or (array.size and not is_dense(array)):
                raise ValueError(
                    f"output {number}: expected a writable contiguous array at a multiple of "
                    "64 bytes; aligned_empty makes one"
                )
            results.append(array)
        return results


def _say(wanted: TensorType) -> str:
    return f"{wanted.dtype}{list(wanted.shape)}"


def _checked(value: object, wanted: TensorType, what: str) -> Array:
    try:
        array = as_array(value, wanted.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what}: {error}") from error
    if array.shape != wanted.shape:
        raise ValueError(f"{what}: expected {_say(wanted)}, got shape {list(array.shape)}")
    return array


def _pointers(addresses: Sequence[int]) -> Any:  # noqa: ANN401 - a C array
    return _ffi.new("void *[]", [_ffi.cast("void *", a) for a in addresses])


def _open(content: bytes) -> Any:  # noqa: ANN401 - a C library
    """Load a private copy, so that each loaded program has BUFFERs of its own."""
    descriptor, name = tempfile.mkstemp(suffix=".so", prefix="uops-")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        return _ffi.dlopen(name)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


_ = failed_source
