"""GitHub Classroom: a line `KEY=BASE64` an item of the scale, as a step of a workflow outputs it.

Behind the base64 is the JSON that Classroom's reporter reads: version, status, max_score, tests.
The reporter gets each document in one environment variable, so none may be longer than LONGEST.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from grader.formats import scale
from grader.formats.scale import Item, Part
from grader.results import RunResult
from grader.verdict import clean

LONGEST = 64_000
"""Characters of a document; Linux allows 131 072 bytes in one variable, and 2 MiB in all."""
LENGTHS = (4000, 1000, 200, 0)
"""Characters of a message; the first with which the document is short enough is taken."""
STATUS = {"passed": "pass", "partial": "fail", "failed": "fail", "open": "error"}


def text(run: RunResult) -> str:
    """All documents."""
    return "".join(f"{item.key}={encoded(item)}\n" for item in scale.all_items(run))


def encoded(item: Item) -> str:
    """One document, its messages cut as far as its length demands."""
    made = ""
    for length in LENGTHS:
        made = base64.b64encode(json.dumps(document(item, length)).encode()).decode()
        if len(made) <= LONGEST:
            break
    return made


def document(item: Item, length: int = LENGTHS[0]) -> dict[str, Any]:
    """An item as the reporter reads it."""
    return {
        "version": 1,
        "status": STATUS[item.state],
        "max_score": scale.exact(item.points),
        "tests": [_test(item, part, length) for part in item.parts],
    }


def _test(item: Item, part: Part, length: int) -> dict[str, Any]:
    return {
        "name": clean(part.name),
        "status": STATUS[part.state],
        "score": scale.exact(item.points * part.credit / len(item.parts)),
        "message": clean(part.message)[:length],
        "test_code": f"grader --week {item.week.week}",
        "filename": part.test.split("::")[0] or item.week.package,
        "line_no": 0,
        "duration": round(1000 * part.seconds),
    }
