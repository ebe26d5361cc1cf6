"""The checks of the verb `compile`: the C builds, and gives the oracle's values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader import draws, run_c
from grader.case import Case
from grader.draws import Array, Given, Inputs
from grader.loop_nests import code_only, kernels
from grader.oracle import Expected
from grader.run_c import RunError
from grader.verdict import Verdict
from week01_uops.node import UOp
from week01_uops.ops import parameters
from week02_render.ops import BUFFER

FIRST_WEEK = 2
COMPILE = ("compile", "--target", "c")


def runs(
    case: Case,
    text: str,
    inputs: Given,
    draws_wanted: int,
    tolerance: float | None,
    special: bool,
    threads: Sequence[int],
    same_bits: bool,
) -> None:
    """The compiled program returns the oracle's values for every draw."""
    program = case.program(text)
    calls = _calls(case, program, text, inputs, draws_wanted, special)
    wanted = [case.expected(program, call, tolerance) for call in calls]
    if not threads:
        returns(case, text, program, calls, wanted)
        return
    library = _built(case, text)
    found = [_returned(case, library, program, calls, wanted, threads=n) for n in threads]
    for count, other in zip(threads[1:], found[1:], strict=True):
        if same_bits and _bits(other) != _bits(found[0]):
            case.fail(
                Verdict.WRONG,
                f"expected the same bits on {threads[0]} and on {count} threads, but they differ",
            )


def _bits(calls: list[tuple[Array, ...]]) -> list[bytes]:
    return [array.tobytes() for outputs in calls for array in outputs]


def returns(
    case: Case,
    text: str,
    program: UOp,
    calls: list[Inputs],
    wanted: list[Expected],
    *,
    in_a_row: bool = False,
) -> None:
    """The compiled program returns these values for these inputs.

    `in_a_row`: BUFFERs keep their contents from call to call; else each call finds them zero.
    """
    _returned(case, _built(case, text), program, calls, wanted, in_a_row=in_a_row)


def _returned(
    case: Case,
    library: bytes,
    program: UOp,
    calls: list[Inputs],
    wanted: list[Expected],
    *,
    in_a_row: bool = False,
    threads: int | None = None,
) -> list[tuple[Array, ...]]:
    """What the library returned for each call, which is what is wanted."""
    alone = not in_a_row and any(node.op is BUFFER for node in program.toposort())
    found = _run(case, library, program, calls, alone, threads)
    for call, want, got in zip(calls, wanted, found, strict=True):
        case.same(program, call, want, got, "compile")
    return found


def _calls(
    case: Case,
    program: UOp,
    text: str,
    inputs: Given,
    count: int,
    special: bool,
) -> list[Inputs]:
    if inputs is not None:
        return draws.given(program, inputs)
    if not parameters(program):
        return [{}]
    kinds = [False] * count + [True] * special
    return [
        draws.draw(program, draws.generator(case.seed, text, number), special=kind)
        for number, kind in enumerate(kinds)
    ]


def _built(case: Case, text: str) -> bytes:
    source = case.text(COMPILE, text)
    try:
        return run_c.build(source, sanitize=case.sanitize)
    except RunError as fault:
        case.evidence.stderr = fault.stderr
        case.fail(fault.verdict, fault.sentence)


def _run(
    case: Case,
    library: bytes,
    program: UOp,
    calls: list[Inputs],
    alone: bool,
    threads: int | None,
) -> list[tuple[Array, ...]]:
    """All calls in one process, or each in its own."""
    groups = [[call] for call in calls] if alone else [calls]
    found: list[tuple[Array, ...]] = []
    try:
        for group in groups:
            found += run_c.run(
                library, program, group, case.limits, threads, sanitize=case.sanitize
            )
    except RunError as fault:
        case.evidence.stderr = fault.stderr
        match = re.search(r"call (\d+):", fault.sentence)
        case.evidence.inputs = calls[min(int(match[1]) if match else 0, len(calls) - 1)]
        case.fail(fault.verdict, fault.sentence)
    return found


def emits(
    case: Case,
    text: str,
    kernels_at_most: int | None,
    workspace_at_most: int | None,
    contains: Sequence[str],
    without: Sequence[str],
) -> None:
    """The C builds, takes few enough kernels and bytes, and matches the given patterns."""
    program = case.program(text)
    source = case.text(COMPILE, text)
    library = _built(case, text)
    plain, found = case.bounded("to read what compile printed", lambda: _plain(source))
    if kernels_at_most is not None and found > kernels_at_most:
        case.fail(Verdict.BOUND, f"expected at most {kernels_at_most} loop nest(s), got {found}")
    if workspace_at_most is not None:
        _bounded_workspace(case, library, program, workspace_at_most)
    for pattern in contains:
        if not re.search(pattern, plain):
            case.fail(Verdict.BOUND, f"expected C that matches {pattern!r}")
    for pattern in without:
        if match := re.search(pattern, plain):
            case.fail(Verdict.BOUND, f"expected C without {pattern!r}, got {match[0]!r}")


def _plain(source: str) -> tuple[str, int]:
    """The text without comments, and its loop nests."""
    plain = code_only(source)
    return plain, kernels(plain)


def _bounded_workspace(case: Case, library: bytes, program: UOp, most: int) -> None:
    try:
        found = run_c.workspace(library, program, sanitize=case.sanitize)
    except RunError as fault:
        case.fail(fault.verdict, fault.sentence)
    if found > most:
        case.fail(Verdict.BOUND, f"expected at most {most} bytes of workspace, got {found}")
