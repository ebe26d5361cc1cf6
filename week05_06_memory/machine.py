"""The machine that code is made for: the one place that holds a constant of hardware.

What a schedule may depend on (cores, vectors, caches, `balance`) is read from the system or
assumed, never measured, so that the same program always compiles to the same text. What is
measured (`peak_flops`, `bandwidth`, `copy_bandwidth`) is for reports.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from week02_render.toolchain import processor
from week05_06_memory.probe import Speed, measured_speed

CPUS = Path("/sys/devices/system/cpu")

CACHES = {"l1": 32 << 10, "l2": 512 << 10, "l3": 0, "line": 64}
"""Bytes assumed of a cache where the system says nothing of any; `l3` 0: there is none."""

BALANCE = {16: 2.0, 32: 4.0, 64: 4.0}
"""Operations in the time of reading a byte, by vector_bytes: rounded, of servers since 2017."""

UNITS = 2
"""Vector units of a core, and loads that it begins in a cycle, of servers since 2013."""

AMD = "AuthenticAMD"

OF_AMD: Mapping[str, Any] = {"ahead": 8192, "ahead_written": 1 << 30, "abreast": 0.95}
"""Measured on Zen 4: from memory shorter rows come by themselves; so does all that is written."""

FORK_CYCLES = 16_000
"""About 5 µs: OpenMP starts threads that wait in one, and on a busy machine in thousands."""

ESTIMATED_BANDWIDTH = 16e9
"""Bytes a second that one core reads where nothing can be measured; the rest by BALANCE."""


class MachineError(ValueError):
    """A description of a machine that does not hold together."""


@dataclass(frozen=True)
class Machine:
    """What a cost model may know of a processor; sizes are in bytes.

    Attributes:
        cores: that a program may use.
        vector_bytes: of one vector register.
        vector_registers: of one core.
        datapath: bytes of a vector that a unit works on at once: a vector of half the size then
            takes half the time.
        l1, l2, l3: the data caches that one core reaches; 0 where there is none.
        line: what moves between memory and caches at once.
        ways: lines that lie a multiple of (l2 / ways) apart and stay in the second cache.
        page: bytes that lie together in memory; lines a multiple of it apart share places in the
            first cache, l1 / page of them.
        balance: float32 operations that one core does in the time of reading one byte.
        memory_byte: cycles in which a core reads a byte from memory.
        units: vector operations that a core begins in one cycle.
        ports: vector loads that it begins in one cycle.
        latency: cycles until the result of an operation can be used.
        begun: the part of an operation on a full vector that any costs at least: each is begun by
            itself.
        scalar: what an operation on a scalar costs of one on a full vector.
        beside: cycles of a load that is hidden behind other work: it may miss.
        behind: cycles of a turn of a loop over several sums that keep units or memory busy; else 1.
        written_line: cycles for each line of the cache that a tile's results touch.
        far_row: cycles of reaching another row of a matrix that the second cache does not hold.
        scattered: cycles of each lane of a vector that is gathered from memory or scattered to it.
        crowded: the same, where the lanes lie so that the first cache does not hold a line of each.
        divided: how much longer memory takes through vectors that a unit works on in parts.
        apart: how much longer memory takes if several rows are read side by side: each is fetched
            ahead by itself, and rows that lie a power of two apart share few lines of a cache.
        abreast: the same of eight rows and more.
        evicted: the part of the time of reading from memory that it takes to read again what was
            driven out of the first cache by it.
        ahead: bytes that a core fetches ahead by itself; of longer rows it has to be told.
        ahead_near: the same where the last cache holds all arrays.
        ahead_written: the same of rows that it will write, and first has to own.
        near_byte, far_byte: the part of the time of reading from a cache, and from memory, that
            computing does not hide.
        spare: registers that a tile leaves free: a C compiler that finds none spills.
        fork_cycles: work, of one core, that is worth starting threads for.
        rates: names and values of the measured properties that are known beforehand.
    """

    cores: int
    vector_bytes: int
    vector_registers: int
    datapath: int
    l1: int
    l2: int
    l3: int
    line: int
    balance: float
    memory_byte: float = 0.125
    units: float = 1.0
    ports: float = 1.0
    latency: float = 4.0
    begun: float = 0.2
    scalar: float = 0.5
    beside: float = 0.1
    behind: float = 0.3
    written_line: float = 0.5
    far_row: float = 4.0
    scattered: float = 1.5
    crowded: float = 16.0
    divided: float = 1.05
    apart: float = 1.25
    abreast: float = 1.25
    evicted: float = 0.35
    ahead: int = 2048
    ahead_near: int = 2048
    ahead_written: int = 2048
    near_byte: float = 0.1
    far_byte: float = 0.4
    spare: int = 2
    ways: int = 8
    page: int = 4096
    fork_cycles: int = FORK_CYCLES
    rates: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if self.vector_bytes not in BALANCE:
            wanted = ", ".join(map(str, BALANCE))
            raise MachineError(f"vector_bytes: expected one of {wanted}, got {self.vector_bytes}")
        if 0 < self.l2 < self.l1 or 0 < self.l3 < self.l2:
            raise MachineError(
                "expected caches that grow with their level, got "
                f"l1 {self.l1}, l2 {self.l2}, l3 {self.l3}"
            )

    @property
    def row(self) -> int:
        """Bytes of the longest row that registers hold beside what is computed of it."""
        return self.vector_registers * self.vector_bytes // 2

    @property
    def caches(self) -> tuple[int, ...]:
        """Bytes of the caches that there are, nearest first."""
        return tuple([size for size in (self.l1, self.l2, self.l3) if size])

    @property
    def peak_flops(self) -> float:
        """Float32 operations that one core does in a second."""
        return self.speeds().peak_flops

    @property
    def bandwidth(self) -> float:
        """Bytes that one core reads from memory in a second."""
        return self.speeds().bandwidth

    @property
    def copy_bandwidth(self) -> float:
        """Bytes that one core reads and writes in a second of copying."""
        return self.speeds().copy_bandwidth

    def speeds(self) -> Speed:
        """What one core does in a second: as given, else measured here, else estimated."""
        given: dict[str, Any] = dict(self.rates)
        if len(given) == len(RATES):
            return Speed(**given, source="given")
        known = _speed(self.vector_bytes, max(self.caches), self.balance)
        source = f"{known.source} but for what is given" if given else known.source
        return replace(known, **given, source=source)

    def measured(self) -> Machine:
        """This machine with its rates written down."""
        speed = self.speeds()
        return replace(self, rates=tuple([(name, getattr(speed, name)) for name in RATES]))

    def to_json(self) -> str:
        """A JSON object with all that is known without measuring."""
        facts = {name: getattr(self, name) for name in (*WHOLE, *REAL)}
        return json.dumps({**facts, **dict(self.rates)})

    @classmethod
    def from_json(cls, text: str) -> Machine:
        """The machine at hand with the values of a JSON object in place of its own.

        Raises:
            MachineError: it is no JSON object, a key is unknown, or a value of a wrong type.
        """
        return _replaced(_detected(_cores()), _load(text))

    def describe(self) -> str:
        """The machine in lines of text; says where its speed is known from."""
        speed = self.speeds()
        sizes = ", ".join(f"L{n} {size >> 10} KiB" for n, size in enumerate(self.caches, 1))
        return "\n".join(
            [
                f"{self.cores} cores, {self.vector_registers} vector registers of "
                f"{self.vector_bytes} bytes, {sizes}, lines of {self.line} bytes",
                f"one core, {speed.source}: {speed.peak_flops / 1e9:.1f} GFLOP/s, reads "
                f"{speed.bandwidth / 1e9:.1f} GB/s, copies {speed.copy_bandwidth / 1e9:.1f} GB/s",
            ]
        )


RATES = tuple([field.name for field in fields(Speed) if field.name != "source"])
WHOLE = tuple([field.name for field in fields(Machine) if field.type == "int"])
REAL = tuple([field.name for field in fields(Machine) if field.type == "float"])


def detect() -> Machine:
    """The machine at hand, with the values of $UOPS_MACHINE in place of what was detected.

    $UOPS_MACHINE is a JSON object or names a file that holds one; $OMP_NUM_THREADS bounds the
    number of cores.

    Raises:
        MachineError: $UOPS_MACHINE is neither, or `Machine.from_json` refuses it.
    """
    return _described(os.environ.get("UOPS_MACHINE", "").strip(), _cores())


@functools.lru_cache(maxsize=16)
def _described(given: str, cores: int) -> Machine:
    if not given:
        return _detected(cores)
    try:
        text = given if given.startswith("{") else Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise MachineError(
            f"UOPS_MACHINE: expected a JSON object or a file that holds one, but {error}"
        ) from error
    return _replaced(_detected(cores), _load(text))


def _cores() -> int:
    """Those that this process may use, at most as many as OMP_NUM_THREADS says."""
    allowed = len(os.sched_getaffinity(0))
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(allowed, int(first) or allowed) if first.isdecimal() else allowed


@functools.lru_cache(maxsize=16)
def _detected(cores: int) -> Machine:
    features = processor()
    vector_bytes, vector_registers = vectors(platform.machine(), features)
    caches: dict[str, Any] = data_caches(CPUS / f"cpu{min(os.sched_getaffinity(0))}" / "cache")
    width = min(vector_bytes, datapath(features))
    at_once = UNITS * width / vector_bytes
    return Machine(
        cores=cores,
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        datapath=width,
        balance=BALANCE[vector_bytes],
        units=at_once,
        ports=at_once,
        **(OF_AMD if vendor(features) == AMD else {}),
        **caches,
    )


def vectors(architecture: str, features: str) -> tuple[int, int]:
    """Bytes of a vector register and the number of them, by the features of a processor."""
    words = set(features.split())
    if architecture not in ("x86_64", "AMD64", "i686"):
        return 16, 32
    if "avx512f" in words:
        return 64, 32
    return (32 if "avx" in words else 16), 16


def datapath(features: str) -> int:
    """Bytes that a vector unit works on at once: AMD's family 25 halves vectors of 64 bytes."""
    return 32 if vendor(features) == AMD and fact(features, "cpu family") == "25" else 64


def vendor(features: str) -> str:
    """The maker of a processor, by its own word; empty if it has none."""
    return fact(features, "vendor_id")


def fact(features: str, name: str) -> str:
    """What a processor's description says of one thing; empty if it says nothing."""
    pairs = (line.partition(":") for line in features.splitlines())
    return next((value.strip() for key, _, value in pairs if key.strip() == name), "")


def data_caches(folder: Path) -> dict[str, int]:
    """Bytes of `l1`, `l2`, `l3` and a `line`, as Linux lists the caches of a core."""
    found = {"l1": 0, "l2": 0, "l3": 0}
    line = 0
    for index in sorted(folder.glob("index*")):
        name, kind = f"l{_word(index / 'level')}", _word(index / "type")
        if kind != "Instruction" and name in found:
            found[name] = _size(_word(index / "size"))
            line = line or _size(_word(index / "coherency_line_size"))
    return {**found, "line": line or CACHES["line"]} if found["l1"] else CACHES


def _word(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _size(text: str) -> int:
    """Bytes: "32K" → 32768."""
    digits, shift = text.rstrip("KMG"), {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
    return int(digits) << shift if digits.isdigit() else 0


@functools.lru_cache(maxsize=16)
def _speed(vector_bytes: int, cache_bytes: int, balance: float) -> Speed:
    found = measured_speed(vector_bytes, cache_bytes)
    peak = ESTIMATED_BANDWIDTH * balance
    return found or Speed(peak, ESTIMATED_BANDWIDTH, ESTIMATED_BANDWIDTH, "estimated")


def _load(text: str) -> dict[str, int | float]:
    """A JSON object whose values have the types of a Machine's properties."""
    expected = "expected a JSON object that describes a machine"
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MachineError(f"{expected}, but {error}") from error
    if not isinstance(given, dict):
        raise MachineError(f"{expected}, got {text.strip()}")
    return {name: _checked(name, value) for name, value in given.items()}


def _checked(name: str, value: object) -> int | float:
    least = 0 if name in ("l2", "l3") else 1
    if name in WHOLE:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        raise MachineError(f"{name}: expected an integer ≥ {least}, got {json.dumps(value)}")
    if name in (*REAL, *RATES):
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
            return float(value)
        raise MachineError(f"{name}: expected a number > 0, got {json.dumps(value)}")
    known = ", ".join([*WHOLE, *REAL, *RATES])
    raise MachineError(f"expected a property of a machine ({known}), got {json.dumps(name)}")


def _replaced(machine: Machine, given: Mapping[str, int | float]) -> Machine:
    rates = tuple([(name, given[name]) for name in RATES if name in given])
    rest: dict[str, Any] = {name: value for name, value in given.items() if name not in RATES}
    return replace(machine, **rest, rates=rates)
