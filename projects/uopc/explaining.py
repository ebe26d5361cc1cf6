"""`uopc explain`: a kernel's loops, roles, roofline, tiles and steps, as text and as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from projects.uopc.expressions import SIGNS, text_of
from projects.uopc.nests import kernel_lines
from week01_uops.node import UOp
from week02_render.ops import END, STORE
from week05_06_memory.explain import Explanation, Tiling, role
from week05_06_memory.machine import Machine
from week05_06_memory.roles import Access, Nest
from week05_06_memory.schedule import show, to_json
from week05_06_memory.tile import Tile

ROLES = {"reuse": "green", "contiguous": "cyan", "strided": "yellow", "irregular": "red"}

LEGEND = """\
What a loop is to an access, from one iteration to the next:
  reuse       the same element: worth a register, shared by the copies of a tile
  contiguous  its neighbour: worth a vector
  n apart     n elements further on: worth packing, if it is read again
  irregular   no fixed distance: an index is loaded or computed
A loop marked Σ or max is reduced; a dash: the access stands outside of it."""


def counter(item: UOp) -> str:
    """The name of a RANGE."""
    return f"i{item.arg.id}"


def title(nest: Nest) -> str:
    """What a nest computes: the places it stores to, or the reduction."""
    if nest.root.op is END:
        stores = [a.node for a in nest.accesses if a.writes] or [
            n for n in nest.nodes if n.op is STORE
        ]
        return ", ".join(dict.fromkeys(text_of(n.src[0]) for n in stores))
    sign = SIGNS[nest.root.arg.op] if nest.sums else ""
    return f"{sign}[{', '.join(map(counter, nest.summed))}]"


def access_text(access: Access) -> str:
    """The place that an access reads or writes."""
    return text_of(access.node.src[0])


def quantity(value: float) -> str:
    """A count to three digits: 3.93 M."""
    for unit in ("", " k", " M", " G", " T"):
        if abs(value) < 1000 or unit == " T":
            return f"{value:.3g}{unit}"
        value /= 1000
    return ""


def size(value: float) -> str:
    """Bytes: 193 KiB."""
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


def seconds(value: float) -> str:
    """A time: 36.5 µs."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


class Explainer:
    """Prints explanations for people."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def _print(self, line: str, style: str = "") -> None:
        self.console.print(Text(line, style=style), soft_wrap=True)

    def start(self, machine: Machine) -> None:
        """The machine, and the words used."""
        self._print(machine.describe(), "dim")
        self._print("")
        self._print(LEGEND, "dim")

    def kernel(self, told: Explanation) -> None:
        """All about one kernel."""
        done = told.done
        self._print("")
        self._print(f"━━ kernel {done.kernel}", "bold")
        self._print("\n".join(kernel_lines(done.before, done.kernel)))
        self._print("\nWho moves with which loop", "bold")
        for nest in told.nests:
            self._roles(nest)
        self._roofline(told)
        self._tiles(told)
        self._steps(told)
        self._print("\nAs arranged", "bold")
        self._print("\n".join(kernel_lines(done.after, done.kernel)))

    def _roles(self, nest: Nest) -> None:
        loops = (*nest.results, *nest.summed)
        if not loops:
            return
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column(Text(title(nest)))
        for item in loops:
            sign = f"{SIGNS[nest.sums[0].arg.op]} " if item in nest.summed else ""
            table.add_column(f"{sign}{counter(item)} ({item.arg.size})")
        for access in nest.accesses:
            cells = [_cell(access, item, nest) for item in loops]
            does = "store" if access.writes else "load"
            table.add_row(Text(f"  {does} {access_text(access)}"), *cells)
        self.console.print(table)

    def _roofline(self, told: Explanation) -> None:
        work, machine = told.work, told.machine
        fits = [f"L{n}" for n, cache in enumerate(machine.caches, 1) if work.bytes <= cache]
        self._print("\nThe roofline", "bold")
        self._print(
            f"  {quantity(work.operations)} operations at {quantity(machine.peak_flops)}FLOP/s "
            f"take {seconds(told.compute_seconds)}"
        )
        self._print(
            f"  {size(work.read)} read and {size(work.written)} written at "
            f"{quantity(machine.bandwidth)}B/s take {seconds(told.memory_seconds)}, from memory; "
            f"{f'all of it fits {fits[0]}' if fits else 'no cache holds all of it'}"
        )
        if work.intensity is not None:
            turning = machine.peak_flops / machine.bandwidth
            least = seconds(told.roofline_seconds)
            self._print(
                f"  {work.intensity:.3g} operations a byte, where the machine does {turning:.3g} "
                f"in the same time: bound by {told.bound}, {least} at least"
            )
        if told.tilings and told.share is not None:
            self._print(
                f"  the model expects {seconds(told.tile_seconds)} in the tiles below: "
                f"{told.share:.0%} of the roofline{self._compared(told)}"
            )

    def _compared(self, told: Explanation) -> str:
        """What the model says of the default schedule, if another was given."""
        if told.done.decisions or not told.done.steps:
            return ""
        return f"; of the default schedule {seconds(told.default.tile_seconds)}"

    def _tiles(self, told: Explanation) -> None:
        if not told.tilings:
            return
        self._print(
            "\nThe tiles, by the loops before they are split, "
            "and the cycles of one turn of the innermost loop",
            "bold",
        )
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("nest", "tile", "arithmetic", "loads", "latency", "memory"):
            table.add_column(name, justify="left" if name in ("nest", "tile") else "right")
        table.add_column("bound by")
        table.add_column("registers", justify="right")
        table.add_column("all turns", justify="right")
        for item in told.tilings:
            table.add_row(
                Text(title(item.nest)), tile_text(item.tile), *_estimate_cells(item, told)
            )
        self.console.print(table)
        for item in told.tilings:
            self._order(item, told)

    def _order(self, item: Tiling, told: Explanation) -> None:
        if item.order is None:
            return
        if len(item.order.loops) > 1:
            loops = ", ".join(map(counter, item.order.loops))
            self._print(f"  {title(item.nest)}: loops over tiles in the order {loops}")
        for packing in item.order.packings:
            self._print(f"  {access_text(packing.access)} is packed: {packing.because}")

    def _steps(self, told: Explanation) -> None:
        if not told.done.steps:
            return
        self._print("\nThe schedule", "bold")
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(justify="right")
        table.add_column()
        if any(item.because for item in told.done.steps):
            table.add_column(style="dim")
        for place, item in enumerate(told.done.steps, 1):
            row = (str(place), Text(show(item.step)), item.because)
            table.add_row(*row[: len(table.columns)])
        self.console.print(table)


def _cell(access: Access, item: UOp, nest: Nest) -> Text:
    found = role(access, item, nest)
    if found is None:
        return Text("–", style="dim")
    text = f"{access.stride(item)} apart" if found == "strided" else found
    return Text(text, style=ROLES[found])


def tile_text(tile: Tile) -> str:
    """A tile in words: i1 by 5 × 16 lanes, i0 by 4."""
    parts = [] if tile.vector is None else [_vector_text(tile, tile.vector)]
    parts += [f"{counter(r)} by {n}" for r, n in tile.copies.items() if r is not tile.vector]
    return ", ".join(parts) or "one result at a time"


def _vector_text(tile: Tile, vector: UOp) -> str:
    count = tile.copies.get(vector, 1)
    return f"{counter(vector)} by {f'{count} × ' if count > 1 else ''}{tile.lanes} lanes"


def _estimate_cells(item: Tiling, told: Explanation) -> list[str]:
    cost, machine = item.estimate, told.machine
    if cost is None:
        return ["", "", "", "", "registers", f"> {machine.vector_registers}", "spilled"]
    parts = (cost.arithmetic / machine.units, cost.loads / machine.ports, cost.chain, cost.memory)
    return [
        *[f"{part:.1f}" for part in parts],
        cost.limit,
        f"{cost.registers} of {machine.vector_registers}",
        seconds(told.seconds(item.cycles)),
    ]


def explanation_json(told: Explanation) -> dict[str, Any]:
    """The same as plain data; times in seconds, sizes in bytes."""
    done, work = told.done, told.work
    steps: list[dict[str, Any]] = to_json(item.step for item in done.steps)
    return {
        "name": done.kernel,
        "loops": kernel_lines(done.before, done.kernel),
        "nests": [_nest_json(nest) for nest in told.nests],
        "operations": work.operations,
        "bytes_read": work.read,
        "bytes_written": work.written,
        "operations_per_byte": work.intensity,
        "seconds": {
            "compute": told.compute_seconds,
            "memory": told.memory_seconds,
            "roofline": told.roofline_seconds,
            "model": _number(told.tile_seconds),
        },
        "bound": told.bound,
        "tiles": [_tiling_json(item, told) for item in told.tilings],
        "steps": [
            {**row, "because": item.because} for row, item in zip(steps, done.steps, strict=True)
        ],
        "arranged": kernel_lines(done.after, done.kernel),
    }


def machine_json(machine: Machine) -> dict[str, Any]:
    """The machine with its measured rates."""
    facts: dict[str, Any] = json.loads(machine.measured().to_json())
    return {**facts, "source": machine.speeds().source}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _nest_json(nest: Nest) -> dict[str, Any]:
    loops = (*nest.results, *nest.summed)
    return {
        "computes": title(nest),
        "loops": [
            {
                "range": item.arg.id,
                "size": item.arg.size,
                "role": "reduction" if item in nest.summed else "result",
            }
            for item in loops
        ],
        "accesses": [
            {
                "does": "store" if access.writes else "load",
                "place": access_text(access),
                "strides": {str(r.arg.id): access.stride(r) for r in loops},
                "roles": {str(r.arg.id): role(access, r, nest) for r in loops},
            }
            for access in nest.accesses
        ],
    }


def _tiling_json(item: Tiling, told: Explanation) -> dict[str, Any]:
    tile, cost = item.tile, item.estimate
    return {
        "computes": title(item.nest),
        "vector": tile.vector.arg.id if tile.vector is not None else None,
        "lanes": tile.lanes,
        "copies": {str(r.arg.id): n for r, n in tile.copies.items()},
        "turn": None
        if cost is None
        else {
            "cycles": cost.inner,
            "arithmetic": cost.arithmetic,
            "loads": cost.loads,
            "latency": cost.chain,
            "memory": cost.memory,
            "bound": cost.limit,
            "registers": cost.registers,
        },
        "times": item.times,
        "seconds": _number(told.seconds(item.cycles)),
        "order": [r.arg.id for r in item.order.loops] if item.order else None,
        "packed": [
            {"place": access_text(p.access), "because": p.because}
            for p in (item.order.packings if item.order else ())
        ],
    }
