"""Argument specifications: how an op's argument is read from JSON, checked and written back.

An op declares one `Argument`. `check` is the domain test that every constructor runs; `load`
and `dump` convert from and to plain JSON values, keys in the order of declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from json import dumps
from typing import Any, Protocol

from week01_uops import dtypes
from week01_uops.dtypes import DType
from week01_uops.errors import ProgramError

Json = Any


class Argument(Protocol):
    """What an op takes after the colon."""

    @property
    def expects(self) -> str:
        """What an error message says was expected."""

    def load(self, json: Json) -> Any:  # noqa: ANN401 - each argument has its own class
        """Check a JSON value, or an argument, and convert it; E306 to E312."""

    def dump(self, arg: Any) -> Json:  # noqa: ANN401
        """The JSON value of an argument."""


def wrong_form(expected: str, json: Json) -> ProgramError:
    """E306, naming what was expected and what came."""
    return ProgramError("E306", f"expected {expected}, got {brief(json)}")


def brief(json: Json) -> str:
    """A short rendering of a JSON value for an error message."""
    try:
        text = _spell(json)
    except (TypeError, ValueError, RecursionError):
        text = "something that is no JSON"
    return text if len(text) <= 60 else text[:57] + "..."


def _spell(json: Json) -> str:
    return repr(json) if isinstance(json, DType) else dumps(json, ensure_ascii=False)


@dataclass(frozen=True)
class Leaf:
    """A JSON scalar or list with its own reader and writer."""

    expects: str
    load: Callable[[Json], Any]
    dump: Callable[[Any], Json] = lambda arg: arg


def _is_int(json: Json) -> bool:
    return isinstance(json, int) and not isinstance(json, bool)


def integer(expects: str, low: int, high: int = (1 << 63) - 1) -> Leaf:
    """An integer in [low, high]."""

    def load(json: Json) -> int:
        if not _is_int(json):
            raise wrong_form(expects, json)
        if not low <= json <= high:
            raise ProgramError("E311", f"expected {expects}, got {brief(json)}")
        return int(json)

    return Leaf(expects, load)


def integers(expects: str, low: int, *, distinct: bool = False) -> Leaf:
    """A list of integers ≥ low, each once if `distinct`."""

    def load(json: Json) -> tuple[int, ...]:
        if not isinstance(json, Sequence) or isinstance(json, str) or not all(map(_is_int, json)):
            raise wrong_form(expects, json)
        if any(not low <= item < 1 << 63 for item in json):
            raise ProgramError("E311", f"expected {expects}, got {brief(list(json))}")
        if distinct and len(set(json)) != len(json):
            raise ProgramError("E311", f"expected {expects}, each once, got {brief(list(json))}")
        return tuple(json)

    return Leaf(expects, load, list)


def pairs(expects: str, *, ordered: bool) -> Leaf:
    """A list of pairs of integers ≥ 0; `ordered` pairs do not decrease."""

    def load(json: Json) -> tuple[tuple[int, int], ...]:
        if not isinstance(json, Sequence) or isinstance(json, str):
            raise wrong_form(expects, json)
        for pair in json:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise wrong_form(expects, json)
            if not all(map(_is_int, pair)):
                raise wrong_form(expects, json)
            if any(not 0 <= item < 1 << 63 for item in pair) or (ordered and pair[0] > pair[1]):
                raise ProgramError("E311", f"expected {expects}, got {brief(list(pair))}")
        return tuple((pair[0], pair[1]) for pair in json)

    return Leaf(expects, load, lambda arg: [list(pair) for pair in arg])


def word(expects: str, choices: Mapping[str, Any]) -> Leaf:
    """One of a few words, each standing for a value."""
    names = {id(value): name for name, value in choices.items()}

    def load(json: Json) -> Any:  # noqa: ANN401
        if not isinstance(json, str):
            raise wrong_form(expects, json)
        if json not in choices:
            listed = ", ".join(choices)
            raise ProgramError("E311", f"expected {expects} ({listed}), got {brief(json)}")
        return choices[json]

    return Leaf(expects, load, lambda arg: names[id(arg)])


def text(expects: str) -> Leaf:
    """Any string."""

    def load(json: Json) -> str:
        if not isinstance(json, str):
            raise wrong_form(expects, json)
        return json

    return Leaf(expects, load)


def _load_dtype(json: Json) -> DType:
    if isinstance(json, DType):
        return json
    if not isinstance(json, str):
        raise wrong_form("the name of a dtype as a string", json)
    if json not in dtypes.BY_NAME:
        known = ", ".join(dtypes.BY_NAME)
        raise ProgramError("E310", f"expected a dtype ({known}), got {brief(json)}")
    return dtypes.BY_NAME[json]


DTYPE = Leaf("the name of a dtype", _load_dtype, lambda dtype: dtype.name)
SHAPE = integers("a shape: a list of sizes ≥ 0", 0)
SLOT = integer("a slot ≥ 0", 0)


def key(leaf: Leaf, *, optional: bool = False, week: int = 1) -> Any:  # noqa: ANN401 - a field
    """Declare a field of a `Record`: its leaf, whether it may be left out, its first week."""
    return field(default=None if optional else MISSING, metadata={"leaf": leaf, "week": week})


def later_keys(arg: object) -> list[tuple[str, int]]:
    """The keys of a record that are set and came after week 1, with their weeks."""
    if not is_dataclass(arg):
        return []
    dated = [(f.name, f.metadata.get("week", 1)) for f in fields(arg)]
    return [(name, week) for name, week in dated if week > 1 and getattr(arg, name) is not None]


@dataclass(frozen=True)
class Record:
    """A JSON object read into a frozen dataclass whose fields are declared with `key`.

    `finish` may check or normalize the whole record.
    """

    cls: type
    finish: Callable[[Any], Any] = lambda record: record

    @property
    def expects(self) -> str:
        """The keys, as an error message names them."""
        return "an object with the keys " + ", ".join(f.name for f in fields(self.cls))

    def load(self, json: Json) -> Any:  # noqa: ANN401
        """Read the object; E306 to E312 say what is wrong with it, all of it."""
        if isinstance(json, self.cls):
            return self.finish(json)
        if not isinstance(json, Mapping):
            raise wrong_form(self.expects, json)
        known = {f.name: f for f in fields(self.cls)}
        faults: list[ProgramError] = []
        values = {}
        for name in json:
            try:
                values[name] = self._load_key(known, name, json[name])
            except ProgramError as fault:
                faults.append(fault)
        for name, wanted in known.items():
            if name not in json and wanted.default is MISSING:
                faults.append(ProgramError("E307", f"expected {self.expects}; {name} is missing"))
        if faults:
            faults[0].also = tuple(faults[1:])
            raise faults[0]
        return self.finish(self.cls(**values))

    def _load_key(self, known: Mapping[str, Field[Any]], name: str, json: Json) -> Any:  # noqa: ANN401
        if name not in known:
            listed = ", ".join(known)
            raise ProgramError("E308", f"expected the keys {listed}, got {brief(name)}")
        return known[name].metadata["leaf"].load(json)

    def dump(self, arg: Any) -> Json:  # noqa: ANN401
        """The object, keys in the order of declaration, absent optional ones left out."""
        return {
            f.name: f.metadata["leaf"].dump(value)
            for f in fields(self.cls)
            if (value := getattr(arg, f.name)) is not None
        }
