"""The checks of the verb `simplify`: the meaning stays, the bounds are met, faults are named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from grader import draws, structure
from grader.case import DIAGNOSTIC, Case, normal
from grader.draws import Array, Given, Inputs
from grader.oracle import Expected
from grader.verdict import Verdict, excerpt
from grader.weeks import read
from week01_uops.interchange import write
from week01_uops.node import UOp
from week01_uops.ops import parameters

SIMPLIFY = ("simplify",)
ARRAY_DRAWS = 4


def meaning(case: Case, text: str, inputs: Given = None) -> tuple[UOp, UOp]:
    """Program and result, once the result is known to mean the same."""
    program = case.program(text)
    result = case.result(SIMPLIFY, text)
    same_interface(case, program, result)
    for some in draws.given(program, inputs):
        _at(case, program, result, some)
    if not _at_points(case, program, result, text):
        _at_arrays(case, program, result, text)
    return program, result


def same_interface(case: Case, program: UOp, result: UOp) -> None:
    """Fail unless both programs have the same outputs, and inputs of the same types."""
    fault = structure.interface_fault(program, result)
    if fault is not None:
        case.fail(Verdict.WRONG, f"simplify changed the program's interface: {fault}")


def _at_points(case: Case, program: UOp, result: UOp, text: str) -> bool:
    """Compare at thousands of points at once, where the program is one of scalars."""
    inputs = draws.points(program, draws.generator(case.seed, text))
    if inputs is None:
        return False
    count = next(iter(inputs.values())).size
    many, simple = draws.lift(program, count), draws.lift(result, count)
    if many is None or simple is None:
        return False
    want = case.expected(many, inputs)
    level = Expected(_spread(want.values, count), _spread(want.allowed, count))
    got = _spread(case.outputs(simple, inputs, want, "simplify"), count)
    case.same(program, inputs, level, got, "simplify")
    return True


def _spread(arrays: Sequence[Array | float], count: int) -> tuple[Array, ...]:
    """One element for each point: a result may have become a constant."""
    return tuple(np.broadcast_to(a, (count,)) if np.ndim(a) == 0 else a for a in arrays)  # type: ignore[misc]


def _at_arrays(case: Case, program: UOp, result: UOp, text: str) -> None:
    for number in range(ARRAY_DRAWS if parameters(program) else 1):
        rng = draws.generator(case.seed, text, number)
        inputs = draws.draw(program, rng, special=number > 0)
        _at(case, program, result, inputs)


def _at(case: Case, program: UOp, result: UOp, inputs: Inputs) -> None:
    want = case.expected(program, inputs)
    case.same(program, inputs, want, case.outputs(result, inputs, want, "simplify"), "simplify")


def simplifies(
    case: Case,
    text: str,
    to: str | Sequence[str] | None,
    at_most: int | None,
    at_most_of: Mapping[str, int],
    without: Iterable[str],
    inputs: Given,
) -> None:
    """The meaning stays, and the result is small enough, or one of the expected graphs."""
    program, result = meaning(case, text, inputs)
    fault = structure.bound_fault(result, at_most, at_most_of, without)
    if fault is not None:
        case.fail(Verdict.BOUND, f"{fault} after simplify of {structure.size(program)} UOps")
    if to is None:
        return
    texts = [to] if isinstance(to, str) else list(to)
    wanted = [read(normal(one), case.week) for one in texts]
    if not any(structure.same_up_to_order(one, result) for one in wanted):
        listed = "\nor\n".join(excerpt(write(one)) for one in wanted)
        case.fail(Verdict.BOUND, f"expected simplify to print the graph of\n{listed}")


def keeps(case: Case, text: str, ops: Mapping[str, int]) -> None:
    """The meaning stays, and so do ops whose removal would be wrong for some input."""
    _, result = meaning(case, text)
    found = structure.count(result)
    for name, least in ops.items():
        if found[name] < least:
            case.fail(
                Verdict.WRONG,
                f"expected at least {least} {name} to stay, got {found[name]}: "
                "a rule fired that is not right for every input",
            )


def settles(case: Case, text: str) -> None:
    """A second simplify changes nothing."""
    case.program(text)
    once = case.result(SIMPLIFY, text)
    printed = write(once)
    twice = case.result(SIMPLIFY, printed)
    if not structure.same_up_to_order(once, twice):
        case.fail(
            Verdict.BOUND,
            f"a second simplify changed the program again, to\n{excerpt(write(twice))}",
        )


def canonical(case: Case, text: str, to: str | None) -> None:
    """The text that simplify prints is the canonical one of its program."""
    case.program(text)
    printed = case.text(SIMPLIFY, text)
    wanted = write(case.parse("simplify", printed)) if to is None else to
    if printed != wanted:
        rows = zip([*printed.splitlines(), ""], [*wanted.splitlines(), ""], strict=False)
        pairs = ((n, *row) for n, row in enumerate(rows, 1) if row[0] != row[1])
        line, got, want = next(pairs, (0, "another end of the text", "one line end"))
        case.fail(Verdict.PROTOCOL, f"line {line} is not canonical: expected {want!r}, got {got!r}")


def rejects(
    case: Case, text: str | bytes, code: str, line: int | None, verb: Sequence[str]
) -> None:
    """A wrong program is refused, with a diagnostic of that code on that line."""
    wanted = code.rstrip("x")
    place = code if line is None else _listed([(code, line)])
    found = _diagnostics(case, text, place, verb)
    if not any(got.startswith(wanted) and line in (None, at) for got, at in found):
        _fail_diagnostics(case, place, found)


def rejects_all(
    case: Case,
    text: bytes,
    errors: Sequence[tuple[str, int]],
    verb: Sequence[str] | None = None,
) -> None:
    """A wrong program is refused with just these diagnostics, by code and line (0: anywhere).

    What may be wrong only in this week, ops and keys of later ones, is asked for with `--week`.
    """
    later = any(code in ("E302", "E308") for code, _ in errors)
    simplify = [*SIMPLIFY, "--week", str(case.week)] if later else SIMPLIFY
    found = _diagnostics(case, text, _listed(errors), verb or simplify)
    if not any(line for _, line in errors):
        found = [(code, 0) for code, _ in found]
    if set(map(_known, found)) != set(map(_known, errors)):
        _fail_diagnostics(case, _listed(errors), found)


def _known(error: tuple[str, int]) -> tuple[str, int]:
    """A compiler of week N need not know which ops later weeks have: E302 may be E301."""
    code, line = error
    return ("E301" if code == "E302" else code), line


def _listed(errors: Sequence[tuple[str, int]]) -> str:
    more = f", and {len(errors) - 5} more" if len(errors) > 5 else ""
    places = (f"{code} on line {line}" if line else code for code, line in errors[:5])
    return ", ".join(places) + more


def _diagnostics(
    case: Case, text: str | bytes, place: str, verb: Sequence[str]
) -> list[tuple[str, int]]:
    """Code and line of each diagnostic with which a program is refused."""
    if isinstance(text, bytes):
        case.evidence.program = text.decode("utf-8", "backslashreplace")
    answer = case.ask(verb, text)
    if answer.verdict is Verdict.OK:
        case.fail(Verdict.ACCEPTED, f"expected {verb[0]} to refuse with {place}, got exit status 0")
    if answer.verdict is not Verdict.REFUSED:
        case.fail(answer.verdict, f"expected {verb[0]} to refuse with {place}: {answer.note}")
    if answer.stdout.strip():
        case.fail(Verdict.PROTOCOL, "expected nothing on standard output of a refused program")
    return [(m[3], int(m[1])) for m in DIAGNOSTIC.finditer(answer.stderr)]


def _fail_diagnostics(case: Case, place: str, found: Sequence[tuple[str, int]]) -> NoReturn:
    got = _listed(found) or "no line FILE:LINE:COL: CODE message"
    case.fail(Verdict.WRONG if found else Verdict.PROTOCOL, f"expected {place}, got {got}")
