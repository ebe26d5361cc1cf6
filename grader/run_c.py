"""Building the C that a compiler emitted, and running it in a child that is not trusted.

The child is a small C program, `harness.c`. It gets arrays as files and leaves arrays as files;
whether they are right is decided here.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grader import sandbox
from grader.draws import Array, Inputs, parameters
from grader.sandbox import MIB, Completed, Limits
from grader.verdict import Verdict
from week01_uops.node import UOp

FLAGS = ("-O2", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fopenmp")
BUILD = Limits(seconds=60.0, memory=2048 * MIB, output=MIB)
HARNESS = Path(__file__).parent / "harness.c"
KEPT = 256 * MIB
"""Bytes of built libraries that are kept for the next run."""
LARGEST_SLOT = 1 << 16
FAULT = 3


class RunFault(Exception):
    """The C could not be built or run: the verdict, a sentence, and what was said."""

    def __init__(self, verdict: Verdict, sentence: str, stderr: str = "") -> None:
        super().__init__(sentence)
        self.verdict = verdict
        self.sentence = sentence
        self.stderr = stderr


def c_compiler() -> str | None:
    """The C compiler of this machine: $CC, gcc, clang or cc."""
    wanted = (os.environ.get("CC"), "gcc", "clang", "cc")
    return next((found for name in wanted if name and (found := shutil.which(name))), None)


@functools.cache
def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "ml-compilers-grader"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="grader-cache-"))
    _prune(folder)
    return folder


def _prune(folder: Path) -> None:
    """Forget the libraries that were not used for longest."""
    ages = sorted((path.stat() for path in folder.glob("*.so")), key=lambda s: -s.st_mtime)
    used = np.cumsum([stat.st_size for stat in ages])
    if not ages or used[-1] <= KEPT:
        return
    oldest = ages[int(np.searchsorted(used, KEPT))].st_mtime
    for path in folder.glob("*.so"):
        if path.stat().st_mtime <= oldest:
            path.unlink(missing_ok=True)


def build(source: str) -> Path:
    """A library from one translation unit, built with the course's flags."""
    return _build(source, [*FLAGS, "-shared", "-fPIC"], ["-lm"], ".so")


@functools.cache
def _harness() -> Path:
    return _build(HARNESS.read_text(), ["-O2"], ["-ldl"], ".exe")


def _build(source: str, flags: Sequence[str], libraries: Sequence[str], suffix: str) -> Path:
    compiler = c_compiler()
    if compiler is None:
        raise RunFault(Verdict.GRADER, "expected a C compiler (gcc, clang or cc), found none")
    data = source.encode("utf-8", "surrogatepass")
    name = hashlib.sha256(b"\0".join([compiler.encode(), " ".join(flags).encode(), data]))
    path = _cache() / (name.hexdigest()[:32] + suffix)
    if path.exists():
        path.touch()
        return path
    with tempfile.TemporaryDirectory(prefix="grader-build-") as folder:
        (Path(folder) / "program.c").write_bytes(data)
        command = [compiler, *flags, "program.c", "-o", "program", *libraries]
        run = sandbox.run(command, cwd=Path(folder), limits=BUILD)
        if run.verdict is not Verdict.OK or run.status:
            raise _build_fault(run)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        shutil.move(Path(folder) / "program", partial)
        partial.replace(path)
    return path


def _build_fault(run: Completed) -> RunFault:
    words = run.stderr.decode("utf-8", "replace")
    first = next((line for line in words.splitlines() if "error" in line), "")
    why = run.note or first or f"exit status {run.status}"
    if run.verdict is Verdict.GRADER:
        return RunFault(Verdict.GRADER, why)
    return RunFault(Verdict.COMPILE_ERROR, f"the C does not compile: {why}", words)


@dataclass(frozen=True)
class Layout:
    """The arrays of a call: slots from 0 (None where absent), then outputs."""

    inputs: tuple[UOp | None, ...]
    outputs: tuple[UOp, ...]

    @staticmethod
    def of(program: UOp) -> Layout:
        """The arrays that a program takes and returns."""
        params = parameters(program)
        count = max(params, default=-1) + 1
        if count > LARGEST_SLOT:
            raise RunFault(Verdict.GRADER, f"expected slots below {LARGEST_SLOT}, got {count - 1}")
        return Layout(tuple(params.get(slot) for slot in range(count)), program.src)

    def plan(self, threads: int, calls: int) -> str:
        """The harness's description of the arrays."""
        sizes = [-1 if node is None else _bytes(node) for node in (*self.inputs, *self.outputs)]
        numbers = [threads, calls, len(self.inputs), len(self.outputs), *sizes]
        return "\n".join(map(str, numbers)) + "\n"


def _bytes(node: UOp) -> int:
    return math.prod(node.shape) * node.dtype.numpy.itemsize


def run(
    library: Path, program: UOp, calls: Sequence[Inputs], limits: Limits | None = None
) -> list[tuple[Array, ...]]:
    """The outputs of the library's program for each call's inputs, in one process.

    Raises:
        RunFault: it crashed, passed a limit, or touched what it must not.
    """
    layout = Layout.of(program)
    with tempfile.TemporaryDirectory(prefix="grader-arrays-") as name:
        folder = Path(name)
        threads = min(os.cpu_count() or 1, 4)
        (folder / "plan").write_text(layout.plan(threads, len(calls)))
        for number, inputs in enumerate(calls):
            _write(folder / f"in.{number}", layout, inputs)
        command = [str(_harness()), str(library), "plan"]
        ended = sandbox.run(command, cwd=folder, limits=limits or Limits())
        _check(ended)
        return [_outputs(folder / f"out.{number}", layout) for number in range(len(calls))]


def _write(path: Path, layout: Layout, inputs: Inputs) -> None:
    with path.open("wb") as file:
        for slot, param in enumerate(layout.inputs):
            if param is not None:
                file.write(np.ascontiguousarray(inputs[slot], dtype=param.dtype.numpy).tobytes())


def _check(ended: Completed) -> None:
    if ended.verdict is Verdict.OK and ended.status == 0:
        return
    words = ended.stderr.decode("utf-8", "replace")
    said = words.strip().splitlines()[-1] if words.strip() else ""
    if said.startswith(("cannot load the library", "expected an exported function")):
        raise RunFault(Verdict.COMPILE_ERROR, f"the C does not link: {said}", words)
    if ended.verdict is Verdict.OK:
        known = ended.status == FAULT and said
        why = said if known else f"exit status {ended.status} within the call"
        raise RunFault(Verdict.CRASH, f"the compiled program: {why}", words)
    why = f"{ended.note}: {said}" if said else ended.note
    raise RunFault(ended.verdict, f"the compiled program: {why}", words)


def _outputs(path: Path, layout: Layout) -> tuple[Array, ...]:
    wanted = sum(map(_bytes, layout.outputs))
    data = path.read_bytes() if path.is_file() else b""
    if len(data) != wanted:
        raise RunFault(
            Verdict.CRASH,
            f"the compiled program ended its process: expected {wanted} bytes of outputs, "
            f"got {len(data)}",
        )
    found, at = [], 0
    for node in layout.outputs:
        size = _bytes(node)
        flat = np.frombuffer(data[at : at + size], dtype=node.dtype.numpy)
        found.append(flat.reshape(node.shape))
        at += size
    return tuple(found)


