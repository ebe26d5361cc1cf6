"""How far a program is closed off: the levels, which of them work here, and their commands.

bwrap       a world of its own: nothing can be written but its folders, there is no network, no
            other process and no home; root becomes a user that owns nothing else
landlock    the same files by rules of the kernel; `landlock.py` says what it leaves open
rlimit      limits of processor time, files, descriptors and tasks, and no core files
none        a process group and an environment of its own, as with all levels
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.processes import mark
from grader.sandbox import landlock, world
from grader.sandbox.limits import Limits

LEVELS = ("none", "rlimit", "landlock", "bwrap")
"""From the weakest to the strongest."""
CHOICES = ("auto", *reversed(LEVELS))
VARIABLE = "GRADER_SANDBOX"
"""An environment variable: the level that a process and those that it starts use."""

NEEDED = {
    "none": (),
    "rlimit": ("prlimit",),
    "landlock": ("prlimit",),
    "bwrap": ("prlimit", "bwrap", "setpriv"),
}
PATIENCE = 10.0
"""Seconds in which a level must show that it works."""

NAMESPACES = [f"--unshare-{name}" for name in ("ipc", "pid", "net", "uts", "cgroup-try")]
"""A user who is not root gets one of users too."""
PASSED_ON = ("PATH", "OMP_NUM_THREADS")
SCRATCH = ("/tmp", "/dev/shm")
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))

FIRST_USER, USERS = 61184, 4096
"""Numbers of users that run programs for root; each process of ours has one of its own."""
OTHERS_TASKS = 4096
"""What the user who runs the grader may have besides a program's tasks."""
FORKED_AT_ONCE = 512
"""Tasks past the limit, which the watch sees and tells; the kernel allows no more."""


class SandboxError(Exception):
    """A level that does not exist, does not work here, or is not enough; one sentence says so."""


@dataclass(frozen=True)
class Reach:
    """The folders of one run: those that it may write in, and others that it may read."""

    writes: tuple[Path, ...]
    reads: tuple[Path, ...] = ()


def level() -> str:
    """The level in use: what GRADER_SANDBOX names, or the best that works here."""
    wanted = os.environ.get(VARIABLE) or "auto"
    if wanted == "auto":
        return next(name for name in reversed(LEVELS) if not trouble(name))
    if wanted not in LEVELS:
        raise SandboxError(f"expected a sandbox of {', '.join(CHOICES)}, got {wanted}")
    if why := trouble(wanted):
        raise SandboxError(f"expected the sandbox {wanted}, which does not work here: {why}")
    return wanted


def choose(wanted: str | None, least: str | None = None) -> str:
    """Settle the level for this process and those that it starts; SandboxError if it cannot be."""
    if wanted is not None:
        os.environ[VARIABLE] = wanted
    found = level()
    if least is not None and LEVELS.index(found) < LEVELS.index(least):
        why = f": {trouble(least)}" if trouble(least) else ""
        raise SandboxError(f"expected a sandbox of at least {least}, got {found}{why}")
    os.environ[VARIABLE] = found
    return found


def has_scratch() -> bool:
    """Whether programs have folders that nobody else sees, SCRATCH, and that vanish with them."""
    return level() == "bwrap"


@functools.cache
def trouble(name: str) -> str:
    """Why a level does not work here; empty if `true` runs in it."""
    for program in NEEDED[name]:
        if shutil.which(program) is None:
            return f"there is no program {program}"
    if name == "none":
        return ""
    with tempfile.TemporaryDirectory(prefix="grader-run-") as home, tempfile.TemporaryFile() as log:
        try:
            reach = Reach((Path(home).resolve(),))
            lend(Path(home), name)
            command = [*prefix(Limits(), reach, name), "true"]
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=home,
                env=environment(home),
                start_new_session=True,
            )
            code = _within(process, PATIENCE)
        except OSError as error:
            return f"{error}"
        log.seek(0)
        words = log.read().decode("utf-8", "replace").strip().splitlines()
    if code is None:
        return f"`true` does not end in it within {PATIENCE:g} s"
    return (words or [f"`true` ends with exit status {code}"])[-1] if code else ""


def _within(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def prefix(limits: Limits, reach: Reach, name: str) -> list[str]:
    """The command that stands before an untrusted one and closes it off."""
    if name == "none":
        return []
    limited = _limited(limits, reach.writes[0], alone=name == "bwrap" and os.geteuid() == 0)
    if name == "landlock":
        return [*_landlock(reach), *limited]
    return [*_bwrap(limits, reach), *limited] if name == "bwrap" else limited


def _limited(limits: Limits, home: Path, *, alone: bool) -> list[str]:
    tasks = limits.tasks + (FORKED_AT_ONCE if alone else OTHERS_TASKS)
    command = ["prlimit", "--core=0", f"--fsize={limits.file_size}", "--nofile=512"]
    seconds = limits.processor
    processor = [f"--cpu={seconds}:{seconds + 1}"] if seconds else []
    return [*command, f"--nproc={tasks}", f"--rss={mark(str(home))}", *processor, "--"]


def _landlock(reach: Reach) -> list[str]:
    read = [*world.readable(), Path("/proc"), *reach.reads]
    names = list(dict.fromkeys(path.parent for path in reach.reads))
    if os.geteuid() == 0 and world.SETTINGS in read:  # root may read what it owns
        read.remove(world.SETTINGS)
        read += world.public(world.SETTINGS)
        names.append(world.SETTINGS)
    write = [*reach.writes, *filter(os.path.exists, DEVICES)]
    paths = {"read": read, "write": write, "names": names}
    return [sys.executable, "-I", "-S", landlock.__file__, json.dumps(paths, default=str)]


def _bwrap(limits: Limits, reach: Reach) -> list[str]:
    command = list(_world(limits.file_size, world.readable()))
    shown = [path for folder in reach.reads for path in world.mounts(folder)]
    writes = [path for path in reach.writes if path.exists()]
    command += _folders([*reach.reads, *writes, *shown])
    for path in reach.writes:
        command += [] if path in writes else ["--perms", "0777", "--dir", str(path)]
    command += _binds("--ro-bind-try", shown) + _binds("--bind", writes)
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--"]
    return [*command, *_as_nobody(user)] if (user := _borrower("bwrap")) else command


@functools.cache
def _world(scratch: int, shown: tuple[Path, ...]) -> tuple[str, ...]:
    """What every program finds, with scratch space of so many bytes."""
    command = ["bwrap", *NAMESPACES, "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
    for place in SCRATCH:
        command += ["--perms", "1777", "--size", str(scratch), "--tmpfs", place]
    links = world.links(shown)
    command += _folders(shown)
    for path, target in links.items():
        command += ["--symlink", target, str(path)]
    return (*command, *_binds("--ro-bind-try", [path for path in shown if path not in links]))


def _folders(paths: Sequence[Path]) -> list[str]:
    made = dict.fromkeys(parent for path in paths for parent in _entered(path))
    return [word for folder in made for word in ("--dir", folder)]


def _binds(how: str, paths: Sequence[Path]) -> list[str]:
    return [word for path in map(str, paths) for word in (how, path, path)]


def _entered(path: Path) -> Iterator[str]:
    """The folders on the way to a path, which others than root have to pass too."""
    yield from (str(folder) for folder in reversed(path.parents[:-1]))


def _as_nobody(user: int) -> list[str]:
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [*command, "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


def _borrower(name: str) -> int | None:
    """Who runs programs and so has to own what they write in; None for the user of the grader.

    For root that is a user without a name, or at landlock root without its rights.
    """
    if os.geteuid() != 0 or name not in ("bwrap", "landlock"):
        return None
    return FIRST_USER + os.getpid() % USERS if name == "bwrap" else 0


def lend(folder: Path, name: str = "") -> None:
    """Let programs write in a folder, whoever owns it."""
    if (user := _borrower(name or level())) is not None:
        world.give(folder, user, user)


@contextlib.contextmanager
def returned(folders: Sequence[Path]) -> Iterator[None]:
    """Afterwards all that lies in folders that were lent is their owners' again."""
    owners = [folder.stat() for folder in folders]
    try:
        yield
    finally:
        if _borrower(level()) is not None:
            for folder, owner in zip(folders, owners, strict=True):
                world.give(folder, owner.st_uid, owner.st_gid)


def environment(home: str) -> dict[str, str]:
    """All that an untrusted process learns of ours."""
    ours = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    ours |= {name: str(place) for name, place in world.toolchains().items()}
    return {"PATH": os.defpath, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", **ours}
