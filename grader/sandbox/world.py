"""What a program that is not trusted may read besides its own folder, and who owns what it writes.

The system's folders, the Python that runs the grader, and what is on PATH with its libraries. A
home is no part of it but for these, nor are the grader's files.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    *("/nix/store", "/gnu/store", "/sys/devices/system"),
)
SETTINGS = Path("/etc")
"""Holds what not all may read, beside what all do."""
BESIDE = ("lib", "lib64", "libexec", "include")
"""What a program needs of the folders next to its own."""

TOOLCHAINS = {"RUSTUP_HOME": "~/.rustup", "PYENV_ROOT": "~/.pyenv"}
"""Where a command that only chooses a version of a toolchain looks for them."""

LONGEST_PATH = 4096
"""Bytes that a path must stay below (limits.h)."""

MORE = "GRADER_READS"
"""An environment variable: other folders to be read, as in PATH."""


def readable() -> tuple[Path, ...]:
    """The folders that every program may read; those that hold the user's home are left out."""
    return _readable(_listed("PATH"), _listed(MORE), *_places())


@functools.cache
def _readable(
    path: tuple[str, ...], more: tuple[str, ...], home: str, chosen: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Asked for every program that runs, and the same for most: found out once."""
    folders = [Path(name) for name in (*SYSTEM, sys.prefix, sys.base_prefix)]
    folders += chosen
    for name in path:
        folders += _with_libraries(Path(name))
    return _outermost([*folders, *map(Path, more)], home)


@functools.cache
def links(folders: tuple[Path, ...]) -> dict[Path, str]:
    """Those at the root that only lead to others, /bin to usr/bin say, and where."""
    found = [path for path in folders if path.parent == Path("/") and path.is_symlink()]
    return {path: os.readlink(path) for path in found if path.resolve() != path.parent}


@functools.cache
def public(folder: Path) -> tuple[Path, ...]:
    """A folder if all may read all of it, else what of it all may read; links count as nothing."""
    found: list[Path] = []
    whole = True
    for child in sorted(folder.iterdir()):
        mode = child.lstat().st_mode
        if stat.S_ISDIR(mode):
            parts = public(child) if mode & 0o005 == 0o005 else ()
        else:
            parts = (child,) if mode & 0o004 else ()
        whole &= parts == (child,)
        found += () if stat.S_ISLNK(mode) else parts
    return (folder,) if whole else tuple(found)


def _places() -> tuple[str, tuple[Path, ...]]:
    return os.path.expanduser("~"), tuple(toolchains().values())


def around(program: str) -> tuple[Path, ...]:
    """What a program of ours, or one that is found on PATH, is read from."""
    found = shutil.which(program)
    return () if found is None else _around(os.path.realpath(found), os.path.expanduser("~"))


@functools.cache
def _around(program: str, home: str) -> tuple[Path, ...]:
    return _outermost(_with_libraries(Path(program).parent), home)


def toolchains() -> dict[str, Path]:
    """Variables that say where toolchains are, and the folders, as far as they exist."""
    places = {name: os.environ.get(name, place) for name, place in TOOLCHAINS.items()}
    found = {name: Path(os.path.expanduser(place)) for name, place in places.items()}
    return {name: place for name, place in found.items() if place.is_dir()}


def _listed(variable: str) -> tuple[str, ...]:
    names = os.environ.get(variable, "").split(os.pathsep)
    return tuple(name for name in names if os.path.isabs(name))


def _with_libraries(folder: Path) -> list[Path]:
    return [folder, *(folder.parent / name for name in BESIDE)]


def _outermost(folders: Iterable[Path], home: str) -> tuple[Path, ...]:
    """Those that exist, as named and as they are reached, without those that lie in others."""
    inside = Path(home).resolve()
    found = {path for folder in folders for path in (folder, folder.resolve())}
    found = {path for path in found if path.exists() and not inside.is_relative_to(path.resolve())}
    return tuple(sorted(path for path in found if not found.intersection(path.parents)))


def mounts(folder: Path) -> Iterator[Path]:
    """A folder; where others than its owner may not enter it, what lies in it."""
    if folder.is_dir() and folder.stat().st_mode & 0o005 != 0o005:
        yield from folder.iterdir()
    else:
        yield folder


def give(folder: Path, user: int, group: int) -> None:
    """Make all of a folder someone's; links are not followed."""
    os.chown(folder, user, group)
    for path in below(folder):
        with contextlib.suppress(FileNotFoundError):
            os.chown(path, user, group, follow_symlinks=False)


def below(folder: Path) -> Iterator[str]:
    """All that lies in a folder, but for what lies too deep to have a path."""
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if len(os.fsencode(entry.path)) >= LONGEST_PATH:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                yield entry.path


@contextlib.contextmanager
def scratch(prefix: str, around: Path | None = None) -> Iterator[Path]:
    """A new folder, `around` it where temporary ones lie if not said; it is removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=around))
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder with all that a stranger put there: however deep, and locked."""
    try:
        if os.path.lexists(folder):
            shutil.rmtree(folder)
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            words = [*command, "--", str(folder)]
            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
