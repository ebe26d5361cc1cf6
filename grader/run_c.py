"""Building the C that a compiler emitted, and running it in a child that is not trusted.

The child is a small C program, `harness.c`. It gets arrays as files and leaves arrays as files;
whether they are right is decided here.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grader import forbidden, sandbox
from grader.draws import Array, Inputs
from grader.sandbox import MIB, Completed, Limits
from grader.sandbox.world import scratch
from grader.verdict import Verdict
from week01_uops.node import UOp
from week01_uops.ops import parameters
from week02_render.cache import ObjectCache, cache_directory, content_key
from week02_render.toolchain import BuildError, find_toolchain

FLAGS = ("-O2", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fopenmp")
SANITIZED = (
    *(flag for flag in FLAGS if flag != "-O2"),
    *("-O0", "-g", "-ftrivial-auto-var-init=pattern"),
    *("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
)
"""With AddressSanitizer and UndefinedBehaviorSanitizer; variables begin as a pattern."""

RUNNER = ("-O2", "-fsanitize=address")
BUILD = Limits(seconds=60.0, memory=2048 * MIB, output=MIB, file_size=64 * MIB)
HARNESS = Path(__file__).parent / "harness.c"
LARGEST_SLOT = 1 << 16
FAULT = 3


_REPORT = re.compile(r"runtime error: |ERROR: AddressSanitizer: ")


class RunError(Exception):
    """The C could not be built or run: the verdict, a sentence, and what was said."""

    def __init__(self, verdict: Verdict, sentence: str, stderr: str = "") -> None:
        super().__init__(sentence)
        self.verdict = verdict
        self.sentence = sentence
        self.stderr = stderr


def build(source: str, *, sanitize: bool = False, more: Sequence[str] = ()) -> bytes:
    """The library that one translation unit makes with the course's flags, or with sanitizers.

    Raises:
        RunError: it does not compile, or uses what it must not; `more` are more flags.
    """
    flags = SANITIZED if sanitize else FLAGS
    library = _build(source, [*flags, *more, "-shared", "-fPIC"], ["-lm"])
    if why := forbidden.fault(library):
        raise RunError(Verdict.FORBIDDEN, f"the compiled program {why}")
    return library


def build_runner(path: Path, *, sanitize: bool = False) -> bytes:
    """A program of ours that runs what was built."""
    return _build(path.read_text(), RUNNER if sanitize else RUNNER[:1], ["-ldl"])


def _build(source: str, flags: Sequence[str], libraries: Sequence[str]) -> bytes:
    try:
        toolchain = find_toolchain()
    except BuildError as error:
        raise RunError(Verdict.GRADER, str(error)) from None
    data = source.encode("utf-8", "surrogatepass")

    tools = sandbox.around(toolchain.command[0])

    def compile_to(target: Path) -> None:
        target.with_name("program.c").write_bytes(data)
        command = [*toolchain.command, *toolchain.own, *flags]
        command += ["program.c", "-o", target.name, *libraries]
        run = sandbox.run(command, cwd=target.parent, limits=BUILD, writes=True, reads=tools)
        if run.verdict is not Verdict.OK or run.status:
            raise _build_fault(run)

    key = content_key(data.decode("utf-8", "replace"), *flags, toolchain.identity)
    return ObjectCache(cache_directory() / "grader").get(key, compile_to)


def _build_fault(run: Completed) -> RunError:
    words = run.stderr.decode("utf-8", "replace")
    first = next((line for line in words.splitlines() if "error" in line), "")
    why = run.note or first or f"exit status {run.status}"
    if run.verdict is Verdict.GRADER:
        return RunError(Verdict.GRADER, why)
    return RunError(Verdict.COMPILE_ERROR, f"the C does not compile: {why}", words)


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
            raise RunError(Verdict.GRADER, f"expected slots below {LARGEST_SLOT}, got {count - 1}")
        return Layout(tuple(params.get(slot) for slot in range(count)), program.src)

    def plan(self, threads: int, calls: int) -> str:
        """The harness's description of the arrays."""
        sizes = [-1 if node is None else _bytes(node) for node in (*self.inputs, *self.outputs)]
        numbers = [threads, calls, len(self.inputs), len(self.outputs), *sizes]
        return "\n".join(map(str, numbers)) + "\n"


def _bytes(node: UOp) -> int:
    return math.prod(node.shape) * node.dtype.numpy.itemsize


def run(
    library: bytes,
    program: UOp,
    calls: Sequence[Inputs],
    limits: Limits | None = None,
    threads: int | None = None,
    *,
    sanitize: bool = False,
) -> list[tuple[Array, ...]]:
    """The outputs of the library's program for each call's inputs, in one process.

    Args:
        library: what `build` made.
        program: for the types of inputs and outputs.
        calls: their inputs.
        limits: of the process.
        threads: OMP_NUM_THREADS; if not given, one for each core, four at most.
        sanitize: whether the library was built with sanitizers.

    Raises:
        RunError: it crashed, passed a limit, or touched what it must not.
    """
    layout = Layout.of(program)
    with scratch("grader-arrays-") as folder:
        for number, inputs in enumerate(calls):
            _write(folder / f"in.{number}", layout, inputs)
        _launch(folder, library, layout, len(calls), limits, threads, sanitize=sanitize)
        return [_outputs(folder / f"out.{number}", layout) for number in range(len(calls))]


def workspace(library: bytes, program: UOp, *, sanitize: bool = False) -> int:
    """The bytes of scratch space that the library's program asks for; 0 if it exports no size."""
    with scratch("grader-arrays-") as folder:
        ended = _launch(folder, library, Layout.of(program), 0, None, sanitize=sanitize)
    said = ended.stdout.decode("utf-8", "replace").strip()
    if not said.isdigit():
        raise RunError(Verdict.PROTOCOL, f"expected a size from program_workspace, got {said!r}")
    return int(said)


def _launch(
    folder: Path,
    library: bytes,
    layout: Layout,
    calls: int,
    limits: Limits | None,
    threads: int | None = None,
    *,
    sanitize: bool,
) -> Completed:
    """Run the harness in a folder that holds the arrays of its calls."""
    threads = threads or min(os.cpu_count() or 1, 4)
    (folder / "plan").write_text(layout.plan(threads, calls))
    harness = folder / "harness"
    harness.write_bytes(build_runner(HARNESS, sanitize=sanitize))
    harness.chmod(0o700)
    (folder / "library.so").write_bytes(library)
    command = ["./harness", "./library.so", "plan"]
    ended = sandbox.run(command, cwd=folder, limits=limits or Limits(), writes=True)
    _check(ended)
    return ended


def _write(path: Path, layout: Layout, inputs: Inputs) -> None:
    with path.open("wb") as file:
        for slot, param in enumerate(layout.inputs):
            if param is not None:
                file.write(np.ascontiguousarray(inputs[slot], dtype=param.dtype.numpy).tobytes())


def _check(ended: Completed) -> None:
    if ended.verdict is Verdict.OK and ended.status == 0:
        return
    words = ended.stderr.decode("utf-8", "replace")
    lines = words.strip().splitlines() or [""]
    reported = next(filter(_REPORT.search, lines), None)
    said = reported or lines[-1]
    if said.startswith(("cannot load the library", "expected an exported function")):
        raise RunError(Verdict.COMPILE_ERROR, f"the C does not link: {said}", words)
    if ended.verdict is Verdict.OK:
        known = reported or (ended.status == FAULT and said)
        why = said if known else f"exit status {ended.status} within the call"
        raise RunError(Verdict.CRASH, f"the compiled program: {why}", words)
    why = f"{ended.note}: {said}" if said else ended.note
    raise RunError(ended.verdict, f"the compiled program: {why}", words)


def _size(path: Path) -> int:
    """Bytes of a file that is one, and no link or pipe that the program put in its place."""
    try:
        status = path.lstat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _outputs(path: Path, layout: Layout) -> tuple[Array, ...]:
    wanted, size = sum(map(_bytes, layout.outputs)), _size(path)
    if size != wanted:
        raise RunError(
            Verdict.CRASH,
            f"the compiled program ended its process: expected {wanted} bytes of outputs, "
            f"got {size}",
        )
    data = path.read_bytes()
    found, at = [], 0
    for node in layout.outputs:
        size = _bytes(node)
        flat = np.frombuffer(data[at : at + size], dtype=node.dtype.numpy)
        found.append(flat.reshape(node.shape))
        at += size
    return tuple(found)
