"""Taking a submission in: a folder of its own, whatever it came as, and the hash of its content."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from grader.classes.roster import ARCHIVES, Entry, archive_suffix, is_seen, shown
from grader.classes.unpack import Allowance, Refused, expect_links_inside, unpack
from grader.sandbox.world import remove, scratch
from grader.submission import FILE

LEFT_OUT = (".git", "__MACOSX", ".DS_Store")
"""What version control and archivers add to a folder."""

CLONE_SECONDS = 300.0
_GIT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}


def folder_name(name: str) -> str:
    """A name for a folder that differs where the names differ, and is harmless."""
    harmless = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name[:40])
    return f"{harmless}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def take_in(entry: Entry, folder: Path) -> str:
    """Put what was handed in at `folder`, in place of what is there; the hash of its content.

    Raises:
        Refused: it is none that may be taken in; `folder` is then gone.
    """
    remove(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with scratch(".taking-", folder.parent) as place:
        raw, clean = place / "raw", place / "clean"
        try:
            if not all(map(is_seen, entry.name)):
                raise Refused("has an odd name")
            copy_tree(_root(_fetched(entry, raw)), clean)
        except OSError as error:
            raise Refused(f"cannot be read: {error.strerror or error}") from None
        clean.rename(folder)
    return digest(folder)


def _fetched(entry: Entry, raw: Path) -> Path:
    """The folder that the source is, or was made into."""
    source = Path(entry.source)
    if entry.is_git:
        _clone(entry.source, raw)
        return raw
    if source.is_dir():
        return source
    if source.is_file() and archive_suffix(source.name):
        raw.mkdir()
        unpack(source, raw)
        return raw
    known = ", ".join(ARCHIVES)
    what = source.name if source.exists() else f"{entry.source}, which does not exist"
    raise Refused(f"expected a folder, an archive ({known}) or a git repository, got {shown(what)}")


def _clone(url: str, target: Path) -> None:
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.symlinks=true", "clone"]
    command += ["--quiet", "--depth", "1", "--no-recurse-submodules", "--", url, str(target)]
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **_GIT},
            start_new_session=True,
        ) as process:
            try:
                _, said = process.communicate(timeout=CLONE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise Refused(f"cannot be cloned: more than {CLONE_SECONDS:g} s") from None
    except FileNotFoundError:
        raise Refused("cannot be cloned: there is no git here") from None
    if process.returncode:
        words = said.decode("utf-8", "replace").strip().splitlines() or ["git does not say why"]
        raise Refused(f"cannot be cloned: {shown(words[-1].removeprefix('fatal: '))}")


def _root(folder: Path) -> Path:
    """The folder itself, or the only one in it, as archives of a folder have it."""
    for _ in range(Allowance.depth):
        found = [path for path in folder.iterdir() if path.name not in LEFT_OUT]
        (only,) = found if len(found) == 1 else (folder / FILE,)
        if only.name == FILE or only.is_symlink() or not only.is_dir():
            break
        folder = only
    return folder


def copy_tree(source: Path, target: Path) -> None:
    """Copy files, folders and links inside; Refused at anything else or at too much of it."""
    allowance = Allowance()
    target.mkdir()
    for path, status in _members(source):
        place = target / allowance.admit(str(path.relative_to(source)), _bytes(status))
        if stat.S_ISDIR(status.st_mode):
            place.mkdir()
        elif stat.S_ISLNK(status.st_mode):
            place.symlink_to(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            shutil.copyfile(path, place, follow_symlinks=False)
            place.chmod(0o755 if status.st_mode & 0o111 else 0o644)
            os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        else:
            raise Refused(f"holds {place.relative_to(target)}, which is no file, folder or link")
    expect_links_inside(target)


def _bytes(status: os.stat_result) -> int:
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _members(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """All below a folder, parents first, sorted; links are not followed."""
    for place, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        for name in sorted((*folders, *files)):
            if name not in LEFT_OUT:
                yield Path(place, name), Path(place, name).lstat()


def _raise(error: OSError) -> None:
    raise error


def digest(folder: Path) -> str:
    """SHA-256 of names, kinds, executable bits and bytes of all below a folder."""
    whole = hashlib.sha256()
    for path, status in _members(folder):
        if stat.S_ISLNK(status.st_mode):
            content = os.fsencode(path.readlink())
        else:
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        kind = stat.S_IFMT(status.st_mode) | (status.st_mode & 0o100)
        for part in (str(path.relative_to(folder)).encode(), b"%o" % kind, content):
            whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()
