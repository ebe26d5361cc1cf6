"""A compiled program that is not trusted, timed in a process of its own.

That process holds neither a clock nor a right result: it calls the program when it is told to.
The moment it says that it is done it is stopped, and its outputs are read out of its memory, so
that work left for later is not in them.
"""

from __future__ import annotations

import os
import random
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from grader import sandbox
from grader.bench.contenders import AbsentError, threads
from grader.bench.workload import Array, Result, Workload, result_of
from grader.processes import Family
from grader.run_c import RunError, build, build_runner
from grader.sandbox import MIB, Limits
from grader.verdict import Verdict

HARNESS = Path(__file__).parent / "harness.c"
LIMITS = Limits(seconds=60.0, memory=6144 * MIB, file_size=MIB)
"""For a sample, and for what is kept in memory."""


class Apart:
    """A contender in a process of its own.

    Attributes:
        overhead: seconds that a sample of no calls takes.
    """

    def __init__(self, workload: Workload, inputs: Sequence[Array], source: str) -> None:
        self.inputs = inputs
        self.outs = workload.results()
        library = build(source)
        self.folder = tempfile.TemporaryDirectory(prefix="grader-bench-")
        self._start(library)
        try:
            words = self._answer(b"").split()
            self._addresses = [int(word) for word in words]
            self.overhead = min(self._timed_nothing() for _ in range(5))
        except BaseException:
            self.close()
            raise

    def _start(self, library: bytes) -> None:
        place = Path(self.folder.name)
        (place / "library.so").write_bytes(library)
        (place / "harness").write_bytes(build_runner(HARNESS))
        (place / "harness").chmod(0o700)
        sizes = [f"{x.nbytes}{'' if x.dtype.kind == 'f' else '!'}" for x in self.inputs]
        sizes += [str(out.nbytes) for out in self.outs]
        command = ["./harness", "./library.so", str(threads()), str(len(self.outs)), *sizes]
        with (place / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                [*sandbox.prefix(LIMITS), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=place,
                env=sandbox.environment(self.folder.name),
                start_new_session=True,
            )
        self.family = Family(self.process.pid, self.folder.name)
        self.pids: Sequence[int] = (self.process.pid,)

    def _timed_nothing(self) -> float:
        start = time.perf_counter()
        self.run(0)
        return time.perf_counter() - start

    def run(self, calls: int) -> None:
        """Have the program called; its process is stopped when it says that it is done."""
        os.killpg(self.process.pid, signal.SIGCONT)
        token = str(random.getrandbits(63)).encode()
        got = self._answer(b"%d %s\n" % (calls, token))
        os.killpg(self.process.pid, signal.SIGSTOP)
        if got != token + b"\n":
            raise RunError(Verdict.PROTOCOL, f"the process said {got[:40]!r} instead of being done")

    def _answer(self, said: bytes) -> bytes:
        """One line of the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            os.write(self.process.stdin.fileno(), said)
        except BrokenPipeError:
            raise self._fault() from None
        got = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not got.endswith(b"\n"):
                if not selector.select(LIMITS.seconds):
                    raise RunError(Verdict.TIMEOUT, f"no end after {LIMITS.seconds:g} s")
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                if not chunk:
                    raise self._fault()
                got += chunk
        return got

    def _fault(self) -> RunError:
        code = self.process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        said = (Path(self.folder.name) / "stderr").read_text(errors="replace").strip()
        words = [how, *said.splitlines()[-1:]]
        return RunError(
            Verdict.CRASH, f"the compiled program ended its process: {', '.join(words)}"
        )

    def take(self) -> None:
        """Write the inputs into its memory, and NaN over its outputs."""
        self._forget()
        self._transfer([*self.inputs, *self.outs], writing=True)

    def _forget(self) -> None:
        for out in self.outs:
            out.fill(np.nan)

    def result(self) -> Result:
        """What stood in its memory when it had said that it was done."""
        self._forget()
        self._transfer(self.outs, writing=False)
        memory = sum(process.memory for process in self.family.members())
        if memory > LIMITS.memory:
            raise RunError(Verdict.MEMORY, f"more than {LIMITS.memory // MIB} MiB")
        return result_of(self.outs)

    def _transfer(self, arrays: Sequence[Array], *, writing: bool) -> None:
        """Copy arrays from or to the last addresses."""
        try:
            with open(f"/proc/{self.process.pid}/mem", "r+b" if writing else "rb", 0) as memory:
                for array, address in zip(arrays, self._addresses[-len(arrays) :], strict=True):
                    view = array.reshape(-1).view(np.uint8).data
                    memory.seek(address)
                    moved = 0
                    while moved < len(view):
                        rest = view[moved:]
                        moved += memory.write(rest) if writing else memory.readinto(rest)
        except OSError as error:
            if self.process.poll() is not None:
                raise self._fault() from None
            raise AbsentError(f"the memory of a process cannot be reached here: {error}") from None

    def close(self) -> None:
        """End the process and all that it started."""
        self.family.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.folder.cleanup()
