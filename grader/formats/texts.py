"""Text from submissions, made fit for files that others read."""

from __future__ import annotations

from collections.abc import Iterator

from grader.formats.scale import Item, Part, shown
from grader.verdict import clean, excerpt

LISTED = 10
"""Parts of an item that are shown whole; of further ones, a line each."""


def described(item: Item) -> str:
    """An item in words: its points, and why they are not all there."""
    good = sum(part.state == "passed" for part in item.parts)
    lines = [
        f"{shown(item.earned)} of {shown(item.points)} points: {good} of {len(item.parts)} passed"
    ]
    if item.open:
        lines.append(
            f"{shown(item.open)} points are open: not judged, so neither earned nor lost for good"
        )
    if item.week.problem:
        lines.append(excerpt(item.week.problem, 20))
    lacking = [part for part in item.parts if part.state != "passed"]
    for number, part in enumerate(lacking):
        lines += _part(part, whole=number < LISTED)
    return clean("\n".join(lines))


def _part(part: Part, *, whole: bool) -> Iterator[str]:
    credit = f" {part.credit:g}" if part.state == "partial" else ""
    first = f"{part.state}{credit}: {part.name}"
    if not whole or not part.message:
        yield first
    elif "\n" in part.message:
        yield from ("", first)
        yield from (f"    {line}" for line in part.message.splitlines())
    else:
        yield f"{first} ({part.message})"
