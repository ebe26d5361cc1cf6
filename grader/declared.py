"""Conformance programs: files that declare their own outcome in comments.

# expect: values                    or the code of an error, and the line it is on: E301 7
# week: 1                           the first week whose compilers must know it
# tolerance: 2 ulp                  of float outputs; exact without it
# input 0: [1, -2]                  the array of a PARAM slot
# type 0: ["int32", [2]]            dtype and shape of an output
# output 0: [1, null]               its elements; null where any value is right
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader import compare, draws, oracle, run_checks, simplify_checks
from grader.case import Case
from grader.draws import Array, Inputs
from grader.oracle import Expected
from grader.verdict import Verdict
from week01_uops.dtypes import BY_NAME, DType
from week01_uops.node import UOp

_DECLARATION = re.compile(r"^#\s*(expect|week|tolerance|(?:input|type|output) \d+):\s*(.*?)\s*$")
_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class DeclarationError(Exception):
    """A conformance file does not say what it expects, or not in the form above."""


@dataclass(frozen=True)
class Declared:
    """What a file expects.

    Attributes:
        expect: "values", or an error's code.
        line: of the error, where it is said.
    """

    text: bytes
    expect: str
    line: int | None
    week: int
    ulps: float
    found: Mapping[str, str]

    def numbered(self, kind: str) -> dict[int, Any]:
        """The declarations `kind K: JSON` by K."""
        wanted = re.compile(rf"{kind} (\d+)")
        matches = ((wanted.fullmatch(key), value) for key, value in self.found.items())
        return {int(match[1]): json.loads(value) for match, value in matches if match}

    def inputs(self, program: UOp) -> Inputs:
        """The declared inputs as arrays."""
        plain = {slot: _numbers(value) for slot, value in self.numbered("input").items()}
        return draws.given(program, plain)[0]

    def expected(self) -> Expected:
        """The declared outputs, and how far off each element may be."""
        outputs, types = self.numbered("output"), self.numbered("type")
        if sorted(outputs) != sorted(types) or sorted(outputs) != list(range(len(outputs))):
            raise DeclarationError("expected a type and an output for 0, 1, …")
        pairs = [_output(outputs[n], types[n], self.ulps) for n in range(len(outputs))]
        return Expected(tuple(v for v, _ in pairs), tuple(a for _, a in pairs))


def read_declared(path: Path) -> Declared:
    """The declarations of a file; a DeclarationError says what is wrong with them."""
    data = path.read_bytes()
    found: dict[str, str] = {}
    for row in data.decode("utf-8", "replace").splitlines():
        if match := _DECLARATION.match(row):
            found[match[1]] = match[2]
    if "expect" not in found or "week" not in found:
        raise DeclarationError(f"{path}: expected comments `# expect: …` and `# week: …`")
    expect, _, line = found["expect"].partition(" ")
    ulps = re.fullmatch(r"([\d.]+) ulp", found.get("tolerance", "0 ulp"))
    if ulps is None:
        raise DeclarationError(f"{path}: expected `# tolerance: N ulp`")
    number = int(found["week"])
    return Declared(data, expect, int(line) if line else None, number, float(ulps[1]), found)


def _numbers(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return _SPECIAL[value] if isinstance(value, str) else value


def _output(value: Any, declared: Any, ulps: float) -> tuple[Array, Array]:  # noqa: ANN401 - JSON
    name, shape = declared
    dtype = BY_NAME[name]
    flat = [_numbers(item) for item in _flatten(value)]
    opened = np.array([item is None for item in flat], bool).reshape(shape)
    kind = np.float64 if dtype.is_float else dtype.numpy
    exact = np.array([0 if item is None else item for item in flat], kind).reshape(shape)
    return exact.astype(dtype.numpy), np.where(opened, np.nan, _allowed(exact, dtype, ulps))


def _flatten(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    if not isinstance(value, list):
        return [value]
    return [item for part in value for item in _flatten(part)]


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
        if declared.expect == "values":
            _values(case, declared)
            return
    except (DeclarationError, ValueError, KeyError) as error:
        case.fail(Verdict.GRADER, f"{path.name} is no conformance program: {error}")
    verb = simplify_checks.SIMPLIFY
    simplify_checks.rejects(case, declared.text, declared.expect, declared.line, verb)


def _values(case: Case, declared: Declared) -> None:
    text = declared.text.decode()
    program = case.program(text)
    inputs, want = declared.inputs(program), declared.expected()
    _expect_oracle(case, program, inputs, want)
    result = case.result(simplify_checks.SIMPLIFY, text)
    simplify_checks.same_interface(case, program, result)
    case.same(program, inputs, want, case.outputs(result, inputs, want, "simplify"), "simplify")
    if case.week >= run_checks.FIRST_WEEK:
        run_checks.returns(case, text, program, [inputs], [want])


def _expect_oracle(case: Case, program: UOp, inputs: Inputs, want: Expected) -> None:
    """Where our own interpreter disagrees with a declaration, the fault is ours."""
    try:
        got = oracle.run(program, inputs)
    except Exception as error:  # whatever our interpreter raises
        case.fail(Verdict.GRADER, f"the oracle cannot evaluate the program: {error!r}")
    types = [(array.dtype, array.shape) for array in want.values]
    if [(array.dtype, array.shape) for array in got] != types:
        case.fail(Verdict.GRADER, "the oracle's outputs are not of the declared types")
    different = compare.first_difference(want.values, got, want.allowed)
    if different is not None:
        case.fail(Verdict.GRADER, f"the oracle disagrees with the declaration: {different}")
