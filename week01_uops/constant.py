"""The argument of CONST: a value of a dtype, exact for integers, rounded once for floats."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from week01_uops.args import DTYPE, Json, Leaf, Record, brief, key, wrong_form
from week01_uops.dtypes import DType, Value
from week01_uops.errors import ProgramError


class _Constant(NamedTuple):
    value: Value
    dtype: DType
    bits: bytes | None  # of a float, so that −0 and 0 differ


class Constant(_Constant):
    """The argument of CONST: a value of a dtype; floats are equal when their bits are.

    A tuple, because equality and hash of a tuple run in C.
    """

    __slots__ = ()

    def __new__(cls, value: Value, dtype: DType) -> Constant:
        """The constant; all NaNs are one."""
        if not isinstance(value, float):
            return super().__new__(cls, value, dtype, None)
        value = math.nan if value != value else value
        return super().__new__(cls, value, dtype, struct.pack("<d", value))

    def __repr__(self) -> str:
        return f"{self.value} {self.dtype}"


NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def constant(value: Value | str, dtype: DType) -> Constant:
    """The constant of `dtype` with this value: exact for integers, rounded for floats.

    Raises:
        ProgramError: E306 for a value of the wrong kind, E312 for one outside the dtype.
    """
    if dtype.kind == "bool":
        if not isinstance(value, bool):
            raise wrong_form("true or false for a bool constant", value)
        return Constant(value, dtype)
    if dtype.is_int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_form(f"an integer for a constant of {dtype}", value)
        if not dtype.min <= value <= dtype.max:
            raise ProgramError(
                "E312",
                f"expected a value of {dtype}, {dtype.min} to {dtype.max}, got {brief(value)}",
            )
        return Constant(value, dtype)
    return Constant(_float_value(value, dtype), dtype)


def _float_value(value: Value | str, dtype: DType) -> float:
    if isinstance(value, str) and value in NON_FINITE:
        return NON_FINITE[value]
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)):
        raise wrong_form(f'a number, "inf", "-inf" or "nan" for a constant of {dtype}', value)
    try:
        exact = float(value)
    except OverflowError:
        exact = math.inf
    rounded = dtype.round(exact)
    if math.isinf(rounded) and not (isinstance(value, float) and math.isinf(value)):
        raise ProgramError("E312", f"{brief(value)} overflows {dtype}")
    return rounded


def shortest(value: float, dtype: DType) -> float:
    """The float with the fewest decimal digits that rounds to `value`, the nearest of these.

    Where the gap to the next float above is wider than the one below, at powers of two, the
    decimal above may do where the nearest one does not.
    """
    power_of_two = abs(math.frexp(value)[0]) == 0.5
    for digits in range(16 if dtype.precision < 53 else 0):
        nearest = f"{value:.{digits}e}"
        candidate = float(nearest)
        if dtype.round(candidate) != value and power_of_two:
            away = 1 if value > 0 else -1
            unit = Decimal(1).scaleb(Decimal(nearest).adjusted() - digits)
            candidate = float(Decimal(nearest) + unit * away)
        if dtype.round(candidate) == value:
            return candidate
    return value


@dataclass(frozen=True)
class _RawConstant:
    value: Any = key(Leaf("a value", lambda json: json))
    dtype: DType = key(DTYPE)


class ConstantArgument:
    """{"value", "dtype"}, read together: the form of the value depends on the dtype."""

    expects = "an object with the keys value, dtype"

    def load(self, json: Json) -> Constant:
        """The constant of an object; E306, E307, E308, E310 or E312 say what is wrong."""
        if isinstance(json, Constant):
            return json
        raw = Record(_RawConstant).load(json)
        if isinstance(raw.value, float) and not math.isfinite(raw.value):
            message = f'the number overflows {raw.dtype}; "inf", "-inf" and "nan" are strings'
            raise ProgramError("E312", message)
        return constant(raw.value, raw.dtype)

    def dump(self, arg: Constant) -> Json:
        """The object, with non-finite floats as strings and others as short as they can be."""
        value: Json = arg.value
        if isinstance(value, float):
            names = {math.inf: "inf", -math.inf: "-inf"}
            finite = math.isfinite(value)
            value = shortest(value, arg.dtype) if finite else names.get(value, "nan")
        return {"value": value, "dtype": arg.dtype.name}
