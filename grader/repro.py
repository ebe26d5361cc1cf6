"""A stored failure as a folder that shows it again, and its rerun."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from grader import failures
from grader.codec import decode
from grader.failures import Record
from grader.judge import Judge
from grader.sandbox import Limits
from grader.subject import Subject, judged, reference
from grader.submission import load
from grader.verdict import SpecFailure
from grader.weeks import week_of

README = """# {sentence}

{verdict}: {message}

Test: `{test}`, week {week}, seed {seed}.

| file | what |
|---|---|
| `program.uop` | the program{shrunk} |
| `inputs/slotN.npy`, `.txt` | its inputs, where values matter |
| `expected/outputN.npy`, `.txt` | the right outputs |
| `got/outputN.npy`, `.txt` | the outputs of the compiler under judgement |
| `result.txt`, `stderr.txt` | what the compiler printed |
| `command.sh` | asks the compiler again |

Run `sh command.sh` to see what the compiler prints, `grader repro {id}` to judge it again.
Arrays of bfloat16 are stored as float32.
"""


def write_folder(kept: Record, folder: Path) -> None:
    """Everything known about a failure, as files."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"program.uop": kept["program"], "result.txt": kept["result"]}
    texts |= {"stderr.txt": kept["stderr"], "report.txt": failures.text(kept, 10_000) + "\n"}
    if kept["shrunk"]:
        texts["shrunk.uop"] = kept["shrunk"]
    if kept["command"]:
        program = (folder / "program.uop").resolve()
        texts["command.sh"] = f"{kept['command']} < '{program}'\n"
    more = "; `shrunk.uop` is the smallest that fails alike" if kept["shrunk"] else ""
    texts["README.md"] = README.format(**{**kept, "shrunk": more})
    for name, text in texts.items():
        failures.write_whole(folder / name, text)
    _write_arrays(kept, folder)


def _write_arrays(kept: Record, folder: Path) -> None:
    inputs: Mapping[int, Any] = decode(kept["inputs"] or {})
    groups = {
        "inputs": {f"slot{slot}": array for slot, array in inputs.items()},
        "expected": {f"output{n}": a for n, a in enumerate(decode(kept["expected"] or []))},
        "got": {f"output{n}": a for n, a in enumerate(decode(kept["got"] or []))},
    }
    for group, arrays in groups.items():
        for name, array in arrays.items():
            path = folder / group / name
            path.parent.mkdir(exist_ok=True)
            plain = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
            np.save(path.with_suffix(".npy"), plain)
            with np.printoptions(threshold=2000, linewidth=100):
                failures.write_whole(path.with_suffix(".txt"), f"{array}\n")


def subject(kept: Record, seconds: float | None = None) -> Subject:
    """What was judged, ready to be asked again."""
    week = week_of(kept["week"])
    if kept["submission"] is None:
        by = kept.get("reference")
        by = None if by is None else week_of(by)
        return reference(week, by, checked=kept.get("checked", False))
    submission = load(Path(kept["submission"]))
    submission.prepare()
    return judged(submission, week.last, Limits().within(seconds or submission.seconds))


def again(kept: Record, seconds: float | None = None) -> list[tuple[str, SpecFailure | None]]:
    """Judge the program, and the shrunk one, once more: what, and how it failed or None."""
    sanitize = kept.get("sanitize", False)
    judge = Judge(subject(kept, seconds), kept["week"], kept["seed"], seconds, sanitize=sanitize)
    claims = [("program.uop", kept["check"], decode(kept["sent"]), kept["arguments"])]
    if kept["shrunk"]:
        claims.append(
            ("shrunk.uop", kept["shrunk_check"], kept["shrunk"], kept["shrunk_arguments"])
        )
    found: list[tuple[str, SpecFailure | None]] = []
    for name, check, text, arguments in claims:
        try:
            judge.check(check, text, **decode(arguments))
            found.append((name, None))
        except SpecFailure as failure:
            found.append((name, failure))
    return found
