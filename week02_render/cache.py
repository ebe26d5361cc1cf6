"""A content-addressed cache of compiled objects on disk.

An entry's name is a hash of everything that decides its content: source, flags, compiler,
processor. An entry is an ELF file with the SHA-256 of its content behind it, is written under a
name of its own and moved into place, and is checked before use. So processes and threads may
race, a damaged file is built anew, and entries may be removed at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 512 << 20
"""Bytes of all entries."""

DIGEST = hashlib.sha256().digest_size
INSERTIONS_PER_SWEEP = 64
ABANDONED = 3600.0
"""Seconds after which the files of a build that never ended are removed."""


def cache_directory() -> Path:
    """$UOPS_CACHE, else $XDG_CACHE_HOME/uops, else ~/.cache/uops."""
    if chosen := os.environ.get("UOPS_CACHE"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "uops"
    try:
        return Path.home() / ".cache" / "uops"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"uops-{os.getuid()}"


def content_key(*parts: str) -> str:
    """A name for what follows from these texts and from nothing else."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode()
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


@dataclass
class ObjectCache:
    """The entries below a directory; where nothing can be written, nothing is cached.

    Attributes:
        limit: bytes past which the entries used longest ago are removed.
    """

    directory: Path = field(default_factory=cache_directory)
    limit: int = LIMIT

    @property
    def failed(self) -> Path:
        """Where sources that did not compile are kept."""
        return self.directory / "failed"

    def get(self, key: str, build: Callable[[Path], None]) -> bytes:
        """The content of an entry; `build` writes it to a path if it is missing or damaged."""
        path = self.directory / "objects" / key[:2] / f"{key[2:]}.so"
        content = _read(path)
        return self._build(path, build) if content is None else content

    def _build(self, path: Path, build: Callable[[Path], None]) -> bytes:
        with _scratch(path.parent) as folder:
            target = folder / "object.so"
            build(target)
            content = target.read_bytes()
            with contextlib.suppress(OSError):
                target.write_bytes(content + hashlib.sha256(content).digest())
                os.replace(target, path)
                if next(_insertions) % INSERTIONS_PER_SWEEP == 0:
                    self.sweep()
        return content

    def sweep(self) -> None:
        """Remove the entries used longest ago, down to three quarters of the limit."""
        for scratch in (self.directory / "objects").glob("*/tmp-*"):
            with contextlib.suppress(OSError):
                if time.time() - scratch.stat().st_mtime > ABANDONED:
                    shutil.rmtree(scratch)
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in entries:
            if total <= self.limit * 3 // 4:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """Time of last use, size and path of each file kept."""
        for pattern in ("objects/*/*.so", "failed/*.c"):
            for path in self.directory.glob(pattern):
                with contextlib.suppress(OSError):
                    facts = path.stat()
                    yield facts.st_mtime, facts.st_size, path


_insertions = itertools.count()


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder of our own, if possible in the same file system, removed at the end."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = tempfile.mkdtemp(dir=folder, prefix="tmp-")
    except OSError:
        name = tempfile.mkdtemp(prefix="uops-")
    try:
        yield Path(name)
    finally:
        shutil.rmtree(name, ignore_errors=True)


def _read(path: Path) -> bytes | None:
    """The content of an entry, None if it is missing or damaged; marks it as used."""
    try:
        data = path.read_bytes()
        with contextlib.suppress(OSError):
            os.utime(path)
    except OSError:
        return None
    content, digest = data[:-DIGEST], data[-DIGEST:]
    return content if hashlib.sha256(content).digest() == digest else None
