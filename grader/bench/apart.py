"""A compiled program that is not trusted, timed in a process of its own.

That process holds neither a clock nor a right result: it calls the program when it is told to.
The moment it says that it is done it is stopped, and its outputs are read out of its memory, so
that work left for later is not in them.

No two calls see the same inputs: a bit changes before each, and many before a sample is timed.
The changes follow from a seed that is drawn for each command, so the right result of the last
call is computed here, for inputs that the program had never seen before. A program that knows
neither which call is the last nor its inputs has to compute in all.
"""

from __future__ import annotations

import contextlib
import os
import random
import selectors
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from grader import sandbox
from grader.bench.contenders import AbsentError, threads
from grader.bench.workload import Answer, Answers, Array, Result, Workload, result_of
from grader.processes import close_pipes
from grader.run_c import RunError, build, build_runner
from grader.sandbox import MIB, Limits
from grader.verdict import Verdict

HARNESS = Path(__file__).parent / "harness.c"
LIMITS = Limits(seconds=60.0, memory=6144 * MIB, file_size=MIB)
"""For a sample, and for what is kept in memory."""


PATTERN = 0xA5
MANTISSA = 23
CHANGED = 1024
"""Of so many words one is changed before a sample is timed."""

LONG = 0.5
"""Seconds for a right result, from which on not every one is computed."""

SECRET = random.SystemRandom()
LOAD = -1
SIGNALLED = 128
"""And the signal: the exit status of what stands before a program that died of one."""


class Apart:
    """A contender in a process of its own.

    Attributes:
        overhead: seconds that a sample of no calls takes, before there is a program.
    """

    def __init__(
        self,
        workload: Workload,
        inputs: Sequence[Array],
        source: str,
        limits: Limits = LIMITS,
    ) -> None:
        self.limits = limits
        self.workload = workload
        self.inputs = inputs
        self.outs = workload.results()
        self._changing = [x for x in inputs if x.dtype.kind == "f"]
        self._words = sum(x.nbytes // 4 for x in self._changing)
        self._changes: list[Array] = []
        self._answered = 0.0
        library = build(source)
        self.folder = tempfile.TemporaryDirectory(prefix="grader-bench-")
        self._start(library)
        try:
            said = [int(word) for word in self._answer(b"").split()]
            self._addresses, self._rooms = said[::2], said[1::2]
            self._find()
            self.overhead = min(self._timed_nothing() for _ in range(5))
            self._command(LOAD)
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
            self.process, self.family = sandbox.start(
                command, place, limits=self.limits, stderr=stderr
            )

    def _find(self) -> None:
        """Which process it is: what closes it off may stand between."""
        self._first = {member.pid for member in self.family.members()}
        named = [pid for pid in self._first if _name(pid) == "harness"]
        if len(named) != 1:
            raise AbsentError(f"expected one process of the program, found {len(named)}")
        self.pids: Sequence[int] = named

    def _timed_nothing(self) -> float:
        start = time.perf_counter()
        self.run(0)
        return time.perf_counter() - start

    def ready(self) -> None:
        """Change many words of the inputs."""
        self._command(0, self._words // CHANGED + 1)

    def run(self, calls: int) -> None:
        """Have the program called; its process is stopped when it says that it is done."""
        self._command(calls)

    def _command(self, calls: int, changes: int = 0) -> None:
        self._signal(signal.SIGCONT)
        seed, token = SECRET.getrandbits(63), SECRET.getrandbits(63)
        got = self._answer(b"%d %d %d %d\n" % (calls, changes, seed, token))
        self._signal(signal.SIGSTOP)
        if got != b"%d\n" % token:
            raise RunError(Verdict.PROTOCOL, f"the process said {got[:40]!r} instead of being done")
        self._changes.append(random_numbers(seed, changes + max(calls, 0)))

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pids[0], number)

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
                if not selector.select(self.limits.seconds):
                    raise RunError(Verdict.TIMEOUT, f"no end after {self.limits.seconds:g} s")
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                if not chunk:
                    raise self._fault()
                got += chunk
        return got

    def _fault(self) -> RunError:
        code = self.process.wait()
        number = -code if code < 0 else code - SIGNALLED
        known = number in {int(one) for one in signal.Signals}
        how = signal.Signals(number).name if known else f"exit status {code}"
        said = (Path(self.folder.name) / "stderr").read_text(errors="replace").strip()
        words = [how, *said.splitlines()[-1:]]
        return RunError(
            Verdict.CRASH, f"the compiled program ended its process: {', '.join(words)}"
        )

    def take(self) -> None:
        """Write the inputs into its memory, and NaN over its outputs."""
        self._changes = []
        self._forget()
        self._transfer([*self.inputs, *self.outs], self._addresses, writing=True)

    def _forget(self) -> None:
        for out in self.outs:
            out.fill(np.nan)

    def result(self) -> Result:
        """What stood in its memory when it had said that it was done."""
        self._forget()
        self._transfer(self.outs, self._addresses[len(self.inputs) :], writing=False)
        return result_of(self.outs)

    def fault(self, answer: Answer | Answers) -> str:
        """What is wrong with the result for the inputs as they are by now; empty if it is right.

        Raises:
            RunError: the process wrote where it must not, or is not alone any more.
        """
        self._expect_alone()
        found = self.result()
        self._change()
        try:
            self._expect_unwritten()
            return self._compared(found, answer)
        finally:
            self._change()

    def _compared(self, found: Result, answer: Answer | Answers) -> str:
        """What is wrong with it; where the right result takes long, in a secret half of cases."""
        if not self._changing:
            return answer.fault(found)
        if self._answered > LONG and SECRET.random() < 0.5:
            return ""
        start = time.perf_counter()
        answer = self.workload.answer(list(self.inputs))
        self._answered = time.perf_counter() - start
        return answer.fault(found)

    def _expect_alone(self) -> None:
        members = self.family.members()
        if others := {member.pid for member in members} - self._first:
            raise RunError(Verdict.CRASH, f"the compiled program started {len(others)} process(es)")
        if sum(process.memory for process in members) > self.limits.memory:
            raise RunError(Verdict.MEMORY, f"more than {self.limits.memory // MIB} MiB")

    def _change(self) -> None:
        """Make the changes that were made there; once more, and they are undone."""
        drawn = np.concatenate([np.zeros(0, np.uint64), *self._changes])
        at = (drawn >> np.uint64(8)) % np.uint64(max(self._words, 1))
        bits = np.uint32(1) << ((drawn & np.uint64(0xFF)) % np.uint64(MANTISSA)).astype(np.uint32)
        first = 0
        for array in self._changing:
            flat = array.reshape(-1).view(np.uint32)
            here = (at >= first) & (at < first + flat.size)
            np.bitwise_xor.at(flat, at[here] - np.uint64(first), bits[here])
            first += flat.size

    def _expect_unwritten(self) -> None:
        """The inputs are as they should be, and so is the room behind all arrays."""
        arrays = [*self.inputs, *self.outs]
        places = zip(arrays, self._addresses, self._rooms, strict=True)
        for number, (array, at, room) in enumerate(places):
            got = np.empty(room, np.uint8)
            self._transfer([got], [at], writing=False)
            due = np.full(room, PATTERN, np.uint8)
            mine = number < len(self.inputs)
            here = array.reshape(-1).view(np.uint8) if mine else got[: array.nbytes]
            due[: array.nbytes] = here
            for byte in np.flatnonzero(got != due)[:1]:
                where = "write to" if byte < array.nbytes else "write outside"
                name = f"input {number}" if mine else f"output {number - len(self.inputs)}"
                why = f"{where} {name}, at byte {byte} of {array.nbytes}"
                raise RunError(Verdict.CRASH, f"the compiled program: {why}")

    def _transfer(
        self, arrays: Sequence[Array], addresses: Sequence[int], *, writing: bool
    ) -> None:
        """Copy arrays from or to addresses."""
        try:
            with open(f"/proc/{self.pids[0]}/mem", "r+b" if writing else "rb", 0) as memory:
                for array, address in zip(arrays, addresses, strict=True):
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
        close_pipes(self.process)
        self.folder.cleanup()


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def random_numbers(seed: int, count: int) -> Array:
    """The first numbers of SplitMix64 (Steele, Lea, Flood, 2014), as the harness draws them."""
    z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)
