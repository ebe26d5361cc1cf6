"""The log of a run: one JSON object a line, in the order in which things happened.

{"kind": "step", "step": 1, "loss": 8.3, "lr": 1e-05, "norm": 2.1, "seconds": 0.12, …}
{"kind": "validation", "step": 200, "loss": 4.1}
{"kind": "sample", "step": 1000, "text": "def …"}
{"kind": "compiled", "step": 0, "kernels": 143, "seconds": 12.0}
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Log:
    """A file that is added to, line by line.

    Args:
        path: the file.
        after: lines of later steps are removed first: the run goes on from this step.
    """

    def __init__(self, path: Path, after: int = 0) -> None:
        self.path = path
        kept = [r for r in read_log(path) if r.get("step", 0) <= after] if path.exists() else []
        scratch = path.with_name(path.name + ".new")
        scratch.write_text("".join(map(_line, kept)), encoding="utf-8")
        os.replace(scratch, path)

    def write(self, kind: str, step: int, **values: Any) -> None:  # noqa: ANN401 - JSON
        """Add a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line({"kind": kind, "step": step, **values}))


def read_log(path: Path) -> Iterator[Record]:
    """The lines of a log; a last one that was cut off by a crash is left out."""
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(record, dict):
            yield record


def _line(record: Record) -> str:
    """JSON knows no NaN: null stands for it."""
    finite = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()
    }
    return json.dumps(finite, ensure_ascii=False, allow_nan=False) + "\n"
