"""Schedule files: what `--schedule` reads and `--schedule-out` writes.

{
  "add_128x160": [
    {"step": "split", "range": 0, "by": 4, "into": [3, 4]},
    {"step": "kind", "range": 4, "kind": "unroll"}
  ]
}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from week05_06_memory.nests import ScheduleError
from week05_06_memory.schedule import Schedule, read, to_json
from week05_06_memory.scheduling import NONE, Arranged


def read_schedules(file: Path | None) -> Mapping[str, Schedule]:
    """The schedules of a file by the name of their kernel; none without a file.

    Raises:
        ScheduleError: the file holds no schedules; says what is wrong where.
    """
    if file is None:
        return NONE
    try:
        return read(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ScheduleError(f"{file}: expected JSON as UTF-8") from None
    except ScheduleError as fault:
        raise ScheduleError(f"{file}: {fault}") from fault


def schedules_text(kernels: Iterable[Arranged]) -> str:
    """The schedules as a file that `read_schedules` reads: one step on a line."""
    parts = []
    for done in kernels:
        rows = [f"    {json.dumps(row)}" for row in to_json(item.step for item in done.steps)]
        body = "[\n" + ",\n".join(rows) + "\n  ]" if rows else "[]"
        parts.append(f"  {json.dumps(done.kernel, ensure_ascii=False)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
