"""What a compiled program must not use: it computes by itself, with C's library and OpenMP.

The names that a shared library needs and exports are read from its file (System V ABI, chapter 5),
before it is loaded. A program that hides what it calls still runs in a process that is not trusted.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

ALLOWED = re.compile(r"(ld-linux.*|lib(c|m|pthread|gomp|omp|iomp5|gcc_s|atomic|asan|ubsan))\.so.*")
CALLS = {
    r"(__libc_)?dl(m?open|v?sym).*": "loads other libraries",
    r"(cblas|mkl|lapacke|openblas)_.*|[sdczh]?gem[mv](_.*)?": "calls a library of linear algebra",
}
"""Names of functions that are not there for it, and what it does who calls them."""

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ENTRY = struct.Struct("<qQ")
_DYNAMIC, _DYNSYM, _NEEDED = 6, 11, 1


@dataclass
class Names:
    """Of a shared library: the libraries and the functions that it needs, and what it exports."""

    libraries: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    exported: set[str] = field(default_factory=set)


def names(library: bytes) -> Names:
    """As a 64-bit little-endian ELF file lists them; nothing of any other file."""
    found = Names()
    if library[:6] != b"\x7fELF\x02\x01":
        return found
    (at,) = struct.unpack_from("<Q", library, 40)
    size, count = struct.unpack_from("<HH", library, 58)
    sections = [_SECTION.unpack_from(library, at + size * i) for i in range(count)]
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind not in (_DYNAMIC, _DYNSYM):
            continue
        body, strings = library[start : start + length], sections[link][4]
        if kind == _DYNAMIC:
            entries = _ENTRY.iter_unpack(body)
            found.libraries |= {_text(library, strings + v) for tag, v in entries if tag == _NEEDED}
        else:
            for name, _, _, section, _, _ in _SYMBOL.iter_unpack(body):
                group = found.exported if section else found.needed
                group.add(_text(library, strings + name))
    return found


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")


def fault(library: bytes) -> str:
    """What it uses and must not, in words that follow "the compiled program"; else empty."""
    return next(_faults(names(library)), "")


def _faults(found: Names) -> Iterator[str]:
    for name in sorted(found.libraries):
        if not ALLOWED.fullmatch(name):
            yield f"needs the library {name}, but it has to compute by itself"
    for name in sorted(found.needed):
        for pattern, what in CALLS.items():
            if re.fullmatch(pattern, name, re.IGNORECASE):
                yield f"{what} ({name}), but it has to compute by itself"
    for name in sorted(found.exported):
        if name and _is_of_c(name):
            yield f"defines {name}, a function of C's library; if that is a helper, make it static"


def _is_of_c(name: str) -> bool:
    try:
        return hasattr(ctypes.CDLL("libc.so.6"), name)
    except OSError:
        return False
