"""Shared objects opened and closed explicitly, through the C library's own functions.

cffi's libraries are never closed, and an autotuner loads thousands.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import cffi

from week02_render.cache import cache_directory

ffi = cffi.FFI()
ffi.cdef(
    """
    void *dlopen(const char *, int);
    void *dlsym(void *, const char *);
    char *dlerror(void);
    int dlclose(void *);
    """
)
_libc = ffi.dlopen(None)
_dlerror = _libc.dlerror  # looked up now: a look-up forgets the error

OPENMP = ("libgomp.so.1", "libomp.so.5", "libomp.so")
_openmp: dict[str, Any] = {}


class Library:
    """A shared object in this process, with static variables of its own; closed when collected."""

    def __init__(self, content: bytes) -> None:
        """Open an ELF file's content; OSError says why it cannot be."""
        # Where programs may not be run from the temporary directory, the cache's will do.
        failures: list[str] = []
        for folder in (None, cache_directory()):
            handle = _open_copy(content, folder, failures)
            if handle:
                break
        else:
            raise OSError("; ".join(failures))
        self._handle = handle
        _keep_openmp()
        weakref.finalize(self, _libc.dlclose, self._handle).atexit = False

    def symbol(self, name: str, c_type: str) -> Any:  # noqa: ANN401 - a C pointer
        """The address of an exported symbol as a pointer of a C type; None if there is none."""
        address = _libc.dlsym(self._handle, name.encode())
        return ffi.cast(c_type, address) if address else None


def _open_copy(content: bytes, folder: Path | None, failures: list[str]) -> Any:  # noqa: ANN401
    """A handle of a private copy, which is removed at once; None with the reason noted."""
    try:
        descriptor, name = tempfile.mkstemp(suffix=".so", prefix="uops-", dir=folder)
    except OSError as error:
        failures.append(str(error))
        return None
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        handle = _libc.dlopen(name.encode(), ffi.RTLD_NOW | ffi.RTLD_LOCAL)
        if not handle:
            failures.append(ffi.string(_dlerror()).decode(errors="replace"))
        return handle
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _keep_openmp() -> None:
    """Hold the OpenMP runtime once loaded: its threads outlive the program that started them."""
    for name in OPENMP:
        if name not in _openmp:
            handle = _libc.dlopen(name.encode(), ffi.RTLD_LAZY | ffi.RTLD_NOLOAD)
            if handle:
                _openmp[name] = handle
