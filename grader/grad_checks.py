"""The checks of the verb `grad`: derivatives are right, and what has none is refused."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from grader import compare, cost, draws, run_checks, tangents
from grader.case import Case
from grader.draws import Array, Given, Inputs
from grader.oracle import Expected
from grader.oracle import expected as expected_of
from grader.structure import interface_fault
from grader.tangents import NoDerivativeError, Slope
from grader.verdict import Verdict
from week01_uops.interchange import write
from week01_uops.node import UOp
from week01_uops.ops import ADD, CAST, MUL, RETURN, param, parameters
from week03_loops.ops import reduce

RELATIVE = 1e-6
"""Of the parts that a derivative is the sum of, evaluated in float64: constants are rounded."""


def verb(slots: Sequence[int]) -> list[str]:
    """How derivatives with respect to slots are asked for."""
    return ["grad", "--wrt", ",".join(map(str, slots))]


def differentiates(
    case: Case,
    text: str,
    wrt: Sequence[int] | None,
    inputs: Given,
    draws_wanted: int,
    times: int,
    compiled: bool,
    *,
    printed: bool = False,
) -> None:
    """The program that `grad` prints gives the derivatives; so does grad of its weighted sum.

    Where it is compiled, the C returns what the printed program says. `printed`: the text is of
    such a sum, and not the test's own.
    """
    program = case.parse("grad", text) if printed else case.program(text)
    known = parameters(program)
    slots = [s for s in sorted(known) if known[s].dtype.is_float] if wrt is None else list(wrt)
    result = derived(case, program, text, slots)
    calls = draws.given(program, inputs)
    for number in range(0 if calls else draws_wanted):
        calls.append(draws.draw(program, draws.generator(case.seed, text, number), special=False))
    for call in calls:
        same_slopes(case, program, result, slots, call, printed=printed)
    if compiled:
        returns_printed(case, result, calls)
    if times > 1:
        again = write(RETURN(weighted(program, result)))
        how = (slots, None, draws_wanted, times - 1, compiled)
        differentiates(case, again, *how, printed=True)


def returns_printed(case: Case, result: UOp, calls: list[Inputs]) -> None:
    """The C of the printed program returns what that says."""
    wanted = [
        case.of_printed("grad", "run", call, functools.partial(expected_of, result, call))
        for call in calls
    ]
    run_checks.returns(case, write(result), result, calls, wanted)


def derived(case: Case, program: UOp, text: str, slots: Sequence[int]) -> UOp:
    """What `grad` prints, once its outputs and inputs are known to be the right ones."""
    result = case.result(verb(slots), text)
    outputs = [parameters(program)[slot] for slot in slots]
    fault = interface_fault(program, result, outputs)
    if fault is not None:
        case.fail(Verdict.WRONG, f"grad printed a program of another interface: {fault}")
    return result


def weighted(program: UOp, result: UOp) -> UOp:
    """Σ wₖ·∂ₖ over all elements of all derivatives, the wₖ being inputs of new slots."""
    total: UOp | None = None
    free = 1 + max(parameters(program))
    for number, output in enumerate(result.src):
        weights = param(free + number, output.dtype, output.shape)
        part = reduce(ADD, MUL(output, weights), len(output.shape))
        if total is not None and part.dtype is not total.dtype:
            part = CAST(part, arg=total.dtype.name)
        total = part if total is None else ADD(total, part)
    assert total is not None
    return total


def slopes_of(
    case: Case, program: UOp, slots: Sequence[int], inputs: Inputs, *, printed: bool = False
) -> list[Slope]:
    """The right derivatives of the test's own program, or of one that came of a `printed` one."""
    if printed:

        def compute() -> list[Slope]:
            cost.expect_room(program, sum(inputs[slot].size for slot in slots), case.room)
            return tangents.slopes(program, slots, inputs)

        return case.of_printed("grad", "derived again", inputs, compute)
    try:
        return tangents.slopes(program, slots, inputs)
    except NoDerivativeError as error:
        case.fail(Verdict.GRADER, f"the oracle cannot derive the program: {error}")


def same_slopes(
    case: Case,
    program: UOp,
    result: UOp,
    slots: Sequence[int],
    inputs: Inputs,
    *,
    printed: bool = False,
) -> None:
    """Fail unless the printed program, evaluated in float64, gives the derivatives."""
    right = slopes_of(case, program, slots, inputs, printed=printed)
    plain = expected(right, [slope.value for slope in right], RELATIVE)
    wide = tangents.widened(result)
    got = case.outputs(wide, tangents.wide_inputs(inputs), plain, "grad")
    precisions = [n.dtype.precision for n in program.toposort() if n.dtype.is_float]
    relative = max(RELATIVE, 8 * 2.0 ** -min(precisions))
    case.same(program, inputs, expected(right, got, relative), got, "grad")


def expected(right: Sequence[Slope], got: Sequence[Array], relative: float) -> Expected:
    """The right derivatives, and how far off each may be.

    Where one is not finite, whatever is not finite is right. Where it is 0 for a product 0·∞, NaN
    is right too.
    """
    allowed = []
    for slope, have in zip(right, got, strict=True):
        finite = np.isfinite(slope.value)
        is_right = np.where(finite, np.isnan(have) & np.isnan(slope.strict), ~np.isfinite(have))
        size = np.where(np.isfinite(slope.size), slope.size, np.abs(slope.value))
        off = np.where(finite, relative * size, 0.0)
        allowed.append(np.where(is_right, np.nan, off))
    return Expected(tuple(slope.value for slope in right), tuple(allowed))


def agrees(
    case: Case, program: UOp, slots: Sequence[int], calls: list[Inputs], want: list[Expected]
) -> None:
    """Where the oracle disagrees with declared derivatives, the fault is ours."""
    for call, right in zip(calls, want, strict=True):
        declared = [value.astype(np.float64) for value in right.values]
        found = expected(slopes_of(case, program, slots, call), declared, RELATIVE)
        pairs = zip(found.allowed, right.allowed, strict=True)
        allowed = [np.where(np.isnan(a) | np.isnan(b), np.nan, np.maximum(a, b)) for a, b in pairs]
        different = compare.first_difference(found.values, declared, allowed)
        if different is not None:
            case.fail(Verdict.GRADER, f"the oracle disagrees with the declaration: {different}")
