"""The schedule language: a schedule is a tuple of steps, each a function from body to body.

    [{"step": "split", "range": 1, "by": 64, "into": [5, 6]},
     {"step": "kind", "range": 6, "kind": "vector"}]

A step is data: it can be read from and written to JSON, printed, and applied. What it does, what
it asks for and why it may be refused stands at its function, in `split`, `arrange`, `staging` and
`hoist`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from week01_uops.args import Json, Leaf, Record, brief, integer, integers, key, word
from week01_uops.errors import ProgramError
from week01_uops.node import UOp
from week02_render.ops import KINDS
from week05_06_memory import (
    arrange,
    fetch,
    hoist,
    hold,
    loosen,
    part,
    split,
    staging,
    stream,
    widen,
)
from week05_06_memory.nests import ScheduleError

RANGE_NUMBER = integer("the number of a range, ≥ 0", 0)
RANGE_NUMBERS = integers("a list of numbers of ranges", 0, distinct=True)


def _load_pair(json: Json) -> tuple[int, int]:
    found = RANGE_NUMBERS.load(json)
    if len(found) != 2:
        raise ProgramError("E306", f"expected two numbers of ranges, got {brief(json)}")
    return found[0], found[1]


PAIR = Leaf("two numbers of ranges", _load_pair, list)


@dataclass(frozen=True)
class Split:
    """Range → tiles of `by`: `split.split`."""

    range: int = key(RANGE_NUMBER)
    by: int = key(integer("a size of a tile ≥ 1", 1))
    into: tuple[int, int] | None = key(PAIR, optional=True)
    rest: str | None = key(word("what becomes of the rest", split.RESTS), optional=True)

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return split.split(body, self.range, self.by, self.into, self.rest)


@dataclass(frozen=True)
class Kind:
    """How a range is carried out: `arrange.set_kind`."""

    range: int = key(RANGE_NUMBER)
    kind: str = key(word("a kind", KINDS))

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return arrange.set_kind(body, self.range, self.kind)


@dataclass(frozen=True)
class Reorder:
    """Loops of one nest in another order: `arrange.reorder`."""

    order: tuple[int, ...] = key(RANGE_NUMBERS)

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return arrange.reorder(body, self.order)


@dataclass(frozen=True)
class Join:
    """Two neighbouring loops as one: `arrange.join`."""

    outer: int = key(RANGE_NUMBER)
    inner: int = key(RANGE_NUMBER)
    into: int = key(RANGE_NUMBER)

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return arrange.join(body, self.outer, self.inner, self.into)


@dataclass(frozen=True)
class Stage:
    """The loads of a PARAM from a temporary: `staging.stage`."""

    slot: int = key(integer("a slot ≥ 0", 0))
    at: int | None = key(RANGE_NUMBER, optional=True)
    layout: tuple[int, ...] | None = key(integers("a list of axes", 0), optional=True)

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return staging.stage(body, self.slot, self.at, self.layout)


@dataclass(frozen=True)
class Hold:
    """Sums in temporaries: `hold.hold`."""

    sums: tuple[int, ...] = key(RANGE_NUMBERS)

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return hold.hold(body, self.sums)


@dataclass(frozen=True)
class Widen:
    """Temporaries with an axis for a loop: `widen.widen`."""

    range: int = key(RANGE_NUMBER)

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return widen.widen(body, self.range)


@dataclass(frozen=True)
class Loosen:
    """Bounds that depend on a loop: `loosen.loosen`."""

    range: int = key(RANGE_NUMBER)

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return loosen.loosen(body, self.range)


@dataclass(frozen=True)
class Hoist:
    """A reduction's loop outside those over the results: `hoist.hoist`."""

    range: int = key(RANGE_NUMBER)
    over: tuple[int, ...] = key(RANGE_NUMBERS)

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return hoist.hoist(body, self.range, self.over)


@dataclass(frozen=True)
class Part:
    """A reduction as partial results, by threads: `part.part`."""

    range: int = key(RANGE_NUMBER)
    parts: int = key(integer("a number of parts ≥ 2", 2))

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return part.part(body, self.range, self.parts)


@dataclass(frozen=True)
class Stream:
    """Results written past the caches: `stream.stream`."""

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return stream.stream(body)


@dataclass(frozen=True)
class Fetch:
    """What a loop reads next comes from memory meanwhile: `fetch.fetch`."""

    slot: int = key(integer("a slot ≥ 0", 0))
    range: int = key(RANGE_NUMBER)
    line: int = key(integer("a number of elements ≥ 1", 1))

    def apply(self, body: UOp) -> UOp:
        """The body after the step."""
        return fetch.fetch(body, self.slot, self.range, self.line)


Step = Split | Kind | Reorder | Join | Stage | Hold | Widen | Loosen | Hoist | Part | Stream | Fetch
Schedule = tuple[Step, ...]

STEPS: Mapping[str, type[Step]] = MappingProxyType(
    {step.__name__.lower(): step for step in get_args(Step)}
)


def to_json(schedule: Iterable[Step]) -> list[Json]:
    """The steps as JSON objects."""
    names = {step: name for name, step in STEPS.items()}
    return [{"step": names[type(s)], **Record(type(s)).dump(s)} for s in schedule]


def from_json(rows: Json) -> Schedule:
    """The steps of a list of JSON objects; ScheduleError says what is wrong, and where."""
    if not isinstance(rows, list):
        raise ScheduleError(f"expected a list of steps, got {brief(rows)}")
    return tuple(_step(place, row) for place, row in enumerate(rows, 1))


def _step(place: int, row: Json) -> Step:
    name = row.get("step") if isinstance(row, dict) else None
    if not isinstance(name, str) or name not in STEPS:
        known = ", ".join(STEPS)
        raise ScheduleError(f'step {place}: expected {{"step": one of {known}}}, got {brief(row)}')
    rest = {key: value for key, value in row.items() if key != "step"}
    try:
        found: Step = Record(STEPS[name]).load(rest)
    except ProgramError as fault:
        raise ScheduleError(f"step {place}: {name}: {fault.args[0]}") from fault
    return found


class Applied(NamedTuple):
    """A step, and the body before and after it."""

    step: Step
    before: UOp
    after: UOp


def apply(
    body: UOp, schedule: Iterable[Step], tell: Callable[[Applied], None] = lambda done: None
) -> UOp:
    """The body after all steps, in order.

    Raises:
        ScheduleError: a step is refused; names it.
    """
    for place, step in enumerate(schedule, 1):
        try:
            after = step.apply(body)
        except ScheduleError as refusal:
            raise ScheduleError(f"step {place}, {show(step)}: {refusal}") from refusal
        tell(Applied(step, body, after))
        body = after
    return body


def show(step: Step) -> str:
    """A step on one line."""
    (row,) = to_json([step])
    values = {name: value for name, value in row.items() if name != "step"}
    parts = [f"{name} {json.dumps(value)}" for name, value in values.items()]
    return " ".join([row["step"], *parts])


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in pairs:
        if name in found:
            raise ScheduleError(f"expected each key of an object once, got {brief(name)} again")
        found[name] = value
    return found


def read(text: str) -> dict[str, Schedule]:
    """A schedule file: `{"kernel": [step, …], …}`, kernels by name or "*" for all others.

    Raises:
        ScheduleError: the text is no JSON, or not of this form.
    """
    try:
        found: Any = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ScheduleError(f"expected JSON: {error}") from error
    except RecursionError:
        raise ScheduleError("expected steps that hold no lists in lists") from None
    if not isinstance(found, dict):
        raise ScheduleError(f'expected an object {{"kernel": [step, …]}}, got {brief(found)}')
    result = {}
    for name, rows in found.items():
        try:
            result[name] = from_json(rows)
        except ScheduleError as fault:
            raise ScheduleError(f"kernel {name}: {fault}") from fault
    return result
