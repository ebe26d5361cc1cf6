"""The C compiler: which one, with which flags, and what to say when it fails."""

from __future__ import annotations

import functools
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FLAGS = (
    "-std=gnu11",
    "-O2",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fopenmp",
    "-shared",
    "-fPIC",
)
"""What every translation unit is compiled with."""

CANDIDATES = ("gcc", "clang")
SHOWN_ERRORS = 5
SHOWN_AROUND = 2


class BuildError(Exception):
    """There is no C compiler, or it rejected a translation unit."""


@dataclass(frozen=True)
class Toolchain:
    """A C compiler.

    Attributes:
        command: its path, and arguments that CC gave.
        version: the first line that it prints about itself.
    """

    command: tuple[str, ...]
    version: str

    @property
    def identity(self) -> str:
        """Everything but source and flags that decides what it makes: compiler and processor."""
        return "\n".join([*self.command, self.version, processor()])

    def compile(self, source: Path, target: Path, flags: Sequence[str] = FLAGS) -> None:
        """Compile a file; a BuildError shows the first errors and the lines around them."""
        argv = [*self.command, *flags, "-o", str(target), str(source), "-lm"]
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise BuildError(_explain(source, argv, done.stderr or done.stdout))


def find_toolchain() -> Toolchain:
    """CC if it is set, else gcc, else clang, as found on PATH."""
    chosen = os.environ.get("CC", "").strip()
    return _find(chosen, os.environ.get("PATH", os.defpath))


@functools.lru_cache(maxsize=16)
def _find(chosen: str, path: str) -> Toolchain:
    for words in [shlex.split(chosen)] if chosen else [[name] for name in CANDIDATES]:
        found = shutil.which(words[0], path=path)
        if found is not None:
            command = (found, *words[1:])
            return Toolchain(command, _version(command))
    if chosen:
        raise BuildError(f"expected a C compiler, but CC={chosen} is not on PATH")
    raise BuildError(
        "expected a C compiler, but neither gcc nor clang is on PATH: install the Debian package "
        "gcc (or clang), or name another compiler in CC"
    )


def _version(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise BuildError(f"expected {command[0]} to be a C compiler, but {error}") from error
    if done.returncode:
        raise BuildError(f"expected {shlex.join(command)} to be a C compiler: --version fails")
    return done.stdout.partition("\n")[0]


@functools.cache
def processor() -> str:
    """What -march=native depends on: the architecture, the model and its features."""
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    first = text.partition("\n\n")[0].splitlines()
    facts = [line for line in first if line.partition(":")[0].strip() in wanted]
    return "\n".join([platform.machine(), platform.processor(), *facts])


def _explain(source: Path, argv: Sequence[str], output: str) -> str:
    """The first errors, the numbered lines around them, and how to see the rest."""
    lines = source.read_text(encoding="utf-8").splitlines()
    found = re.findall(r"^[^:\n]+:(\d+):\d+: (?:fatal )?error: (.*)$", output, re.MULTILINE)
    parts = [f"the C compiler rejected {source}:"]
    for number, message in found[:SHOWN_ERRORS]:
        parts += [f"  line {number}: {message}", *_excerpt(lines, int(number))]
    if not found:
        parts += [f"  {line}" for line in output.splitlines()[:20]]
    elif len(found) > SHOWN_ERRORS:
        parts.append(f"  and {len(found) - SHOWN_ERRORS} more errors")
    return "\n".join([*parts, f"  command: {shlex.join(argv)}"])


def _excerpt(lines: Sequence[str], number: int) -> list[str]:
    first = max(1, number - SHOWN_AROUND)
    shown = range(first, min(len(lines), number + SHOWN_AROUND) + 1)
    return [f"  {'>' if n == number else ' '} {n:5} | {lines[n - 1][:200]}" for n in shown]


def failed_source(directory: Path, source: str, key: str) -> Path:
    """Keep a source that did not compile, at a path that the error can name."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{key[:16]}.c"
        path.write_text(source, encoding="utf-8")
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="uops-")) / "program.c"
        path.write_text(source, encoding="utf-8")
    return path
