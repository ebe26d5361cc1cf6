"""Archives of strangers: unpacked into a folder, or refused with a sentence.

Nothing is placed outside of the folder or through a link; no more is written than an
`Allowance` grants, whatever the archive says of itself.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from grader.classes.roster import archive_suffix, is_seen, shown

MIB = 1 << 20


class Refused(Exception):  # noqa: N818 - a verdict, not an error
    """Something is not taken in; the sentence says what it holds."""


@dataclass
class Allowance:
    """How much may still be taken in, and what names may look like.

    Attributes:
        size: bytes of all files together.
        files: how many files and folders.
        ratio: bytes that one byte of an archive may become, from the first MiB on.
    """

    size: int = 256 * MIB
    files: int = 20_000
    ratio: int = 100
    depth: int = 32
    longest: int = 512

    def admit(self, name: str, size: int) -> PurePosixPath:
        """The path of a file or folder that may come in."""
        self.files -= 1
        self.size -= size
        if self.files < 0:
            raise Refused(f"holds more than {type(self).files} files")
        if self.size < 0:
            raise Refused(f"holds more than {type(self).size // MIB} MiB")
        return self.path(name)

    def path(self, name: str) -> PurePosixPath:
        """A name as a path that stays inside."""
        path = PurePosixPath(name)
        if not all(map(is_seen, name)):
            raise Refused(f"holds a file with an odd name, {_brief(name)}")
        if path.is_absolute() or "\\" in name or re.match(r"[A-Za-z]:", name):
            raise Refused(f"holds a file with an absolute or foreign name, {_brief(name)}")
        if ".." in path.parts:
            raise Refused(f"holds a file outside of its folder, {_brief(name)}")
        if len(name.encode()) > self.longest or len(path.parts) > self.depth:
            raise Refused(f"holds a file with a long name, {_brief(name)}")
        return path

    def decompressed(self, archive: Path) -> int:
        """The bytes that an archive may become."""
        return min(self.size, max(MIB, self.ratio * archive.stat().st_size))


def _brief(name: str) -> str:
    text = shown(name)
    return text if len(text) <= 80 else f"{text[:79]}…"


OPENERS: dict[str, Callable[[Path], IO[bytes]]] = {
    ".tar": lambda path: path.open("rb"),
    ".tar.gz": gzip.open,  # type: ignore[dict-item]
    ".tgz": gzip.open,  # type: ignore[dict-item]
    ".tar.bz2": bz2.open,
    ".tar.xz": lzma.open,
}
BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)
UNFIT = (NotImplementedError, ValueError, RuntimeError, OverflowError)


def unpack(archive: Path, folder: Path) -> None:
    """Put an archive's content into an empty folder; Refused if it holds what it must not."""
    allowance = Allowance()
    suffix = archive_suffix(archive.name)
    if archive.stat().st_size > allowance.size:
        raise Refused(f"is larger than {allowance.size // MIB} MiB")
    try:
        if suffix == ".zip":
            _unzip(archive, folder, allowance)
        else:
            _untar(archive, folder, allowance, OPENERS[suffix or ""])
    except (*BROKEN, *UNFIT) as error:
        why = _brief(str(error)) or type(error).__name__
        raise Refused(f"is no archive that can be read: {why}") from None


class _Counted:
    """A stream of which no more is read than is granted: a bomb is not even skipped through."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self.stream = stream
        self.left = most
        self.most = most

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise Refused(
                f"becomes more than {self.most // MIB} MiB, which its size does not allow"
            )
        return data


def _untar(
    archive: Path, folder: Path, allowance: Allowance, opener: Callable[[Path], IO[bytes]]
) -> None:
    with opener(archive) as stream:
        counted = _Counted(stream, allowance.decompressed(archive) + MIB)
        with tarfile.open(fileobj=counted, mode="r|") as tar:  # type: ignore[call-overload]
            for member in tar:
                path = allowance.admit(member.name, member.size)
                _expect_ordinary(member, path)
                _expect_free(folder, path, is_folder=member.isdir())
                _extract(tar, member, folder, path)


def _expect_ordinary(member: tarfile.TarInfo, path: PurePosixPath) -> None:
    known = member.isreg() or member.isdir() or member.issym() or member.islnk()
    if not known or member.issparse():
        raise Refused(f"holds {path}, which is no file, folder or link")


def _extract(
    tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, path: PurePosixPath
) -> None:
    """One member, without tarfile's filters, which Python has from 3.11.4 on."""
    place = folder / path
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
    elif source := tar.extractfile(member) if member.isreg() else None:
        _write(source, place, executable=bool(member.mode & 0o100))
        with contextlib.suppress(OSError, OverflowError):
            os.utime(place, (member.mtime, member.mtime))  # `make` compares them
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        _link(member, folder, place)


def _link(member: tarfile.TarInfo, folder: Path, place: Path) -> None:
    """A symbolic link, whose target counts from where it stands, or a hard one."""
    target = (place.parent if member.issym() else folder) / member.linkname
    real = Path(os.path.realpath(target))
    if os.path.isabs(member.linkname) or not real.is_relative_to(folder.resolve()):
        raise Refused(f"holds {_brief(member.name)}, a link to a place outside")
    if member.issym():
        place.symlink_to(member.linkname)
    elif real.is_file():
        os.link(real, place)
    else:
        raise Refused(f"holds {_brief(member.name)}, a link to no file of it")


def _expect_free(folder: Path, path: PurePosixPath, *, is_folder: bool) -> None:
    """Nothing is written over something else, and nothing through a link."""
    for place in (*reversed((folder / path).parents), folder / path):
        if not place.is_relative_to(folder) or place == folder:
            continue
        may_be = place.is_dir() and (is_folder or place != folder / path)
        if place.is_symlink() or (place.exists() and not may_be):
            raise Refused(f"holds {_brief(str(path))} twice, or through a link")


def _unzip(archive: Path, folder: Path, allowance: Allowance) -> None:
    most = allowance.decompressed(archive)
    with zipfile.ZipFile(archive) as zipped:
        members = zipped.infolist()
        if sum(member.file_size for member in members) > most:
            raise Refused(f"becomes more than {most // MIB} MiB, which its size does not allow")
        for member in members:
            path = allowance.admit(member.orig_filename, member.file_size)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise Refused(f"holds {path}, which is no file or folder")
            if member.flag_bits & 1:
                raise Refused("is protected by a password")
            _expect_free(folder, path, is_folder=member.is_dir())
            if member.is_dir():
                (folder / path).mkdir(parents=True, exist_ok=True)
                continue
            with zipped.open(member) as source:  # no more of it than the size that it names
                _write(source, folder / path, executable=bool(member.external_attr >> 16 & 0o111))


def _write(source: IO[bytes], place: Path, *, executable: bool) -> None:
    """A file that is not there yet."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as target:
        shutil.copyfileobj(source, target)
    place.chmod(0o755 if executable else 0o644)


def expect_links_inside(folder: Path) -> None:
    """Every symbolic link of a tree leads to something in it."""
    whole = folder.resolve()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if not path.is_symlink():
                continue
            inside = path.relative_to(folder)
            try:
                if not path.resolve().is_relative_to(whole):
                    raise Refused(f"holds {inside}, a link to a place outside")
                path.resolve(strict=True)
            except (OSError, RuntimeError):
                raise Refused(f"holds {inside}, a link to nothing") from None
