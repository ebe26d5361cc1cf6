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
)
"""What every translation unit is compiled with."""

GCC = ("-fno-gcse",)
"""What gcc is told besides: else, in a long function, it keeps the constants of one loop in the
registers that another needs."""

SHARED = ("-shared", "-fPIC")
"""Makes an object that a running process can load."""

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
        flags: what it is called with.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...] = (*FLAGS, *SHARED)

    @property
    def own(self) -> tuple[str, ...]:
        """Flags that not every compiler knows."""
        return () if "clang" in self.version else GCC

    @property
    def identity(self) -> str:
        """Everything but the source that decides what it makes."""
        return "\n".join([*self.command, self.version, *self.own, *self.flags, processor()])

    def compile(self, text: str, target: Path, keep: Path, *also: Path) -> None:
        """Compile a translation unit (and other files) to `target`.

        Raises:
            BuildError: with the first errors and the lines around them; the source then stays
                in the folder `keep`.
        """
        source = target.with_suffix(".c")
        source.write_text(text, encoding="utf-8")
        files = (str(source), *map(str, also))
        command = [*self.command, *self.own, *self.flags]
        done = _run([*command, "-o", str(target), *files, "-lm"])
        if done.returncode:
            kept = _keep_source(keep, text)
            again = [*command, "-o", os.devnull, str(kept), "-lm"]
            raise BuildError(_explain(text, kept, again, done.stderr or done.stdout))


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


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, errors="replace", check=False, env=_environment()
        )
    except OSError as error:
        raise BuildError(f"expected {argv[0]} to be a C compiler, but {error}") from error


def _environment() -> dict[str, str]:
    """Ours, with messages in English, which we read."""
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def _version(command: tuple[str, ...]) -> str:
    done = _run([*command, "--version"])
    if done.returncode:
        raise BuildError(f"expected {shlex.join(command)} to be a C compiler: --version fails")
    return done.stdout.partition("\n")[0]


@functools.cache
def processor() -> str:
    """What -march=native depends on: the architecture, the model and its features."""
    wanted = {"vendor_id", "cpu family", "model name", "flags"}
    wanted |= {"Features", "CPU implementer", "CPU part"}
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    first = text.partition("\n\n")[0].splitlines()
    facts = [line for line in first if line.partition(":")[0].strip() in wanted]
    return "\n".join([platform.machine(), platform.processor(), *facts])


def _keep_source(folder: Path, text: str) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder, suffix=".c")
    except OSError:
        descriptor, name = tempfile.mkstemp(prefix="uops-", suffix=".c")
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)


def _explain(text: str, kept: Path, argv: Sequence[str], output: str) -> str:
    """The first errors, the numbered lines around them, and how to see the rest."""
    lines = text.splitlines()
    found = re.findall(r"^[^:\n]+:(\d+):\d+: (?:fatal )?error: (.*)$", output, re.MULTILINE)
    parts = [f"the C compiler rejected {kept}"]
    for number, message in found[:SHOWN_ERRORS]:
        parts += [f"  line {number}: {message}", *excerpt(lines, int(number))]
    if not found:
        parts += [f"  {line}" for line in output.splitlines()[:20]]
    elif len(found) > SHOWN_ERRORS:
        parts.append(f"  and {len(found) - SHOWN_ERRORS} more errors")
    return "\n".join([*parts, f"  to see all: {shlex.join(argv)}"])


def excerpt(lines: Sequence[str], number: int) -> list[str]:
    """Line `number` and those around it, numbered, with a mark at the line itself."""
    first = max(1, number - SHOWN_AROUND)
    shown = range(first, min(len(lines), number + SHOWN_AROUND) + 1)
    return [f"  {'>' if n == number else ' '} {n:5} | {lines[n - 1][:200]}" for n in shown]
