"""Closes its own process off by Landlock, then becomes another program.

    python -I -S landlock.py '{"read": [PATH…], "write": [PATH…], "names": [PATH…]}' PROGRAM …

Below `read` files can be read and run, below `write` anything but devices can be made too, below
`names` folders can be listed. All else is out of reach, and so are the network and the processes
that are not the program's own, as far as the kernel's version of Landlock knows of them
(`stays_open`). No version of it knows of UDP, of sockets that have a path, or of changes to a
file's mode, owner or times. Run as root, the program loses what root may do beyond any other owner
of its files.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION, BENEATH = 1, 1
DROP_BOUND, NO_NEW_PRIVILEGES = 24, 38
CAPABILITIES = range(64)

EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHARACTER, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, CONTROL = 1 << 14, 1 << 15
READS = EXECUTE | READ_FILE | READ_FOLDER
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | CONTROL
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights to files there are, by version; 16 in later ones."""

LATER = (
    (3, "files elsewhere can be cut to nothing"),
    (4, "TCP is open"),
    (6, "signals reach processes of the same user"),
)
"""What is not closed before a version."""

_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: int | bytes | None) -> int:
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def version() -> int:
    """The kernel's version of Landlock, 0 if it has none."""
    try:
        return _call(CREATE_RULESET, None, 0, VERSION)
    except OSError:
        return 0


def stays_open() -> tuple[str, ...]:
    """What this kernel's Landlock cannot close, in words."""
    found = version()
    return tuple(words for first, words in LATER if found < first)


def restrict(read: Iterable[str], write: Iterable[str], names: Iterable[str] = ()) -> None:
    """Close this process off for good; OSError if the kernel does not do it."""
    if not (found := version()):
        raise OSError("the kernel has no Landlock")
    rights = (1 << RIGHTS.get(found, 16)) - 1
    words = [rights] + [0b11] * (found >= 4) + [0b11] * (found >= 6)
    asked = struct.pack(f"{len(words)}Q", *words)
    rules = _call(CREATE_RULESET, asked, len(asked), 0)
    writes = rights & ~(MAKE_CHARACTER | MAKE_BLOCK)
    for paths, allowed in ((read, READS), (write, writes), (names, READ_FOLDER)):
        for path in paths:
            _allow(rules, path, allowed)
    _drop_privileges()
    _call(RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(rules: int, path: str, allowed: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not os.path.isdir(path):
        allowed &= OF_FILES
    _call(ADD_RULE, rules, BENEATH, struct.pack("=Qi", allowed, place), 0)
    os.close(place)


def _drop_privileges() -> None:
    """Nothing that is run from here on is more than its user; root is no more than an owner."""
    for capability in CAPABILITIES if os.geteuid() == 0 else ():
        _libc.prctl(DROP_BOUND, capability, 0, 0, 0)
    if _libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "new privileges cannot be forbidden")


def main() -> None:
    """Restrict this process as the first argument says, and run the others."""
    try:
        restrict(**json.loads(sys.argv[1]))
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        print(f"landlock: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(125)


if __name__ == "__main__":
    main()
