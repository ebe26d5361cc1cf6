"""Conformance programs: files that declare their own outcome in comments.

`grader/conformance/README.md` has the keys. Declared values are held against the oracle first:
where the two disagree, the fault is ours and the report says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader import compare, draws, grad_checks, oracle, run_checks, simplify_checks
from grader.case import Case
from grader.draws import Array, Inputs
from grader.oracle import Expected
from grader.verdict import Verdict
from week01_uops.dtypes import BY_NAME, DType
from week01_uops.evaluate import State
from week01_uops.interchange import write
from week01_uops.node import UOp

_DECLARATION = re.compile(
    r"^# (expect|at|week|grad|tolerance|call|(?:input|type|output) \d+): (.*)$"
)
_NUMBERED = re.compile(r"(input|type|output) (\d+)")
_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


NO_DERIVATIVE = "E416"
"""The one error that is of the program as a whole, at no line."""


class DeclarationError(Exception):
    """A conformance file does not say what it expects, or not in the form above."""


Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Declared:
    """What a file expects: errors by code and line, or the values of each call.

    Attributes:
        wrt: the slots that the outputs are the derivatives by; of the program itself if None.
    """

    text: bytes
    errors: tuple[tuple[str, int], ...]
    ulps: float
    calls: tuple[Mapping[str, str], ...]
    wrt: tuple[int, ...] | None = None

    def inputs(self, program: UOp) -> list[Inputs]:
        """The inputs of each call as arrays."""
        return [draws.given(program, _numbered(call, "input"))[0] for call in self.calls]

    def expected(self) -> list[Expected]:
        """The outputs of each call, and how far off each element may be."""
        return [self._expected(call) for call in self.calls]

    def _expected(self, call: Mapping[str, str]) -> Expected:
        outputs, types = _numbered(call, "output"), _numbered(call, "type")
        if not outputs or sorted(outputs) != sorted(types):
            raise DeclarationError("expected a type and an output for 0, 1, …")
        pairs = [_output(outputs[n], types[n], self.ulps) for n in sorted(outputs)]
        return Expected(tuple(v for v, _ in pairs), tuple(a for _, a in pairs))


def read_declared(path: Path) -> Declared:
    """The declarations of a file; a DeclarationError says what is wrong with them."""
    data = path.read_bytes()
    rows = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    found = [(m[1], m[2]) for row in rows if (m := _DECLARATION.match(row))]
    expects = [value for key, value in found if key == "expect"]
    if not expects:
        raise DeclarationError("expected a comment `# expect: …`")
    tolerance = re.fullmatch(r"([\d.]+) ulp", dict(found).get("tolerance", "0 ulp"))
    if tolerance is None:
        raise DeclarationError("expected `# tolerance: N ulp`")
    errors = () if expects == ["values"] else _errors(found)
    wrt = dict(found).get("grad")
    slots = None if wrt is None else tuple(map(int, wrt.split(",")))
    return Declared(data, errors, float(tolerance[1]), tuple(_calls(found)), slots)


def _errors(found: Pairs) -> tuple[tuple[str, int], ...]:
    if [value for key, value in found if key in ("expect", "at")] == [f"error {NO_DERIVATIVE}"]:
        return ((NO_DERIVATIVE, 0),)
    codes = [re.fullmatch(r"error (E\d{3})", value) for key, value in found if key == "expect"]
    places = [re.fullmatch(r"(\d+):\d+", value) for key, value in found if key == "at"]
    if len(codes) != len(places):
        raise DeclarationError("expected as many `at` as `expect: error`")
    pairs = [(c[1], int(p[1])) for c, p in zip(codes, places, strict=True) if c and p]
    if len(pairs) != len(codes):
        raise DeclarationError("expected `expect: error CODE` and `at: LINE:COL`")
    return tuple(pairs)


def _calls(found: Pairs) -> list[Mapping[str, str]]:
    """The numbered declarations of each call; those not given again stay."""
    calls: list[dict[str, str]] = [{}]
    for key, value in found:
        if key == "call":
            calls.append(dict(calls[-1]))
        elif _NUMBERED.fullmatch(key):
            calls[-1][key] = value
    return list(calls)


def _numbered(call: Mapping[str, str], kind: str) -> dict[int, Any]:
    matches = ((_NUMBERED.fullmatch(key), value) for key, value in call.items())
    wanted = {int(m[2]): json.loads(value) for m, value in matches if m and m[1] == kind}
    return wanted if kind == "type" else {k: _numbers(v) for k, v in wanted.items()}


def _numbers(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return _SPECIAL[value] if isinstance(value, str) else value


def _output(value: Any, declared: Any, ulps: float) -> tuple[Array, Array]:  # noqa: ANN401 - JSON
    name, shape = declared
    dtype = BY_NAME[name]
    flat = list(_flatten(value))
    opened = np.array([item is None for item in flat], bool).reshape(shape)
    kind = np.float64 if dtype.is_float else dtype.numpy
    exact = np.array([0 if item is None else item for item in flat], kind).reshape(shape)
    return exact.astype(dtype.numpy), np.where(opened, np.nan, _allowed(exact, dtype, ulps))


def _flatten(value: Any) -> Iterable[Any]:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        for part in value:
            yield from _flatten(part)
    else:
        yield value


def _allowed(exact: Array, dtype: DType, ulps: float) -> Array:
    """So many units in the last place; a result that is subnormal may be 0."""
    if not dtype.is_float or not ulps:
        return np.zeros(exact.shape)
    size = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    least = 1 - dtype.max_exponent
    exponent = np.maximum(np.frexp(size)[1] - 1, least)
    bound = ulps * np.ldexp(1.0, exponent - dtype.precision + 1)
    subnormal = size < math.ldexp(1.0, least)
    return np.asarray(np.where(subnormal, np.maximum(bound, size), bound))


def conforms(case: Case, path: Path) -> None:
    """The compiler does with the file's program what the file declares."""
    try:
        declared = read_declared(path)
        if not declared.errors:
            check = _values if declared.wrt is None else _derivatives
            check(case, declared)
            return
    except (DeclarationError, ValueError, KeyError, OSError) as error:
        case.fail(Verdict.GRADER, f"{path.name} is no conformance program: {error}")
    verb = None if declared.wrt is None else grad_checks.verb(declared.wrt)
    simplify_checks.rejects_all(case, declared.text, declared.errors, verb)


def _values(case: Case, declared: Declared) -> None:
    text = declared.text.decode()
    program = case.program(text)
    inputs, want = declared.inputs(program), declared.expected()
    _expect_oracle(case, program, inputs, want)
    result = case.result(simplify_checks.SIMPLIFY, text)
    simplify_checks.same_interface(case, program, result)
    state: State = {}
    for some, right in zip(inputs, want, strict=True):
        got = case.outputs(result, some, right, "simplify", state)
        case.same(program, some, right, got, "simplify")
    if case.week >= run_checks.FIRST_WEEK:
        run_checks.returns(case, text, program, inputs, want, in_a_row=True)


def _derivatives(case: Case, declared: Declared) -> None:
    """The program that `grad` prints gives the values, and so does its C."""
    text, slots = declared.text.decode(), declared.wrt or ()
    program = case.program(text)
    inputs, want = declared.inputs(program), declared.expected()
    grad_checks.agrees(case, program, slots, inputs, want)
    result = grad_checks.derived(case, program, text, slots)
    for some, right in zip(inputs, want, strict=True):
        got = case.outputs(result, some, right, "grad")
        case.same(program, some, right, got, "grad")
    run_checks.returns(case, write(result), result, inputs, want)


def _expect_oracle(case: Case, program: UOp, inputs: list[Inputs], want: list[Expected]) -> None:
    """Where our own interpreter disagrees with a declaration, the fault is ours."""
    state: State = {}
    for some, right in zip(inputs, want, strict=True):
        try:
            got = oracle.run(program, some, state=state)
        except Exception as error:  # whatever our interpreter raises
            case.fail(Verdict.GRADER, f"the oracle cannot evaluate the program: {error!r}")
        types = [(array.dtype, array.shape) for array in right.values]
        if [(array.dtype, array.shape) for array in got] != types:
            case.fail(Verdict.GRADER, "the oracle's outputs are not of the declared types")
        different = compare.first_difference(right.values, got, right.allowed)
        if different is not None:
            case.fail(Verdict.GRADER, f"the oracle disagrees with the declaration: {different}")
