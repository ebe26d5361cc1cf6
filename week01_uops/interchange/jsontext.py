"""Strict JSON: exact integers, no repeated keys, no NaN; and one canonical spelling.

Numbers are spelled as ECMAScript's Number-to-string does, with -0 for the negative zero, and
strings as its JSON.stringify does. A blank follows each comma and colon.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from week01_uops.args import Json
from week01_uops.errors import ProgramError

DEPTH = 64
"""Brackets that may be open at once; an argument needs three."""

DIGITS = 400
"""Digits of an integer that are kept: with more it is outside every dtype all the same."""


class JsonError(Exception):
    """Text that is not one JSON value.

    Attributes:
        position: index of the fault in the text.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class _NegativeZero(int):
    """The integer literal -0: zero, but the negative zero where a float is due."""

    def __float__(self) -> float:
        return -0.0


def _integer(literal: str) -> int:
    return _NegativeZero() if literal == "-0" else int(literal[:DIGITS])


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ProgramError("E309", f"expected each key once, got {encode(twice)} twice")
    return result


class _NumberError(Exception):
    """A literal that JSON does not have."""


def _refuse(literal: str) -> None:
    raise _NumberError(literal)


_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_integer, parse_constant=_refuse)
_BLANKS = re.compile(r"[ \t\r\n]*")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]')


def decode(text: str, start: int = 0) -> tuple[Json, int]:
    """The JSON value at `start`, and the index behind it.

    Raises:
        JsonError: there is no JSON value there.
        ProgramError: E309, an object names a key twice.
    """
    begin = _BLANKS.match(text, start).end()  # type: ignore[union-attr]
    if text.count("[", begin) + text.count("{", begin) > DEPTH:
        _check_depth(text, begin)
    try:
        return _decoder.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        raise JsonError(f"expected one JSON value: {error.msg}", error.pos) from None
    except _NumberError as error:
        literal = str(error)
        raise JsonError(
            f'expected a JSON value, got {literal}; "inf", "-inf" and "nan" are strings',
            max(begin, text.find(literal, begin)),
        ) from None


def _check_depth(text: str, begin: int) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text, begin):
        if match[0] in "[{":
            depth += 1
            if depth > DEPTH:
                raise JsonError(f"expected at most {DEPTH} open brackets", match.start())
        elif match[0] in "]}":
            depth -= 1
        if depth <= 0:
            return


def encode(value: Json) -> str:
    """The canonical spelling of a JSON value; it recurses, arguments are shallow."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return spell(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quote(k)}: {encode(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(map(encode, value)) + "]"


_SURROGATE = re.compile("[\ud800-\udfff]")


def _quote(string: str) -> str:
    text = json.dumps(string, ensure_ascii=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def spell(value: float) -> str:
    """A finite float as ECMAScript's Number-to-string, but -0 for the negative zero.

    The shortest digits that read back, written plain for 1e-6 ≤ |value| < 1e21 and else with an
    exponent: 1, 0.5, 1e-7, 1.5e+21.
    """
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return sign + "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    return sign + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    """0.digits · 10^point."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{tail}e{point - 1:+d}"
