"""Shared objects opened and closed explicitly, through the C library's own functions.

cffi's libraries are never closed, and an autotuner loads thousands.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
from typing import Any

import cffi

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

OPENMP = ("libgomp.so.1", "libomp.so.5", "libomp.so")
_openmp: dict[str, Any] = {}


class Library:
    """A shared object in this process, with static variables of its own; closed when collected."""

    def __init__(self, content: bytes) -> None:
        """Open an ELF file's content; OSError says why it cannot be."""
        descriptor, name = tempfile.mkstemp(suffix=".so", prefix="uops-")
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
            self._handle = _libc.dlopen(name.encode(), ffi.RTLD_NOW | ffi.RTLD_LOCAL)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(name)
        if not self._handle:
            raise OSError(ffi.string(_libc.dlerror()).decode(errors="replace"))
        _keep_openmp()
        weakref.finalize(self, _libc.dlclose, self._handle).atexit = False

    def symbol(self, name: str, c_type: str) -> Any:  # noqa: ANN401 - a C pointer
        """The address of an exported symbol as a pointer of a C type; None if there is none."""
        address = _libc.dlsym(self._handle, name.encode())
        return ffi.cast(c_type, address) if address else None


def _keep_openmp() -> None:
    """Hold the OpenMP runtime once loaded: its threads outlive the program that started them."""
    for name in OPENMP:
        if name not in _openmp:
            handle = _libc.dlopen(name.encode(), ffi.RTLD_LAZY | ffi.RTLD_NOLOAD)
            if handle:
                _openmp[name] = handle
