"""What can be seen of a simplified program without running it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from week01_uops.node import UOp
from week01_uops.ops import parameters


def size(program: UOp) -> int:
    """UOps: the statements of the canonical text, `return` not counted."""
    return len(program.toposort()) - 1


def count(program: UOp) -> Counter[str]:
    """How many nodes there are of each op."""
    return Counter(node.op.name for node in program.toposort())


def same_up_to_order(a: UOp, b: UOp) -> bool:
    """Whether two programs are one graph, up to the order of the sources of commutative ops."""
    numbers: dict[Any, int] = {}

    def number(program: UOp) -> int:
        of: dict[UOp, int] = {}
        for node in program.toposort():
            sources = [of[s] for s in node.src]
            if node.op.commutes:
                sources.sort()
            of[node] = numbers.setdefault((node.op, node.arg, *sources), len(numbers))
        return of[program]

    return number(a) == number(b)


def interface_fault(program: UOp, result: UOp, outputs: Sequence[UOp] | None = None) -> str | None:
    """What the result must share with the program and does not: outputs and inputs.

    `outputs` are nodes of the types that are due, if not the program's own.
    """
    due = program.src if outputs is None else outputs
    if len(result.src) != len(due):
        return f"expected {len(due)} output(s), got {len(result.src)}"
    for number, (want, got) in enumerate(zip(due, result.src, strict=True)):
        if (want.dtype, want.shape) != (got.dtype, got.shape):
            return f"expected {_type(want)} for output {number}, got {_type(got)}"
    wanted = parameters(program)
    for slot, param in parameters(result).items():
        if slot not in wanted:
            return f"the result reads slot {slot}, which the program has not"
        if wanted[slot] is not param:
            return f"expected the program's PARAM of slot {slot}, {wanted[slot]!r}, got {param!r}"
    return None


def _type(node: UOp) -> str:
    return f"{node.dtype}{list(node.shape)}"


def bound_fault(
    result: UOp, at_most: int | None, at_most_of: Mapping[str, int], without: Iterable[str]
) -> str | None:
    """Which of the counted bounds a simplified program misses."""
    if at_most is not None and size(result) > at_most:
        return f"expected at most {at_most} UOps, got {size(result)}"
    found = count(result)
    limits = {**at_most_of, **dict.fromkeys(without, 0)}
    for name, most in limits.items():
        if found[name] > most:
            wanted = f"no {name}" if most == 0 else f"at most {most} {name}"
            return f"expected {wanted}, got {found[name]}"
    return None
