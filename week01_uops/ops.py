"""The ops of week 1: inputs, constants, calls and scalar arithmetic, all elementwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from week01_uops import intervals, signatures
from week01_uops.args import DTYPE, SHAPE, SLOT, Leaf, Record, key, text, wrong_form
from week01_uops.dtypes import DType, bool_, void
from week01_uops.errors import ProgramError
from week01_uops.node import (
    CONST,
    MANY,
    Interval,
    Op,
    Place,
    Shape,
    Type,
    UOp,
    memoized,
    toposort,
)


def _load_bounds(json: Any) -> tuple[int, int]:  # noqa: ANN401
    good = isinstance(json, (list, tuple)) and len(json) == 2
    if not good or any(isinstance(v, bool) or not isinstance(v, int) for v in json):
        raise wrong_form("range: a pair of integers [lo, hi]", json)
    return json[0], json[1]


BOUNDS = Leaf("a pair of integers [lo, hi]", _load_bounds, list)


@dataclass(frozen=True)
class ParamArg:
    """An input: its slot, element type and shape, and bounds that the caller vouches for."""

    slot: int = key(SLOT)
    dtype: DType = key(DTYPE)
    shape: Shape = key(SHAPE)
    range: tuple[int, int] | None = key(BOUNDS, optional=True)


def _check_param(arg: ParamArg) -> ParamArg:
    if arg.range is not None:
        low, high = arg.range
        if not arg.dtype.is_int or arg.shape:
            raise ProgramError("E311", "expected range only on an integer scalar")
        if not arg.dtype.min <= low <= high <= arg.dtype.max:
            raise ProgramError("E311", f"expected lo ≤ hi within {arg.dtype}, got [{low}, {high}]")
    return arg


def _param_signature(src: tuple[UOp, ...], arg: ParamArg) -> Type:
    return Type(arg.dtype, arg.shape, Place())


def _param_interval(node: UOp) -> Interval:
    return node.arg.range or (node.dtype.min, node.dtype.max)


@dataclass(frozen=True)
class CallArg:
    """The name of a function, for printing."""

    name: str | None = key(text("a name"), optional=True)


@memoized
def parameters(body: UOp) -> dict[int, UOp]:
    """The PARAMs of a body by slot, not those of bodies that it calls; E408 on a clash."""
    found: dict[int, UOp] = {}
    for node in toposort((body,), lambda n: n.src[1:] if n.op is CALL else n.src):
        if node.op is PARAM and found.setdefault(node.arg.slot, node) is not node:
            raise ProgramError(
                "E408",
                f"expected one PARAM of slot {node.arg.slot}, got two that differ",
                (found[node.arg.slot], node),
            )
    return found


def _call_signature(src: tuple[UOp, ...], arg: CallArg | None) -> Type:
    body, *arguments = src
    wanted = parameters(body)
    count = max(wanted, default=-1) + 1
    if len(arguments) != count:
        raise ProgramError("E407", f"expected {count} argument(s), got {len(arguments)}", (body,))
    for slot, argument in enumerate(arguments):
        signatures.expect_value(argument)
        if slot in wanted:
            _check_argument(wanted[slot], argument)
    if body.dtype is void:
        return Type(void)
    signatures.expect_value(body)
    return Type(body.dtype, body.shape)


def _check_argument(wanted: UOp, given: UOp) -> None:
    if given.dtype is not wanted.dtype or given.shape != wanted.shape:
        raise ProgramError(
            "E407",
            f"expected {wanted.dtype}{list(wanted.shape)} for slot {wanted.arg.slot}, "
            f"got {given.dtype}{list(given.shape)}",
            (wanted, given),
        )


PARAM = Op("PARAM", 1, (0, 0), _param_signature, Record(ParamArg, _check_param), _param_interval)
CALL = Op(
    "CALL",
    1,
    (1, MANY),
    _call_signature,
    Record(CallArg),
    lambda node: node.src[0].interval,
    optional=True,
)

CAST = Op("CAST", 1, (1, 1), signatures.cast, DTYPE, intervals.cast)
NEG = Op("NEG", 1, (1, 1), signatures.unary(signatures.number), interval=intervals.negate)
RECIP = Op("RECIP", 1, (1, 1), signatures.unary(signatures.floating))
EXP2 = Op("EXP2", 1, (1, 1), signatures.unary(signatures.floating))
LOG2 = Op("LOG2", 1, (1, 1), signatures.unary(signatures.floating))

_binary = signatures.binary
ADD = Op("ADD", 1, (2, 2), _binary(signatures.number), interval=intervals.add, commutes=True)
MUL = Op(
    "MUL", 1, (2, 2), _binary(signatures.any_dtype), interval=intervals.multiply, commutes=True
)
MAX = Op("MAX", 1, (2, 2), _binary(signatures.any_dtype), interval=intervals.maximum, commutes=True)
FLOORDIV = Op("FLOORDIV", 1, (2, 2), _binary(signatures.integer), interval=intervals.quotient)
FLOORMOD = Op("FLOORMOD", 1, (2, 2), _binary(signatures.integer), interval=intervals.remainder)
CMPLT = Op("CMPLT", 1, (2, 2), _binary(signatures.number, bool_), interval=intervals.less)
CMPNE = Op(
    "CMPNE", 1, (2, 2), _binary(signatures.any_dtype, bool_), None, intervals.differ, commutes=True
)
WHERE = Op("WHERE", 1, (3, 3), signatures.select, interval=intervals.union)


def _return_signature(src: tuple[UOp, ...], arg: None) -> Type:
    for output in src:
        if output.dtype is void:
            raise ProgramError("E413", f"expected a value to return, got {output.op}", (output,))
        if output.place is not None and output.place.indexed:
            said = "expected a value to return, got a place; LOAD reads it"
            raise ProgramError("E413", said, (output,))
    return Type(void)


RETURN = Op("RETURN", 1, (1, MANY), _return_signature, internal=True)
"""The root of a program: its outputs in order. It stands for the format's `return`."""

UNARY = frozenset({CAST, NEG, RECIP, EXP2, LOG2})
BINARY = frozenset({ADD, MUL, MAX, FLOORDIV, FLOORMOD, CMPLT, CMPNE})
ELEMENTWISE = UNARY | BINARY | {WHERE}
OPS = frozenset({PARAM, CONST, CALL, RETURN}) | ELEMENTWISE


def param(slot: int, dtype: DType, shape: Shape = (), bounds: tuple[int, int] | None = None) -> UOp:
    """PARAM `slot`: an input of the program, or of the CALL body that it stands in."""
    node: UOp = PARAM(arg=ParamArg(slot, dtype, shape, bounds))
    return node


def program(*outputs: UOp) -> UOp:
    """A program that returns these values in order."""
    result: UOp = RETURN(*outputs)
    return result
