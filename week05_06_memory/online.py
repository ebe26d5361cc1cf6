"""Rows that are longer than a cache are computed in blocks, with running sums.

A softmax, and what weights by it, reads a row of scores several times. While a strip of rows fits
in half of the second cache, the whole rows are held (`strips`). Where it does not, the kernels that
compute the rows and those that sum over them become one kernel all the same, which holds a block of
them at a time (`running`, `blocks`):

    STAGE(x(i, j), j) for all j, m(i) = max, Σ exp2(x − m)·v
      →   for blocks J of a strip of rows I:  x(I, J);  m(I), and the sums, brought up to date
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from week01_uops.calls import substitute
from week01_uops.node import UOp
from week01_uops.ops import CALL, MAX
from week01_uops.passes import PassFunction, top_nodes
from week01_uops.rewrite import Trace
from week02_render.ops import END, loop
from week03_loops.ops import REDUCE
from week04_fusion.merge import describe, replace_calls
from week05_06_memory.blocks import Blocks
from week05_06_memory.machine import Machine
from week05_06_memory.nests import find_range, fresh_numbers, number
from week05_06_memory.numbers import is_free
from week05_06_memory.running import NoBlocks, find_running
from week05_06_memory.split import split
from week05_06_memory.strips import Join, Refusal, hold_strips, is_order_free
from week05_06_memory.traffic import HIDDEN, ROWS, Strip, byte_cost, bytes_of, has_stage
from week05_06_memory.weights import Weights


def online(machine: Machine) -> PassFunction:
    """The pass that computes long rows in blocks."""

    def run(program: UOp, trace: Trace) -> UOp:
        if not any(_is_candidate(call.src[0], machine) for call in _calls(program)):
            return program
        tried = hold_strips(machine, _check_price)(program, Trace())
        places = frozenset().union(*[_written(c) for c, _ in _blocked(tried, machine, trace)])
        if not places:
            return program
        joined = hold_strips(machine, _check_price, places)(program, Trace())
        for call, body in _blocked(joined, machine, Trace()):
            if not places.isdisjoint(_written(call)):
                joined = replace_calls(joined, {call: call.with_src((body, *call.src[1:]))})
                trace.fired["online"] += 1
        return joined

    return run


def _calls(program: UOp) -> list[UOp]:
    return [n for n in top_nodes(program) if n.op is CALL]


def _written(call: UOp) -> frozenset[UOp]:
    return describe(call, 0).written


def _is_candidate(body: UOp, machine: Machine) -> bool:
    """Whether a body takes the maximum of rows that may be too long."""
    rows = [n for n in body.toposort() if n.op is REDUCE and n.arg.op is MAX]
    return any(_is_long(n, machine) for n in rows)


def _is_long(node: UOp, machine: Machine) -> bool:
    """Whether two strips of rows over a node's loops, or those inside, are half of a cache."""
    closers = [node] if node.op.closes else [n for n in node.toposort() if n.op.closes]
    longest = max([r.arg.size for n in closers for r in n.src[1:]], default=0)
    return 2 * ROWS * longest * node.dtype.bits // 8 > _cache(machine) // 2


def _cache(machine: Machine) -> int:
    """Bytes of the second cache, or of the only one."""
    return machine.l2 or machine.l1


def _blocked(program: UOp, machine: Machine, trace: Trace) -> Iterator[tuple[UOp, UOp]]:
    """The kernels that are better computed in blocks, with their new bodies."""
    for call in _calls(program):
        if _is_candidate(call.src[0], machine):
            try:
                body = rows_first(call.src[0])
                yield call, in_blocks(body, BlockShape.of(body, machine))
            except NoBlocks as reason:
                trace.decline("online", str(reason), call)


def in_blocks(body: UOp, shape: BlockShape) -> UOp:
    """The body, its loops in the order of `rows_first`, with its rows in blocks.

    Raises:
        NoBlocks: whole rows are needed all the same.
    """
    numbers = fresh_numbers(body)
    into = next(numbers), next(numbers)
    strip = loop(into[1], 1)
    if shape.row is not None and shape.rows > 1:
        strip = shape.row
        if shape.rows < strip.arg.size:
            body = split(body, strip.arg.id, shape.rows, into)
            strip = find_range(body, into[1])
    running = find_running(body)
    free = is_free(running.top, body.toposort())
    found = Blocks(body, running, strip, shape.size, shape.weights, free).run()
    if shape.rows == 1:
        found = substitute(found, {strip: number(0)})
    if has_stage(found):
        raise NoBlocks("something else needs whole rows")
    return found


def rows_first(body: UOp) -> UOp:
    """The body with the loops of its maximum before all others.

    Raises:
        NoBlocks: it has no form in blocks.
    """
    running = find_running(body)
    ranges = body.src[1:] if body.op is END else ()
    order = tuple(sorted(ranges, key=lambda r: r not in running.loops))
    if order != ranges and not is_order_free(body):
        raise NoBlocks("its loops have to stay in order")
    return body.with_src((body.src[0], *order)) if ranges else body


@dataclass(frozen=True)
class BlockShape:
    """A block: so many iterations of a loop over rows, and so many elements of each row.

    Attributes:
        weights: those of whole rows, if they are held in the output that they become.
    """

    row: UOp | None
    rows: int
    size: int
    weights: Weights | None = None

    @staticmethod
    def of(body: UOp, machine: Machine) -> BlockShape:
        """A block in a quarter of the second cache; NoBlocks if whole rows do well enough.

        Rows that read the same are about as many as a block is long, and divisible by what tiles
        of them may be.
        """
        running = find_running(body)
        loops = [r for r in body.src[1:] if r in running.loops]
        row = next((r for r in reversed(loops) if r.arg.size > 1 and not r.src), None)
        each, length = running.x.dtype.bits // 8, running.counter.arg.size
        held, again = float(length * each), 0.0
        if row is not None:
            strip = Strip(row, frozenset(loops) - {row})
            held = max(held, strip.held(body))
            again = strip.read_again(running.x, *(f for t in running.totals for f in t.rest))
        if held <= _cache(machine) // 2:
            size = _divisor(length, machine.l1 // 8 // each, machine.vector_bytes // each)
            long = size and not again and held > machine.l1
            if long and (weights := Weights.of(body, running)):
                return BlockShape(row, 1, size, weights)
            raise NoBlocks(f"{held:.3g} bytes of rows fit in half of the second cache")
        if again and not running.loops.issubset(loops):
            raise NoBlocks("its rows are computed in loops of their own")
        if row is None or not again:
            return BlockShape(row, 1, min(_power(machine.l1 // 2 // each), length))
        elements, size, rows = _cache(machine) // 4 // each, machine.vector_bytes // each, 3
        while (2 * size) ** 2 <= elements:
            size *= 2
        widest = max(size, *(running.width(total) for total in running.totals))
        while 2 * rows * widest <= elements:
            rows *= 2
        rows = min(rows, row.arg.size)
        return BlockShape(row, rows, min(max(size, _power(elements // rows)), length))


def _divisor(length: int, most: int, lanes: int) -> int:
    """The most elements that divide a row, up to a number; 0 if that is far less."""
    found = [n for n in range(lanes, most + 1, lanes) if length % n == 0]
    return max((n for n in found if LEAST * n >= most), default=0)


LEAST = 4
"""A block is at least this part of what it may be: between two, the machine waits."""


def _power(size: int) -> int:
    """The largest power of two that is not larger."""
    return 1 << max(size, 1).bit_length() - 1


def _check_price(join: Join, place: UOp, machine: Machine) -> None:
    """Rows too long to be held are computed where they are read."""
    held = join.held()
    if not _is_long(held, machine):
        raise Refusal("its rows are short")
    row = next((r for r in reversed(join.loops) if r.arg.size > 1), join.loops[-1])
    strip = Strip(row, frozenset(join.loops) - {row})
    size = bytes_of(place)
    saved = 2 * size * byte_cost(machine, size)
    again = sum(strip.read_again(p) for p in (join.later, join.moved()) if not has_stage(p))
    extra = strip.strips * again * byte_cost(machine, again) / HIDDEN
    if extra >= saved:
        raise Refusal(f"reading {again:.3g} bytes again costs more than {size:.3g} once")
