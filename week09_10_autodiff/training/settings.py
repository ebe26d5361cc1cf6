"""Dataclasses as tables of a TOML file: every field a key with a type, bounds and a remark.

{"layers": 4}   ⇄   layers = 4  # blocks
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T")
Value = bool | int | float | str | tuple[float, ...]


class ConfigError(ValueError):
    """A configuration is wrong: the key, what was expected, what came."""


@dataclass(frozen=True)
class Bounds:
    """What a key's value may be, beside its type.

    Attributes:
        least: the smallest number, or for `above` the one below all allowed ones.
        most: the largest number; for `below` the one above all allowed ones.
        choices: all texts that are allowed, if only some are.
    """

    remark: str = ""
    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    below: float = math.inf
    choices: tuple[str, ...] = ()

    def allows(self, value: Value) -> bool:
        """Whether a value of the right type is within the bounds."""
        if isinstance(value, str):
            return not self.choices or value in self.choices
        numbers = value if isinstance(value, tuple) else (value,)
        return all(
            self.least <= x <= self.most and self.above < x < self.below and math.isfinite(x)
            for x in numbers
        )

    def __str__(self) -> str:
        if self.choices:
            return " or ".join(f'"{choice}"' for choice in self.choices)
        told = [
            (self.least, f"≥ {self.least:g}"),
            (self.above, f"> {self.above:g}"),
            (self.most, f"≤ {self.most:g}"),
            (self.below, f"< {self.below:g}"),
        ]
        return " and ".join(text for bound, text in told if math.isfinite(bound))


def setting(default: T, remark: str, **bounds: Any) -> T:  # noqa: ANN401 - those of Bounds
    """A field with its default, a remark for whoever reads the file, and bounds."""
    made: T = field(default=default, metadata={"bounds": Bounds(remark, **bounds)})
    return made


def read_table(kind: type[T], given: object, where: str) -> T:
    """A dataclass from the table of its name; keys that are not given have their defaults.

    Raises:
        ConfigError: an unknown key, a value of another type or out of bounds.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: expected a table, got {shown(given)}")
    known = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
    for key in given:
        expect_known(key, known, where)
    return kind(**{key: _checked(value, known[key], where) for key, value in given.items()})


def expect_known(key: str, known: Iterable[str], where: str) -> None:
    """ConfigError if the key is none of those that are known."""
    names = list(known)
    if key not in names:
        near = difflib.get_close_matches(key, names, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{where}: expected one of {', '.join(names)}, got {key}{hint}")


def _checked(value: object, item: Field[Any], where: str) -> Value:
    bounds: Bounds = item.metadata["bounds"]
    default: Any = item.default
    found = _typed(value, default)
    if found is None or not bounds.allows(found):
        what = (bounds.choices and str(bounds)) or f"{_kind(default)} {bounds}".strip()
        raise ConfigError(f"{where} {item.name}: expected {what}, got {shown(value)}")
    return found


def _typed(value: object, default: Value) -> Value | None:
    """The value with its default's type, or None if it has none of that."""
    if isinstance(default, bool) or isinstance(value, bool):
        return value if isinstance(value, bool) and isinstance(default, bool) else None
    if isinstance(default, tuple):
        given = value if isinstance(value, list) else []
        good = all(isinstance(x, int | float) and not isinstance(x, bool) for x in given)
        return tuple(map(float, given)) if good and len(given) == len(default) else None
    if isinstance(default, float) and isinstance(value, int | float):
        return float(value)
    return value if isinstance(value, type(default)) else None


def _kind(default: Value) -> str:
    if isinstance(default, tuple):
        return f"a list of {len(default)} numbers"
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return names[type(default)]


def shown(value: object) -> str:
    """A value as TOML spells it; tables and others in short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, str):
        escaped = "".join(_escaped(c) for c in value)
        return f'"{escaped}"'
    return "a table" if isinstance(value, Mapping) else repr(value)


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\x7f" or ord(character) < 0x20:
        return f"\\u{ord(character):04x}"
    return character


def table_lines(name: str, table: object) -> list[str]:
    """[name], and a line `key = value  # remark` for every field of a dataclass."""
    items = fields(table)  # type: ignore[arg-type]
    lines = [f"{item.name} = {shown(getattr(table, item.name))}" for item in items]
    width = max(map(len, lines))
    remarks = [item.metadata["bounds"].remark for item in items]
    told = [f"{line:{width}}  # {remark}" for line, remark in zip(lines, remarks, strict=True)]
    return [f"[{name}]", *told]
