"""A content-addressed cache of compiled objects on disk.

An entry's name is a hash of everything that decides its content: source, flags, compiler,
processor. An entry is an ELF file with the SHA-256 of its content behind it (a loader ignores
what follows), is written under a name of its own and moved into place, and is checked before
use. So processes and threads may race, a file cut short is rebuilt, and eviction is safe
at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 512 << 20
"""Bytes of all entries."""

DIGEST = hashlib.sha256().digest_size
INSERTIONS_PER_SWEEP = 64


def cache_directory() -> Path:
    """$UOPS_CACHE, else $XDG_CACHE_HOME/uops, else ~/.cache/uops."""
    if chosen := os.environ.get("UOPS_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):
        return Path(base) / "uops" if base else Path.home() / ".cache" / "uops"
    return Path(tempfile.gettempdir()) / f"uops-{os.getuid()}"


def content_key(*parts: str) -> str:
    """A name for what follows from these texts, and from nothing else."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode()
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


@dataclass
class ObjectCache:
    """The entries below a directory; a directory that cannot be written caches nothing.

    Attributes:
        limit: bytes past which the entries used longest ago are removed.
    """

    directory: Path = field(default_factory=cache_directory)
    limit: int = LIMIT

    def get(self, key: str, build: Callable[[Path], None]) -> bytes:
        """The content of an entry, built (into a path) if it is missing or damaged."""
        path = self.directory / "objects" / key[:2] / f"{key[2:]}.so"
        content = _read(path)
        if content is None:
            content = self._build(path, build)
        return content

    def _build(self, path: Path, build: Callable[[Path], None]) -> bytes:
        folder = path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            scratch = tempfile.TemporaryDirectory(dir=folder, prefix="tmp-")
        except OSError:
            scratch = tempfile.TemporaryDirectory(prefix="uops-")
        with scratch as name:
            target = Path(name) / "object.so"
            build(target)
            content = target.read_bytes()
            with contextlib.suppress(OSError):
                target.write_bytes(content + hashlib.sha256(content).digest())
                os.replace(target, path)
                self._sweep_sometimes()
        return content

    def _sweep_sometimes(self) -> None:
        if next(_insertions) % INSERTIONS_PER_SWEEP == 0:
            self.sweep()

    def sweep(self) -> None:
        """Remove the entries used longest ago until three quarters of the limit are left."""
        entries: list[tuple[float, int, Path]] = []
        for path in (self.directory / "objects").glob("*/*.so"):
            with contextlib.suppress(OSError):
                facts = path.stat()
                entries.append((facts.st_mtime, facts.st_size, path))
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in sorted(entries):
            if total <= self.limit * 3 // 4:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size


_insertions = itertools.count()


def _read(path: Path) -> bytes | None:
    """The content of an entry, None if it is missing or damaged; marks it as used."""
    try:
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    content, digest = data[:-DIGEST], data[-DIGEST:]
    return content if hashlib.sha256(content).digest() == digest else None
