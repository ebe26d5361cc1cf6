"""Files and folders that appear whole or not at all.

What is written goes to a temporary name beside the target, is forced to the disk, and takes the
target's name in one step: a reader finds the old one or the new one, whatever dies in between.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = ".unfinished-"
"""How the names of things being written begin."""


def synchronize(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to, which becomes `path` when the block ends, and vanishes if it raises."""
    target = Path(path)
    temporary = _beside(target)
    try:
        yield temporary
        synchronize(temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    synchronize(target.parent)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new folder to fill with files, which becomes `path` when the block ends.

    Raises:
        FileExistsError: there is such a folder, and it is not empty.
    """
    target = Path(path)
    temporary = _beside(target)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for file in temporary.iterdir():
            synchronize(file)
        synchronize(temporary)
        _rename_folder(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    synchronize(target.parent)


def _rename_folder(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        if not target.exists():
            raise
        raise FileExistsError(f"expected no folder {target} yet, but there is one") from error


def _beside(target: Path) -> Path:
    """A name in the target's folder that no other writer uses."""
    return target.parent / f"{PREFIX}{target.name}-{uuid.uuid4().hex[:12]}"
