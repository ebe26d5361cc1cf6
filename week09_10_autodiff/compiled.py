"""Programs compiled once for all processes: C text by program, kept with the compiled objects.

An entry's name is a hash of the program's text, of the compiler's own source and of the machine
that it schedules for, so that a change of any of them compiles anew.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from week01_uops.interchange import write
from week01_uops.interface import Artifact
from week01_uops.node import UOp
from week02_render.cache import ObjectCache, content_key
from week05_06_memory.machine import detect
from week09_10_autodiff.compiler import REFERENCE

ROOT = Path(__file__).resolve().parent.parent


def compiled(program: UOp) -> Artifact:
    """The C text of a program at tensor level, from the cache if it was compiled before."""
    key = content_key("C text", _fingerprint(), repr(detect()), write(program))

    def build(target: Path) -> None:
        target.write_text(REFERENCE.compile(program, "c").source, encoding="utf-8")

    return Artifact(ObjectCache().get(key, build).decode())


@functools.cache
def _fingerprint() -> str:
    """A hash of the source of all weeks."""
    state = hashlib.sha256()
    for path in sorted(ROOT.glob("week*/**/*.py")):
        if not path.name.startswith("test_"):
            state.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return state.hexdigest()
